"""The `algorithm:` part of an experiment: the families of algorithms."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

from pydantic import Discriminator, Field, Tag, model_validator

from qdsweep.config.archive_kinds import (
    ArchiveSettings,
    CVTArchive,
    DensityArchive,
    DiscountArchive,
    GridArchive,
    PluginArchive,
    SearchArchive,
    SlidingBoundariesArchive,
)
from qdsweep.config.emitters import Emitter, PluginEmitter
from qdsweep.config.family import AlgorithmConfig
from qdsweep.config.model import NOW, TARGET, Model, own_or_type, tagged
from qdsweep.features import modules


class Bandit(Model):
    """pyribs' BanditScheduler: the groups of emitters compete for the evaluations (UCB1).

    `num_emitters` emitters are active at a time. The pool has that many of each group.
    """

    fixed = "the scheduler is made with it"
    cite: ClassVar[tuple[str, ...]] = ("cully2021multi",)

    type: Literal["bandit"]
    reselect: Literal["terminated", "all"] = Field(
        title="... emitters chosen again",
        default="terminated",
        description="which emitters are chosen again after an iteration",
    )
    zeta: float = Field(
        title="exploration weight", default=0.05, ge=0, description="weight of exploration in UCB1"
    )


class RoundRobin(Model):
    """pyribs' Scheduler: every emitter in every iteration."""

    cite: ClassVar[tuple[str, ...]] = ()

    type: Literal["all"]


class PluginScheduler(Model):
    """Your own scheduler: `Class(archive, emitters, result_archive, **arguments)`.

    It also gets `add_mode` if its signature has it. The emitters are those of `all`.
    """

    fixed = "the scheduler is made with it"
    cite: ClassVar[tuple[str, ...]] = ()

    type: str = Field(pattern=TARGET, description="`module:Class`, as for your own emitter")
    arguments: dict[str, Any] = Field(
        default={},
        description="further arguments of the class; they may also be next to `type`",
    )


Scheduler = Annotated[
    Annotated[RoundRobin, Tag("all")]
    | Annotated[Bandit, Tag("bandit")]
    | Annotated[PluginScheduler, Tag("plugin")],
    Discriminator(own_or_type),
]


