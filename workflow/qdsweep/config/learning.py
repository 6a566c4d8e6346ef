"""Families of algorithms that learn from the steps of the episodes, and their learner."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from qdsweep.config.archives import Archive, GridArchive
from qdsweep.config.base import NOW, Model
from qdsweep.config.family import AlgorithmConfig

Units = Annotated[int, Field(ge=1)]


class TD3(Model):
    """The learner TD3: twin critics, and a greedy actor with the network of the domain's policy."""

    fixed = "the learner is made with it"
    cite: ClassVar[tuple[str, ...]] = ("fujimoto2018addressing",)

    critic_hidden: list[Units] = Field(
        default=[256, 256],
        min_length=1,
        description="sizes of the hidden layers of each of the two critics, relu [units]",
    )
    actor_lr: float = Field(
        default=3e-4, gt=0, description="learning rate of the greedy actor's Adam"
    )
    critic_lr: float = Field(default=3e-4, gt=0, description="learning rate of the critics' Adam")
    minibatch: int = Field(
        default=256, ge=1, description="transitions that a training step looks at [transitions]"
    )
    gamma: float = Field(default=0.99, ge=0, le=1, description="discount of later rewards")
    tau: float = Field(
        default=0.005, gt=0, le=1, description="how far the target networks follow in an update"
    )
    policy_delay: int = Field(
        default=2, ge=1, description="critic steps between two of the greedy actor [steps]"
    )
    policy_noise: float = Field(
        default=0.2,
        ge=0,
        description="standard deviation of the target actions' noise [half ranges of the action]",
    )
    noise_clip: float = Field(
        default=0.5, ge=0, description="where that noise is cut [half ranges of the action]"
    )
    replay_size: int = Field(
        default=1_000_000,
        ge=1,
        description="latest transitions that are kept; a full buffer makes large reload files "
        "[transitions]",
    )
    limit_is_end: bool = Field(
        default=True,
        description="whether a step at which the time limit cuts an episode counts as its end, as "
        "in DQD-RL; false: its value goes on, as in TD3's paper",
    )


class Family(AlgorithmConfig):
    """A family without groups of emitters: all solutions of an iteration are its own."""

    # Its papers (keys of config/references.bib), besides `cite` and those of the archive.
    own_papers: ClassVar[tuple[str, ...]] = ()

    archive: Archive = Field(
        default=GridArchive(type="grid"), description="the archive of the search and its results"
    )

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite`, its own, the archive's."""
        return tuple(dict.fromkeys((*self.cite, *self.own_papers, *self.archive.papers)))

    @property
    def reported_archive(self) -> Archive:
        """The archive of the search."""
        return self.archive

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses more than one emitter; see `AlgorithmConfig`."""
        if num_emitters != 1:
            raise ValueError(
                f"num_emitters = {num_emitters}: algorithm {self.name} is one emitter by itself; "
                f"set num_emitters: 1, and batch_size to all solutions of an iteration, such as "
                f"{num_emitters * batch_size}"
            )


class _Learner(Family):
    """A family whose solutions are networks that TD3 learns to improve."""

    learner: TD3 = Field(default=TD3(), description="settings of the learner TD3")

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True


class PGAMapElites(_Learner):
    """PGA-MAP-Elites: mutants of elites, half of them by the policy gradient of TD3's critic.

    Of an iteration's solutions, half are iso+line mutants, one is the greedy actor, and the others
    are elites that have climbed the critic.
    """

    code = "qdsweep.algorithms.learning.pga_me:PGAMapElites"
    own_papers = ("nilsson2021policy", "vassiliades2018discovering", *TD3.cite)

    type: Literal["pga_me"]
    training_steps: int = Field(
        default=300,
        ge=0,
        description="critic steps in an iteration, from the second on, while its solutions are "
        "evaluated [steps]",
        json_schema_extra=NOW,
    )
    gradient_fraction: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of the solutions that are made by the critic, the greedy actor one of "
        "them [fraction]",
        json_schema_extra=NOW,
    )
    iso_sigma: float = Field(
        default=0.005,
        ge=0,
        description="standard deviation of the isotropic noise of mutants [parameter units]",
        json_schema_extra=NOW,
    )
    line_sigma: float = Field(
        default=0.05,
        ge=0,
        description="standard deviation of the noise along the line to a second elite [fraction of "
        "the distance]",
        json_schema_extra=NOW,
    )
    first_sigma: float = Field(
        default=0.02,
        ge=0,
        description="standard deviation of the noise around x0 in the first iteration, of those "
        "solutions that the critic will make later; iso_sigma of the others [parameter units]",
    )
    gradient_steps: int = Field(
        default=10,
        ge=1,
        description="Adam steps up the critic's mean value [steps]",
        json_schema_extra=NOW,
    )
    gradient_lr: float = Field(
        default=1e-3, gt=0, description="learning rate of that Adam", json_schema_extra=NOW
    )
    gradient_minibatch: int = Field(
        default=256,
        ge=1,
        description="observations of each of these steps [observations]",
        json_schema_extra=NOW,
    )


class TD3Search(_Learner):
    """TD3 alone: its greedy actor plays the episodes, and the archive only records them.

    Of an iteration's solutions one is the greedy actor; the others are it with noise on its
    weights, which explores.
    """

    code = "qdsweep.algorithms.learning.td3_search:TD3Search"
    own_papers = (*TD3.cite, "plappert2018parameter")

    type: Literal["td3"]
    sigma: float = Field(
        default=0.02,
        ge=0,
        description="standard deviation of the noise on the greedy actor's weights "
        "[parameter units]",
        json_schema_extra=NOW,
    )
    training_ratio: float = Field(
        default=0.1,
        ge=0,
        description="critic steps for each environment step of the iteration before, made while "
        "solutions are evaluated [steps]",
        json_schema_extra=NOW,
    )
