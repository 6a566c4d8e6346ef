"""Values that other code of a user's metric measured never stand next to those of the current."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import compute_sweep, forget_plugins, qdsweep
from refusals import names_all, refused
from results import forget_sums, read_json
from support import TINY

from qdsweep.metrics import BY_NAME
from qdsweep.records.metrics_file import read_metrics
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.search.places import score_at

# What only the archive decides, what only the evaluations show, and one that asks for evaluations.
CODE = """
def size(archive, evaluation):
    return {factor} * archive.stats.num_elites

def best(archive, evaluation):
    return {factor} * float(evaluation.objective.max())

def both(archive, evaluation):
    if evaluation:
        return {{"low": {factor} * float(min(archive.data("objective"))), "high": 1.0}}
"""
METRICS = ["mm:size", "mm:best", {"function": "mm:both", "name": "low"}]
EXPERIMENT = {**TINY, "algorithm": "map_elites", "iterations": 3, "metrics": METRICS}
REMEDY = ("mm:size", "mm:best", "mm:both", "summary.csv", "results/runs")


@pytest.fixture(autouse=True)
def study(tmp_path: Path) -> Path:
    """Returns the file of the metrics."""
    folder = tmp_path / "config/plugins"
    folder.mkdir(parents=True)
    write(folder / "mm.py", 1)
    return folder / "mm.py"


def write(file: Path, factor: float, comment: str = "") -> None:
    file.write_text(CODE.format(factor=factor) + comment)
    forget_plugins()


def computed(seeds: str, name: str, **changes: object) -> pd.DataFrame:
    """Computes what is missing of a sweep, and returns its summary.csv."""
    compute_sweep(Path("results"), {**EXPERIMENT, **changes}, f"::: seed {seeds}", name)
    return pd.read_csv(f"results/sweeps/{name}/summary.csv").set_index("seed")


def note(name: str) -> str:
    return read_json(Path(f"results/sweeps/{name}/table.json"))["note"]


def test_a_changed_metric_has_only_values_of_its_current_code(study: Path):
    first = computed("1 2", "met")
    assert "other_code" not in first and first["best"].notna().all()
    write(study, 1000)
    mixed = computed("1 2 3", "met")  # 1 and 2 are finished
    assert list(mixed["best"].isna()) == [True, True, False]
    assert list(mixed["low"].isna()) == [True, True, False], "it asks for evaluations"
    assert list(mixed["size"][:2]) == list(1000 * first["size"]), "measured again"
    assert list(mixed["other_code"].fillna("")) == ["size best low"] * 2 + [""]
    names_all(note("met"), *REMEDY)
    curves = pd.read_csv("results/sweeps/met/curves.csv")
    assert curves["best_mean"].isna().all(), "no mean of other and current values"
    table = pd.read_csv("results/sweeps/met/table.csv")
    assert (table["best_n"][0], table["size_n"][0], table["best_mean"][0]) == (
        1,
        3,
        mixed["best"][3],
    )


def test_a_run_that_was_extended_has_the_values_of_each_code_apart(study: Path):
    """Also where the attempt in between measured nothing."""
    old = computed("1", "old")
    computed("1", "between", iterations=5, metrics=[])
    write(study, 10)
    new = computed("1", "new", iterations=7)
    (run,) = Path("results/runs").iterdir()
    column = read_metrics(run / "metrics.csv")["best"]
    assert list(column.isna()) == [False] * 3 + [True] * 2 + [False] * 2, "files keep all values"
    assert new["best"][1] == column.iloc[-1] and new["other_code"][1] == "size best low"
    assert not np.isnan(new["size"][1])
    again = computed("1", "old")
    assert np.isnan(again["best"][1]) and np.isnan(again["size"][1]), "the archive is a later one"
    write(study, 1)
    restored = computed("1", "old")
    assert restored["best"][1] == old["best"][1] and "other_code" not in restored


@pytest.mark.parametrize("change", ["comment", "moved", "gone", "earlier"])
def test_what_has_the_same_code_stays(study: Path, change: str):
    first, metrics = computed("1 2", "met"), METRICS
    if change == "comment":
        write(study, 1, "\n# better explained\n")
    elif change == "moved":
        study.rename(study.with_name("moved.py"))
        metrics = json.loads(json.dumps(METRICS).replace("mm:", "moved:"))
    elif change == "gone":
        study.unlink()
    else:
        write(study, 5)
        for path in Path("results/runs").glob("*/**/s*.json"):  # summary.json, status.json
            data = read_json(path)
            data.pop("sources", None)
            for attempt in data["attempts"]:
                attempt.pop("metrics", None)
            path.write_text(json.dumps(data))
    forget_sums(Path("results"))
    if change == "gone":
        qdsweep("aggregate", "met", cwd=Path.cwd())
        second = pd.read_csv("results/sweeps/met/summary.csv").set_index("seed")
    else:
        second = computed("1 2", "met", metrics=metrics)
    pd.testing.assert_frame_equal(first, second)


def test_another_function_of_the_same_column_is_other_code(study: Path):
    computed("1", "met", metrics=[{"function": "mm:best", "name": "mine"}])
    other = computed("1", "met", metrics=[{"function": "mm:size", "name": "mine"}])
    rows = read_metrics(next(Path("results/runs").iterdir()) / "metrics.csv")
    assert other["mine"][1] == rows["num_elites"].iloc[-1] and other["other_code"][1] == "mine"


def test_the_record_names_files_of_the_study(study: Path):
    computed("1", "met")
    (run,) = map(RunDir, Path("results/runs").iterdir())
    before = read_json(run.summary)
    assert [*before["sources"]] == ["config/plugins/mm.py"]
    assert len(before["sources"]["config/plugins/mm.py"]) == 64
    assert [*before["attempts"][-1]["metrics"]] == ["size", "best", "low"]
    computed("2", "none", metrics=[])
    plain = next(path for path in Path("results/runs").iterdir() if path != run.path)
    assert "sources" not in read_json(plain / "summary.json")


def test_a_search_ranks_by_no_value_of_other_code(study: Path):
    computed("1", "met")
    (run,) = map(RunDir, Path("results/runs").iterdir())
    metric = next(
        own for own in read_plan(SweepDir(Path("results/sweeps/met"))).own if own.name == "best"
    )
    assert score_at(run, metric, "iterations", 3) is not None
    write(study, 2)
    with refused("mm:best", run.path, run.state.metrics):
        score_at(run, metric, "iterations", 3)
    assert score_at(run, BY_NAME["qd_score"], "iterations", 3) is not None
