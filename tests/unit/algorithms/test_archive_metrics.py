"""The sums of each row of metrics.csv are those of the elites of that moment."""

import csv
import time

import numpy as np
import pytest
from composing import installed, presets, with_algorithm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_process import compute_run
from ribs.archives import (
    CVTArchive,
    DNSArchive,
    GridArchive,
    ProximityArchive,
    SlidingBoundariesArchive,
)
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.ribs.archives import ResultArchive
from qdsweep.algorithms.ribs.internals import add_in_turn
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State, measure
from qdsweep.experiment.stop import Stop
from qdsweep.metrics import agree
from qdsweep.records.archive import order_by_bytes


def expected(rows, offset, cells):
    """Returns the sums by numpy."""
    score = (rows["objective"] - offset).sum()
    return {
        "num_elites": len(rows["objective"]),
        "qd_score": score,
        "norm_qd_score": None if cells is None else score / cells,
        "obj_mean": rows["objective"].mean() if len(rows["objective"]) else None,
    }


def differences(measured, archive, offset):
    right = expected(archive.rows(), offset, archive.cells)
    return {
        name: (measured[name], value) for name, value in right.items() if measured[name] != value
    }


class Decaying(GridArchive):
    """Its elites get worse with each batch."""

    def add(self, *args, **fields):
        self._store._fields["objective"] *= 0.75
        return super().add(*args, **fields)


class OneAfterAnother(GridArchive):
    """pyribs' `add_single`, by qdsweep's quick form."""

    def add(self, **data):
        return add_in_turn(self, {name: np.asarray(rows) for name, rows in data.items()})


class Listed:
    """A user's archive with the rows of another one."""

    def __init__(self, **arguments):
        self.inner = GridArchive(dims=[5, 4], ranges=[(0, 1)] * 2, **arguments)
        self.solution_dim, self.measure_dim = 2, 2

    def add(self, **rows):
        return self.inner.add(**rows)

    def data(self):
        return self.inner.data()


GRID = {"dims": [5, 4], "ranges": [(0, 1)] * 2}
POINTS = np.random.default_rng(0).random((20, 2))
ARCHIVES = {
    "grid": lambda **a: GridArchive(**GRID, **a),
    "grid of single precision": lambda **a: GridArchive(
        **GRID, **{**a, "qd_score_offset": 0.0}, objective_dtype=np.float32
    ),
    "annealed": lambda **a: GridArchive(**GRID, learning_rate=0.1, threshold_min=-1e300, **a),
    "cvt": lambda **a: CVTArchive(centroids=POINTS, ranges=[(0, 1)] * 2, **a),
    "sliding": lambda **a: SlidingBoundariesArchive(
        **GRID, remap_frequency=7, buffer_capacity=20, **a
    ),
    "proximity": lambda **a: ProximityArchive(
        measure_dim=2, k_neighbors=2, novelty_threshold=0.1, initial_capacity=2, **a
    ),
    "local competition": lambda **a: ProximityArchive(
        measure_dim=2, k_neighbors=2, novelty_threshold=0.3, local_competition=True, **a
    ),
    "dns": lambda **a: DNSArchive(measure_dim=2, k_neighbors=2, capacity=9, **a),
    "decaying": lambda **a: Decaying(**GRID, **a),
    "single": lambda **a: OneAfterAnother(**GRID, **a),
    "a class of no kind": lambda **a: Listed(**a),
}
OBJECTIVES = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e300, 1e300, -1e20, -100.0, 60.0]),
    st.floats(-1e300, 1e300),
)
ROWS = st.tuples(OBJECTIVES, st.floats(0, 1), st.floats(0, 1), st.sampled_from([-0.0, 0.0, 3.5]))
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=12), min_size=1, max_size=6)
# A penalty that a good solution replaces.
PENALTY = [
    [(-1e20, x, x, 0.0) for x in (0.1, 0.5, 0.9)],
    [(60.0 + x, x, x, 0.0) for x in (0.1, 0.9)],
]


@pytest.mark.parametrize("kind", ARCHIVES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(batches=BATCHES, offset=st.sampled_from([None, 0.0, -100.0, 0.1]))
@example(batches=PENALTY, offset=0.0)
def test_they_are_numpys_after_every_batch(kind, batches, offset):
    made = ARCHIVES[kind](solution_dim=2, qd_score_offset=-7.5)
    archive = ResultArchive(made, offset)
    if offset is None:
        offset = float(getattr(made, "qd_score_offset", 0.0))
    for batch in batches:
        objective, x, y, first = map(np.array, zip(*batch, strict=True))
        measures = np.stack([x, y], axis=1)
        if "single precision" in kind:
            objective = np.clip(objective, -1e38, 1e38)
        solution = np.stack([first, np.arange(len(first))], axis=1)
        with np.errstate(all="ignore"):  # of pyribs' own sums
            made.add(solution=solution, objective=objective, measures=measures)
        assert not differences(archive.metrics(), archive, offset)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-310, 2.0**60, 0.1])] * 3),
        max_size=20,
    )
)
def test_the_order_without_cells_is_that_of_the_bytes(rows):
    solutions = np.array(rows, dtype="<f8").reshape(-1, 3)
    right = sorted(range(len(rows)), key=lambda row: solutions[row].tobytes())
    for shaped in (solutions, solutions.reshape(-1, 3, 1)):
        assert order_by_bytes(shaped, np.arange(len(rows))).tolist() == right


