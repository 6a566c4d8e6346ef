"""A run that was stopped anywhere and resumed equals a straight run, bit for bit.

Each test stops runs in another way, and all tests compare `outcome`. tests/faults kills the
processes of whole sweeps.
"""

import logging
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from composing import installed, presets, with_algorithm
from earlier_release import RUNS, unpack
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from in_process import compute_run
from own_parts import LAB, LOSING
from refusals import refused
from results import outcome, read_json, summary
from small_runs import Killed, StopsAfter
from support import BIN, POLE, TINY, write_yaml
from waiting import wait_until

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.ribs import algorithm
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.experiment import loop, saver
from qdsweep.experiment import run as run_module
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.metrics import agree
from qdsweep.records.archive import archive_digest
from qdsweep.records.history import read_history
from qdsweep.records.metrics_file import read_rows
from qdsweep.records.paths import RunDir
from qdsweep.runs.snapshot import snapshot

# A reload file at every possible moment, because a kill may come anywhere between two files.
SAVED = {**TINY, "reload": {"min_seconds": 0.0, "max_cost": 1.0}}
METRICS = """
def evaluated(archive, evaluation):
    return len(evaluation.objective) + evaluation.measures.sum() + archive.stats.qd_score
"""
# Every fourth row or so fails, and in some batches all do.
FLAKY = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Flaky:
    solution_dim, fields, step, objective_range = 3, {}, 0.5, (-100.0, 0.0)
    measures = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    def __init__(self, limit=0.3):
        self.limit = limit
    def evaluate(self, solutions, seeds):
        if (np.sin(37 * solutions[:, 0]) > self.limit).any():
            raise RuntimeError("the simulator exploded")
        steps = np.full(len(solutions), 10)
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2], steps=steps)
    def jacobian(self, solutions):
        whole = np.zeros((len(solutions), 3, 3))
        whole[:, 0], whole[:, 1, 0], whole[:, 2, 1] = -2 * solutions, 1, 1
        return whole
"""
CASES = {
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches": {"algorithm": "cma_maega", "batch_size": 4},
    "one by one": {"algorithm": "cma_mae", "add_mode": "single"},
    "four measures": {
        "domain": {"preset": "lp_sphere", "solution_dim": 10, "num_measures": 4},
        "algorithm": "cma_mega",
        "archive": {"dims": [3, 3, 3, 3]},
        "batch_size": 6,
    },
    "metrics of the user": {"algorithm": "cma_mega", "metrics": ["own_metrics:evaluated"]},
    "environment steps": {"domain": "cartpole", "algorithm": "cma_me", "batch_size": 5},
    "learned observations": POLE,
    "failures": {
        "domain": {"type": "flaky:Flaky"},
        "algorithm": "cma_mega",
        "batch_size": 4,
        "on_failure": {"objective": -100.0},
    },
    "elites leave their cells": {"algorithm": {"type": "losing:Again"}},
    "thresholds below elites": {
        "algorithm": {"preset": "cma_maega", "result_archive": False},
        "archive": {"dims": [3, 3]},
        "batch_size": 4,
    },
    "boundaries and gradients": {
        "algorithm": {
            "archive": {"type": "sliding_boundaries", "remap_frequency": 5, "buffer_capacity": 20},
            "emitters": [{"type": "gradient_arborescence", "ranker": "obj"}],
        },
    },
    "without a history": {"algorithm": {"preset": "novelty_search", "result_archive": False}},
    **{
        f"samples: {algorithm[11:]}": {
            "domain": f"noisy_arm_{noise}",
            "algorithm": algorithm,
            "initial_solutions": 4,
        }
        for algorithm, noise in (
            ("map_elites_adaptive", "two_spreads"),
            ("map_elites_archive_sampling", "measures"),
            ("map_elites_deep_grid", "joint"),
            ("map_elites_extract", "bimodal_measures"),
        )
    },
    "samples for CMA-ME": {
        "domain": "noisy_arm_measures",
        "algorithm": "cma_me",
        "resampling": {"type": "extract", "share": 0.5, "depth": 3, "rule": "lower_bound"},
    },
}
# Their cells move, or they have none.
WITHOUT_HISTORY = (*("without a history", "boundaries and gradients", "dns", "sliding_boundaries"),)
GRADIENT = {"archive": {"type": "grid"}, "emitters": [{"type": "gradient_operator"}]}
# One case for each key of an emitter, an archive or an experiment that can change during a run.
CHANGES = [
    ("map_elites", {"sigma": 0.05}),
    ("map_elites_line", {"iso_sigma": 0.05, "line_sigma": 0.9}),
    ("cma_me", {"ranker": "2rd", "selection_rule": "filter", "restart_rule": 2}),
    ("cma_me", {"batch_size": 14}),
    ("cma_me_imp", {"sigma0": 3.0}),
    ("sep_cma_es", {"batch_size": 6}),
    ("openai_es", {"sigma0": 0.05, "batch_size": 10}),
    ("cma_mae", {"learning_rate": 0.5}),
    ("cma_mega", {"lr": 0.1, "normalize_grad": False}),
    ("cma_mega", {"sigma0": 1.0, "batch_size": 5}),
    (GRADIENT, {"sigma": 0.05, "sigma_g": 1.0, "batch_size": 12}),
    (GRADIENT, {"measure_gradients": False, "normalize_grad": False}),
]
SCHEDULES = {f"schedule {number}": change for number, change in enumerate(CHANGES)}
ITERATIONS = 8

_straight: dict[str, dict] = {}


@pytest.fixture(autouse=True)
def own_metrics(plugins):
    plugins("own_metrics", METRICS)
    plugins("flaky", FLAKY)
    plugins("lab", LAB)
    plugins("losing", LOSING)


def made(case: str, iterations: int = ITERATIONS) -> Experiment:
    """Returns the experiment of a case, or of an algorithm's preset."""
    if case in CASES:
        return compose({**SAVED, **CASES[case]}, {"iterations": iterations})
    if case not in SCHEDULES:
        return installed(with_algorithm(case, SAVED, iterations=iterations))
    name, values = SCHEDULES[case]
    keys = {"algorithm": name, "schedule": [{"at": 3, "set": values}]}
    # A restart every second iteration, if the change waits for a restart.
    restarts = {"restart_rule": 2} if "sigma0" in values else {}
    return compose({**SAVED, **keys}, {**restarts, "iterations": iterations})


