"""Families of reinforcement learning: stable-baselines3's learners, with its names and defaults."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from qdsweep.config.archive_kinds import LearnerShares
from qdsweep.config.family import Family, Units
from qdsweep.config.model import NOW, FromZero

# For reload files: what may be named, and former names -> the names now.
_LEARNERS = f"{__package__}.learners"
PICKLED = (_LEARNERS, f"{__package__}.reward_scale")
MOVED = {
    **{
        f"qdsweep.algorithms.rl.{name}": f"{_LEARNERS}.{name}"
        for name in ("dqn", "impala", "on_policy", "steps")
    },
    "qdsweep.algorithms.rl.apex_dqn": f"{_LEARNERS}.dqn",
    "qdsweep.algorithms.rl.base": f"{_LEARNERS}.policy",
    "qdsweep.algorithms.rl.dqn:Replay": f"{_LEARNERS}.dqn:NStepReplay",
    "qdsweep.algorithms.rl.learner": f"{_LEARNERS}.sb3_learner",
    "qdsweep.algorithms.rl.priorities": f"{_LEARNERS}.dqn",
    "qdsweep.algorithms.rl.replay": f"{_LEARNERS}.dqn",
    "qdsweep.algorithms.rl.replay:Replay": f"{_LEARNERS}.dqn:NStepReplay",
    "qdsweep.algorithms.rl.state": f"{_LEARNERS}.sb3_learner",
    "qdsweep.algorithms.rl.vtrace": f"{_LEARNERS}.impala",
    "qdsweep.config.lagged": __name__,
    "qdsweep.config.rl": __name__,
}

# Keys of several learners, with different defaults.
LearningRate = Annotated[
    float,
    Field(
        title="learning rate",
        gt=0,
        description="learning rate of the optimiser",
        json_schema_extra=NOW,
    ),
]
Gamma = Annotated[
    float,
    Field(
        title="discount factor",
        ge=0,
        le=1,
        description="discount of later rewards",
        json_schema_extra=NOW,
    ),
]
SampledSteps = Annotated[
    int,
    Field(
        ge=1,
        description=(
            "minimum decisions of an iteration, which plays whole batches until it has "
            "this many [decisions]"
        ),
        json_schema_extra=NOW,
    ),
]
GAELambda = Annotated[
    float,
    Field(
        title="GAE parameter",
        ge=0,
        le=1,
        description=(
            "lambda of generalised advantage estimation: 1 uses the observed returns, 0 the value "
            "function after one step"
        ),
        json_schema_extra=NOW,
    ),
]
NormalizeAdvantage = Annotated[
    bool, Field(description="whether the advantages of a gradient step are normalised")
]
MaxGradNorm = Annotated[
    float,
    Field(gt=0, description="gradients are clipped to this norm", json_schema_extra=NOW),
]
UseRMSProp = Annotated[bool, Field(description="true: the optimiser is RMSprop; false: Adam")]
RMSPropEps = Annotated[float, Field(gt=0, description="RMSprop's epsilon")]

ReturnSteps = Annotated[
    int,
    Field(
        ge=1, description="number of rewards in a return, before the value function is used [steps]"
    ),
]


class ReinforcementLearning(Family):
    """A family that improves one policy, whose greedy episodes a passive archive records.

    `batch_size` solutions of an iteration are the policy as it explores. In every
    `evaluate_every`-th iteration, from the first on, it is also played greedily. Only these
    episodes are added to the archive. A decision is an action of the policy: one environment step,
    or `frame_skip` of them in an Atari game.
    """

    own_papers: ClassVar[tuple[str, ...]]

    evaluate_every: int = Field(
        default=10,
        ge=1,
        description="interval between iterations with greedy episodes [iterations]",
        json_schema_extra=NOW,
    )
    evaluation_episodes: int = Field(
        default=10,
        ge=1,
        description=(
            "greedy evaluations of such an iteration, in addition to its `batch_size` [evaluations]"
        ),
        json_schema_extra=NOW,
    )

    decay_steps: int | None = Field(
        title="a linear decay to 0 in ... decisions",
        default=None,
        ge=1,
        description=(
            "decisions after which learning_rate (and PPO's clip_range) have decreased "
            "linearly to 0, where they stay; null: they are constant [decisions]"
        ),
        json_schema_extra=NOW,
    )

    unroll: int | None = Field(
        title="unrolls of ... decisions",
        default=None,
        ge=1,
        description=(
            "decisions of each of the `batch_size` exploring rows of an iteration, which continue "
            "the episodes of the iteration before, as the environments of stable-baselines3 and "
            "RLlib do; null: rows play whole episodes [decisions]"
        ),
    )

    clip_rewards: bool = Field(
        default=False,
        description=(
            "true: the learner sees the sign of each reward, as Mnih et al. (2015); the objective, "
            "`return` and `exploring_return` have the rewards themselves"
        ),
    )

    learner_shares: LearnerShares = 1
    device: Literal["cpu", "cuda"] = Field(
        title="training on",
        default="cpu",
        description=(
            "where networks are trained: cpu, or the first GPU (cuda) that the main process sees. "
            "The results of a GPU depend on its model, driver and CUDA"
        ),
    )

    @property
    def packages(self) -> tuple[str, ...]:
        """What the extra `rl` brings."""
        return ("torch", "stable_baselines3")

    @property
    def libraries(self) -> tuple[str, ...]:
        """What the extra `rl` brings, and what its archive computes with."""
        return ("torch", "stable-baselines3", *super().libraries)

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True

    @property
    def needs_gpu(self) -> bool:
        """Whether its networks are trained on a GPU."""
        return self.device == "cuda"

    @property
    def explores(self) -> bool:
        """Whether it plays one policy many times, with other random numbers each time."""
        return True

    @property
    def sampled_steps(self) -> int:
        """Decisions of an iteration, at least; 1 for one batch."""
        return self.unroll or 1

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: its own, those of `cite`, the library's, the archive's."""
        papers = (*self.own_papers, *self.cite, "raffin2021stable", *self.archive.papers)
        return tuple(dict.fromkeys(papers))

    def greedy_every(self, batch_size: int) -> tuple[int, int]:
        """Returns iterations between greedy episodes of its policy, and least decisions of each."""
        rows = self.unroll * batch_size if self.unroll else self.sampled_steps
        return self.evaluate_every, rows

    def first_iteration(self, num_emitters: int, batch_size: int, drawn: int | None) -> int:
        """Returns the number of solutions of the first iteration, if it has one batch."""
        return batch_size + self.evaluation_episodes


