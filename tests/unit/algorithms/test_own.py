"""A user's own functions, archives and schedulers in a run like any other."""

import json
import pickle

import numpy as np
import pytest
from own_parts import LAB
from refusals import refused
from small_runs import StopsAfter, digest_of, fresh, payload_of
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import load


@pytest.fixture(autouse=True)
def lab(plugins):
    plugins("lab", LAB)


def own(algorithm: object, **changes: object):
    return compose({**TINY, "algorithm": algorithm, "iterations": 6}, changes)


def part(**parts: object) -> dict[str, object]:
    return {"archive": {"type": "grid"}, "emitters": [{"type": "gaussian"}], **parts}


def finished(exp, folder):
    (folder / "state").mkdir(parents=True)
    compute(Attempt.of(exp, RunDir(folder)), Stop())
    return folder / "state"


@pytest.mark.parametrize(
    "algorithm",
    [
        {"type": "lab:make", "n": 1},
        part(archive={"type": "lab:Everything"}),
        part(scheduler={"type": "lab:Counting", "every": 3}),
        part(archive={"type": "floor:Floor", "least": 60.0}),
        {"type": "curious:Curious"},
        {"type": "lab:Batches"},
        part(
            emitters=[{"type": "annealed:Annealed"}, {"type": "lab:Bare"}],
            scheduler={"type": "bandit", "reselect": "all"},
        ),
        part(
            emitters=[{"type": "annealed:Annealed", "rate": 0.9}, {"type": "gaussian"}],
            scheduler={"type": "bandit"},
        ),
    ],
    ids=str,
)
def test_it_is_resumed_and_read_like_any_other(tmp_path, algorithm):
    exp = own(algorithm)
    straight = finished(exp, tmp_path / "straight")
    half = compose({**TINY, "algorithm": algorithm}, {"iterations": 3})
    finished(half, tmp_path / "resumed")
    compute(Attempt.of(exp, RunDir(tmp_path / "resumed")), Stop())
    summary = read_json(straight / "summary.json")
    resumed = read_json(tmp_path / "resumed/state/summary.json")
    assert summary["archive_digest"] == resumed["archive_digest"] and summary["num_elites"] > 1
    for name in ("config.yaml", "metrics.csv", "archive.npz", "summary.json"):
        (tmp_path / "straight" / name).hardlink_to(straight / name)
    assert len(load(tmp_path / "straight").archive) == summary["num_elites"]


def test_an_archive_without_cells_has_no_coverage_and_its_digest_is_sorted_by_solution(tmp_path):
    state = finished(own(part(archive={"type": "lab:Everything"})), tmp_path / "run")
    summary = read_json(state / "summary.json")
    assert summary["coverage"] is None and summary["qd_score"] > 0
    assert summary["num_elites"] == summary["evaluations"] == 96
    assert summary["archive"]["class"] == "Everything"
    with np.load(state / "archive.npz") as archive:
        solutions = [row.tobytes() for row in archive["solution"]]
    assert solutions == sorted(solutions)
    assert not RunDir(tmp_path / "run").state.insertions.exists()


def test_a_score_has_the_domains_offset_whatever_the_archive_was_given(tmp_path):
    """`lab:make` gives its archive none."""
    rows = {}
    for low in (0.0, -50.0):
        domain = {**TINY["domain"], "objective_range": [low, 100.0]}
        exp = compose({**TINY, "algorithm": "lab:make", "domain": domain, "iterations": 2})
        state, engine = fresh(exp, tmp_path)
        run_loop(exp, state, engine, Stop(), lambda *_: None)
        rows[low] = state.algorithm.metrics()
    assert rows[0.0]["num_elites"] == rows[-50.0]["num_elites"]
    gained = 50.0 * rows[0.0]["num_elites"]
    assert rows[-50.0]["qd_score"] == pytest.approx(rows[0.0]["qd_score"] + gained)


