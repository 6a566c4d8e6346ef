"""The loop in this process: its seeds, its files, and training during evaluations."""

import json
import pickle
import time
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest
from in_process import compute_run
from refusals import names_all
from small_runs import digest_of, experiment, fresh, payload_of
from support import TINY

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.domains.base import outside
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.loop import run_loop, timed
from qdsweep.experiment.run import compute
from qdsweep.experiment.state import evaluation_seeds, no_seconds
from qdsweep.experiment.stop import Stop
from qdsweep.records.archive import archive_digest
from qdsweep.records.metrics_file import read_rows
from qdsweep.records.paths import RunDir


def straight(exp: Experiment, folder: Path) -> str:
    state, engine = fresh(exp, folder)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    return digest_of(state)


def test_equal_states_have_equal_bytes(tmp_path):
    """A reload file has no data of empty cells, so a second run writes the same bytes."""
    exp = experiment(algorithm="map_elites")
    states = []
    for _ in range(2):
        state, engine = fresh(exp, tmp_path)
        run_loop(exp, state, engine, Stop(), lambda *_: None)
        states.append(payload_of(state))
    assert states[0] == states[1]
    full = pickle.dumps(pickle.loads(states[0]))
    assert len(states[0]) < len(full), "only occupied rows are stored"


def test_another_seed_is_another_result(tmp_path):
    assert straight(experiment(seed=1), tmp_path) != straight(experiment(seed=2), tmp_path)


def test_evaluation_seeds_follow_their_policy():
    seeds = evaluation_seeds("solution", 7, 3, 0, 6)
    assert seeds.dtype == np.uint32
    assert len(set(seeds)) == 6
    expected = np.random.SeedSequence(7, spawn_key=(1, 3)).generate_state(6)
    np.testing.assert_array_equal(seeds, expected)
    np.testing.assert_array_equal(evaluation_seeds("solution", 7, 3, 2, 4), seeds[2:])
    assert len({*evaluation_seeds("iteration", 7, 3, 0, 5)}) == 1
    assert evaluation_seeds("iteration", 7, 3, 0, 1) != evaluation_seeds("iteration", 7, 4, 0, 1)
    assert evaluation_seeds("fixed", 7, 3, 0, 1) == evaluation_seeds("fixed", 7, 9, 0, 1)
    assert set(evaluation_seeds(52, 7, 3, 0, 5)) == {52}


def test_compute_writes_what_design_names(tmp_path):
    out = tmp_path / "run"
    (out / "state").mkdir(parents=True)
    compute(Attempt.of(experiment(), RunDir(out)), Stop())
    summary = json.loads((out / "state/summary.json").read_text())
    rows = np.load(out / "state/archive.npz", allow_pickle=False)
    assert summary["status"] == "finished"
    assert summary["num_elites"] == len(rows["index"]) == len(rows["solution"])
    assert archive_digest(dict(rows)) == summary["archive_digest"]
    assert summary["qd_score"] == pytest.approx(rows["objective"].sum())
    assert summary["norm_qd_score"] == pytest.approx(summary["qd_score"] / 144)
    assert len(read_rows(out / "state/metrics.csv")) == 12
    assert len(list((out / "state").glob("reload-*"))) == 1


def test_elites_outside_the_objective_range_are_counted(tmp_path, caplog):
    domain = {**TINY["domain"], "objective_range": [90, 95]}
    out = compute_run({**TINY, "domain": domain, "algorithm": "map_elites"}, tmp_path / "run")
    summary = json.loads((out / "summary.json").read_text())
    with np.load(out / "archive.npz") as file:
        objective = file["objective"]
    below, above = int((objective < 90).sum()), int((objective > 95).sum())
    assert summary["objectives_outside"] == {"below": below, "above": above}
    assert below > 0 and above > 0
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    names_all(warning, below, above, summary["num_elites"], "objective_range", "[90.0, 95.0]")
    caplog.clear()
    all_inside = compute_run({**TINY, "iterations": 1}, tmp_path / "inside")
    count = json.loads((all_inside / "summary.json").read_text())["objectives_outside"]
    assert count == {"below": 0, "above": 0} and "objective_range" not in caplog.text


def test_a_rounding_error_is_not_outside_the_objective_range():
    below, above = outside(np.array([-1e-12, -1e-3, 100.0, 100 + 1e-12, 100.1]), (0.0, 100.0))
    assert below.tolist() == [False, True, False, False, False]
    assert above.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_main_process_is_free_as_soon_as_the_workers_have_something_to_do(workers):
    """Once per batch, before its first result, where a reload file costs no time."""
    exp, cluster = experiment(), Cluster(workers_per_node=workers)
    engine = make_engine(cluster, exp, make_domain(exp.domain), None, None, {})
    batch = Batch(np.zeros((16, 10)), np.zeros(16, dtype=np.uint32))
    for _ in range(2):
        events = []
        free = partial(events.append, "free")
        for part in engine.evaluate(batch, [slice(0, 16)], free):
            events.append(part)
        assert events.count("free") == 1
        assert events[0] == "free"
    engine.close()


def test_what_a_save_takes_is_no_time_of_evaluations(tmp_path):
    exp, rows = experiment(iterations=2), []
    state, engine = fresh(exp, tmp_path)
    run_loop(exp, state, engine, Stop(), lambda _, seconds: rows.append(seconds), lambda _: 1000.0)
    assert [row["reload"] for row in rows] == [1000.0] * 2
    assert all(row["evaluate"] < 0 for row in rows), "the save took less than the reported time"


def test_what_compiles_is_the_time_of_no_phase():
    add = numba.njit(lambda a, b: a + b)
    seconds, start = no_seconds(), time.perf_counter()
    with timed(seconds, "tell"):
        add(1, 2)
    assert 0 < seconds["tell"] < time.perf_counter() - start - (compiled := seconds["compile"])
    with timed(seconds, "tell"):
        add(1, 2)
    assert seconds["compile"] == compiled > 0
