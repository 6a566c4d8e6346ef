"""Archive kinds: their keys and, as class attributes, facts about them."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator

from qdsweep.config.model import NOW, TARGET, Model, own_or_type

# Cells that do not move during a run.
FIXED = ("boxes", "centroids")


# Ranker -> the only archive of pyribs that it works with.
_LOCAL = "an archive of type proximity with local_competition: true"
_ARCHIVE_OF = {
    "nov": "an archive of type proximity",
    "nslc": _LOCAL,
    "nslc_classic": _LOCAL,
    "density": "an archive of type density",
}

# Of learners with torch, and of the discount model.
LearnerShares = Annotated[
    int,
    Field(
        title="gradients of ... shares",
        ge=1,
        description=(
            "parts of a minibatch, each for one thread (`learner_workers` of the cluster). Their "
            "gradients are added in a fixed order, so results depend on this number and not on "
            "the threads. Each one needs memory for a gradient; 1: one call, as in "
            "stable-baselines3 [shares]"
        ),
    ),
]


class _ArchiveKind(Model):
    """Facts about an archive kind. A kind has the name of its pyribs class."""

    fixed = "the archive is made with it, and its elites depend on it"
    # The kind of its cells. "boxes": a grid of equal cells. "centroids", "boundaries": archive.npz
    # has an array of this name (boundaries move during a run). None: there are no cells. "own":
    # only the user's class knows.
    cells: ClassVar[Literal["boxes", "centroids", "boundaries", "own"] | None] = None
    # Whether `result_archive: true` can keep its best solutions in a second archive.
    takes_result_archive: ClassVar[bool] = True
    # Whether it keeps elites. Without them, the emitters search with the result archive.
    keeps_elites: ClassVar[bool] = True
    # The packages that not every installation has, which are also names of distributions.
    packages: ClassVar[tuple[str, ...]] = ()
    # Its name in a text, and its papers (keys of config/references.bib).
    title: ClassVar[str]
    cite: ClassVar[tuple[str, ...]] = ()

    type: str = Field(description="which kind")

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers, in the order of a citation."""
        return self.cite

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that it computes with, in addition to those of every run."""
        return self.packages

    @property
    def rankers(self) -> tuple[str, ...]:
        """The rankers that it supports: those by improvement or random direction need cells."""
        by_cells = ("imp", "2imp", "rd", "2rd") if self.cells else ()
        return (*by_cells, "obj", "2obj")

    def check_ranker(self, ranker: str) -> None:
        """Refuses a ranker that solutions cannot be ranked by.

        Raises:
            ValueError: The archive does not know what the ranker needs.
        """
        if ranker not in self.rankers:
            raise ValueError(
                f"ranker {ranker} does not work with a {self.type} archive. Use "
                f"{' or '.join(self.rankers)}, or {_ARCHIVE_OF.get(ranker, 'another archive')}"
            )

    @property
    def has_fixed_cells(self) -> bool:
        """Whether its cells never move, so that a run can record their history."""
        return self.cells in FIXED

    @property
    def keeps_best(self) -> bool:
        """Whether its best elite always stays: then `obj_max` is the objective of an elite."""
        return True

    @property
    def has_grid(self) -> bool:
        """Whether it is a grid, with `archive.dims` cells along each measure."""
        return self.cells in ("boxes", "boundaries")


class _Annealed(_ArchiveKind):
    """An archive kind that may have CMA-MAE's thresholds, which rise as solutions are added."""

    learning_rate: float | None = Field(
        title="archive learning rate",
        default=None,
        ge=0,
        le=1,
        description="learning rate of the thresholds of CMA-MAE; null: plain elitism",
        json_schema_extra=NOW,
    )
    threshold_min: float | None = Field(
        title="first threshold",
        default=None,
        description=(
            "first threshold of CMA-MAE; null: the lowest objective of the domain [objective units]"
        ),
    )

    def why_fixed(self, key: str) -> str:
        """Returns why a key cannot change; an archive without thresholds has none to update."""
        if key == "learning_rate" and self.learning_rate is None:
            return "the archive has no thresholds (no learning_rate when the run starts)"
        return super().why_fixed(key)

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields a first threshold of an archive without thresholds; see `Model`."""
        if self.learning_rate is None:
            why = "without learning_rate, the archive has no thresholds"
            yield from self.set_keys(why, "threshold_min")

    @property
    def keeps_best(self) -> bool:
        """Whether no threshold is below the objective of the elite, which a worse one replaces."""
        return self.learning_rate in (None, 1)

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: CMA-MAE's if it has thresholds, then those of the kind."""
        mae = () if self.learning_rate is None else ("fontaine2023covariance",)
        return (*mae, *self.cite)


