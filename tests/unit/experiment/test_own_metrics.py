"""Metrics of the user's: columns that survive a stop, and never change or end a run."""

import csv
from pathlib import Path

import numpy as np
import pytest
from support import TINY

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines.base import nothing
from qdsweep.engines.pool import Serial
from qdsweep.errors import BadInput
from qdsweep.experiment import run as run_module
from qdsweep.experiment.own_metrics import ReadOnly
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json
from qdsweep.records.paths import RunDir
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs

OWN = """
import numpy as np

def evaluated(archive, evaluation):
    return len(evaluation.objective) + evaluation.measures.sum() + archive.stats.qd_score

def limits(archive, evaluation):
    return {"low": evaluation.objective.min(), "high": np.float32(evaluation.objective.max())}

def broken(archive, evaluation):
    how = archive.stats.num_elites % 3
    if how == 0:
        raise ValueError("no such thing")
    return float("nan") if how == 1 else "many"

def greedy(archive, evaluation):
    evaluation.objective[:] = 0.0
    return len(archive.sample_elites(3))

def in_place(archive, evaluation):
    for elite in archive:
        elite["solution"] -= 1.0
    return 1

def boundless(archive, evaluation):
    return 10**400 if archive.stats.num_elites % 2 else list(range(100_000))
"""
GOOD = [
    "own_ones:evaluated",
    {"function": "own_ones:limits", "name": "low", "smaller_is_better": True},
    {"function": "own_ones:limits", "name": "high"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/own_ones.py").write_text(OWN)
    return folder


@pytest.fixture(autouse=True)
def plugin(folder, monkeypatch):
    monkeypatch.chdir(folder)


def experiment(metrics: list, algorithm: str = "cma_mega"):
    return compose({**TINY, "domain": "lp_sphere", "algorithm": algorithm, "metrics": metrics})


def rows_of(out: Path) -> list[dict[str, str]]:
    rows = csv.DictReader((out / "state/metrics.csv").open())
    return [{key: row[key] for key in row if not key.startswith("seconds")} for row in rows]


def computed(exp, out: Path) -> tuple[list[dict[str, str]], str]:
    (out / "state").mkdir(parents=True, exist_ok=True)
    compute(exp, RunDir(out), Cluster(), Stop())
    return rows_of(out), read_json(out / "state/summary.json")["archive_digest"]


class StopsIn(Serial):
    """Asks the run to stop before its batch of this number."""

    def __init__(self, domain, stop: Stop, batches: int) -> None:
        super().__init__(domain)
        self.stop, self.batches = stop, batches

    def evaluate(self, batch, rows, meanwhile=nothing):
        if self.batches == 0:
            self.stop.ask("the test")
        self.batches -= 1
        yield from super().evaluate(batch, rows, meanwhile)


@pytest.mark.parametrize("batches", [4, 5])
def test_columns_are_the_same_after_a_stop_between_two_batches(tmp_path, monkeypatch, batches):
    exp = experiment(GOOD)
    rows, digest = computed(exp, tmp_path / "straight")
    assert {"evaluated", "low", "high"} <= rows[0].keys()
    assert all(float(row["low"]) < float(row["high"]) for row in rows)
    stopped = tmp_path / "stopped"
    (stopped / "state").mkdir(parents=True)
    stop = Stop()
    engine = StopsIn(make_domain(exp.domain), stop, batches)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(run_module, "make_engine", lambda *_: engine)
        compute(exp, RunDir(stopped), Cluster(), stop)
    assert computed(exp, stopped) == (rows, digest)
    summary = read_json(stopped / "state/summary.json")
    assert summary["evaluated"] == float(rows[-1]["evaluated"])
    assert summary["timings"]["metrics"] > 0


def test_a_metric_never_changes_or_ends_a_run(tmp_path, caplog):
    plain, digest = computed(experiment([], "map_elites"), tmp_path / "plain")
    names = ("broken", "greedy", "limits", "in_place", "boundless")
    own = [f"own_ones:{name}" for name in names]
    rows, same = computed(experiment(own, "map_elites"), tmp_path / "own")
    assert same == digest and run_id(experiment(own)) == run_id(experiment([]))
    assert [{key: row[key] for key in plain[0]} for row in rows] == plain
    assert all(row["broken"] == row["greedy"] == row["limits"] == "" for row in rows)
    assert all(row["boundless"] == "" and row["in_place"] == "1.0" for row in rows)
    text = caplog.text
    assert "the metric greedy raised AttributeError: a metric may not use sample_elites" in text
    assert "the metric limits raised KeyError: \"limits is not in ['low', 'high']\"" in text
    assert f"the metric greedy has {len(rows)} empty cell(s)" in text
    assert len(text) < 10_000, "of a long list only the beginning"
    assert text.count("the metric broken ") == 2, "once when it happens first, once in the end"


def test_a_metric_that_is_new_to_a_run_has_its_column_from_then_on(tmp_path):
    before = experiment([], "map_elites")
    old, _ = computed(before, tmp_path)
    longer = experiment(GOOD, "map_elites").model_copy(update={"iterations": before.iterations + 2})
    rows, _ = computed(longer, tmp_path)
    cells = [row["evaluated"] for row in rows]
    assert cells[: len(old)] == [""] * len(old) and all(cells[len(old) :])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["own_ones:qd_score"], "would be the column qd_score, which tables have already"),
        ([{"function": "own_ones:limits", "name": "seconds_x"}], "the column seconds_x"),
        (["own_ones:limits", "other:limits"], "two metrics would be the column limits"),
        (["own_ones"], "metrics.0 = 'own_ones'"),
        ([{"function": "own_ones:limits", "nam": "low"}], "known here: function, name, label"),
    ],
)
def test_what_can_be_refused_is_refused_before_any_work(metrics, message):
    with pytest.raises(BadInput, match=message):
        experiment(metrics)


def test_metrics_cannot_be_swept():
    table = {**TINY, "metrics": ["own_ones:evaluated"]}
    sweep = table_of_runs(table, "::: metrics.0 own_ones:evaluated own_ones:limits")
    with pytest.raises(BadInput, match="metrics cannot be swept, as they change no result"):
        sweep.plan()


def test_an_archive_can_be_read_like_pyribs_own():
    from ribs.archives import GridArchive

    archive = GridArchive(solution_dim=1, dims=[2], ranges=[(0, 1)])
    archive.add(np.zeros((1, 1)), [1.0], [[0.1]])
    seen = ReadOnly(archive)
    assert len(seen) == 1 and seen.stats.num_elites == 1 and len(list(seen)) == 1
    with pytest.raises(AttributeError, match="could change the run's results"):
        seen.add(np.zeros((1, 1)), [2.0], [[0.9]])
    for private in ("_rng", "_store"):
        with pytest.raises(AttributeError, match=f"may not use {private}"):
            getattr(seen, private)


def test_the_example_measures_what_it_says(tmp_path):
    exp = compose("arm_metrics", {"evaluations": 200})
    rows, _ = computed(exp, tmp_path)
    spread, wasted = (np.array([float(row[name]) for row in rows]) for name in ("spread", "wasted"))
    assert (spread > 0).all() and (spread < 50).all()
    assert (wasted >= 0).all() and (wasted <= 1).all() and wasted.any()
