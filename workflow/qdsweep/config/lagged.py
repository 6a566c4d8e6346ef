"""Families of reinforcement learning that learn from one batch while the next one is played."""

from typing import Annotated, Literal

from pydantic import Field

from qdsweep.config.base import NOW
from qdsweep.config.rl import (
    ActorCritic,
    Gamma,
    LearningRate,
    MaxGradNorm,
    ReinforcementLearning,
    RMSPropEps,
    UseRMSProp,
)

ReturnSteps = Annotated[
    int, Field(ge=1, description="rewards of a return, before a value takes over [steps]")
]


class _ValueBased(ReinforcementLearning):
    """A network of the values of actions, the best of which the policy takes."""

    buffer_size: int = Field(
        default=1_000_000,
        ge=1,
        description="latest transitions that are kept; a full buffer makes large reload files "
        "[transitions]",
    )
    learning_starts: int = Field(
        default=100,
        ge=0,
        description="environment steps before the first gradient step [steps]",
        json_schema_extra=NOW,
    )
    minibatch: int = Field(
        default=32,
        ge=1,
        description="transitions of a gradient step (stable-baselines3's batch_size) [transitions]",
        json_schema_extra=NOW,
    )
    gamma: Gamma = 0.99
    train_freq: int = Field(
        default=4,
        ge=1,
        description="environment steps between two trainings, and of an iteration, at least: it "
        "plays whole batches until there are so many [steps]",
        json_schema_extra=NOW,
    )
    gradient_steps: int = Field(
        default=1,
        ge=1,
        description="gradient steps of a training [steps]",
        json_schema_extra=NOW,
    )
    target_update_interval: int = Field(
        default=10_000,
        ge=1,
        description="environment steps from one update of the target network to the next; it is "
        "due when `train_freq` steps have gone by [steps]",
        json_schema_extra=NOW,
    )
    tau: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="how far the target network follows in an update; 1: all the way",
        json_schema_extra=NOW,
    )
    max_grad_norm: MaxGradNorm = 10

    @property
    def sampled_steps(self) -> int:
        """Environment steps of an iteration, at least."""
        return self.train_freq


class DQN(_ValueBased):
    """Deep Q-learning (DQN) of stable-baselines3, from whole episodes."""

    code = "qdsweep.algorithms.rl.dqn:DQN"
    own_papers = ("mnih2015human",)

    type: Literal["dqn"]
    learning_rate: LearningRate = 1e-4
    n_steps: ReturnSteps = 1
    exploration_steps: int = Field(
        default=10_000,
        ge=1,
        description="environment steps in which the probability of a random action falls: "
        "stable-baselines3's exploration_fraction of all steps, which a longer budget does not "
        "change here [steps]",
    )
    exploration_initial_eps: float = Field(
        default=1.0, ge=0, le=1, description="the probability of a random action at first"
    )
    exploration_final_eps: float = Field(
        default=0.05, ge=0, le=1, description="the probability of a random action afterwards"
    )


class ApexDQN(_ValueBased):
    """Ape-X DQN in step with its actors: prioritised replay, rows that explore differently.

    Its learner has a fixed lag of one iteration instead of running freely beside the actors.
    """

    code = "qdsweep.algorithms.rl.apex_dqn:ApexDQN"
    own_papers = ("horgan2018distributed", "schaul2016prioritized", "vanhasselt2016deep")

    type: Literal["apex_dqn"]
    learning_rate: LearningRate = 1e-4
    n_steps: ReturnSteps = 3
    eps: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="row i of N takes a random action with the probability "
        "eps^(1 + eps_alpha i / (N - 1))",
    )
    eps_alpha: float = Field(
        default=7.0, ge=0, description="how much less the last rows explore, see `eps`"
    )
    priority_exponent: float = Field(
        default=0.6,
        ge=0,
        description="exponent of the errors, in proportion to which transitions are drawn; 0 draws "
        "uniformly",
    )
    importance_exponent: float = Field(
        default=0.4,
        ge=0,
        description="exponent of the weights that make up for drawing some more often; 1 does so "
        "in full",
        json_schema_extra=NOW,
    )


class IMPALA(ActorCritic):
    """IMPALA in step with its actors: they play with an earlier policy, and V-trace corrects it.

    How much earlier is fixed, instead of depending on who is quick.
    """

    code = "qdsweep.algorithms.rl.impala:IMPALA"
    own_papers = ("espeholt2018impala",)

    type: Literal["impala"]
    learning_rate: LearningRate = 6e-4
    n_steps: int = Field(
        default=20,
        ge=1,
        description="the most steps of an unroll, at whose end a value takes over [steps]",
        json_schema_extra=NOW,
    )
    minibatch: int = Field(
        default=32,
        ge=1,
        description="unrolls of a gradient step; each is used once [unrolls]",
        json_schema_extra=NOW,
    )
    gamma: Gamma = 0.99
    lag: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="batches from the policy that learns back to the one that has played what it "
        "learns from [batches]",
    )
    rho_bar: float = Field(
        default=1.0,
        gt=0,
        description="where V-trace cuts the ratio of new and old probability of an action",
        json_schema_extra=NOW,
    )
    c_bar: float = Field(
        default=1.0,
        gt=0,
        description="where it cuts that ratio for what later steps say of earlier ones",
        json_schema_extra=NOW,
    )
    use_rms_prop: UseRMSProp = True
    rms_prop_eps: RMSPropEps = 1e-5