def attempt(
    exp: Experiment,
    out: Path,
    parts: int | None = None,
    size: int = 0,
    kill: bool = False,
    cluster: Cluster = Cluster(),  # noqa: B008 - immutable
    stop: Stop | None = None,
) -> bool:
    """Computes a run from its current state; returns whether it reached its end.

    Args:
        exp: The experiment.
        out: The run's folder.
        parts: The number of parts of batches after which it is stopped.
        size: Rows per part; 0 for the engine's choice.
        kill: Whether it stops without a save, as after a kill.
        cluster: The cluster config.
        stop: The object that may stop it.
    """
    (out / "state").mkdir(parents=True, exist_ok=True)
    stop, engine = stop or Stop(), run_module.make_engine
    if size:
        scored = exp.on_failure.objective if exp.on_failure else None
        cutting = StopsAfter(make_domain(exp.domain, exp.seed), stop, parts, size, kill, scored)
        engine = mock.Mock(return_value=cutting)
    try:
        with mock.patch.object(run_module, "make_engine", engine):
            compute(Attempt.of(exp, RunDir(out), cluster), stop)
    except (Interrupted, Killed):
        return False
    return True


def straight(exp: Experiment) -> dict:
    """Returns the results of a run without any stop."""
    key = exp.model_dump_json()
    if key not in _straight:
        with tempfile.TemporaryDirectory() as folder:
            assert attempt(exp, Path(folder))
            _straight[key] = outcome(Path(folder) / "state")
    return _straight[key]


@pytest.mark.parametrize("case", [*presets("algorithms"), *CASES, *SCHEDULES])
def test_after_every_iteration(case, tmp_path):
    """Each time the run has finished, and gets a larger budget."""
    for last in range(1, ITERATIONS + 1):
        assert attempt(made(case, last), tmp_path)
    exp = made(case)
    assert outcome(tmp_path / "state") == straight(exp)
    assert (read_history(RunDir(tmp_path).state) is None) == (case in WITHOUT_HISTORY)
    if case in SCHEDULES:
        assert straight(exp)["digest"] != straight(exp.donor)["digest"]


@pytest.mark.parametrize("case", presets("algorithms"))
def test_killed_in_a_batch_and_then_with_two_workers(case, tmp_path):
    exp = made(case, 4)
    assert not attempt(exp, tmp_path, parts=7, size=5, kill=True)
    assert attempt(exp, tmp_path, cluster=Cluster(workers_per_node=2))
    assert outcome(tmp_path / "state") == straight(exp)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize(
    "case",
    [
        *("cma_mae", "cma_mega", "metrics of the user", "learned observations", "one by one"),
        *("dds", "failures", "elites leave their cells", "thresholds below elites"),
        *("schedule 7", "schedule 9", "pga_me", "td3"),
        *("samples: adaptive", "samples: extract"),
    ],
)
def test_in_a_batch(case, kill, tmp_path):
    """At its start, in its middle, at its end, and in the second batch of an iteration."""
    exp = made(case)
    for parts in (0, 1, 15, 16, 17, 30, 48, 49):
        out = tmp_path / str(parts)
        assert not attempt(exp, out, parts, 1, kill)
        assert attempt(exp, out)
        assert outcome(out / "state") == straight(exp), f"{parts} rows"