class GridArchive(_Annealed):
    """pyribs' GridArchive: the measure space cut in `archive.dims` boxes."""

    cells = "boxes"
    title = "grid"

    type: Literal["grid"]


class CVTArchive(_Annealed):
    """pyribs' CVTArchive: `archive.cells` cells around k-means centroids."""

    cells = "centroids"
    title = "CVT"
    cite = ("vassiliades2018using",)

    type: Literal["cvt"]
    samples: int = Field(
        default=100_000,
        ge=1,
        title="centroids of ... points",
        description="points for the k-means centroids [points]",
    )
    centroids_seed: int = Field(
        default=0, ge=0, description="seed of the centroids, the same for every run of a sweep"
    )

    @property
    def libraries(self) -> tuple[str, ...]:
        """k-means is scikit-learn's."""
        return ("scikit-learn",)


class SlidingBoundariesArchive(_ArchiveKind):
    """pyribs' SlidingBoundariesArchive: a grid whose boundaries follow the solutions."""

    cells = "boundaries"
    title = "sliding boundaries"
    cite = ("fontaine2019mapping",)

    type: Literal["sliding_boundaries"]
    remap_frequency: int = Field(
        default=100, ge=2, description="insertions between two moves of the boundaries [solutions]"
    )
    buffer_capacity: int = Field(
        default=1000, ge=2, description="latest solutions that decide the boundaries [solutions]"
    )


class ProximityArchive(_ArchiveKind):
    """pyribs' ProximityArchive: an unstructured archive of novel solutions (novelty search)."""

    title = "proximity"
    cite = ("lehman2011abandoning",)

    type: Literal["proximity"]
    k_neighbors: int = Field(default=15, ge=1, description="neighbours that decide novelty")
    novelty_threshold: float = Field(
        default=1.0, ge=0, description="least mean distance to the neighbours [measure units]"
    )
    local_competition: bool = Field(
        default=False, description="replace a near elite when the objective is better"
    )

    @property
    def rankers(self) -> tuple[str, ...]:
        """Novelty; with local competition also improvement, and both together (NSLC)."""
        local = ("imp", "2imp", "nslc", "nslc_classic") if self.local_competition else ()
        return ("nov", "obj", "2obj", *local)


class DNSArchive(_ArchiveKind):
    """pyribs' DNSArchive: `archive.cells` elites kept by dominated novelty search."""

    takes_result_archive = False
    title = "DNS"
    cite = ("bahlous2025dominated",)

    type: Literal["dns"]
    k_neighbors: int = Field(default=3, ge=1, description="fitter neighbours that decide novelty")


class DensityArchive(_ArchiveKind):
    """pyribs' DensityArchive (density descent search): a density of all solutions, without elites.

    It needs `result_archive: true`. The emitters restart from the elites of the result archive.
    """

    keeps_elites = False
    title = "density"
    cite = ("lee2024density",)

    type: Literal["density"]
    bandwidth: float | None = Field(
        title="bandwidth",
        default=None,
        gt=0,
        description=(
            "bandwidth of the kernel; null: 5 % of the mean range of the measures, as in the "
            "paper [measure units]"
        ),
    )
    buffer_size: int = Field(
        default=10_000,
        ge=1,
        title="a density of ... solutions",
        description="solutions that decide the density, a random sample of all [solutions]",
    )
    density_method: Literal["kde", "kde_sklearn"] = Field(
        default="kde",
        description="the estimator of the density: pyribs' own, or scikit-learn's of log density",
    )

    @field_validator("density_method", mode="before")
    @classmethod
    def _refuse_flow(cls, method: object) -> object:
        if method == "cnf":
            raise ValueError("cnf needs zuko, which is not a package of qdsweep. Use kde")
        return method

    @property
    def libraries(self) -> tuple[str, ...]:
        """What estimates the density."""
        return ("scikit-learn",) if self.density_method == "kde_sklearn" else ()

    @property
    def rankers(self) -> tuple[str, ...]:
        """Density, and those that need nothing of an archive."""
        return ("density", "obj", "2obj")


