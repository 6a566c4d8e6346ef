"""The user's metrics are columns that never change or end a run."""

import csv
from pathlib import Path

import numpy as np
import pytest
from refusals import names_all, refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.own_metrics import ReadOnly
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop
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
    compute(Attempt.of(exp, RunDir(out)), Stop())
    return rows_of(out), read_json(out / "state/summary.json")["archive_digest"]


def test_each_has_its_column_and_its_end_in_the_summary(tmp_path):
    rows, _ = computed(experiment(GOOD), tmp_path)
    assert all(float(row["low"]) < float(row["high"]) for row in rows)
    summary = read_json(tmp_path / "state/summary.json")
    assert summary["evaluated"] == float(rows[-1]["evaluated"])
    assert summary["timings"]["metrics"] > 0


def test_a_metric_never_changes_or_ends_a_run(tmp_path, caplog):
    plain, digest = computed(experiment([], "map_elites"), tmp_path / "plain")
    names = ("broken", "greedy", "limits", "in_place", "boundless")
    own = [f"own_ones:{name}" for name in names]
    rows, with_metrics = computed(experiment(own, "map_elites"), tmp_path / "own")
    assert with_metrics == digest and run_id(experiment(own)) == run_id(experiment([]))
    assert [{key: row[key] for key in plain[0]} for row in rows] == plain
    assert all(row["broken"] == row["greedy"] == row["limits"] == "" for row in rows)
    assert all(row["boundless"] == "" and row["in_place"] == "1.0" for row in rows)
    lines = caplog.text.splitlines()
    of = {name: [line for line in lines if f" {name} " in line] for name in names}
    names_all(of["greedy"][0], "AttributeError", "sample_elites")
    names_all(of["limits"][0], "KeyError", "low", "high")
    names_all(of["greedy"][-1], len(rows))
    assert len(of["broken"]) == 2, "once at the first time, once at the end"
    assert len(caplog.text) < 10_000, "only the beginning of a long list"


def test_a_metric_that_is_new_to_a_run_has_its_column_from_then_on(tmp_path):
    before = experiment([], "map_elites")
    old, _ = computed(before, tmp_path)
    longer = experiment(GOOD, "map_elites").model_copy(update={"iterations": before.iterations + 2})
    rows, _ = computed(longer, tmp_path)
    cells = [row["evaluated"] for row in rows]
    assert cells[: len(old)] == [""] * len(old) and all(cells[len(old) :])


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        (["own_ones:limits", "other:limits"], ["limits"]),
        (["own_ones"], ["metrics.0", "'own_ones'"]),
        ([{"function": "own_ones:limits", "nam": "low"}], ["nam", "function", "name", "label"]),
    ],
)
def test_what_can_be_refused_is_refused_before_any_work(metrics, names):
    with refused(*names):
        experiment(metrics)


def test_metrics_cannot_be_swept():
    table = {**TINY, "metrics": ["own_ones:evaluated"]}
    with refused("metrics"):
        table_of_runs(table, "::: metrics.0 own_ones:evaluated own_ones:limits").plan()


def test_an_archive_can_be_read_like_pyribs_own():
    from ribs.archives import GridArchive

    archive = GridArchive(solution_dim=1, dims=[2], ranges=[(0, 1)])
    archive.add(np.zeros((1, 1)), [1.0], [[0.1]])
    view = ReadOnly(archive)
    assert len(view) == 1 and view.stats.num_elites == 1 and len(list(view)) == 1
    with refused("add", kind=AttributeError):
        view.add(np.zeros((1, 1)), [2.0], [[0.9]])
    for private in ("_rng", "_store"):
        with refused(private, kind=AttributeError):
            getattr(view, private)


def test_the_example_measures_its_stated_quantities(tmp_path):
    exp = compose("arm_metrics", {"evaluations": 200})
    rows, _ = computed(exp, tmp_path)
    spread, wasted = (np.array([float(row[name]) for row in rows]) for name in ("spread", "wasted"))
    assert (spread > 0).all() and (spread < 50).all()
    assert (wasted >= 0).all() and (wasted <= 1).all() and wasted.any()