@pytest.mark.parametrize("number", [1, 2, 5, 9])
def test_while_it_logs_a_failure(number, tmp_path):
    """A row is done together with its failure, also if a part has several."""
    exp, stop, seen = made("failures"), Stop(), []

    def look(record):
        seen.extend(["failure"] * ("evaluation seed" in record.getMessage()))
        if len(seen) == number:
            stop.ask("test")
        return True

    logger = logging.getLogger("qdsweep")
    logger.addFilter(look)
    try:
        assert not attempt(exp, tmp_path, size=8, stop=stop)
    finally:
        logger.removeFilter(look)
    assert attempt(exp, tmp_path)
    assert straight(exp)["summary"]["failures"] > 10
    assert outcome(tmp_path / "state") == straight(exp)


@pytest.mark.parametrize(
    "case",
    [
        *("failures", "two batches", "thresholds below elites", "boundaries and gradients"),
        *("cma_mega_es", "ppo", "samples: adaptive"),
    ],
)
def test_its_partial_results_are_those_of_its_last_whole_iteration(case, tmp_path):
    """Archive, counts and metrics, in the files of a snapshot and in status.json."""
    exp, found = made(case, 4), set()
    rows = (75, 137, 205) if case == "ppo" else range(0, 200, 3)
    for parts in rows:
        out = tmp_path / str(parts)
        if attempt(exp, out, parts, 1):
            break
        attempt(exp, out, 0, 1)  # it writes status.json when it starts
        if (taken := snapshot(out)) is None:
            continue
        about, expected = summary(taken), straight(made(case, summary(taken)["iterations"]))
        found.add(about["iterations"])
        status = read_json(out / "state/status.json")
        for name in expected["summary"].keys() - {"status", "stochastic"}:
            value = expected["summary"][name]
            assert about[name] == value, (parts, name)
            assert status.get(name, value) == value or name == "archive", (parts, name)
        assert (taken / "metrics.csv").read_text().count("\n") == 1 + about["iterations"]
        with np.load(taken / "archive.npz") as arrays:
            rows = dict(arrays)
        if about["archive"]["cells"] is None:
            del rows["index"]
        assert archive_digest(rows) == expected["digest"]
    # After the last iteration, elites are evaluated again.
    assert found - {4} == {1, 2, 3}


def test_the_partial_results_of_a_user_s_algorithm_have_the_counts_of_its_archive(tmp_path):
    """It has three batches of five solutions, and does not keep the archive before them."""
    exp = compose({**SAVED, "algorithm": {"type": "lab:Batches"}})
    assert not attempt(exp, tmp_path, 15 + 7, 1)
    taken = snapshot(tmp_path)
    about = summary(taken)
    assert (about["iterations"], about["evaluations"]) == (1, 15 + 5)
    with np.load(taken / "archive.npz") as arrays:
        assert about["num_elites"] == len(arrays["index"])
        assert about["qd_score"] == arrays["objective"].sum()


def test_with_a_budget_that_an_iteration_reaches_before_its_end(tmp_path):
    keys = {**SAVED, **CASES["failures"]}
    del keys["iterations"]
    exp = compose(keys, {"steps": 120})
    for parts in (*range(0, 40, 2), 200):
        out = tmp_path / str(parts)
        if attempt(exp, out, parts, 1):
            break
        assert attempt(exp, out)
        assert outcome(out / "state") == straight(exp), parts
    else:
        pytest.fail("no attempt reached the end")


