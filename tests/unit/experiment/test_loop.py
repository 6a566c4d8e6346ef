"""The loop, in this process: going on bit for bit, stopped anywhere."""

import json
import pickle
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pytest
from composing import installed, with_algorithm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import StopsAfter, digest_of, experiment, fresh, payload_of
from support import REPO, TINY

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines import make_engine
from qdsweep.engines.base import Batch
from qdsweep.experiment.loop import run_loop, timed
from qdsweep.experiment.run import compute
from qdsweep.experiment.state import State, evaluation_seeds, no_seconds
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.archive import archive_digest
from qdsweep.records.metrics import read_rows
from qdsweep.records.paths import RunDir

ALGORITHMS = sorted(path.stem for path in (REPO / "config/algorithms").glob("*.yaml"))


def straight(exp: Experiment, folder: Path) -> str:
    state, engine = fresh(exp, folder)
    run_loop(exp, state, engine, Stop(), lambda state, seconds: None)
    return digest_of(state)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_preset_goes_on_bit_for_bit_after_every_iteration(algorithm, tmp_path):
    """Pickled and loaded after each iteration, every preset ends as it does in one go."""
    exp = installed(with_algorithm(algorithm, TINY, iterations=8))
    state, engine = fresh(exp, tmp_path)
    for last in range(1, 9):
        short = exp.model_copy(update={"iterations": last})
        run_loop(short, state, engine, Stop(), lambda state, seconds: None)
        state = pickle.loads(payload_of(state))
    assert digest_of(state) == straight(exp, tmp_path)


@given(parts=st.lists(st.integers(0, 60), min_size=1, max_size=6))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.parametrize("algorithm", ["cma_mae", "cma_mega"])
def test_stopped_during_evaluations_it_goes_on_bit_for_bit(algorithm, tmp_path, parts):
    """Interrupted after any number of evaluations, saved with what is pending, loaded again."""
    exp = compose(TINY, {"algorithm": algorithm, "iterations": 6})
    state, engine = fresh(exp, tmp_path)
    for count in parts:
        stop = Stop()
        try:
            run_loop(exp, state, StopsAfter(engine.domain, stop, count), stop, lambda *_: None)
        except Interrupted:
            state = pickle.loads(payload_of(state))
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert digest_of(state) == straight(exp, tmp_path)


def test_equal_states_have_equal_bytes(tmp_path):
    """A reload file holds no garbage of empty cells: a second run writes the same bytes."""
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


def test_torn_centroids_are_computed_again(tmp_path):
    exp = compose(TINY, {"algorithm": "cvt_map_elites", "iterations": 1})
    expected = straight(exp, tmp_path)
    (path,) = tmp_path.glob("cvt-*.npy")
    path.write_bytes(path.read_bytes()[:50])
    assert straight(exp, tmp_path) == expected


def test_compute_writes_what_design_names(tmp_path):
    out = tmp_path / "run"
    (out / "state").mkdir(parents=True)
    compute(experiment(), RunDir(out), Cluster(), Stop())
    summary = json.loads((out / "state/summary.json").read_text())
    rows = np.load(out / "state/archive.npz", allow_pickle=False)
    assert summary["status"] == "finished"
    assert summary["num_elites"] == len(rows["index"]) == len(rows["solution"])
    assert archive_digest(dict(rows)) == summary["archive_digest"]
    assert summary["qd_score"] == pytest.approx(rows["objective"].sum())
    assert summary["norm_qd_score"] == pytest.approx(summary["qd_score"] / 144)
    assert len(read_rows(out / "state/metrics.csv")) == 12
    assert len(list((out / "state").glob("reload-*"))) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_main_process_is_free_as_soon_as_the_workers_have_something_to_do(workers):
    """Once a batch, before its first result: there a reload file costs no time."""
    exp = experiment()
    made = make_engine(
        Cluster(workers_per_node=workers), exp, make_domain(exp.domain), None, None, {}
    )
    batch = Batch(np.zeros((16, 10)), np.zeros(16, dtype=np.uint32))
    for _ in range(2):
        events = []
        free = partial(events.append, "free")
        for part in made.evaluate(batch, [slice(0, 16)], free):
            events.append(part)
        assert events.count("free") == 1
        assert events[0] == "free"
    made.close()


def test_a_state_saved_while_a_batch_is_evaluated_goes_on_bit_for_bit(tmp_path):
    """Each save that the loop offers is taken; going on from any of them gives the same."""
    exp = experiment(iterations=5)
    expected = straight(exp, tmp_path / "straight")
    state, engine = fresh(exp, tmp_path)
    kept = []

    def save(state: State) -> float:
        kept.append(pickle.dumps(state))
        return 0.5

    rows = []
    run_loop(exp, state, engine, Stop(), lambda state, seconds: rows.append(seconds), save)
    assert digest_of(state) == expected
    assert len(kept) == 5
    assert all(row["reload"] == 0.5 for row in rows), "what the save took is no evaluation's"
    for content in kept:
        again = pickle.loads(content)
        assert again.pending is not None
        run_loop(exp, again, engine, Stop(), lambda *_: None)
        assert digest_of(again) == expected


def test_what_compiles_is_the_time_of_no_phase():
    add = numba.njit(lambda a, b: a + b)
    seconds = no_seconds()
    for _ in range(2):
        with timed(seconds, "tell"):
            add(1, 2)
    assert seconds["compile"] > 10 * seconds["tell"] > 0
