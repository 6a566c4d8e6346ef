"""An elite's evaluation is repeated bit for bit, in runs of this and of earlier releases."""

import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from in_process import compute_run
from refusals import refused
from support import POLE, TINY
from waiting import wait_until

import qdsweep
from qdsweep.runs.load import load

SMALL = {"num_emitters": 2, "batch_size": 10, "iterations": 5}
GRID = {**SMALL, "algorithm": "map_elites", "archive": {"dims": [10, 10]}}
LANDER = {**GRID, "domain": {"preset": "lunar_lander", "evaluation_seed": "solution"}}
# Every type of archive; a learner, gradients (two batches per iteration), episodes.
RUNS = {
    "lander": LANDER,
    "a seed an iteration": {
        **GRID,
        "domain": {"preset": "lunar_lander", "evaluation_seed": "iteration"},
    },
    "result archive, three episodes": {
        **GRID,
        "algorithm": {"preset": "map_elites", "result_archive": True},
        "domain": {"preset": "cartpole", "episodes": 3},
    },
    "pole": POLE,
    "gradients": {
        **TINY,
        "algorithm": {"preset": "map_elites", "emitters": [{"type": "gradient_operator"}]},
    },
    "boundaries": {
        **LANDER,
        "algorithm": {"preset": "map_elites", "archive": {"type": "sliding_boundaries"}},
    },
    "no cells": {
        **LANDER,
        "algorithm": {"preset": "map_elites", "archive": {"type": "proximity"}},
    },
}


def same(evaluation, elite):
    return evaluation.objective.tolist() == [elite.objective] and np.array_equal(
        evaluation.measures, [elite.measures]
    )


