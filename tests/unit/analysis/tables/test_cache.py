"""Tables are made again of what has changed alone."""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from given import again, contents, read

from qdsweep.records.paths import SweepDir

_opened: list[Path] | None = None


def _note_opened(event: str, arguments: tuple) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str | Path):
        _opened.append(Path(arguments[0]))


sys.addaudithook(_note_opened)


@contextmanager
def opened():
    """The files that Python opens meanwhile, as the interpreter itself reports them."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


def runs_in(paths: list[Path]) -> set[str]:
    return {path.parent.name for path in paths if path.name == "metrics.csv"}


def test_only_changed_runs_are_read(results):
    again(results)  # the results are copies, with other inodes
    with opened() as files:
        again(results)
    assert not runs_in(files) and not [path for path in files if path.name == "config.yaml"]
    runs = sorted((results / "runs").iterdir())
    for run, name in zip(runs, ("metrics.csv", "summary.json", "config.yaml"), strict=False):
        os.utime(run / name, ns=(1, 1))
    with opened() as files:
        again(results)
    assert runs_in(files) == {run.name for run in runs[:3]}


def test_a_changed_run_changes_the_tables(results):
    sweep = results / "sweeps" / "tasks"
    before = contents(sweep)
    (run, *_) = (results / "runs").iterdir()
    table = pd.read_csv(run / "metrics.csv")
    table["qd_score"] *= 2
    table.to_csv(run / "metrics.csv", index=False)
    again(results)
    assert contents(sweep)["summary.csv"] != before["summary.csv"]
    summary = read(sweep, "summary").set_index("id")
    assert summary.loc[run.name, "qd_score"] == table["qd_score"].iloc[-1]


def test_another_budget_is_read_anew(results):
    sweep = results / "sweeps" / "tasks"
    plan = json.loads((sweep / "plan.json").read_text())
    for row in plan["rows"]:
        row["iterations"] = 6
    (sweep / "plan.json").write_text(json.dumps(plan))
    again(results)
    assert (read(sweep, "summary")["iteration"] == 6).all()


def test_tables_from_what_was_kept_are_the_same_bytes(results):
    before = contents(results / "sweeps" / "tasks")
    sweep = again(results)
    assert contents(sweep) == before
    SweepDir(sweep).cache.unlink()
    again(results)
    assert contents(sweep) == before
    assert {"table.csv", "table.tex", "tables/comparisons.json"} <= before.keys()


@pytest.mark.parametrize(
    "damage", ["torn", "flipped", "empty", "foreign", "pickle", "older", "shorter"]
)
def test_a_damaged_cache_is_made_anew(results, damage):
    sweep = results / "sweeps" / "tasks"
    before, cache = contents(sweep), SweepDir(sweep).cache
    whole = cache.read_bytes()
    with np.load(cache) as file:
        arrays = dict(file)
    half = len(whole) // 2
    if damage == "torn":
        cache.write_bytes(whole[:half])
    elif damage == "flipped":
        cache.write_bytes(whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :])
    elif damage == "empty":
        cache.write_bytes(b"")
    elif damage == "foreign":
        np.savez(cache.open("wb"), other=np.arange(3))
    elif damage == "pickle":
        np.savez(cache.open("wb"), **{**arrays, "about": np.array([{}], dtype=object)})
    elif damage == "older":
        about = json.loads(arrays["about"].tobytes())
        about["form"][0] -= 1
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(cache.open("wb"), **arrays)
    else:
        np.savez(cache.open("wb"), **{**arrays, "numbers": arrays["numbers"][:-1]})
    with opened() as files:
        again(results)
    assert len(runs_in(files)) == 12
    assert contents(sweep) == before
    with opened() as files:
        again(results)
    assert not runs_in(files)