class ActorCritic(ReinforcementLearning):
    """A policy and a value function."""

    ent_coef: FromZero = Field(
        default=0.0, ge=0, description="weight of the entropy in the loss", json_schema_extra=NOW
    )
    vf_coef: float = Field(
        default=0.5,
        ge=0,
        description="weight of the value function's error in the loss",
        json_schema_extra=NOW,
    )
    max_grad_norm: MaxGradNorm = 0.5
    vf_hidden: list[Units] = Field(
        title="a value function with hidden layers of ... units",
        default=[64, 64],
        description=(
            "sizes of the hidden layers of the value function, with the activation of the "
            "domain's `policy`. On screens they follow the policy's own layers, which both share "
            "[units]"
        ),
    )
    log_std_init: FromZero = Field(
        default=0.0,
        description="logarithm of the first standard deviation of the outputs, where actions are "
        "continuous",
    )
    ortho_init: bool = Field(
        default=True,
        description="whether the first weights are orthogonal, with a small last layer of the "
        "policy; false: torch's uniform ones",
    )
    normalize_rewards: bool = Field(
        default=False,
        description="true: the learner sees each reward divided by the standard deviation of all "
        "discounted returns so far, clipped to 10 (stable-baselines3's VecNormalize). The "
        "objective and `return` have the rewards themselves",
    )

    @model_validator(mode="after")
    def _check_rewards(self) -> "ActorCritic":
        if self.clip_rewards and self.normalize_rewards:
            raise ValueError(
                "clip_rewards and normalize_rewards are both true: signs of rewards need no scale. "
                "Set one of them to false"
            )
        return self

    @property
    def networks(self) -> dict[str, list[int]]:
        """The value function."""
        return {"vf_hidden": self.vf_hidden}

    @property
    def unused(self) -> frozenset[str]:
        """The setting of the other optimiser."""
        return frozenset() if getattr(self, "use_rms_prop", True) else frozenset({"rms_prop_eps"})

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the setting of the other optimiser; see `Model`."""
        yield from super().idle()
        if not getattr(self, "use_rms_prop", True):
            yield from self.set_keys("use_rms_prop is false", "rms_prop_eps")


class OnPolicy(ActorCritic):
    """A policy and a value function that learn from episodes of the current policy."""

    code = "qdsweep.features.rl.learners.on_policy:OnPolicyAlgorithm"

    return_steps: int | None = Field(
        title="returns of ... steps",
        default=None,
        ge=1,
        description=(
            "decisions after which a return is cut at the value function, as at the ends of "
            "stable-baselines3's rollouts of n_steps; null: at the end of an episode or an unroll "
            "[decisions]"
        ),
        json_schema_extra=NOW,
    )

    @property
    def sampled_steps(self) -> int:
        """Decisions of an iteration, at least."""
        return self.unroll or int(self.n_steps)  # type: ignore[attr-defined]

    @property
    def buffers(self) -> dict[str, int]:
        """The transitions of an iteration."""
        return {"unroll" if self.unroll else "n_steps": self.sampled_steps}

    @property
    def unused(self) -> frozenset[str]:
        """Also the decisions of an iteration where `unroll` decides on them."""
        return super().unused | (frozenset({"n_steps"}) if self.unroll else frozenset())

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the decisions of an iteration where `unroll` decides on them; see `Model`."""
        yield from super().idle()
        if self.unroll:
            why = f"an iteration has unroll = {self.unroll} decisions of each row"
            yield from self.set_keys(why, "n_steps")