class Clock:
    """A clock that only evaluations, training, ask and tell move."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        times = SimpleNamespace(
            perf_counter=lambda: self.now, monotonic=time.monotonic, time=time.time
        )
        monkeypatch.setattr(loop, "AWAKE", SimpleNamespace(now=lambda: self.now))
        monkeypatch.setattr(saver, "time", times)

    def moved_by(self, monkeypatch, owner, name: str, seconds: float) -> None:
        method = getattr(owner, name)

        def call(*args, **options):
            self.now += seconds
            return method(*args, **options)

        monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("case", ["failures", "pga_me", "metrics of the user"])
def test_its_times_are_those_of_a_straight_run(case, kill, tmp_path, monkeypatch):
    exp, clock = made(case, 4), Clock(monkeypatch)
    clock.moved_by(monkeypatch, StopsAfter, "tick", 1.0)
    kind = type(State(make_algorithm(exp, make_domain(exp.domain, exp.seed), None)).algorithm)
    for name, seconds in (("meanwhile", 64.0), ("ask", 1024.0), ("tell", 4096.0)):
        clock.moved_by(monkeypatch, kind, name, seconds)

    def times(out: Path) -> tuple[object, ...]:
        rows = (out / "state/metrics.csv").read_text()
        return rows, summary(out / "state")["timings"]

    assert attempt(exp, tmp_path / "straight", None, 1)
    expected = times(tmp_path / "straight")
    assert expected[1]["evaluate"] > 4 * 8
    for parts in (0, 1, 7, 9, 16, 21):
        out = tmp_path / str(parts)
        assert not attempt(exp, out, parts, 1, kill)
        assert attempt(exp, out, None, 1)
        assert times(out) == expected, parts


class AsksInTraining(Stop):
    """Asks the run to stop while it trains during the batch of this number."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.left = batch

    @contextmanager
    def deferred(self):
        with super().deferred():
            yield
            self.left -= 1
            if self.left == 0:
                self.ask("test")


@pytest.mark.parametrize("batch", [1, 3])
def test_in_training(batch, tmp_path):
    """A finished evaluation is not repeated."""
    exp = made("pga_me")
    assert not attempt(exp, tmp_path, stop=AsksInTraining(batch))
    assert attempt(exp, tmp_path)
    assert outcome(tmp_path / "state") == straight(exp)


class Run(RuleBasedStateMachine):
    """A run's folder and the events that can happen to it."""

    LENGTHS = (4, 7, 11, 16)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.out = Path(self.folder.name)
        (self.out / "state").mkdir()
        self.length = 0
        self.finished = False

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(case=st.sampled_from(["cma_mae", "cma_mega", "schedule 9"]))
    def begin(self, case: str) -> None:
        self.case = case

    def experiment(self) -> Experiment:
        return made(self.case, self.LENGTHS[self.length])

    @rule(size=st.integers(1, 20), parts=st.integers(0, 40), kill=st.booleans())
    def begin_and_end_early(self, size: int, parts: int, kill: bool) -> None:
        self.finished = attempt(self.experiment(), self.out, parts, size, kill)

    @rule(size=st.integers(1, 20))
    def run_to_the_end(self, size: int) -> None:
        self.finished = attempt(self.experiment(), self.out, None, size)
        assert self.finished

    @precondition(lambda self: self.length < len(self.LENGTHS) - 1)
    @rule()
    def lengthen(self) -> None:
        self.length += 1
        self.finished = False

    @rule(place=st.floats(0, 0.999), flip=st.booleans())
    def spoil_the_newest_reload_file(self, place: float, flip: bool) -> None:
        newest = max((self.out / "state").glob("reload-*.pkl"), default=None)
        if newest is None:
            return
        content = bytearray(newest.read_bytes())
        at = int(place * len(content))
        if flip and content:
            content[at] ^= 0x40
        newest.write_bytes(content if flip else content[:at])
        self.finished = False

    @rule(share=st.floats(0, 1))
    def tear_the_metrics(self, share: float) -> None:
        path = self.out / "state/metrics.csv"
        if path.exists():
            content = path.read_bytes()
            path.write_bytes(content[: int(share * len(content))])
            self.finished = False

    @rule()
    def lose_the_state(self) -> None:
        shutil.rmtree(self.out / "state")
        (self.out / "state").mkdir()
        self.finished = False

    @invariant()
    def a_finished_run_equals_a_straight_one(self) -> None:
        if self.finished:
            assert outcome(self.out / "state") == straight(self.experiment())


Run.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAnyOrderOfEndsAndDamage = Run.TestCase