PEN = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Penalty:
    solution_dim, fields, is_deterministic = 8, {}, True
    measures, objective_range = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, (0.0, 100.0)
    def __init__(self, penalty=-1e20):
        self.penalty = penalty
    def evaluate(self, s, seeds):
        good = 50 + 10 * np.tanh(s[:, 2])
        bad = np.sin(37 * s[:, 3]) > 0.2
        return Evaluation(np.where(bad, self.penalty, good), np.tanh(s[:, :2]))
    def jacobian(self, s):
        whole = np.zeros((len(s), 3, 8))
        whole[:, 0, 2], whole[:, 1, 0], whole[:, 2, 1] = 1, 1, 1
        return whole
"""
HOME = {
    **TINY,
    "domain": {"type": "pen:Penalty"},
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "batch_size": 8,
}


@pytest.mark.parametrize("name", [name for name in presets("algorithms") if "atari" not in name])
def test_they_are_numpys_in_every_row_of_every_algorithm(name, plugins):
    plugins("pen", PEN)
    exp = installed(with_algorithm(name, HOME, iterations=8))
    domain = make_domain(exp.domain, exp.seed)
    state, wrong = State(make_algorithm(exp, domain, None), steps=0), []

    def look(state, seconds):
        archive, offset = state.algorithm.archive, domain.objective_range[0]
        wrong.append(differences(measure(state), archive, offset))

    with np.errstate(all="ignore"):
        run_loop(exp, state, Serial(domain), Stop(), look)
    assert wrong == [{}] * 8


@pytest.mark.parametrize("penalty", [-100.0, -1e20])
@pytest.mark.parametrize("archive", [{}, {"type": "cvt"}], ids=["grid", "cvt"])
def test_archives_of_one_digest_have_one_score(penalty, archive, plugins, tmp_path):
    """The reported sweep: no penalty is left after 60 iterations."""
    plugins("pen", PEN)
    algorithm = {"preset": "map_elites", "archive": archive} if archive else "map_elites"
    size = {"cells": 25} if archive else {"dims": [5, 5]}
    keys = {**HOME, "num_emitters": 1, "batch_size": 10, "algorithm": algorithm, "archive": size}
    for iterations in (1, 7, 60):
        domain = {"type": "pen:Penalty", "arguments": {"penalty": penalty}}
        compute_run({**keys, "domain": domain}, tmp_path / "out", iterations=iterations)
        with np.load(tmp_path / "out/archive.npz") as arrays:
            objective = arrays["objective"]
        *_, row = csv.DictReader((tmp_path / "out/metrics.csv").open())
        assert float(row["qd_score"]) == objective.sum()
        assert float(row["norm_qd_score"]) == objective.sum() / 25
        assert float(row["obj_mean"]) == objective.mean()
    assert objective.min() > 0


def test_they_cost_little():
    """A row takes at most 2 % of the CPU time of ask and tell, with 10,000 elites."""
    exp = compose("lp_sphere", {"algorithm": "map_elites", "iterations": 1})
    domain = make_domain(exp.domain)
    algorithm = make_algorithm(exp, domain, None)
    x, y = np.unravel_index(np.arange(10_000), (100, 100))
    measures = 5.12 * (np.stack([x, y], axis=1) + 0.5) - 256
    seeds = np.zeros(10_000, np.uint32)
    archive = algorithm.archive.ribs_archive
    archive.add(np.zeros((10_000, 100)), 0.01 * x, measures, evaluation_seed=seeds)
    search, row = [], []
    for _ in range(40):
        start = time.thread_time()
        candidates = algorithm.ask() or algorithm.ask()  # None ends the last iteration
        asked = time.thread_time() - start
        solutions = candidates.solutions
        evaluation = domain.evaluate(solutions, seeds[: len(solutions)])
        told = candidates._replace(seeds=seeds[: len(solutions)])
        start = time.thread_time()
        algorithm.tell(told, evaluation)
        search.append(asked + time.thread_time() - start)
        start = time.thread_time()
        measured = algorithm.metrics()
        row.append(time.thread_time() - start)
    assert measured["num_elites"] == 10_000
    assert min(row) <= 0.02 * min(search)


def test_sums_of_earlier_versions_agree_within_their_last_digits():
    assert agree("qd_score", "1499.6", "1499.6000000000001")
    assert not agree("qd_score", "1499.6", "1499.60001")
    assert not agree("qd_score", "1499.6", "")
    assert not agree("obj_max", "1499.6", "1499.6000000000001")
