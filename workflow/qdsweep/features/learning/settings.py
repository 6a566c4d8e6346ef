"""Families of algorithms that learn from episodes, or estimate gradients."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from qdsweep.config.emitters import GradientArborescence
from qdsweep.config.family import Family, Units
from qdsweep.config.model import NOW, Model

# For reload files: what may be named, and former names -> the names now.
_MODULES = ("cma_mega", "me_es", "pga_me", "td3", "td3_algorithm", "td3_search")
PICKLED = tuple(f"{__package__}.{name}" for name in _MODULES)
_NETWORKS = f"{__package__}.td3"
MOVED = {
    **{f"qdsweep.algorithms.learning.{name}": f"{__package__}.{name}" for name in _MODULES},
    "qdsweep.algorithms.learning.learner": f"{__package__}.td3_algorithm",
    "qdsweep.algorithms.learning.networks": _NETWORKS,
    "qdsweep.algorithms.learning.optimizer": _NETWORKS,
    "qdsweep.algorithms.learning.replay": _NETWORKS,
    "qdsweep.config.estimation": __name__,
    "qdsweep.config.learning": __name__,
}


class TD3(Model):
    """The learner TD3: twin critics, and a greedy actor with the network of the domain's policy."""

    fixed = "the learner is made with it"
    cite: ClassVar[tuple[str, ...]] = ("fujimoto2018addressing",)

    critic_hidden: list[Units] = Field(
        title="critics with hidden layers of ... units",
        default=[256, 256],
        min_length=1,
        description="sizes of the hidden layers of each of the two critics, relu [units]",
    )
    actor_lr: float = Field(
        title="actor learning rate",
        default=3e-4,
        gt=0,
        description="learning rate of the greedy actor's Adam",
    )
    critic_lr: float = Field(
        title="critic learning rate",
        default=3e-4,
        gt=0,
        description="learning rate of the critics' Adam",
    )
    minibatch: int = Field(
        title="minibatches of ... transitions",
        default=256,
        ge=1,
        description="transitions per training step [transitions]",
    )
    gamma: float = Field(
        title="discount factor", default=0.99, ge=0, le=1, description="discount of later rewards"
    )
    tau: float = Field(
        title="target update rate",
        default=0.005,
        gt=0,
        le=1,
        description="interpolation factor of the target networks in an update",
    )
    policy_delay: int = Field(
        title="policy delay",
        default=2,
        ge=1,
        description="critic steps between two of the greedy actor [steps]",
    )
    policy_noise: float = Field(
        title="target policy noise",
        default=0.2,
        ge=0,
        description="standard deviation of the target actions' noise [half ranges of the action]",
    )
    noise_clip: float = Field(
        title="noise clipped at",
        default=0.5,
        ge=0,
        description="that noise is clipped to this bound [half ranges of the action]",
    )
    replay_size: int = Field(
        title="a replay buffer of ... transitions",
        default=1_000_000,
        ge=1,
        description=(
            "number of latest transitions to keep; a full buffer makes large reload files "
            "[transitions]"
        ),
    )
    limit_is_end: bool = Field(
        title="the time limit as an end of episodes:",
        default=True,
        description=(
            "whether a step at which the time limit truncates an episode counts as terminated, as "
            "in DQD-RL; false: the value of the next state counts, as in TD3's paper"
        ),
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the settings of noise that is 0; see `Model`."""
        if self.policy_noise == 0:
            yield from self.set_keys("policy_noise is 0", "noise_clip")
        elif self.noise_clip == 0:
            yield from self.set_keys("noise_clip is 0", "policy_noise")

    def untrained(self, why: str) -> Iterator[tuple[str, str]]:
        """Yields the settings of a training that never happens, with the reason."""
        only = ("critic_hidden", "minibatch", "replay_size")  # a critic has them without training
        found = self.set_keys(why, *(key for key in type(self).model_fields if key not in only))
        yield from ((f"learner.{key}", why) for key, _ in found)


class _Learner(Family):
    """A family whose solutions are networks that TD3 learns to improve."""

    learner: TD3 = Field(default=TD3(), description="settings of the learner TD3")

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True

    @property
    def replays(self) -> bool:
        """Whether it learns from the steps of earlier iterations, which a buffer keeps."""
        return True


class PGAMapElites(_Learner):
    """PGA-MAP-Elites: mutants of elites, half of them by the policy gradient of TD3's critic.

    Of an iteration's solutions, half are iso+line mutants, one is the greedy actor, and the others
    are elites that have climbed the critic.
    """

    code = "qdsweep.features.learning.pga_me:PGAMapElites"
    own_papers = ("nilsson2021policy", "vassiliades2018discovering", *TD3.cite)

    type: Literal["pga_me"]
    training_steps: int = Field(
        title="... critic steps per iteration",
        default=300,
        ge=0,
        description="critic steps in an iteration, from the second on, while its solutions are "
        "evaluated [steps]",
        json_schema_extra=NOW,
    )
    gradient_fraction: float = Field(
        title="a share of ... of the solutions by policy gradients",
        default=0.5,
        ge=0,
        le=1,
        description=(
            "share of the solutions that are made by the critic, including the greedy actor "
            "[fraction]"
        ),
        json_schema_extra=NOW,
    )
    iso_sigma: float = Field(
        title="isotropic mutation scale",
        default=0.005,
        ge=0,
        description="standard deviation of the isotropic noise of mutants [parameter units]",
        json_schema_extra=NOW,
    )
    line_sigma: float = Field(
        title="line mutation scale",
        default=0.05,
        ge=0,
        description="standard deviation of the noise along the line to a second elite [fraction of "
        "the distance]",
        json_schema_extra=NOW,
    )
    first_sigma: float = Field(
        title="initial mutation scale",
        default=0.02,
        ge=0,
        description=(
            "standard deviation of the noise around x0 in the first iteration, for the solutions "
            "that the critic will make later. The others have iso_sigma [parameter units]"
        ),
    )
    gradient_steps: int = Field(
        title="... policy-gradient steps",
        default=10,
        ge=1,
        description="Adam steps up the critic's mean value [steps]",
        json_schema_extra=NOW,
    )
    gradient_lr: float = Field(
        title="policy-gradient learning rate",
        default=1e-3,
        gt=0,
        description="learning rate of that Adam",
        json_schema_extra=NOW,
    )
    gradient_minibatch: int = Field(
        title="... observations per policy-gradient step",
        default=256,
        ge=1,
        description="observations of each of these steps [observations]",
        json_schema_extra=NOW,
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the settings of a kind of solutions that it never makes; see `Model`."""
        yield from super().idle()
        gradient = ("gradient_steps", "gradient_lr", "gradient_minibatch", "first_sigma")
        if self.gradient_fraction == 0:
            why = "gradient_fraction is 0"
            yield from self.set_keys(why, "training_steps", *gradient)
            yield from ((f"learner.{key}", why) for key, _ in self.learner.set_keys(why))
        elif self.training_steps == 0:
            yield from self.learner.untrained("training_steps is 0")
        if self.gradient_fraction == 1:
            yield from self.set_keys("gradient_fraction is 1", "iso_sigma", "line_sigma")


class TD3Search(_Learner):
    """Plain TD3: its greedy actor plays the episodes, and the archive only records them.

    One solution of an iteration is the greedy actor. The others are the actor with noise on its
    weights, for exploration.
    """

    code = "qdsweep.features.learning.td3_search:TD3Search"
    own_papers = (*TD3.cite, "plappert2018parameter")

    type: Literal["td3"]
    sigma: float = Field(
        title="noise of standard deviation ... on solutions",
        default=0.02,
        ge=0,
        description="standard deviation of the noise on the greedy actor's weights "
        "[parameter units]",
        json_schema_extra=NOW,
    )
    training_ratio: float = Field(
        title="... critic steps per environment step",
        default=0.1,
        ge=0,
        description=(
            "critic steps for each environment step of the previous iteration, computed while "
            "solutions are evaluated [steps]"
        ),
        json_schema_extra=NOW,
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the settings of critics that are never trained; see `Model`."""
        yield from super().idle()
        if self.training_ratio == 0:
            why = "training_ratio is 0"
            yield from ((f"learner.{key}", why) for key, _ in self.learner.set_keys(why))


class _Sampling(Family):
    """A family that draws mirrored samples around a solution; they enter no archive."""

    own_papers: ClassVar[tuple[str, ...]] = ("salimans2017evolution",)

    sigma: float | None = Field(
        title="noise of standard deviation ... on solutions",
        default=None,
        gt=0,
        description=(
            "standard deviation of the samples for the estimate of a gradient; null: the domain's "
            "`mutation_scale` [parameter units]"
        ),
        json_schema_extra=NOW,
    )

    @property
    def fixed_batch(self) -> str:
        """Why its batch size cannot change while a run lasts."""
        return "the number of samples follows from it"


class EstimatedCMAMEGA(_Sampling):
    """CMA-MEGA with estimated gradients."""

    code = "qdsweep.features.learning.cma_mega:EstimatingCMAMEGA"

    samples: int | None = Field(
        title="... samples per gradient estimate",
        default=None,
        ge=2,
        description=(
            "samples for the estimate of the gradients, in pairs; null: half of `batch_size` "
            "[solutions]"
        ),
    )
    emitter: GradientArborescence = Field(
        default=GradientArborescence(
            type="gradient_arborescence", sigma0=1.0, lr=1.0, selection_rule="mu"
        ),
        description="the emitter that uses the estimated gradients",
    )

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite`, its own with the emitter's, the archive's."""
        own = (*self.cite, "tjanaka2022approximating", *self.emitter.papers, *super().papers)
        return tuple(dict.fromkeys(own))

    def sizes(self, batch_size: int) -> tuple[int, int]:
        """Returns the number of samples, and of the solutions that branch from the mean."""
        samples = self.samples or batch_size // 4 * 2
        return samples, batch_size - 1 - samples

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses a batch that is too small for its parts; see `AlgorithmConfig`."""
        super().check_sizes(num_emitters, batch_size, solution_dim)
        samples, branched = self.sizes(batch_size)
        if samples < 2 or branched < 2:
            others = batch_size - samples - branched
            samples = max(samples, 2)
            raise ValueError(
                f"batch_size = {batch_size}: algorithm {self.name} needs at least "
                f"{others + samples + 2}: {samples} samples, 2 solutions that branch from the "
                f"mean, and {others} more; set batch_size or samples"
            )

    @model_validator(mode="after")
    def _check_ranker(self) -> "EstimatedCMAMEGA":
        self.archive.check_ranker(self.emitter.ranker)
        return self


class CMAMEGAES(EstimatedCMAMEGA):
    """CMA-MEGA (ES): CMA-MEGA whose gradients of objective and measures are estimated.

    Of an iteration's solutions, one is the mean, half are samples around it, and the others branch
    from it along the gradients. Only the mean and the branched ones are added to the archive.
    """

    type: Literal["cma_mega_es"]


class CMAMEGATD3ES(EstimatedCMAMEGA):
    """CMA-MEGA (TD3, ES): CMA-MEGA (ES) with the objective's gradient from TD3's critic.

    One of the branched solutions gives way to the greedy actor, which the emitter does not rank.
    """

    own_papers = ("salimans2017evolution", *TD3.cite)

    type: Literal["cma_mega_td3_es"]
    learner: TD3 = Field(default=TD3(), description="settings of the learner TD3")
    training_steps: int = Field(
        title="... critic steps per iteration",
        default=600,
        ge=0,
        description="critic steps in an iteration, from the second on, while its samples are "
        "evaluated [steps]",
        json_schema_extra=NOW,
    )
    gradient_observations: int = Field(
        title="... observations per critic gradient",
        default=65_536,
        ge=1,
        description="observations at which the critic's gradient is taken [observations]",
        json_schema_extra=NOW,
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the settings of critics that are never trained; see `Model`."""
        yield from super().idle()
        if self.training_steps == 0:
            yield from self.learner.untrained("training_steps is 0")

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True

    @property
    def replays(self) -> bool:
        """Whether it learns from the steps of earlier iterations, which a buffer keeps."""
        return True

    def sizes(self, batch_size: int) -> tuple[int, int]:
        """Returns the number of samples, and of the solutions that branch from the mean."""
        samples, branched = super().sizes(batch_size)
        return samples, branched - 1


class MEES(_Sampling):
    """ME-ES: an evolution strategy climbs from elites, towards the objective or towards novelty.

    All but one of an iteration's solutions are samples around the parent. The last one is the
    parent after its step. Only that one is added to the archive.
    """

    code = "qdsweep.features.learning.me_es:MapElitesES"
    own_papers = ("colas2020scaling", "salimans2017evolution")

    type: Literal["me_es"]
    generations: int = Field(
        title="... iterations from each elite",
        default=10,
        ge=1,
        description="steps from one elite before another elite becomes the parent [iterations]",
        json_schema_extra=NOW,
    )
    lr: float = Field(
        title="gradient learning rate",
        default=0.01,
        gt=0,
        description="learning rate of Adam, which starts again for each elite",
    )
    l2: float = Field(
        title="L2 coefficient",
        default=0.005,
        ge=0,
        description="coefficient of the L2 penalty on the parameters",
    )
    neighbors: int = Field(
        title="novelty by ... nearest neighbours",
        default=10,
        ge=1,
        description="novelty is the mean squared distance to this many nearest earlier parents",
        json_schema_extra=NOW,
    )

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses a batch without a pair of samples; see `AlgorithmConfig`."""
        super().check_sizes(num_emitters, batch_size, solution_dim)
        if batch_size < 3:
            raise ValueError(
                f"batch_size = {batch_size}: algorithm {self.name} needs at least 3, two samples "
                "and the parent"
            )

    @model_validator(mode="after")
    def _check_archive(self) -> "MEES":
        if not self.archive.has_fixed_cells:
            raise ValueError(
                f"algorithm {self.name} stores the newest cells, and the cells of a "
                f"{self.archive.type} archive move. Use grid or cvt"
            )
        return self


FAMILIES = (PGAMapElites, TD3Search, CMAMEGAES, CMAMEGATD3ES, MEES)