def some(run, count=6):
    rows = len(run.arrays["objective"])
    return [run.elite(row) for row in range(0, rows, -(-rows // count))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Computes each run once, at its first use."""
    folder = tmp_path_factory.mktemp("runs")
    computed = {}

    def get(name):
        if name not in computed:
            computed[name] = compute_run(RUNS[name], folder / f"run{len(computed)}")
        return load(computed[name])

    return get


@pytest.fixture
def earlier(runs, tmp_path):
    """A run of an earlier release, without the seeds."""

    def get(name):
        copy = shutil.copytree(runs(name).path, tmp_path / "earlier")
        with np.load(copy / "archive.npz") as file:
            arrays = {key: value for key, value in file.items() if key != "evaluation_seed"}
        np.savez(copy / "archive.npz", **arrays)
        return load(copy)

    return get


@pytest.mark.parametrize("name", RUNS)
def test_a_replay_is_the_elites_own_evaluation(runs, name):
    run = runs(name)
    assert run.arrays["evaluation_seed"].dtype == np.uint32
    elites = [run.best(), *some(run)]
    assert all(same(run.replay(elite), elite) for elite in elites)
    if name == "lander":
        elite = run.best()
        other = run.evaluate(elite.solution, [elite.evaluation_seed, 1, 2])
        assert other.objective[0] == elite.objective
        assert len(set(other.objective)) == 3


def test_an_archive_that_does_not_fit_its_summary_names_its_run(runs, tmp_path):
    copy = shutil.copytree(runs("boundaries").path, tmp_path / "copy")
    with np.load(copy / "archive.npz") as file:
        arrays = dict(file)
    moved = arrays | {"index": arrays["index"] + 1}
    for lacks in ("boundaries", "solution", ""):
        left = {name: value for name, value in moved.items() if name != lacks}
        np.savez(copy / "archive.npz", **left)
        with refused(copy / "archive.npz", lacks):
            assert load(copy).archive


@pytest.mark.parametrize("name", ["lander", "a seed an iteration", "pole", "gradients"])
def test_runs_of_earlier_releases_replay(earlier, runs, name):
    """Their history gives the iteration, whose seeds are tried."""
    run = earlier(name)
    for elite, known in zip(some(run, 2), some(runs(name), 2), strict=True):
        assert elite.evaluation_seed is None
        assert same(run.replay(elite), elite)
        if name != "gradients":  # its evaluations do not depend on the seed
            assert run.seed_of(elite) == known.evaluation_seed


def test_a_seed_that_cannot_be_found_is_unknown(earlier):
    run = earlier("lander")
    (run.path / "history.npz").unlink()
    with refused(run.best().row, run.path):
        run.replay(run.best())


def test_an_emitter_that_takes_no_fields_receives_none(plugins, tmp_path):
    plugins(
        "terse",
        "from ribs.emitters import GaussianEmitter\n\n\n"
        "class Terse(GaussianEmitter):\n"
        "    def __init__(self, archive, x0, batch_size, seed):\n"
        "        super().__init__(archive, sigma=1.0, x0=x0, batch_size=batch_size, seed=seed)\n\n"
        "    def tell(self, solution, objective, measures, add_info):\n"
        "        pass\n",
    )
    emitters = {"preset": "map_elites", "emitters": [{"type": "terse:Terse"}]}
    run = load(compute_run({**LANDER, "algorithm": emitters}, tmp_path / "out"))
    assert "evaluation_seed" not in run.arrays
    assert same(run.replay(run.best()), run.best())
    emitters["archive"] = {"type": "proximity"}  # it has no history
    run = load(compute_run({**LANDER, "algorithm": emitters}, tmp_path / "without"))
    with refused(run.best().row, run.path, "qdsweep check --algorithm"):
        run.replay(run.best())


def test_at_finds_the_cell_or_names_the_nearest(runs):
    run = runs("lander")
    low, high = np.array(run.summary["archive"]["ranges"]).T
    for elite in some(run):
        assert run.at(np.clip(elite.measures, low, high)).row == elite.row
    taken = set(run.arrays["index"].tolist())
    centres = [
        low + (np.array([x, y]) + 0.5) / 10 * (high - low) for x in range(10) for y in range(10)
    ]
    empty = next(point for cell, point in enumerate(centres) if cell not in taken)
    distance = (np.square((run.arrays["measures"] - empty) / (high - low))).sum(axis=1)
    nearest = np.clip(run.elite(int(distance.argmin())).measures, low, high)
    nearest = ",".join(f"{value:.4g}" for value in nearest)
    with refused("impact x-position", nearest):
        run.at(empty)
    with refused(2, "impact x-position"):
        run.at([0.0])
    with refused(999):
        run.elite(999)
    assert run.domain.measures.keys() == {"impact x-position", "impact y-velocity"}
    without = runs("no cells")
    assert without.at(without.best().measures).objective == without.best().objective
    assert without.at([50.0, -1.0])  # no cells, so no edge


def test_a_point_outside_the_ranges_is_not_the_cell_at_the_edge(runs):
    run = runs("lander")
    with refused("impact x-position", 1.5, "-1 to 1", "1.0,-0.123456789"):
        run.at([1.5, -0.123456789])
    with refused("impact y-velocity", 0.25, "-3 to 0", "0.5,0.0"):
        run.at([0.5, 0.25])


def test_elites_are_a_table_with_the_names_of_the_measures(runs):
    run = runs("result archive, three episodes")
    table = run.elites()
    names = ["final position [m]", "range of velocity [m/s]"]
    assert list(table) == ["index", "objective", *names, "objective_std", "evaluation_seed"]
    assert len(table) == run.summary["num_elites"]
    assert np.array_equal(table[names], run.arrays["measures"])
    best = run.elite(table["objective"].idxmax())
    assert best.row == run.best().row
    assert best.objective == table["objective"].max()
    row = table.loc[best.row]
    assert (row["index"], row["objective_std"]) == (best.index, best.fields["objective_std"])
    assert "observation_mean" not in runs("pole").elites()  # it has a number per component


def test_an_elites_column_with_a_taken_name_gets_another(plugins, tmp_path):
    plugins(
        "clashing",
        "from qdsweep.domains.base import Evaluation\n\n\n"
        "class Clashing:\n"
        "    solution_dim, objective_range, fields = 2, (-9, 9), {'reach': ()}\n"
        "    measures = {'objective': (-3, 3), 'reach': (-3, 3)}\n\n"
        "    def evaluate(self, solutions, seeds):\n"
        "        fields = {'reach': 0 * solutions[:, 0]}\n"
        "        return Evaluation(solutions[:, 0], solutions, fields)\n",
    )
    run = load(compute_run({**GRID, "domain": "clashing:Clashing"}, tmp_path / "out"))
    named = ["index", "objective", "objective_elite", "reach", "reach_elite", "evaluation_seed"]
    table = run.elites()
    assert list(table) == named
    assert np.array_equal(table[["objective_elite", "reach"]], run.arrays["measures"])


def test_what_a_learner_had_learned_is_asked_for(runs):
    run = runs("pole")
    with refused("pole"):
        run.evaluate(run.best().solution, 3)


def test_where_numpy_came_first_a_process_has_the_settings(runs):
    run = load(runs("pole").path)
    with mock.patch(
        "qdsweep.runs.load.missing_settings", lambda baseline: {"OMP_NUM_THREADS": "1"}
    ):
        elites = some(run)
        assert all(same(run.replay(elite), elite) for elite in elites)
        worker = run._worker
    assert worker is not None
    pids = list(worker._pids.values())
    del run
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_the_package_lists_what_there_is():
    assert {"load", "load_sweep", "load_elites", "Run", "Elite"} <= set(dir(qdsweep))
    assert all(getattr(qdsweep, name) for name in dir(qdsweep))
    code = "import sys, qdsweep; dir(qdsweep); print(len([m for m in sys.modules if 'numpy' in m]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
