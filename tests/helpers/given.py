"""Runs with given results, published values, and the tables of a sweep."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.config.sweep import Published


def again(results: Path, **options) -> Path:
    sweep = results / "sweeps" / "tasks"
    aggregate(sweep, results / "runs", **options)
    return sweep


def read(sweep: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(sweep / f"{name}.csv")


def contents(sweep: Path) -> dict[str, bytes]:
    """Returns every table, without the log and the cache of runs."""
    tables = [*sweep.glob("*.*"), *sweep.glob("tables/*")]
    return {str(p.relative_to(sweep)): p.read_bytes() for p in tables if not p.name.startswith(".")}


@contextlib.contextmanager
def changed_plan(sweep: Path) -> Iterator[dict]:
    """Yields the plan of a sweep, and writes it back with its changes."""
    path = sweep / "plan.json"
    plan = json.loads(path.read_text())
    yield plan
    path.write_text(json.dumps(plan))


def make_tables(results: Path, scores: dict[str, list[float]], *, cells=True, **plan) -> Path:
    """Returns the tables of `make_sweep`; `plan` has further keys of its plan."""
    sweep = make_sweep(results, scores, cells=cells)
    with changed_plan(sweep) as keys:
        keys |= plan
    aggregate(sweep, results / "runs")
    return sweep


def make_sweep(results: Path, scores: dict[str, list[float]], *, cells: bool = True) -> Path:
    """A sweep of algorithms whose runs end with given normalised QD scores, one per seed."""
    rows = []
    for algorithm, values in scores.items():
        for seed, score in enumerate(values, start=1):
            run = f"{algorithm}-s{seed}"
            write_run(results / "runs" / run, score, cells=cells)
            value = {"algorithm": algorithm, "seed": seed}
            rows.append({"values": value, "id": run, "iterations": 3, "evaluations": None})
    sweep = results / "sweeps" / "given"
    sweep.mkdir(parents=True)
    about = {"name": "given", "experiment": "sphere", "sweep": "::: ...", "rows": rows}
    (sweep / "plan.json").write_text(json.dumps({**about, "columns": ["algorithm", "seed"]}))
    return sweep


def write_run(folder: Path, score: float, *, cells: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    steps = np.array([1, 2, 3])
    table = {
        "iteration": steps,
        "evaluations": 10 * steps,
        "num_elites": steps,
        "coverage": steps / 10,
        "qd_score": np.array([0.2, 0.5, 1.0]) * score * 100,
        "norm_qd_score": np.array([0.2, 0.5, 1.0]) * score,
        "obj_max": np.array([0.2, 0.5, 1.0]) * score,
        "obj_mean": score,
        "restarts": 0,
        "seconds_ask": 0.5,
        "seconds_evaluate": 1.0,
        "seconds_tell": 0.25,
        "seconds_reload": [0.0, 0.0, 4.0],
    }
    pd.DataFrame(table).to_csv(folder / "metrics.csv", index=False)
    archive = {
        "type": "grid" if cells else "proximity",
        "cells": 100 if cells else None,
        "dims": [10, 10] if cells else None,
        "ranges": [[0, 1], [0, 1]],
        "objective_range": [0.0, 2.0],
        "qd_score_offset": 0.0,
    }
    about = {"status": "finished", "engine": "serial", "workers": 2, "evaluations": 30}
    about["stochastic"] = False
    (folder / "summary.json").write_text(json.dumps({**about, "archive": archive}))
    (folder / "config.yaml").write_text("domain: {name: sphere}\n")


def without_decimals(text: str) -> str:
    """Returns a text without numbers that differ between machines."""
    return re.sub(r"\d+\.\d+( core-\w+)?", "#", text)


NORMAL = stats.zscore(np.random.default_rng(3).normal(size=(3, 6)), axis=1) / 100
THREE = {"best": list(1 + NORMAL[0]), "near": list(0.999 + NORMAL[1]), "far": list(0.5 + NORMAL[2])}


def entry(where, **changes):
    """A published value."""
    keys = {"metric": "coverage", "mean": 0.5, "source": "a paper, table 1"}
    return Published(where=where, **(keys | changes))