@pytest.mark.parametrize(
    "case",
    ["cma_mega", "pga_me", "learned observations", "one by one", "omg_mega", "cma_me_mixed", "dds"],
)
def test_on_another_engine(case, tmp_path):
    clusters = (Cluster(workers_per_node=2), Cluster(), Cluster(workers_per_node=3))
    for last, cluster in zip((2, 4, 6), clusters, strict=True):
        assert attempt(made(case, last), tmp_path, cluster=cluster)
    assert outcome(tmp_path / "state") == straight(made(case, 6))


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL]
)
def test_ended_by_a_signal_in_another_process(tmp_path, number):
    """A signal that a run can catch stops it with exit code 75, in the middle of an iteration."""
    out, killed = tmp_path / "out", number == signal.SIGKILL
    experiment = {**SAVED, **CASES["two batches"], "iterations": 1_000_000}
    config = write_yaml(tmp_path / "experiment.yaml", experiment)
    words = [BIN / "qdsweep", "run", config, "--out", out]
    hangs_up = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # also below `nohup`
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, preexec_fn=hangs_up)
    wait_until(lambda: len(read_rows(out / "state/metrics.csv")) > 20, what="rows")
    process.send_signal(number)
    assert process.wait(300) == (-number if killed else 75)
    status = read_json(out / "state/status.json")
    assert status["status"] == ("running" if killed else "stopped")
    assert not (out / "state/summary.json").exists()
    last = len(read_rows(out / "state/metrics.csv")) + 5
    compute_run(experiment, out, iterations=last)
    first, second = summary(out)["attempts"]
    assert [first["how"], second["how"]] == ["killed" if killed else number.name, "finished"]
    assert second["from"] > 0
    assert outcome(out) == straight(compose(experiment, {"iterations": last}))


def test_saved_in_its_first_iteration_it_has_no_partial_results(tmp_path):
    assert not attempt(made("two batches"), tmp_path, parts=1, size=2)
    assert [*tmp_path.glob("state/reload-*.pkl")]
    assert snapshot(tmp_path) is None
    assert not attempt(made("two batches"), tmp_path, parts=9, size=2)
    assert snapshot(tmp_path)


def test_as_a_copy_that_another_user_takes_further(tmp_path, monkeypatch):
    compute_run(made("cma_mae", 4).model_dump(mode="json"), tmp_path / "theirs")
    shutil.copytree(tmp_path / "theirs", tmp_path / "mine")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    assert attempt(made("cma_mae"), tmp_path / "mine")
    assert outcome(tmp_path / "mine/state") == straight(made("cma_mae"))


def test_a_run_started_by_a_release_without_evaluation_seeds(tmp_path):
    with mock.patch.object(algorithm, "takes_fields", lambda group: False):
        attempt(made("map_elites", 3), tmp_path)
    assert attempt(made("map_elites"), tmp_path)
    with np.load(tmp_path / "state/archive.npz") as arrays:
        assert "evaluation_seed" not in arrays, "it continues as it was started"
    assert outcome(tmp_path / "state") == straight(made("map_elites"))


SIZED = """
from pathlib import Path
from qdsweep.domains.base import Evaluation
class Sized:
    measures, objective_range, fields, step = {"x": (-1.0, 1.0)}, (-9.0, 0.0), {}, 0.2
    def __init__(self):
        self.solution_dim = int(Path("size.txt").read_text())
    def evaluate(self, solutions, seeds):
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :1])
"""


def test_of_a_domain_that_reads_another_number_now_is_refused(plugins, tmp_path):
    plugins("sized", SIZED)
    experiment = {**SAVED, "domain": {"type": "sized:Sized"}, "archive": {"dims": [20]}}
    (tmp_path / "size.txt").write_text("4")
    compute_run(experiment, tmp_path / "out", iterations=3)
    before = (tmp_path / "out/summary.json").read_bytes()
    (tmp_path / "size.txt").write_text("5")
    with refused(tmp_path / "out", "solution_dim", 4, 5):
        compute_run(experiment, tmp_path / "out", iterations=6)
    (tmp_path / "size.txt").write_text("4")
    assert before != compute_run(experiment, tmp_path / "out", iterations=6) / "summary.json"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> Path:
    return unpack(tmp_path_factory.mktemp("earlier") / "study")


@pytest.mark.parametrize("run", RUNS)
def test_of_version_0_1_0(run, earlier, monkeypatch):
    """Finished, stopped, failed and killed runs reach the results of the earlier release."""
    monkeypatch.chdir(earlier)
    expected, out = RUNS[run]["longer"], earlier / "results/runs" / run
    iterations = expected["iterations"]
    compute_run(out / "state/config.yaml", out, iterations=iterations)
    now = outcome(out)
    assert summary(out)["attempts"][-1]["from"] > 0
    assert now["digest"] == expected["archive_digest"]
    assert [row["iteration"] for row in now["rows"]] == [str(n + 1) for n in range(iterations)]
    last = now["rows"][-1]
    differing = {
        name: (last[name], text)
        for name, text in expected["metrics"].items()
        if not agree(name, last[name], text)
    }
    assert not differing
