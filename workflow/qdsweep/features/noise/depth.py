"""The candidates of an archive: several solutions a cell, with all their samples."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Arrays, Cells, Fields
from qdsweep.domains.base import Floats, Seeds

# PoolRows of the pool.
PoolRows = NDArray[np.int64]
# What the pool has of a candidate in addition to the fields of an archive.
_OWN = {"samples": np.int64, "objective_spread": np.float64, "number": np.int64}
# What orders candidates.
_SCORED = ("objective", "samples", "objective_spread")
_LEAST = 64  # rows of a pool, and samples that are forgotten at once


class Ranked(NamedTuple):
    """Candidates, by their cells ``(n,)`` and their ranks ``(n,)``, of which 0 is the elite's."""

    cells: Cells
    ranks: PoolRows


class SampleSeeds(NamedTuple):
    """Samples of solutions, as they come from the engine.

    Attributes:
        owner: ``(k,)`` the solution of each sample, as a position in a list of solutions.
        seed: ``(k,)`` its evaluation seed.
    """

    owner: PoolRows
    seed: Seeds


class Depth:
    """At most `depth` candidates in each cell, the best first.

    A candidate has one row in each array of a pool, so a change of its rank copies no solution. The
    numbers of rows never matter: a pickle has the candidates in the order of their cells and ranks.

    Args:
        cells: Number of cells.
        depth: Most candidates in one.
        fields: Shape and type of each field of an archive, with solution, objective and measures.
        unknown: The standard error of a candidate with one sample, if the mean objective minus its
            standard error orders candidates; None: the mean objective does.
        latest: Whether the latest candidates of a cell stay, and not the best.

    Attributes:
        depth: Most candidates in a cell.
    """

    def __init__(
        self,
        cells: int,
        depth: int,
        fields: Fields,
        *,
        unknown: float | None = None,
        latest: bool = False,
    ) -> None:
        self.depth = depth
        self._unknown, self._latest = unknown, latest
        spread = {"measures_spread": (fields["measures"][0], np.float64)}
        every: Fields = fields | {name: ((), kind) for name, kind in _OWN.items()} | spread
        self._pool = {
            name: np.zeros((0, *np.atleast_1d(shape).tolist()), dtype=kind)
            for name, (shape, kind) in every.items()
        }
        self._free: list[int] = []
        self._grow(_LEAST)
        self._slots = np.full((cells, depth), -1, dtype=np.int32)
        self._scores: Floats = np.full((cells, depth), -np.inf)  # of the slots
        self._taken: Cells = np.empty(0, dtype=np.int64)
        self._out = 0
        self._born = self._size = 0
        # Numbers of candidates and seeds of their samples, in order, in parts.
        self._log: list[tuple[PoolRows, Seeds]] = []
        self._logged, self._most = 0, _LEAST

    def __len__(self) -> int:
        """Returns the number of candidates."""
        return self._size

    def __getstate__(self) -> dict[str, Any]:
        """Returns the candidates in the order of their cells and ranks, and their samples."""
        held = self._slots >= 0
        rows = self._slots[held]
        self._forget()
        state = vars(self).copy()
        del state["_slots"], state["_scores"]
        return state | {
            "_pool": {name: values[rows] for name, values in self._pool.items()},
            "_free": [],
            "counts": held.sum(axis=1, dtype=np.int32),
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores what `__getstate__` returned."""
        state = dict(state)
        counts = state.pop("counts")
        vars(self).update(state)
        held = np.arange(self.depth) < counts[:, np.newaxis]
        self._slots = np.full(held.shape, -1, dtype=np.int32)
        self._slots[held] = np.arange(counts.sum())
        self._scores = np.full(held.shape, -np.inf)
        self._scores[held] = self._score(self._pool)
        self._grow(_LEAST)

    def everywhere(self) -> Ranked:
        """Returns all candidates, in the order of their cells and ranks."""
        return Ranked(*np.nonzero(self._slots >= 0))

    def rows(self, places: Ranked) -> PoolRows:
        """Returns the rows of candidates, -1 where there is none."""
        return self._slots[places.cells, places.ranks].astype(np.int64)

    def tops(self, cells: Cells) -> PoolRows:
        """Returns the rows of the elites of some cells, -1 where a cell is empty."""
        return self._slots[cells, 0].astype(np.int64)

    def get(self, name: str, rows: PoolRows) -> NDArray[Any]:
        """Returns a field of some candidates, by their rows."""
        values: NDArray[Any] = self._pool[name][rows]
        return values

    def choose(self, rng: np.random.Generator, occupied: Cells, count: int) -> Ranked:
        """Draws candidates without replacement, each with a weight of exp(-rank).

        A pair of a random occupied cell and a random rank counts if there is such a candidate, and
        if it was not drawn before. That is the distribution of draws one after another.

        Args:
            rng: The generator.
            occupied: The cells with candidates.
            count: How many; all of them if there are fewer.
        """
        total = len(self)
        if count >= total:
            return self.everywhere()
        if 2 * count > total:  # most draws would be repetitions
            places = self.everywhere()
            keys = rng.gumbel(size=total) - places.ranks
            best = np.argsort(-keys, kind="stable")[:count]
            return Ranked(places.cells[best], places.ranks[best])
        weights = np.exp(-np.arange(self.depth))
        limits = np.cumsum(weights / weights.sum())[:-1]
        chosen: PoolRows = np.empty(0, dtype=np.int64)
        while len(chosen) < count:
            size = 2 * (count - len(chosen)) + 8
            cells = occupied[rng.integers(len(occupied), size=size)]
            ranks = np.searchsorted(limits, rng.random(size), side="right")
            pairs = cells.astype(np.int64) * self.depth + ranks
            pairs = np.concatenate([chosen, pairs[self._slots[cells, ranks] >= 0]])
            chosen = pairs[np.sort(np.unique(pairs, return_index=True)[1])]
        return Ranked(*np.divmod(chosen[:count], self.depth))

    def parents(self, cells: Cells, rng: np.random.Generator) -> PoolRows:
        """Draws a candidate of each of some cells, by its objective above the worst of the cell.

        Where all are equal, so are their chances.
        """
        rows = self._slots[cells].astype(np.int64)
        held = rows >= 0
        objective = np.where(held, self._pool["objective"][np.maximum(rows, 0)], np.inf)
        weights = np.where(held, objective - objective.min(axis=1, keepdims=True), 0.0)
        flat = ~weights.any(axis=1)
        weights[flat] = held[flat]
        limits = np.cumsum(weights, axis=1)
        drawn = rng.random((len(cells), 1)) * limits[:, -1:]
        ranks = (limits <= drawn).sum(axis=1)
        return rows[np.arange(len(cells)), np.minimum(ranks, held.sum(axis=1) - 1)]

    def take(self, places: Ranked) -> PoolRows:
        """Takes candidates out of their cells until `insert`, and returns their rows."""
        rows = self.rows(places)
        self._slots[places.cells, places.ranks] = -1
        self._scores[places.cells, places.ranks] = -np.inf
        self._taken, self._out = places.cells, len(rows)
        return rows

    def sample(self, rows: PoolRows, results: Arrays, seeds: Seeds) -> None:
        """Adds one sample to each of some candidates, whose other fields are then the latest.

        Args:
            rows: ``(k,)`` their rows, each once.
            results: Objective ``(k,)``, measures ``(k, m)`` and the other fields.
            seeds: ``(k,)`` evaluation seeds.
        """
        pool = self._pool
        pool["samples"][rows] += 1
        samples = pool["samples"][rows]
        for name in ("objective", "measures"):
            count = samples if name == "objective" else samples[:, np.newaxis]
            before = pool[name][rows]
            error = results[name] - before  # Welford's updates
            mean = before + error / count
            pool[name][rows] = mean
            pool[f"{name}_spread"][rows] += error * (results[name] - mean)
        for name in results.keys() - {"objective", "measures", "solution"}:
            pool[name][rows] = results[name]
        self._record(pool["number"][rows], seeds)

    def insert(
        self, rows: PoolRows, cells: Cells, new: Arrays, new_cells: Cells, drawn: SampleSeeds
    ) -> tuple[Cells, PoolRows]:
        """Puts candidates that were taken out, and new ones, into cells.

        At equal values, present candidates come before those that were taken out, and these before
        new ones.

        Args:
            rows: ``(k,)`` rows of the candidates that were taken out.
            cells: ``(k,)`` their cells from now on.
            new: Field ``(n, ...)`` of each new candidate, also `samples` and the spreads.
            new_cells: ``(n,)`` their cells.
            drawn: The samples of new candidates.

        Returns:
            The cells ``(e,)``, sorted, whose elites have changed, and the row ``(e,)`` of the elite
            in each, -1 where it is empty.
        """
        count = len(new_cells)
        ids = np.concatenate([rows, -1 - np.arange(count)])
        score = np.concatenate(
            [
                self._score({name: self._pool[name][rows] for name in _SCORED}),
                self._score(new),
            ]
        )
        affected, owner = np.unique(
            np.concatenate([cells, new_cells, self._taken]), return_inverse=True
        )
        owner = owner[: len(ids)]
        block, scores = self._slots[affected], self._scores[affected]
        before, gone = block[:, 0].copy(), ids[:0]
        self._size -= self._out + int(np.count_nonzero(block >= 0))
        if self._latest:
            gone, young = self._age(block, scores, owner)
            gone = np.concatenate([gone, ids[~young]])
            ids, owner, score = ids[young], owner[young], score[young]
        order = np.lexsort((-score, owner))
        ids, owner, score = ids[order], owner[order], score[order]
        # The rank of a candidate is the number of those before it: present and incoming ones.
        is_before = scores[owner] < score[:, np.newaxis]
        held = block >= 0
        old_ranks = np.cumsum(held, axis=1) - 1
        starts, nth = _runs(owner)
        if len(starts):
            old_ranks[owner[starts]] += np.add.reduceat(is_before, starts, axis=0, dtype=np.int64)
        ranks = self.depth - np.count_nonzero(is_before, axis=1) + nth
        old_stays, stays = held & (old_ranks < self.depth), ranks < self.depth
        gone = np.concatenate([gone, block[held & ~old_stays], ids[~stays]])
        ids, place = ids[stays], (owner[stays], ranks[stays])
        is_new = ids < 0
        winners = -1 - ids[is_new]
        placed = np.full(count, -1, dtype=np.int64)
        placed[winners] = ids[is_new] = self._allocate(len(winners))
        # Only now, so that no new elite has the row of the one before it.
        self._free += gone[gone >= 0].tolist()
        for name, values in new.items():
            self._pool[name][placed[winners]] = values[winners]
        self._pool["number"][placed[winners]] = self._born + winners
        old_place = (np.nonzero(old_stays)[0], old_ranks[old_stays])
        kept, kept_scores = block[old_stays], scores[old_stays]
        block[:], scores[:] = -1, -np.inf
        block[old_place], scores[old_place] = kept, kept_scores
        block[place], scores[place] = ids, score[stays]
        self._slots[affected], self._scores[affected] = block, scores
        stored = placed[drawn.owner] >= 0
        self._record(self._born + drawn.owner[stored], drawn.seed[stored])
        self._born += count
        self._size += int(np.count_nonzero(block >= 0))
        self._taken, self._out = self._taken[:0], 0
        if self._logged > self._most:
            self._forget()
        # A cell is only empty now if all of its candidates were taken out.
        changed = (block[:, 0] != before) | (block[:, 0] < 0)
        return affected[changed], block[changed, 0].astype(np.int64)

    def _age(
        self, block: NDArray[np.int32], scores: Floats, owner: PoolRows
    ) -> tuple[PoolRows, NDArray[np.bool_]]:
        """Takes the oldest candidates out of cells with more than `depth`.

        Args:
            block: ``(e, depth)`` the rows of the present candidates, changed in place.
            scores: ``(e, depth)`` their scores, changed in place.
            owner: ``(k,)`` the cell of each incoming one, as a position in `block`.

        Returns:
            The rows of those that leave, and which of the incoming ones ``(k,)`` may stay.
        """
        incoming = np.bincount(owner, minlength=len(block))
        order = np.argsort(owner, kind="stable")
        young = np.empty(len(owner), dtype=bool)
        young[order] = incoming[owner[order]] - _runs(owner[order])[1] <= self.depth
        held = block >= 0
        born = np.where(held, self._pool["number"][block], np.iinfo(np.int64).max)
        age = np.argsort(np.argsort(born, axis=1), axis=1)  # 0: the oldest
        surplus = held.sum(axis=1) + np.minimum(incoming, self.depth) - self.depth
        leaves = held & (age < surplus[:, np.newaxis])
        gone = block[leaves].astype(np.int64)
        block[leaves], scores[leaves] = -1, -np.inf
        return gone, young

    def _score(self, values: Arrays) -> Floats:
        """Returns what orders candidates, the highest first."""
        mean: Floats = values["objective"]
        if self._unknown is None:
            return mean
        samples = values["samples"]
        several = np.maximum(samples, 2)
        error = np.sqrt(values["objective_spread"] / (several - 1) / several)
        bound: Floats = mean - np.where(samples > 1, error, self._unknown)
        return bound

    def _allocate(self, count: int) -> list[int]:
        """Returns free rows of the pool, which grows where there are too few."""
        if count > len(self._free):
            self._grow(max(count, len(self._pool["number"])))
        rows = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        return rows

    def _grow(self, more: int) -> None:
        """Adds free rows to the pool."""
        size = len(self._pool["number"])
        for name, values in self._pool.items():
            grown = np.zeros((size + more, *values.shape[1:]), dtype=values.dtype)
            grown[:size] = values
            self._pool[name] = grown
        self._free = [*range(size + more - 1, size - 1, -1), *self._free]

    def _record(self, numbers: PoolRows, seeds: Seeds) -> None:
        """Remembers samples of candidates."""
        self._log.append((numbers, np.asarray(seeds, dtype=np.uint32)))
        self._logged += len(numbers)

    def _forget(self) -> None:
        """Forgets the samples of candidates that are gone."""
        if not self._log:
            return
        owners, seeds = map(np.concatenate, zip(*self._log, strict=True))
        alive = np.isin(owners, self._pool["number"][self._slots[self._slots >= 0]])
        self._log = [(owners[alive], seeds[alive])]
        self._logged = int(alive.sum())
        self._most = 2 * self._logged + _LEAST

    def seeds_of(self, rows: PoolRows) -> Seeds:
        """Returns the evaluation seeds ``(n, k)`` of all samples of some candidates, in order.

        A candidate with fewer than k samples has zeros after its own.
        """
        if not len(rows):
            return np.zeros((0, 0), dtype=np.uint32)
        owners, seeds = map(np.concatenate, zip(*self._log, strict=True))
        numbers = self._pool["number"][rows]
        order = np.argsort(numbers)
        place = np.searchsorted(numbers[order], owners) % len(rows)
        theirs = numbers[order][place] == owners
        who, seeds = order[place[theirs]], seeds[theirs]
        by_candidate = np.argsort(who, kind="stable")
        who, seeds = who[by_candidate], seeds[by_candidate]
        _, ranks = _runs(who)
        every = np.zeros((len(rows), int(ranks.max(initial=-1)) + 1), dtype=np.uint32)
        every[who, ranks] = seeds
        return every


def _runs(owner: PoolRows) -> tuple[PoolRows, PoolRows]:
    """Returns the start of each run of equal numbers, and the position of each one in its run."""
    starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]])[: len(owner)])
    lengths = np.diff(np.append(starts, len(owner)))
    return starts, np.arange(len(owner)) - np.repeat(starts, lengths)