class DiscountArchive(_ArchiveKind):
    """pyribs' DiscountArchive (discount model search): a network in place of CMA-MAE's thresholds.

    It keeps no elites, so it needs `result_archive: true`. The emitters search with the result
    archive. The network is an MLP of torch (`make rl`) with ReLU and Adam. After each iteration,
    the new solutions and centres of empty cells train it.
    """

    keeps_elites = False
    packages = ("torch",)
    title = "discount"
    cite = ("tjanaka2026discount",)

    type: Literal["discount"]
    learning_rate: float = Field(
        title="archive learning rate",
        default=0.1,
        ge=0,
        le=1,
        description="learning rate of the discounts",
        json_schema_extra=NOW,
    )
    threshold_min: float | None = Field(
        title="first threshold",
        default=None,
        description=(
            "discount of empty cells; null: the lowest objective of the domain [objective units]"
        ),
    )
    init_train_points: int = Field(
        title="... points for the first training",
        default=1000,
        ge=1,
        description="centres of cells in the training before the first iteration [points]",
    )
    empty_points: int = Field(
        title="... empty points",
        default=100,
        ge=0,
        description="centres of empty cells in the training after each iteration [points]",
    )
    model_hidden: list[Annotated[int, Field(ge=1)]] = Field(
        title="a discount model with hidden layers of ... units",
        default=[128, 128],
        min_length=1,
        description="sizes of the hidden layers of the network [units]",
    )
    model_lr: float = Field(
        title="model learning rate", default=0.001, gt=0, description="learning rate of Adam"
    )
    train_epochs: int = Field(
        title="at most ... epochs per iteration",
        default=5,
        ge=1,
        description="largest number of epochs of a training [epochs]",
    )
    train_cutoff_loss: float = Field(
        title="training until a loss of",
        default=0.05,
        ge=0,
        description=(
            "a training ends after an epoch with this mean squared error or less, where discounts "
            "are scaled to [0, 1] by the objective range"
        ),
    )
    train_batch_size: int = Field(
        title="minibatches of ... points",
        default=32,
        ge=1,
        description="points per training step [points]",
    )
    learner_shares: LearnerShares = 1

    @property
    def rankers(self) -> tuple[str, ...]:
        """Those that need no novelty or density: the result archive has cells."""
        return ("imp", "2imp", "rd", "2rd", "obj", "2obj")


class PluginArchive(_ArchiveKind):
    """Your own archive: `Class(**arguments)`, and the arguments that its signature asks for.

    These are any of solution_dim, measure_dim, dims, cells, ranges, qd_score_offset, extra_fields
    and seed. A subclass of pyribs' GridArchive or CVTArchive that does not change `index_of` keeps
    its cells in figures and coverage. Any other archive has no cells.
    """

    cells = "own"

    type: str = Field(pattern=TARGET, description="`module:Class`, as for your own emitter")
    arguments: dict[str, Any] = Field(
        default={},
        description="further arguments of the class; they may also be next to `type`",
    )

    @property
    def rankers(self) -> tuple[str, ...]:
        """All rankers, as the user's `add` may return anything."""
        return ("imp", "2imp", "rd", "2rd", "obj", "2obj", *_ARCHIVE_OF)

    @property
    def has_fixed_cells(self) -> bool:
        """True, as only the user's class knows. Figures leave out runs without a history."""
        return True

    @property
    def keeps_best(self) -> bool:
        """False, as only the user's class knows."""
        return False


_Elites = (
    Annotated[GridArchive, Tag("grid")]
    | Annotated[CVTArchive, Tag("cvt")]
    | Annotated[SlidingBoundariesArchive, Tag("sliding_boundaries")]
    | Annotated[ProximityArchive, Tag("proximity")]
    | Annotated[DNSArchive, Tag("dns")]
    | Annotated[PluginArchive, Tag("plugin")]
)
ArchiveSettings = Annotated[_Elites, Discriminator(own_or_type)]
# With a result archive, an algorithm can also search with an archive that keeps no elites.
SearchArchive = Annotated[
    _Elites
    | Annotated[DensityArchive, Tag("density")]
    | Annotated[DiscountArchive, Tag("discount")],
    Discriminator(own_or_type),
]
ARCHIVES: dict[str, type[_ArchiveKind]] = {
    tag.tag: kind
    for kind, tag in map(get_args, get_args(get_args(ArchiveSettings)[0]))
    if kind is not PluginArchive
}
"""`type` of an archive with elites, also in summary.json -> its kind."""
GEOMETRY: tuple[str, ...] = tuple(
    kind.cells for kind in ARCHIVES.values() if kind.cells not in (None, "boxes")
)
"""The arrays of archive.npz with the places of cells."""
