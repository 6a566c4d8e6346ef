"""The `algorithm:` part of an experiment: a composition of pyribs' parts, as data."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from qdsweep.config.archives import Archive, CVTArchive, GridArchive
from qdsweep.config.base import Model
from qdsweep.config.emitters import Emitter


class Bandit(Model):
    """pyribs' BanditScheduler: the groups of emitters compete for the evaluations (UCB1).

    `num_emitters` emitters are active at a time. The pool has that many of each group.
    """

    cite: ClassVar[tuple[str, ...]] = ("cully2021multi",)

    type: Literal["bandit"]
    reselect: Literal["terminated", "all"] = Field(
        default="terminated", description="which emitters are chosen anew after an iteration"
    )
    zeta: float = Field(default=0.05, ge=0, description="weight of exploration in UCB1")


class RoundRobin(Model):
    """pyribs' Scheduler: every emitter in every iteration."""

    cite: ClassVar[tuple[str, ...]] = ()

    type: Literal["all"]


Scheduler = Annotated[RoundRobin | Bandit, Field(discriminator="type")]


class Algorithm(Model):
    """An archive, groups of emitters and a scheduler, as pyribs composes them."""

    name: str = Field(
        default="custom",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    title: str = Field(
        default="", description="what the methods paragraph calls it; empty for the name"
    )
    cite: list[str] = Field(
        default=[],
        description=(
            "its papers besides those of its parts, for the methods paragraph: keys of "
            "references.bib"
        ),
    )
    archive: Archive = Field(description="the archive that the emitters search with")
    result_archive: bool = Field(
        default=False,
        description=(
            "keep the best solutions in a second, elitist archive of the same cells (a grid for a "
            "proximity archive); metrics and results are then of that one (CMA-MAE)"
        ),
    )
    emitters: list[Emitter] = Field(
        min_length=1,
        description="groups of emitters; `num_emitters` is divided equally among them",
    )
    scheduler: Scheduler = Field(
        default=RoundRobin(type="all"), description="which emitters work in an iteration"
    )
    add_mode: Literal["batch", "single"] = Field(
        default="batch", description="insert the solutions of an iteration at once or one by one"
    )

    @property
    def needs_jacobian(self) -> bool:
        """Whether an emitter asks for gradients."""
        return any(emitter.needs_jacobian for emitter in self.emitters)

    @property
    def reported_archive(self) -> Archive:
        """The archive of metrics and results; a result archive has no thresholds."""
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

    @model_validator(mode="after")
    def _check_parts(self) -> "Algorithm":
        if isinstance(self.scheduler, Bandit) and self.needs_jacobian:
            raise ValueError("the bandit scheduler cannot ask for gradients; take scheduler all")
        for emitter in self.emitters:
            ranker = getattr(emitter, "ranker", None)
            if ranker not in (None, *self.archive.rankers):
                raise ValueError(
                    f"ranker {ranker} does not work with a {self.archive.type} archive; take "
                    f"{' or '.join(self.archive.rankers)}, or another archive"
                )
        if self.result_archive and not self.archive.takes_result_archive:
            raise ValueError(
                f"a {self.archive.type} archive keeps its elites itself; set result_archive: false"
            )
        return self
