"""The ways to evaluate solutions again, with the settings of their papers."""

from typing import Annotated, Any, Literal

from pydantic import Field

from qdsweep.config.domain_keys import DomainConfig
from qdsweep.config.family import AlgorithmConfig
from qdsweep.config.resampling import Resampling

# For reload files: what may be named, and former names -> the names now.
PICKLED = tuple(f"{__package__}.{name}" for name in ("adaptive", "deep", "depth", "resampled"))
MOVED: dict[str, str] = {}
# It has no family of algorithms.
FAMILIES = ()

Rule = Annotated[
    Literal["mean", "lower_bound"],
    Field(
        title="candidates ordered by",
        description=(
            "what orders the candidates of a cell, of which the first is its elite: the mean of "
            "the objective, or this mean minus its standard error. That of a candidate with one "
            "sample is then the length of the objective range"
        ),
    ),
]


class _Sampled(Resampling):
    """Refuses what cannot be evaluated again."""

    def check(self, algorithm: AlgorithmConfig, domain: DomainConfig) -> None:
        """Refuses an algorithm or evaluation seeds that do not go with it; see `Resampling`."""
        if algorithm.why_no_resampling:
            raise ValueError(
                f"resampling.type = {self.type}: algorithm {algorithm.name} cannot have its "
                f"solutions evaluated again: {algorithm.why_no_resampling}. Remove the key "
                "resampling, or use an algorithm such as map_elites or cma_me"
            )
        if domain.evaluation_seed != "solution":
            raise ValueError(
                f"resampling.type = {self.type}: domain.evaluation_seed = {domain.evaluation_seed} "
                "gives several evaluations one seed, so they would be equal. Set "
                "evaluation_seed: solution"
            )


class _Deep(_Sampled):
    """Requires an archive whose cells can keep several solutions."""

    def check(self, algorithm: AlgorithmConfig, domain: DomainConfig) -> None:
        """Refuses an archive or scheduler that does not go with it; see `Resampling`."""
        super().check(algorithm, domain)
        parts: Any = algorithm
        archive, why = parts.archive, ""
        if archive.type not in ("grid", "cvt"):
            why = f"algorithm.archive.type = {archive.type}: only cells of a grid or cvt archive"
        elif archive.learning_rate is not None:
            why = "algorithm.archive.learning_rate: no cells of an archive with thresholds"
        elif parts.result_archive:
            why = "algorithm.result_archive = true: no cells of two archives"
        elif parts.add_mode == "single":
            why = "algorithm.add_mode = single: only cells that take whole batches"
        if why:
            raise ValueError(
                f"resampling.type = {self.type}: {why} can keep several solutions. Use "
                "map_elites or cma_me, or resampling.type: fixed, which needs no such cells"
            )


class FixedResampling(_Sampled):
    """Each new solution is evaluated `times` times, and its means count.

    Results of elites are means; nothing is evaluated again later.
    """

    code = "qdsweep.features.noise.resampled:make_fixed"

    type: Literal["fixed"] = Field(title="resampling", description="which kind")
    # Flageat and Cully (2023) compare with MAP-Elites of several numbers of samples.
    times: int = Field(
        ge=1,
        title="... samples of each solution",
        description="evaluations of each new solution, with a seed each [evaluations]",
    )

    def evaluations(self, solutions: int, *, first: bool) -> int:
        """Returns the evaluations of an iteration; see `Resampling`."""
        return self.times * solutions

    def check(self, algorithm: AlgorithmConfig, domain: DomainConfig) -> None:
        """Refuses a domain that averages episodes itself; see `Resampling`."""
        super().check(algorithm, domain)
        episodes = getattr(domain, "episodes", 1)
        if episodes > 1:
            raise ValueError(
                f"resampling.type = fixed together with domain.episodes = {episodes}: both "
                "average over evaluations. Give one of them; an episode of `resampling` counts "
                "as an evaluation, and has its own seed in archive.npz"
            )


class ArchiveResampling(_Deep):
    """Archive sampling (Flageat and Cully 2023): all candidates again in each iteration.

    A cell keeps its best candidates with all their samples. One that measures elsewhere moves.
    """

    code = "qdsweep.features.noise.resampled:make_archive_sampling"
    cite = ("flageat2024uncertain",)
    may_evaluate_more = True

    type: Literal["archive"] = Field(title="resampling", description="which kind")
    # "of depth 2 as in the paper": README of adaptive-intelligent-robotics/
    # Uncertain_Quality_Diversity.
    depth: int = Field(
        default=2,
        ge=1,
        title="at most ... candidates per cell",
        description="candidates that a cell keeps, its elite included [solutions]",
    )
    rule: Rule = "mean"


class AdaptiveResampling(_Deep):
    """Adaptive sampling (Justesen et al. 2019): a new solution needs as many samples as the elite.

    It is evaluated again as long as its mean is better than that of the elite of its cell, until it
    has as many samples. Each elite that a new solution challenges is evaluated once more. One that
    measures elsewhere moves. The paper has one solution after another; here, those of an iteration
    are evaluated together, in batches that become smaller.
    """

    code = "qdsweep.features.noise.adaptive:make_adaptive"
    cite = ("justesen2019map",)
    may_evaluate_more = True

    type: Literal["adaptive"] = Field(title="resampling", description="which kind")


def evaluated_again(solutions: int, share: float) -> int:
    """Returns the evaluations of candidates, as a share of all, next to some new solutions."""
    return max(1, round(solutions * share / (1 - share)))


class ExtractResampling(_Deep):
    """Extract-ME (Flageat et al. 2025): a share of all evaluations is for candidates of cells.

    They are drawn without replacement, with a probability proportional to exp(-rank) in their cell,
    and put back with their means. One that measures elsewhere moves.
    """

    code = "qdsweep.features.noise.resampled:make_extract"
    cite = ("flageat2025extract",)

    type: Literal["extract"] = Field(title="resampling", description="which kind")
    # A quarter of all evaluations, and depth 8, are the settings of Flageat et al. (2025).
    share: float = Field(
        default=0.25,
        gt=0,
        lt=1,
        title="a share of ... of all evaluations for candidates again",
        description=(
            "share of an iteration's evaluations that are for candidates again. They are in "
            "addition to the new solutions, whose number is `batch_size` of each emitter [fraction]"
        ),
    )
    depth: int = Field(
        default=8,
        ge=1,
        title="at most ... candidates per cell",
        description="candidates that a cell keeps, its elite included [solutions]",
    )
    rule: Rule = "mean"

    def evaluations(self, solutions: int, *, first: bool) -> int:
        """Returns the evaluations of an iteration; see `Resampling`."""
        return solutions if first else solutions + evaluated_again(solutions, self.share)


class DeepGridResampling(_Deep):
    """Deep-Grid (Flageat and Cully 2020): nothing is evaluated again, similar solutions average.

    A cell keeps its latest solutions, the worse ones too. Its elite is the best of them. A parent
    is drawn from a random cell, with a probability proportional to its objective above the worst
    one of the cell.
    """

    code = "qdsweep.features.noise.resampled:make_deep_grid"
    cite = ("flageat2020fast",)

    type: Literal["deep_grid"] = Field(title="resampling", description="which kind")
    # The depth in the comparison of Flageat et al. (2025). As in their code, the oldest solution
    # of a full cell leaves.
    depth: int = Field(
        default=32,
        ge=1,
        title="at most ... candidates per cell",
        description="solutions that a cell keeps, its elite included [solutions]",
    )


RESAMPLING = (
    FixedResampling,
    ArchiveResampling,
    AdaptiveResampling,
    ExtractResampling,
    DeepGridResampling,
)
