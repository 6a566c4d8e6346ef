"""Tables are recomputed only from changed runs."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from given import again, changed_plan, contents, read
from opened import opened

from qdsweep.records.paths import SweepDir


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


def test_a_changed_run_or_budget_changes_the_tables(results):
    sweep = results / "sweeps" / "tasks"
    run = min((results / "runs").iterdir())
    table = pd.read_csv(run / "metrics.csv")
    table["qd_score"] *= 2
    table.to_csv(run / "metrics.csv", index=False)
    again(results)
    scores = read(sweep, "summary").set_index("id")["qd_score"]
    assert scores[run.name] == table["qd_score"].iloc[-1]
    with changed_plan(sweep) as plan:
        for row in plan["rows"]:
            row["iterations"] = 6
    again(results)
    assert (read(sweep, "summary")["iteration"] == 6).all()


def packed(arrays: dict, **changes: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{**arrays, **changes})
    return file.getvalue()


def of_another_format(arrays: dict) -> bytes:
    about = json.loads(arrays["about"].tobytes())
    about["form"][0] -= 1
    return packed(arrays, about=np.frombuffer(json.dumps(about).encode(), np.uint8))


DAMAGES = {
    "empty": lambda whole, arrays: b"",
    "torn": lambda whole, arrays: whole[: len(whole) // 2],
    "flipped": lambda whole, arrays: whole[:900] + bytes([whole[900] ^ 1]) + whole[901:],
    "foreign": lambda whole, arrays: packed({}, other=np.arange(3)),
    "pickle": lambda whole, arrays: packed(arrays, about=np.array([{}], dtype=object)),
    "older": lambda whole, arrays: of_another_format(arrays),
    "shorter": lambda whole, arrays: packed(arrays, numbers=arrays["numbers"][:-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_written_again_and_changes_no_table(results, damage):
    sweep = results / "sweeps" / "tasks"
    before, cache = contents(sweep), SweepDir(sweep).cache
    assert {"table.csv", "table.tex", "tables/comparisons.json"} <= before.keys()
    with np.load(cache) as arrays:
        cache.write_bytes(DAMAGES[damage](cache.read_bytes(), dict(arrays)))
    for runs in (12, 0):
        with opened() as files:
            again(results)
        assert len(runs_in(files)) == runs
        assert contents(sweep) == before
