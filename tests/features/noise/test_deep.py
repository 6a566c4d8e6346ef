"""Archives whose cells keep several candidates: each of them against lists of Python."""

import copyreg
import io
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ribs.archives import GridArchive

from qdsweep.algorithms.base import SEED
from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm
from qdsweep.features.noise.deep import Again, DeepGrid, DeepResults
from qdsweep.features.noise.depth import Depth, Ranked, SampleSeeds

GRID = {
    "solution_dim": 1,
    "dims": [2, 2],
    "ranges": [(0.0, 4.0), (0.0, 4.0)],
    "extra_fields": {SEED: ((), np.uint32)},
}
UNKNOWN = 8.0


def deep(seed: int = 0, **keys) -> DeepGrid:
    return DeepGrid(**GRID, seed=np.random.SeedSequence(seed), **keys)


@dataclass
class Slow:
    """A candidate with the list of its samples (objective, x, y, seed)."""

    number: int
    samples: list[tuple[float, float, float, int]]

    def mean(self, of: int) -> float:
        mean = 0.0
        for n, sample in enumerate(self.samples, start=1):
            mean += (sample[of] - mean) / n
        return mean

    def score(self, unknown: float | None) -> float:
        if unknown is None:
            return self.mean(0)
        values = [sample[0] for sample in self.samples]
        if len(values) == 1:
            return values[0] - unknown
        n, squares = len(values), 0.0
        for end, value in enumerate(values, start=1):
            before = Slow(0, self.samples[: end - 1]).mean(0)
            squares += (value - before) * (value - Slow(0, self.samples[:end]).mean(0))
        return self.mean(0) - (squares / (n - 1) / n) ** 0.5

    @property
    def cell(self) -> int:
        x, y = (min(max(int(self.mean(of) // 2), 0), 1) for of in (1, 2))
        return 2 * x + y


class SlowArchive:
    """Cells as lists of candidates, the best first."""

    def __init__(self, depth: int, unknown: float | None, latest: bool) -> None:
        self.cells: dict[int, list[Slow]] = {cell: [] for cell in range(4)}
        self.depth, self.unknown, self.latest = depth, unknown, latest
        self.numbers: Iterator[int] = count()

    def add(
        self, again: list[tuple[int, int]], new: list, samples: list
    ) -> list[tuple[int, float]]:
        told = []
        for objective, x, y, seed in new:
            made = Slow(next(self.numbers), [(objective, x, y, seed)])
            here = self.cells[made.cell]
            best = here[0].mean(0) if here else 0.0
            told.append((2 if not here else int(objective > best), objective - best))
            new[len(told) - 1] = made
        taken = [self.cells[cell][rank] for cell, rank in again]
        for one, sample in zip(taken, samples, strict=True):
            one.samples.append(sample)
        for cell, held in self.cells.items():
            held = [one for one in held if one not in taken]
            held += [one for one in (*taken, *new) if one.cell == cell]
            if self.latest:
                young = sorted(held, key=lambda one: -one.number)[: self.depth]
                held = [one for one in held if one in young]
            held.sort(key=lambda one: -one.score(self.unknown))
            self.cells[cell] = held[: self.depth]
        return told


def pickled(archive: DeepGrid) -> DeepGrid:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **RibsAlgorithm.reducers}
    pickler.dump(archive)
    return pickle.loads(buffer.getvalue())


SAMPLE = st.tuples(
    st.integers(-3, 3).map(float), *[st.integers(0, 3).map(float)] * 2, st.integers(0, 2**32 - 1)
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_candidates_and_elites_are_those_of_lists(data: st.DataObject):
    depth, latest = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    unknown = data.draw(st.sampled_from([None, UNKNOWN]))
    archive, slow = (
        deep(depth=depth, unknown=unknown, latest=latest),
        SlowArchive(depth, unknown, latest),
    )
    results = DeepResults(archive)
    for _ in range(data.draw(st.integers(1, 5))):
        before = {cell: held[0].samples[:] for cell, held in slow.cells.items() if held}
        known = [(cell, rank) for cell, held in slow.cells.items() for rank in range(len(held))]
        again = (
            data.draw(st.lists(st.sampled_from(known), unique=True)) if known and not latest else []
        )
        samples = data.draw(st.lists(SAMPLE, min_size=len(again), max_size=len(again)))
        new = data.draw(st.lists(SAMPLE, min_size=1, max_size=6))
        if again:
            values = np.array(samples)
            archive.again = Again(
                Ranked(*np.array(again).T),
                {"objective": values[:, 0], "measures": values[:, 1:3], SEED: values[:, 3]},
                values[:, 3].astype(np.uint32),
            )
        told = np.array(new)
        numbers = np.arange(len(told))[:, np.newaxis] + 0.0
        info = archive.add(
            solution=numbers,
            objective=told[:, 0],
            measures=told[:, 1:3],
            **{SEED: told[:, 3].astype(np.uint32)},
        )
        expected = slow.add(again, new, samples)
        assert list(zip(info["status"], info["value"], strict=True)) == expected
        if data.draw(st.booleans()):
            archive = pickled(archive)
            results = DeepResults(archive)
        compare(archive, slow)
        elites = {cell: held[0].samples for cell, held in slow.cells.items() if held}
        rows = results.rows()
        assert rows["index"].tolist() == sorted(elites)
        for place, cell in enumerate(sorted(elites)):
            own = elites[cell]
            assert rows["samples"][place] == len(own)
            assert rows["sample_seeds"][place, : len(own)].tolist() == [one[3] for one in own]
            assert not rows["sample_seeds"][place, len(own) :].any()
            assert rows[SEED][place] == own[-1][3], "it replays the latest sample"
            np.testing.assert_allclose(
                [rows["objective_variance"][place], *rows["measures_variance"][place]],
                np.var(np.array(own)[:, :3], axis=0),
                atol=1e-12,
            )
        changed = {cell for cell in range(4) if before.get(cell) != elites.get(cell)}
        assert changed <= set(archive.touched.tolist())


def compare(archive: DeepGrid, slow: SlowArchive) -> None:
    depth = archive.candidates
    places = depth.everywhere()
    rows = depth.rows(places)
    found: dict[int, list[tuple]] = {cell: [] for cell in range(4)}
    for cell, *values in zip(
        places.cells,
        depth.get("objective", rows),
        *depth.get("measures", rows).T,
        depth.get("samples", rows),
        strict=True,
    ):
        found[cell].append(tuple(values))
    assert found == {
        cell: [(*(one.mean(of) for of in range(3)), len(one.samples)) for one in held]
        for cell, held in slow.cells.items()
    }
    assert len(depth) == len(places.cells)
    data = archive.data()
    best = {cell: held[0] for cell, held in slow.cells.items() if held}
    assert dict(zip(data["index"], data["objective"], strict=True)) == {
        cell: one.mean(0) for cell, one in best.items()
    }
    assert archive.stats.num_elites == len(best)
    assert archive.stats.obj_max == max((one.mean(0) for one in best.values()), default=None)


@settings(deadline=None)
@given(st.lists(st.lists(SAMPLE, min_size=1, max_size=8), min_size=1, max_size=6))
def test_one_candidate_a_cell_and_one_sample_each_are_an_archive_of_pyribs(batches: list):
    ours, theirs = deep(depth=1), GridArchive(**GRID, seed=np.random.SeedSequence(0))
    for batch in batches:
        told = np.array(batch)
        keys = {
            "solution": np.arange(len(told))[:, np.newaxis] + 0.5,
            "objective": told[:, 0],
            "measures": told[:, 1:3],
            SEED: told[:, 3].astype(np.uint32),
        }
        for first, second in ((ours.add(**keys), theirs.add(**keys)), (ours.data(), theirs.data())):
            for name, values in second.items():
                np.testing.assert_array_equal(first[name], values)
        draws = [archive.sample_elites(5)["solution"] for archive in (ours, theirs)]
        np.testing.assert_array_equal(*draws)
        assert ours.stats == theirs.stats
        assert ours.best_elite["objective"] == theirs.best_elite["objective"]


def filled(depth: int, counts: list[int]) -> DeepGrid:
    """Returns an archive with some candidates in each of its cells, of the objectives 9, 8, 7..."""
    archive = deep(depth=depth, weighted=True)
    rows = [
        (9.0 - n, 1.0 + 2 * (cell // 2), 1.0 + 2 * (cell % 2))
        for cell, many in enumerate(counts)
        for n in range(many)
    ]
    values = np.array(rows)
    archive.add(
        solution=values[:, :1],
        objective=values[:, 0],
        measures=values[:, 1:],
        **{SEED: np.arange(len(values), dtype=np.uint32)},
    )
    return archive


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=4), st.integers(1, 20))
def test_draws_are_different_candidates(counts: list[int], wanted: int):
    if not any(counts):
        return
    places = filled(4, counts).choose(wanted)
    pairs = set(zip(places.cells.tolist(), places.ranks.tolist(), strict=True))
    assert len(pairs) == len(places.cells) == min(wanted, sum(counts))
    assert all(rank < counts[cell] for cell, rank in pairs)


@pytest.mark.parametrize("wanted", [1, 2, 4])  # both ways to draw
def test_the_first_draw_has_a_weight_of_exp_of_the_rank(wanted: int):
    """The seed is fixed, so the numbers are always the same."""
    archive, drawn = filled(4, [3, 1, 0, 2]), Counter()
    for _ in range(20_000):
        places = archive.choose(wanted)
        drawn[int(places.cells[0]), int(places.ranks[0])] += 1
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (3, 0), (3, 1)]
    weights = np.exp([-float(rank) for _, rank in pairs])
    shares = np.array([drawn[pair] for pair in pairs]) / 20_000
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.012)


def test_parents_of_a_deep_grid_are_drawn_by_their_objective_in_the_cell():
    archive = filled(4, [3, 1, 0, 2])
    parents = archive.sample_elites(30_000)
    drawn = Counter(zip(parents["measures"].sum(axis=1), parents["objective"], strict=True))
    # Above the worst of each cell: 2, 1, 0; only one candidate; 1, 0. The cells are equally likely.
    expected = {(2.0, 9.0): 2 / 9, (2.0, 8.0): 1 / 9, (4.0, 9.0): 1 / 3, (6.0, 9.0): 1 / 3}
    assert drawn.keys() == expected.keys()
    for key, share in expected.items():
        assert abs(drawn[key] / 30_000 - share) < 0.01


def test_a_pickle_has_no_samples_of_candidates_that_are_gone():
    """So equal states have equal bytes, however long the run lasts."""
    make = partial(Depth, 1, 1, {"objective": ((), float), "measures": (1, float)})
    sizes = []
    for batches in (40, 400):
        depth = make()
        for number in range(batches):
            new = {"objective": np.array([float(number)]), "measures": np.zeros((1, 1))}
            new |= {"samples": np.ones(1, int), "objective_spread": np.zeros(1)}
            new |= {"measures_spread": np.zeros((1, 1))}
            none = np.empty(0, int)
            depth.insert(
                none, none, new, np.zeros(1, int), SampleSeeds(np.zeros(1, int), np.array([number]))
            )
        sizes.append(len(pickle.dumps(depth)))
    assert abs(sizes[0] - sizes[1]) < 20