class PPO(OnPolicy):
    """Proximal policy optimisation (PPO) of stable-baselines3, from whole episodes."""

    own_papers = ("schulman2017proximal",)

    type: Literal["ppo"]
    learning_rate: LearningRate = 3e-4
    n_steps: SampledSteps = 2048
    gamma: Gamma = 0.99
    gae_lambda: GAELambda = 0.95
    normalize_advantage: NormalizeAdvantage = True
    minibatch: int = Field(
        title="minibatches of ... transitions",
        default=64,
        ge=2,
        description="transitions of a gradient step (stable-baselines3's batch_size) [transitions]",
        json_schema_extra=NOW,
    )
    n_epochs: int = Field(
        title="... epochs",
        default=10,
        ge=1,
        description="number of passes over the transitions of an iteration [epochs]",
        json_schema_extra=NOW,
    )
    clip_range: float = Field(
        title="clip range",
        default=0.2,
        gt=0,
        description="maximum distance of the ratio of new and old probability from 1",
        json_schema_extra=NOW,
    )
    clip_range_vf: float | None = Field(
        default=None,
        gt=0,
        description="maximum change of a value in an iteration; null: no limit [return]",
        json_schema_extra=NOW,
    )
    target_kl: float | None = Field(
        default=None,
        gt=0,
        description="an iteration's training ends where the policies' divergence is above 1.5 "
        "times this; null: never [nats]",
        json_schema_extra=NOW,
    )


class A2C(OnPolicy):
    """Advantage actor-critic (A2C) of stable-baselines3, from whole episodes."""

    own_papers = ("mnih2016asynchronous",)

    type: Literal["a2c"]
    learning_rate: LearningRate = 7e-4
    n_steps: SampledSteps = 5
    gamma: Gamma = 0.99
    gae_lambda: GAELambda = 1.0
    normalize_advantage: NormalizeAdvantage = False
    minibatch: int | None = Field(
        title="minibatches of ... transitions",
        default=None,
        ge=2,
        description="transitions of a gradient step, each used once; null: one step per iteration "
        "with all transitions [transitions]",
        json_schema_extra=NOW,
    )
    use_rms_prop: UseRMSProp = True
    rms_prop_eps: RMSPropEps = 1e-5


class ValueBased(ReinforcementLearning):
    """A network of action values: the policy takes the action with the highest value."""

    buffer_size: int = Field(
        title="a replay buffer of ... transitions",
        default=1_000_000,
        ge=1,
        description=(
            "number of latest transitions to keep; a full buffer makes large reload files "
            "[transitions]"
        ),
    )
    learning_starts: int = Field(
        default=100,
        ge=0,
        description="decisions before the first gradient step [decisions]",
        json_schema_extra=NOW,
    )
    minibatch: int = Field(
        title="minibatches of ... transitions",
        default=32,
        ge=1,
        description="transitions of a gradient step (stable-baselines3's batch_size) [transitions]",
        json_schema_extra=NOW,
    )
    gamma: Gamma = 0.99
    train_freq: int = Field(
        default=4,
        ge=1,
        description=(
            "decisions between two trainings, and the minimum of an iteration, which "
            "plays whole batches until it has this many [decisions]"
        ),
        json_schema_extra=NOW,
    )
    gradient_steps: int = Field(
        title="... gradient steps per training",
        default=1,
        ge=1,
        description="gradient steps of a training [steps]",
        json_schema_extra=NOW,
    )
    target_update_interval: int = Field(
        default=10_000,
        ge=1,
        description=(
            "decisions between updates of the target network, checked after every "
            "`train_freq` decisions [decisions]"
        ),
        json_schema_extra=NOW,
    )
    tau: float = Field(
        title="target update rate",
        default=1.0,
        gt=0,
        le=1,
        description="interpolation factor of the target network in an update; 1: a full copy",
        json_schema_extra=NOW,
    )
    max_grad_norm: MaxGradNorm = 10

    @property
    def sampled_steps(self) -> int:
        """Decisions of an iteration, at least."""
        return self.unroll or self.train_freq

    @property
    def replays(self) -> bool:
        """Whether it learns from the steps of earlier iterations, which a buffer keeps."""
        return True

    @property
    def buffers(self) -> dict[str, int]:
        """The replay buffer, and what it draws for a gradient step."""
        return {"buffer_size": self.buffer_size, "minibatch": self.minibatch}