class Composition(AlgorithmConfig):
    """An archive, groups of emitters and a scheduler, as pyribs composes them."""

    code = "qdsweep.algorithms.ribs.algorithm:make_ribs"

    archive: SearchArchive = Field(description="the archive that the emitters search with")
    result_archive: bool = Field(
        title="... for its results",
        default=False,
        description=(
            "keep the best solutions in a second, elitist archive of the same cells (a grid for a "
            "proximity, density or discount archive). Metrics and results then describe that "
            "archive (CMA-MAE)"
        ),
    )
    emitters: list[Emitter] = Field(
        min_length=1,
        description=(
            "groups of emitters, which share `num_emitters` equally. The last groups get one more "
            "each if there is a remainder"
        ),
    )
    scheduler: Scheduler = Field(
        default=RoundRobin(type="all"), description="which emitters work in an iteration"
    )
    add_mode: Literal["batch", "single"] = Field(
        title="solutions added ...",
        default="batch",
        description=(
            "add the solutions of an iteration at once (batch), or one after another (single), as "
            "in the code of the CMA-MAE paper"
        ),
    )

    @property
    def needs_jacobian(self) -> bool:
        """Whether an emitter asks for gradients."""
        return any(emitter.needs_jacobian for emitter in self.emitters)

    @property
    def why_no_resampling(self) -> str:
        """Gradients are those of one evaluation."""
        return "its emitters ask for gradients" if self.needs_jacobian else ""

    @property
    def packages(self) -> tuple[str, ...]:
        """What its archive needs."""
        return self.archive.packages

    @property
    def libraries(self) -> tuple[str, ...]:
        """What its archive computes with."""
        return self.archive.libraries

    @property
    def reported_archive(self) -> ArchiveSettings:
        """The archive of metrics and results; a result archive has no thresholds."""
        if isinstance(self.archive, DensityArchive | DiscountArchive):
            return GridArchive(type="grid")
        if not self.result_archive:
            return self.archive
        if isinstance(self.archive, CVTArchive):
            return self.archive.model_copy(update={"learning_rate": None})
        return GridArchive(type="grid")

    @property
    def has_grid(self) -> bool:
        """Whether an archive of it is a grid of `archive.dims`; result archives are often one."""
        return self.archive.has_grid or self.reported_archive.has_grid

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite` first, then those of its parts."""
        parts = (self.archive, *self.emitters)
        papers = (*self.cite, *(key for part in parts for key in part.papers))
        return tuple(dict.fromkeys((*papers, *self.scheduler.cite)))

    @property
    def own_parts(self) -> dict[str, Any]:
        """The user's emitters, archive and scheduler."""
        parts: dict[str, Any] = {
            **{f"algorithm.emitters.{n}": part for n, part in enumerate(self.emitters)},
            "algorithm.archive": self.archive,
            "algorithm.scheduler": self.scheduler,
        }
        own = (PluginEmitter, PluginArchive, PluginScheduler)
        return {key: part for key, part in parts.items() if isinstance(part, own)}

    @property
    def fixed_batch(self) -> str:
        """Why the batch size cannot change while a run lasts: the reasons of its emitters."""
        return next((emitter.fixed_batch for emitter in self.emitters if emitter.fixed_batch), "")

    @property
    def draws_first(self) -> bool:
        """Whether its first iteration has random solutions that `first_batch` counts."""
        return any(emitter.draws_first for emitter in self.emitters)

    def group_sizes(self, num_emitters: int) -> list[int]:
        """Returns the number of emitters of each group: a bandit has a pool of them."""
        groups = len(self.emitters)
        pool = num_emitters * groups if isinstance(self.scheduler, Bandit) else num_emitters
        return equal_shares(pool, groups)

    def first_iteration(self, num_emitters: int, batch_size: int, drawn: int | None) -> int:
        """Returns the number of solutions of the first iteration (of a bandit, on average)."""
        if not self.draws_first:
            drawn = None
        total = drawn or 0
        for emitter, size in zip(self.emitters, self.group_sizes(num_emitters), strict=True):
            if drawn is None or not emitter.draws_first:
                total += size * emitter.first_batch(batch_size)
        return total // len(self.emitters) if isinstance(self.scheduler, Bandit) else total

    def number_drawing(self, num_emitters: int) -> int:
        """Returns the number of emitters that share a random first batch."""
        sizes = zip(self.emitters, self.group_sizes(num_emitters), strict=True)
        return sum(size for emitter, size in sizes if emitter.draws_first)

    def check_first_batch(self, num_emitters: int, drawn: int | None) -> None:
        """Refuses a random first batch that its emitters cannot have; see `AlgorithmConfig`."""
        drawing = [emitter for emitter in self.emitters if emitter.draws_first]
        if drawn is not None and any(emitter.begins_at_random(None) for emitter in drawing):
            raise ValueError(
                f"first_batch = {drawn} and initial_solutions of an emitter. Give one of them; "
                "first_batch counts the solutions of all emitters together"
            )
        count = self.number_drawing(num_emitters)
        if drawn is not None and drawn < count:
            raise ValueError(
                f"first_batch = {drawn}: too few for the {count} emitters that share it. Give at "
                f"least {count}, or fewer emitters (num_emitters)"
            )
        asking = [emitter for emitter in self.emitters if emitter.needs_jacobian]
        if len({emitter.begins_at_random(drawn) for emitter in asking}) > 1:
            raise ValueError(
                "emitters with a random first batch cannot be mixed with emitters that need "
                "gradients in the first iteration: pyribs has no gradients for the random "
                "solutions. Leave out first_batch and initial_solutions, or the other emitters"
            )
        for emitter in asking:
            emitter.check_start(emitter.begins_at_random(drawn))

    def check_sizes(self, num_emitters: int, batch_size: int, solution_dim: int | None) -> None:
        """Refuses sizes that do not fit its groups or an emitter; see `AlgorithmConfig`."""
        if not isinstance(self.scheduler, Bandit) and num_emitters < len(self.emitters):
            raise ValueError(
                f"num_emitters = {num_emitters}: too few for the {len(self.emitters)} groups of "
                f"algorithm {self.name}. Give at least {len(self.emitters)}"
            )
        for emitter in self.emitters:
            emitter.check_sizes(batch_size, solution_dim)

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields keys without effect, and those of its parts; see `Model`."""
        yield from self.idle_in("archive", "emitters")
        plain = getattr(self.archive, "learning_rate", 0) is None
        if isinstance(self.scheduler, PluginScheduler):  # it may do anything with them
            return
        if self.result_archive and plain:
            yield "result_archive", "without learning_rate, the archive keeps the best ones itself"
        if isinstance(self.archive, SlidingBoundariesArchive):
            why = "a sliding_boundaries archive always takes one after another"
            yield from self.set_keys(why, "add_mode")
        if not self.archive.keeps_elites and not self.own_parts and not self._reads_archive:
            why = f"no emitter reads the {self.archive.type} archive"
            yield from ((f"archive.{key}", why) for key, _ in self.archive.set_keys(why))
        if isinstance(self.scheduler, Bandit) and len(self.emitters) == 1:
            yield "scheduler.type", "with one group of emitters, all of them are always active"

    @property
    def _reads_archive(self) -> bool:
        """Whether an emitter depends on an archive that keeps no elites."""
        if isinstance(self.archive, DensityArchive):
            return any(getattr(emitter, "ranker", "") == "density" for emitter in self.emitters)
        return any(emitter.reads_insertions for emitter in self.emitters)

    @model_validator(mode="after")
    def _check_parts(self) -> "Composition":
        if isinstance(self.scheduler, Bandit) and self.needs_jacobian:
            raise ValueError("the bandit scheduler cannot ask for gradients. Use scheduler all")
        for emitter in self.emitters:
            if hasattr(emitter, "ranker"):
                self.archive.check_ranker(emitter.ranker)
        if self.result_archive and not self.archive.takes_result_archive:
            raise ValueError(
                f"a {self.archive.type} archive keeps its elites itself. Set result_archive: false"
            )
        if not self.archive.keeps_elites and not self.result_archive:
            raise ValueError(
                f"a {self.archive.type} archive keeps no elites. Set result_archive: true"
            )
        if not self.archive.keeps_elites and self.add_mode == "single":
            raise ValueError(
                f"add_mode = single: a {self.archive.type} archive takes only whole batches. Set "
                "add_mode: batch"
            )
        return self


def equal_shares(total: int, count: int) -> list[int]:
    """Divides a number into `count` equal shares, of which the last ones get the remainder."""
    share, rest = divmod(total, count)
    return [share + (place >= count - rest) for place in range(count)]


class PluginAlgorithm(AlgorithmConfig):
    """Your own algorithm: a function that returns a scheduler, or an `Algorithm`.

    Further arguments are those that its signature asks for by name: any of solution_dim,
    measure_dim, ranges, dims, cells, x0, step, objective_range, qd_score_offset, extra_fields,
    num_emitters, batch_size and seed. A scheduler is anything with `ask`, `tell` and an `archive`
    that pickles.
    """

    code = "qdsweep.algorithms.plugin:make_own"

    type: str = Field(
        pattern=TARGET,
        description="`module:function` or `module:Class`, from config/plugins/ or any importable "
        "module",
    )
    arguments: dict[str, Any] = Field(
        default={},
        description="further arguments of the function; they may also be next to `type`",
        json_schema_extra=NOW,
    )

    @property
    def reported_archive(self) -> ArchiveSettings:
        """The archive that it returns, of any kind."""
        return PluginArchive(type=self.type)

    @property
    def batch_is_known(self) -> bool:
        """Only its code knows: it need not ask for `num_emitters` or `batch_size`."""
        return False

    @property
    def own_parts(self) -> dict[str, Any]:
        """The function or class itself."""
        return {"algorithm": self}


def _family(value: Any) -> str:
    """Returns the tag of a family: a composition has no `type`, a user's names a module."""
    family = own_or_type(value)
    if family == "None":
        return "composition"
    return family if family.isidentifier() else "plugin"


if TYPE_CHECKING:
    AlgorithmSettings = AlgorithmConfig
else:
    AlgorithmSettings = Annotated[
        Union[
            Annotated[Composition, Tag("composition")],
            *(tagged(model) for feature in modules("settings") for model in feature.FAMILIES),
            Annotated[PluginAlgorithm, Tag("plugin")],
        ],
        Discriminator(_family),
    ]
