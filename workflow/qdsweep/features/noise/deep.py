"""Grid and CVT archives of pyribs whose cells keep several candidates."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import qdsweep.algorithms.ribs  # noqa: F401 - before pyribs, whose import it makes fast

# isort: split
import numpy as np
from ribs.archives import ArchiveBase, ArchiveStats, CVTArchive, GridArchive

from qdsweep.algorithms.base import SEED, Arrays, Cells
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import ResultArchive
from qdsweep.domains.base import Domain, Floats, Seeds
from qdsweep.errors import BadInput
from qdsweep.features.noise.depth import Depth, PoolRows, Ranked, SampleSeeds

# The fields of archive.npz that qdsweep adds to those of the domain.
SAMPLE_FIELDS = ("samples", "objective_variance", "measures_variance", "sample_seeds")
# For the type checker: a grid or a CVT archive has its attributes.
_CELLS: Any = GridArchive if TYPE_CHECKING else object


def refuse_sample_fields(domain: Domain) -> None:
    """Refuses a domain with a field that `archive.npz` has of each elite's samples.

    Raises:
        BadInput: It has one; the message has its name.
    """
    if taken := [name for name in domain.fields if name in SAMPLE_FIELDS]:
        raise BadInput(
            f"the domain has a field {taken[0]!r}, which with the key resampling archive.npz has "
            "of the samples of each elite. Rename it"
        )


class Again(NamedTuple):
    """New samples of candidates of an archive, one each.

    Attributes:
        places: The candidates.
        results: Objective ``(k,)``, measures ``(k, m)`` and the domain's fields.
        seeds: ``(k,)`` evaluation seeds.
    """

    places: Ranked
    results: Arrays
    seeds: Seeds


class Sampled(NamedTuple):
    """The samples of new solutions, whose means are their objective and measures.

    Attributes:
        samples: ``(n,)`` number of samples.
        objective_spread: ``(n,)`` sum of squared deviations from the mean.
        measures_spread: ``(n, m)`` the same for the measures.
        drawn: The evaluation seeds of all samples.
        competes: ``(n,)`` whether a solution may become a candidate.
    """

    samples: PoolRows
    objective_spread: Floats
    measures_spread: Floats
    drawn: SampleSeeds
    competes: np.ndarray


class _DeepCells(_CELLS):
    """What a deep archive has in addition to its class of pyribs.

    pyribs' own store has the elites, so everything that reads an archive works. The candidates,
    elites included, are in `candidates`. The next `add` also puts back the candidates of `again`.

    Attributes:
        candidates: All candidates.
        again: New samples of candidates.
        sampled: The samples of the solutions of the next `add`; None: one each.
        touched: The cells that the latest `add` may have changed.
    """

    def __init__(
        self,
        *,
        depth: int,
        unknown: float | None = None,
        latest: bool = False,
        weighted: bool = False,
        seed: np.random.SeedSequence,
        **arguments: Any,
    ) -> None:
        """Makes the archive.

        Args:
            depth: Most candidates in a cell.
            unknown: What orders them; see `Depth`.
            latest: Whether the latest ones stay, and not the best.
            weighted: Whether parents are drawn from all candidates of a random cell.
            seed: The seed of all draws.
            arguments: Those of the class of pyribs.
        """
        super().__init__(seed=seed, **arguments)
        self.candidates = Depth(
            int(self.cells),
            depth,
            internals.fields_of(self),
            unknown=unknown,
            latest=latest,
        )
        self.again: Again | None = None
        self.sampled: Sampled | None = None
        self.touched: Cells = np.empty(0, dtype=np.int64)
        self._weighted = weighted
        self._generator = np.random.default_rng(seed.spawn(1)[0])

    def choose(self, count: int) -> Ranked:
        """Draws candidates to evaluate again; see `Depth.choose`."""
        return self.candidates.choose(
            self._generator,
            internals.occupied_cells(self).astype(np.int64),
            count,
        )

    def add(self, **data: Any) -> Arrays:
        """Adds a batch of solutions, and puts back the candidates of `again`.

        Args:
            data: Solutions, objective, measures and fields, ``(n, ...)`` each.

        Returns:
            `status` and `value` ``(n,)`` as from pyribs' archives, compared with the elites before.
        """
        data = {name: np.asarray(values) for name, values in data.items()}
        depth, again, count = self.candidates, self.again, len(data["objective"])
        rows, measures = np.empty(0, dtype=np.int64), data["measures"]
        if again is not None:
            rows = depth.take(again.places)
            depth.sample(rows, again.results, again.seeds)
            measures = np.concatenate([measures, depth.get("measures", rows)])
        every = self.index_of(measures)
        cells, moved = every[:count], every[count:]
        occupied, before = internals.objectives_at(self, cells)
        value = data["objective"] - np.where(occupied, before, 0.0)
        status = np.where(occupied, value > 0, 2).astype(np.int32)
        new, cells, drawn = self._competing(data, cells)
        self._show(*depth.insert(rows, moved, new, cells, drawn))
        self.again = self.sampled = None
        return {"status": status, "value": value}

    def _competing(self, data: Arrays, cells: Cells) -> tuple[Arrays, Cells, SampleSeeds]:
        """Returns the new solutions that may become candidates, their cells and their samples."""
        sampled = _once(data) if self.sampled is None else self.sampled
        new = data | {
            "samples": sampled.samples,
            "objective_spread": sampled.objective_spread,
            "measures_spread": sampled.measures_spread,
        }
        drawn, competes = sampled.drawn, sampled.competes
        if competes.all():
            return new, cells, drawn
        place, chosen = np.cumsum(competes) - 1, competes[drawn.owner]
        drawn = SampleSeeds(place[drawn.owner[chosen]], drawn.seed[chosen])
        return {name: values[competes] for name, values in new.items()}, cells[competes], drawn

    def _show(self, cells: Cells, tops: PoolRows) -> None:
        """Gives pyribs' store the elites of cells that have changed; -1 where there is none."""
        self.touched, is_empty = cells, tops < 0
        if is_empty.any():
            internals.empty_cells(self, cells[is_empty])
            cells, tops = cells[~is_empty], tops[~is_empty]
        names = internals.fields_of(self)
        elites = {name: self.candidates.get(name, tops) for name in names}
        internals.put_elites(self, cells, elites)

    def sample_elites(self, n: int, replace: bool = True) -> Arrays:
        """Returns random parents: elites, or candidates of random cells by their objective."""
        elites: Arrays = super().sample_elites(n, replace)
        if not self._weighted:
            return elites
        rows = self.candidates.parents(elites["index"], self._generator)
        return elites | {
            name: self.candidates.get(name, rows) for name in internals.fields_of(self)
        }

    @property
    def stats(self) -> ArchiveStats:
        """The statistics of the present elites."""
        objective = self.data("objective")
        offset = self.qd_score_offset
        count, cells = len(objective), self.cells
        score = objective.sum() - count * offset
        return ArchiveStats(
            num_elites=count,
            coverage=np.float64(count / cells),
            qd_score=score,
            norm_qd_score=score / cells,
            obj_max=objective.max() if count else None,
            obj_mean=objective.mean() if count else None,
        )

    @property
    def best_elite(self) -> dict[str, Any] | None:
        """The best of the present elites."""
        elites = self.data()
        if not len(elites["objective"]):
            return None
        best = int(np.argmax(elites["objective"]))
        return {name: values[best] for name, values in elites.items()}

    def add_single(self, *data: Any, **fields: Any) -> None:
        """Refuses one solution: candidates change batch by batch."""
        raise NotImplementedError("a deep archive takes whole batches")


