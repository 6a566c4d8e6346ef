"""Families of reinforcement learning: stable-baselines3's learners, with its names and defaults."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from qdsweep.config.base import NOW
from qdsweep.config.learning import Family, Units

# Keys of several learners, each with a default of its own.
LearningRate = Annotated[
    float, Field(gt=0, description="learning rate of the optimiser", json_schema_extra=NOW)
]
Gamma = Annotated[
    float, Field(ge=0, le=1, description="discount of later rewards", json_schema_extra=NOW)
]
SampledSteps = Annotated[
    int,
    Field(
        ge=1,
        description="environment steps of an iteration, at least: it plays whole batches until "
        "there are so many [steps]",
        json_schema_extra=NOW,
    ),
]
GAELambda = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="generalised advantage estimation: 1 takes the returns as they were, 0 trusts "
        "the value function after one step",
        json_schema_extra=NOW,
    ),
]
NormalizeAdvantage = Annotated[
    bool, Field(description="whether the advantages of a gradient step are normalised")
]
MaxGradNorm = Annotated[
    float,
    Field(gt=0, description="the longest gradient: a longer one is cut", json_schema_extra=NOW),
]
UseRMSProp = Annotated[bool, Field(description="whether the optimiser is RMSprop, or Adam")]
RMSPropEps = Annotated[float, Field(gt=0, description="RMSprop's epsilon")]


class ReinforcementLearning(Family):
    """A family that improves one policy, whose greedy episodes a passive archive records.

    Of an iteration's solutions, `batch_size` are the policy as it explores. In every
    `evaluate_every`-th iteration, from the first on, it is played greedily too: these episodes
    alone are given to the archive.
    """

    libraries = ("torch", "stable-baselines3")
    own_papers: ClassVar[tuple[str, ...]]

    evaluate_every: int = Field(
        default=10,
        ge=1,
        description="from one iteration with greedy episodes to the next [iterations]",
        json_schema_extra=NOW,
    )
    evaluation_episodes: int = Field(
        default=10,
        ge=1,
        description="greedy evaluations of such an iteration, besides its `batch_size` "
        "[evaluations]",
        json_schema_extra=NOW,
    )

    decay_steps: int | None = Field(
        default=None,
        ge=1,
        description="environment steps in which learning_rate (and PPO's clip_range) fall linearly "
        "to 0, where they stay; null: they do not fall [steps]",
        json_schema_extra=NOW,
    )

    @property
    def packages(self) -> tuple[str, ...]:
        """What the extra `rl` brings."""
        return ("torch", "stable_baselines3")

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True

    @property
    def explores(self) -> bool:
        """Whether it plays one policy many times, with other random numbers each time."""
        return True

    @property
    def sampled_steps(self) -> int:
        """Environment steps of an iteration, at least; 1 for one batch."""
        return 1

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: its own, those of `cite`, the library's, the archive's."""
        papers = (*self.own_papers, *self.cite, "raffin2021stable", *self.archive.papers)
        return tuple(dict.fromkeys(papers))

    def first_iteration(self, num_emitters: int, batch_size: int, drawn: int | None) -> int:
        """Returns the number of solutions of the first iteration, if it has one batch."""
        return batch_size + self.evaluation_episodes


class ActorCritic(ReinforcementLearning):
    """A policy and a value function."""

    ent_coef: float = Field(
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
        default=[64, 64],
        description="sizes of the hidden layers of the value function, which has the activation of "
        "the domain's `policy` [units]",
    )
    log_std_init: float = Field(
        default=0.0,
        description="logarithm of the first standard deviation of the outputs, where actions are "
        "continuous",
    )


class OnPolicy(ActorCritic):
    """A policy and a value function that learn from what the policy of now has played."""

    code = "qdsweep.algorithms.rl.on_policy:OnPolicy"

    @property
    def sampled_steps(self) -> int:
        """Environment steps of an iteration, at least."""
        return int(self.n_steps)  # type: ignore[attr-defined]


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
        default=64,
        ge=2,
        description="transitions of a gradient step (stable-baselines3's batch_size) [transitions]",
        json_schema_extra=NOW,
    )
    n_epochs: int = Field(
        default=10,
        ge=1,
        description="how often an iteration's transitions are gone through [epochs]",
        json_schema_extra=NOW,
    )
    clip_range: float = Field(
        default=0.2,
        gt=0,
        description="how far the ratio of new and old probability may be from 1",
        json_schema_extra=NOW,
    )
    clip_range_vf: float | None = Field(
        default=None,
        gt=0,
        description="how far a value may move in an iteration; null: as far as it likes [return]",
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
    """Advantage actor-critic (A2C) of stable-baselines3, from whole episodes.

    It makes one gradient step an iteration.
    """

    own_papers = ("mnih2016asynchronous",)

    type: Literal["a2c"]
    learning_rate: LearningRate = 7e-4
    n_steps: SampledSteps = 5
    gamma: Gamma = 0.99
    gae_lambda: GAELambda = 1.0
    normalize_advantage: NormalizeAdvantage = False
    use_rms_prop: UseRMSProp = True
    rms_prop_eps: RMSPropEps = 1e-5