def test_fields_that_an_own_archive_lacks_are_left_out(tmp_path):
    exp = own("lab:make")
    state, engine = fresh(exp, tmp_path)
    batch = state.algorithm.ask()
    result = engine.domain.evaluate(batch.solutions, np.zeros(len(batch.solutions), np.uint32))
    state.algorithm.tell(batch, result._replace(fields={"extra": result.objective}))
    assert digest_of(state)


def test_solutions_may_be_a_list_and_there_may_be_no_result_archive(tmp_path, plugins):
    plugins("plain", PLAIN)
    state = finished(own("plain:Plain"), tmp_path / "run")
    with np.load(state / "archive.npz") as archive:
        assert archive["solution"].dtype == np.float64 and len(archive["solution"])


PLAIN = """
import numpy as np
from ribs.archives import GridArchive

class Plain:
    result_archive = None

    def __init__(self, solution_dim, ranges, batch_size, seed):
        self.archive = GridArchive(solution_dim=solution_dim, dims=[4, 4], ranges=ranges)
        self.shape, self.rng = (batch_size, solution_dim), np.random.default_rng(seed)

    def ask(self):
        self.asked = self.rng.normal(size=self.shape).tolist()
        return self.asked

    def tell(self, objective, measures, **fields):
        self.archive.add(self.asked, objective, measures)
"""


@pytest.mark.parametrize("rows", range(0, 30, 5))
def test_it_trains_once_an_iteration_wherever_it_was_stopped(tmp_path, rows):
    exp, stop = compose(TINY, {"algorithm": "lab:Batches", "iterations": 2}), Stop()
    state, engine = fresh(exp, tmp_path)
    with pytest.raises(Interrupted):
        run_loop(exp, state, StopsAfter(engine.domain, stop, rows), stop, lambda *_: None)
    state = pickle.loads(payload_of(state))
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert state.algorithm.trained == state.iterations == 2 and state.evaluations == 30
    straight, _ = fresh(exp, tmp_path)
    run_loop(exp, straight, engine, Stop(), lambda *_: None)
    assert digest_of(state) == digest_of(straight)


@pytest.mark.parametrize(
    ("algorithm", "names"),
    [
        ({"type": "lab:make", "sigm": 1}, ("lab:make", "'sigm'", "'sigma'")),
        (part(archive={"type": "floor:Floor", "lest": 1}), ("algorithm.archive", "'least'")),
        (part(scheduler={"type": "lab:Counting", "evry": 1}), ("algorithm.scheduler", "'every'")),
        (part(emitters=[{"type": "annealed:Annealed", "sgma": 1}]), ("emitters", "'sigma'")),
        (
            {"type": "lab:Bare"},
            ("'archive'", "{archive: {type: grid}, emitters: [{type: 'lab:Bare'}]}"),
        ),
        ({"type": "lab:mak"}, ("lab", "mak", "'make'")),
        ("lab:LAB", ("lab", "LAB")),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, algorithm, names):
    with refused(*names):
        fresh(own(algorithm), tmp_path)


def test_gradients_are_asked_for_where_an_own_emitter_wants_them(tmp_path, plugins):
    plugins(
        "climbs",
        "from ribs.emitters import GradientArborescenceEmitter as Base\n\n\n"
        "class Climbs(Base):\n"
        "    def __init__(self, archive, *, x0, batch_size, seed):\n"
        "        more = {'sigma0': 1.0, 'lr': 1.0, 'batch_size': batch_size - 1, 'seed': seed}\n"
        "        super().__init__(archive, x0=x0, **more)\n",
    )
    algorithm = part(emitters=[{"type": "climbs:Climbs"}])
    assert fresh(own(algorithm), tmp_path)[0].algorithm.ask().gradients
    maze = {"type": "maze:Maze"}
    with refused("Maze", "jacobian"):
        fresh(compose({**TINY, "domain": maze, "algorithm": algorithm}), tmp_path)


def test_a_run_keeps_its_arguments_in_one_place():
    exp = own({"type": "lab:make", "sigma": 0.2})
    assert json.loads(exp.model_dump_json())["algorithm"]["arguments"] == {"sigma": 0.2}
    assert exp.algorithm.name == "make"
