"""The keys of every family of algorithms, and facts about the family."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from qdsweep.config.archive_kinds import ArchiveSettings, GridArchive
from qdsweep.config.model import Model

Units = Annotated[int, Field(ge=1)]


class Former(NamedTuple):
    """The name and the title of a preset in runs of earlier releases."""

    name: str
    title: str


FORMER = {
    "cma_me_one_stage": Former("cma_me_imp", "CMA-ME (improvement ranking)"),
    "cma_me_rd_basic": Former("cma_me_rd", "CMA-ME (random-direction ranking)"),
    "cma_maega_mu": Former("cma_maega", "CMA-MAEGA"),
    "line_cvt_map_elites": Former("cvt_map_elites", "CVT-MAP-Elites"),
}
"""Renamed presets. The hash in the ids of their runs is the same under both names.

The preset that has such a name now has the settings of pyribs' example, and another title.
"""


def name_now(name: str, title: str | None) -> str:
    """Returns the present name of the algorithm of a run.

    Args:
        name: Its name in the run's config.yaml.
        title: Its title there; None in runs of version 0.1.0, which have no such key.
    """
    known = (
        now
        for now, former in FORMER.items()
        if former == (name, former.title if title is None else title)
    )
    return next(known, name)


class TunedBy(TypedDict):
    """The choice that a preset comes from, as `qdsweep tuned` writes it.

    It is no model: its keys would be names in sweeps, and hide equal arguments of the user's
    classes, such as `seeds`.
    """

    sweep: Annotated[str, Field(description="the sweep that chose these settings")]
    domains: Annotated[list[str], Field(min_length=1, description="the names of its domains")]
    seeds: Annotated[
        list[Annotated[int, Field(ge=0)]],
        Field(min_length=1, description="the seeds of the runs by which it chose"),
    ]
    cost: Annotated[str, Field(description="the cost of these runs, for a reader")]


class AlgorithmConfig(Model, ABC):
    """The keys of every family, and facts about the family."""

    fixed = "the algorithm is made with it"
    # `module:function`, which makes the algorithm from experiment, domain and shared folder.
    code: ClassVar[str]

    name: str = Field(
        default="custom",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    title: str = Field(
        default="", description="its name in the methods paragraph; empty: the name of the preset"
    )
    cite: list[str] = Field(
        default=[],
        description=(
            "its papers in addition to those of its parts, for the methods paragraph: keys of "
            "references.bib"
        ),
    )
    tuned_by: TunedBy | None = Field(
        default=None,
        description=(
            "the choice that a preset of `qdsweep tuned` comes from. Groups with runs of these "
            "domains and seeds are not tested"
        ),
    )

    @property
    @abstractmethod
    def reported_archive(self) -> ArchiveSettings:
        """The archive of metrics and results."""

    @property
    def has_grid(self) -> bool:
        """Whether it needs `archive.dims`, the cells along each measure."""
        return self.reported_archive.has_grid

    @property
    def needs_jacobian(self) -> bool:
        """Whether it asks for gradients."""
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        """What it needs that not every installation has, as `config.extras` takes it."""
        return ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that its results depend on, in addition to those of every run."""
        return ()

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers, in the order of a citation."""
        return tuple(self.cite)

    @property
    def own_parts(self) -> dict[str, Any]:
        """The models of those parts that are the user's, by their key in the experiment."""
        return {}

    @property
    def plugins(self) -> list[str]:
        """The `module:name` of each part of it that is the user's."""
        return [part.type for part in self.own_parts.values()]

    @property
    def fixed_batch(self) -> str:
        """Why the batch size cannot change while a run lasts; empty where it can."""
        return ""

    @property
    def draws_first(self) -> bool:
        """Whether its first iteration has random solutions that `first_batch` counts."""
        return False

    def first_iteration(self, num_emitters: int, batch_size: int, drawn: int | None) -> int:
        """Returns the number of solutions of the first iteration.

        Args:
            num_emitters: Emitters.
            batch_size: Solutions of each in a later iteration.
            drawn: The experiment's `first_batch`.
        """
        return num_emitters * batch_size

    def check_first_batch(self, num_emitters: int, drawn: int | None) -> None:
        """Refuses a random first batch that it cannot begin with.

        Args:
            num_emitters: Emitters.
            drawn: The experiment's `first_batch`.

        Raises:
            ValueError: It contradicts another key, or is too small.
        """

    @property
    def batch_is_known(self) -> bool:
        """Whether `num_emitters` and `batch_size` decide how many solutions an iteration has."""
        return True

    @property
    def needs_experience(self) -> bool:
        """Whether it learns from the steps of the episodes."""
        return False

    @property
    def replays(self) -> bool:
        """Whether it learns from the steps of earlier iterations, which a buffer keeps."""
        return False

    @property
    def why_no_resampling(self) -> str:
        """Why its solutions cannot be evaluated again by the key `resampling`; empty if they can.

        Only emitters around an archive accept means of several evaluations.
        """
        if self.needs_experience:
            return "it learns from the steps of each episode"
        return "it decides itself what it evaluates, and how often"

    @property
    def needs_gpu(self) -> bool:
        """Whether the main process computes on a GPU."""
        return False

    @property
    def explores(self) -> bool:
        """Whether it plays one policy many times, with other random numbers each time."""
        return False

    def greedy_every(self, batch_size: int) -> tuple[int, int] | None:
        """Returns iterations between greedy episodes of its policy, and least decisions of each."""
        return None

    @property
    def unused(self) -> frozenset[str]:
        """Keys that other keys leave without effect, also with their defaults."""
        return frozenset()

    @property
    def buffers(self) -> dict[str, int]:
        """Key -> the number of transitions that it keeps in memory."""
        return {}

    @property
    def networks(self) -> dict[str, list[int]]:
        """Key -> the hidden layers of a network that it has in addition to the domain's [units]."""
        return {}

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses sizes that it cannot work with.

        Args:
            num_emitters: Emitters.
            batch_size: Solutions of each in an iteration.
            solution_dim: Parameters of a solution; None where only the domain's code knows.

        Raises:
            ValueError: The sizes do not fit.
        """


class Family(AlgorithmConfig):
    """A family without groups of emitters: all solutions of an iteration are its own."""

    # Its papers (keys of config/references.bib), in addition to `cite` and the archive's.
    own_papers: ClassVar[tuple[str, ...]] = ()

    archive: ArchiveSettings = Field(
        default=GridArchive(type="grid"), description="the archive of the search and its results"
    )

    @property
    def libraries(self) -> tuple[str, ...]:
        """What its archive computes with."""
        return self.archive.libraries

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite`, its own, the archive's."""
        return tuple(dict.fromkeys((*self.cite, *self.own_papers, *self.archive.papers)))

    @property
    def reported_archive(self) -> ArchiveSettings:
        """The archive of the search."""
        return self.archive

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields keys without effect, and those of its parts; see `Model`."""
        parts = ("archive", "learner", "emitter")
        yield from self.idle_in(*(name for name in parts if hasattr(self, name)))

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses more than one emitter; see `AlgorithmConfig`."""
        if num_emitters != 1:
            raise ValueError(
                f"num_emitters = {num_emitters}: algorithm {self.name} has exactly one emitter. "
                "Set num_emitters: 1, and batch_size to all solutions of an iteration, such as "
                f"{num_emitters * batch_size}"
            )