class DQN(ValueBased):
    """Deep Q-learning (DQN) of stable-baselines3, from whole episodes."""

    code = "qdsweep.features.rl.learners.dqn:DQN"
    own_papers = ("mnih2015human",)

    type: Literal["dqn"]
    learning_rate: LearningRate = 1e-4
    n_steps: ReturnSteps = 1
    exploration_steps: int = Field(
        default=10_000,
        ge=1,
        description=(
            "decisions in which the probability of a random action decreases. In "
            "stable-baselines3 this is a fraction of all steps (exploration_fraction); here it "
            "does not depend on the budget [decisions]"
        ),
    )
    exploration_initial_eps: float = Field(
        default=1.0, ge=0, le=1, description="initial probability of a random action"
    )
    exploration_final_eps: float = Field(
        default=0.05, ge=0, le=1, description="final probability of a random action"
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the duration of a decrease from a value to itself; see `Model`."""
        yield from super().idle()
        if self.exploration_initial_eps == self.exploration_final_eps:
            why = "exploration_initial_eps and exploration_final_eps are equal"
            yield from self.set_keys(why, "exploration_steps")


class ApexDQN(ValueBased):
    """Synchronous Ape-X DQN: prioritised replay, and rows that explore differently.

    Its learner has a fixed lag of one iteration. In the original, it runs freely next to the
    actors.
    """

    code = "qdsweep.features.rl.learners.dqn:ApexDQN"
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
        default=7.0, ge=0, description="how much less the last rows explore: see `eps`"
    )
    priority_exponent: float = Field(
        default=0.6,
        ge=0,
        description=(
            "exponent of the errors: transitions are drawn in proportion to the result; 0: "
            "uniformly"
        ),
    )
    importance_exponent: float = Field(
        default=0.4,
        ge=0,
        description="exponent of the weights that correct the unequal drawing; 1: full correction",
        json_schema_extra=NOW,
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields exponents of numbers that they do not change; see `Model`."""
        yield from super().idle()
        if self.eps in (0, 1):
            yield from self.set_keys(f"eps is {self.eps:g}", "eps_alpha")
        if self.priority_exponent == 0:
            yield from self.set_keys("priority_exponent is 0", "importance_exponent")


class IMPALA(ActorCritic):
    """Synchronous IMPALA: its actors play with an earlier policy, and V-trace corrects it.

    The lag is fixed, and does not depend on the speed of the actors.
    """

    code = "qdsweep.features.rl.learners.impala:IMPALA"
    own_papers = ("espeholt2018impala",)

    type: Literal["impala"]
    learning_rate: LearningRate = 6e-4
    n_steps: int = Field(
        default=20,
        ge=1,
        description="maximum length of an unroll, at whose end the value function is used [steps]",
        json_schema_extra=NOW,
    )
    minibatch: int = Field(
        title="minibatches of ... unrolls",
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
        description=(
            "number of batches between the policy that learns and the policy that played its data "
            "[batches]"
        ),
    )
    rho_bar: float = Field(
        default=1.0,
        gt=0,
        description="V-trace clips the ratio of new and old probability of an action to this value",
        json_schema_extra=NOW,
    )
    c_bar: float = Field(
        default=1.0,
        gt=0,
        description="V-trace clips the ratio to this value where later steps correct earlier ones",
        json_schema_extra=NOW,
    )
    use_rms_prop: UseRMSProp = True
    rms_prop_eps: RMSPropEps = 1e-5

    @model_validator(mode="after")
    def _check_unroll(self) -> "IMPALA":
        if self.unroll and self.unroll % self.n_steps:
            raise ValueError(
                f"unroll = {self.unroll} is not a multiple of n_steps = {self.n_steps}, the length "
                "of IMPALA's unrolls: give a multiple of it"
            )
        return self


FAMILIES = (PPO, A2C, DQN, ApexDQN, IMPALA)
