"""Families that estimate gradients from samples around a solution: CMA-MEGA (ES) and ME-ES."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from qdsweep.config.base import NOW
from qdsweep.config.emitters import GradientArborescence
from qdsweep.config.learning import TD3, Family


class _Sampling(Family):
    """A family that draws mirrored samples around a solution; they enter no archive."""

    own_papers: ClassVar[tuple[str, ...]] = ("salimans2017evolution",)

    sigma: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of the samples that a gradient is estimated from; null for the "
            "domain's `step` [parameter units]"
        ),
        json_schema_extra=NOW,
    )

    @property
    def fixed_batch(self) -> str:
        """Why its batch size cannot change while a run lasts."""
        return "the number of samples follows from it"


class EstimatedCMAMEGA(_Sampling):
    """CMA-MEGA with estimated gradients."""

    code = "qdsweep.algorithms.learning.cma_mega:EstimatingCMAMEGA"

    samples: int | None = Field(
        default=None,
        ge=2,
        description=(
            "samples that the gradients are estimated from; null for half of `batch_size`, "
            "in pairs [solutions]"
        ),
    )
    emitter: GradientArborescence = Field(
        default=GradientArborescence(
            type="gradient_arborescence", sigma0=1.0, lr=1.0, selection_rule="mu"
        ),
        description="the emitter that is given the estimated gradients",
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
    from it along the gradients. The archive is given the mean and the branched ones.
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
        default=600,
        ge=0,
        description="critic steps in an iteration, from the second on, while its samples are "
        "evaluated [steps]",
        json_schema_extra=NOW,
    )
    gradient_observations: int = Field(
        default=65_536,
        ge=1,
        description="observations at which the critic's gradient is taken [observations]",
        json_schema_extra=NOW,
    )

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return True

    def sizes(self, batch_size: int) -> tuple[int, int]:
        """Returns the number of samples, and of the solutions that branch from the mean."""
        samples, branched = super().sizes(batch_size)
        return samples, branched - 1


class MEES(_Sampling):
    """ME-ES: an evolution strategy climbs from elites, towards the objective or towards novelty.

    Of an iteration's solutions, all but one are samples around the parent; the last one is the
    parent after its step, which alone is given to the archive.
    """

    code = "qdsweep.algorithms.learning.me_es:MapElitesES"
    own_papers = ("colas2020scaling", "salimans2017evolution")

    type: Literal["me_es"]
    generations: int = Field(
        default=10,
        ge=1,
        description="steps from an elite before another one is the parent [iterations]",
        json_schema_extra=NOW,
    )
    lr: float = Field(
        default=0.01, gt=0, description="learning rate of Adam, which is made anew for each elite"
    )
    l2: float = Field(
        default=0.005, ge=0, description="coefficient of the L2 penalty on the parameters"
    )
    neighbors: int = Field(
        default=10,
        ge=1,
        description="nearest earlier parents that novelty is the mean squared distance to",
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
                f"algorithm {self.name} remembers the newest cells, and a {self.archive.type} "
                "archive has none that stay; take grid or cvt"
            )
        return self