def _once(data: Mapping[str, Any]) -> Sampled:
    """Returns the samples of solutions that were evaluated once."""
    count = len(data["objective"])
    owner = np.arange(count) if SEED in data else np.arange(0)
    return Sampled(
        np.ones(count, dtype=np.int64),
        np.zeros(count),
        np.zeros(np.shape(data["measures"])),
        SampleSeeds(owner, np.asarray(data.get(SEED, owner), dtype=np.uint32)),
        np.ones(count, dtype=bool),
    )


class DeepGrid(_DeepCells, GridArchive):
    """pyribs' GridArchive with several candidates in a cell."""


class DeepCVT(_DeepCells, CVTArchive):
    """pyribs' CVTArchive with several candidates in a cell."""


def deep_classes(**keys: Any) -> dict[type[ArchiveBase], Any]:
    """Returns classes of pyribs -> deep ones with some arguments of `_DeepCells`."""
    return {GridArchive: partial(DeepGrid, **keys), CVTArchive: partial(DeepCVT, **keys)}


class DeepResults(ResultArchive):
    """The archive of a run whose cells keep several candidates; its results are their elites."""

    loses_elites = True

    @property
    def replaces_ties(self) -> bool:  # type: ignore[override]
        """True, as the elite of a cell may get another sample."""
        return True

    def touched(self, measures: Floats) -> Cells:
        """Returns the cells that the latest batch may have changed; see `Archive`."""
        cells: Cells = self.ribs_archive.touched
        return cells

    def rows(self) -> Arrays:
        """Returns the elites sorted by cell, with their samples."""
        rows = super().rows()
        return rows | self._samples(rows["index"])

    def rows_in(self, cells: Cells) -> Arrays:
        """Returns the `rows` in some cells, in any order."""
        rows = super().rows_in(cells)
        return rows | self._samples(rows["index"])

    def describe(self) -> dict[str, Any]:
        """Returns type, number of cells and, for a grid, `dims`: those of the class of pyribs."""
        about = super().describe()
        del about["class"]
        return about

    def _samples(self, cells: Cells) -> Arrays:
        """Returns the samples of the elites of some cells, as archive.npz has them."""
        depth: Depth = self.ribs_archive.candidates
        rows = depth.tops(cells)
        samples = depth.get("samples", rows)
        return {
            "samples": samples,
            "objective_variance": depth.get("objective_spread", rows) / samples,
            "measures_variance": depth.get("measures_spread", rows) / samples[:, np.newaxis],
            "sample_seeds": depth.seeds_of(rows),
        }

    def _best_ever(self, objective: Floats) -> float | None:
        """Returns the highest objective of the present elites, as earlier ones were lucky."""
        return float(objective.max()) if len(objective) else None
