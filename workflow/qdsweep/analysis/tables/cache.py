"""Keeps what was read of a sweep's runs, so that only changed ones are read again.

One file, `.aggregated.npz`: arrays of numbers, and JSON as bytes; never a pickle.
"""

import json
from typing import Any

import numpy as np

from qdsweep.analysis.tables.curves import PLACES, Curve
from qdsweep.analysis.tables.run_results import RESULTS, Result, sources
from qdsweep.files import atomic
from qdsweep.metrics import Metric, curves_of
from qdsweep.records.plan import Row
from qdsweep.records.run_dir import RunFiles
from qdsweep.records.sweep_dir import SweepDir

# To be raised when the meaning of what is kept changes; its names are checked anyway.
_FORMAT = [2, *RESULTS]

# Run id -> (key, its results).
Kept = dict[str, tuple[list[Any], list[Result]]]


def key_of(files: RunFiles, rows: list[Row], *, partial: bool) -> list[Any]:
    """Returns what the results of a run depend on: its files, the budgets, and `partial`.

    A file counts as unchanged if its size and time of modification [ns] are the same.
    """
    stats = [path.stat() for path in sources(files) if path.exists()]
    return [
        partial,
        [[row.iterations, row.evaluations, row.steps] for row in rows],
        [[stat.st_mtime_ns, stat.st_size] for stat in stats],
    ]


def _columns(metrics: tuple[Metric, ...]) -> list[str]:
    return [*(metric.name for metric in curves_of(metrics)), *PLACES]


def _format(metrics: tuple[Metric, ...]) -> list[Any]:
    return [*_FORMAT, *(metric.name for metric in metrics if metric.function)]


def read_cache(sweep: SweepDir, metrics: tuple[Metric, ...]) -> Kept:
    """Reads what was kept; nothing where that is damaged, or of another release or metrics."""
    try:
        with np.load(sweep.cache, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            evaluations, values = file["evaluations"], file["values"]
        if about["format"] != _format(metrics):
            return {}
        return _unpack(about, evaluations, values, _columns(metrics))
    except Exception:  # whatever is wrong, the file is made anew
        return {}


def _unpack(
    about: dict[str, Any], evaluations: np.ndarray, values: np.ndarray, names: list[str]
) -> Kept:
    if values.shape != (len(names), len(evaluations)):
        return {}
    kept: Kept = {}
    start = 0
    for run, (key, results) in about["runs"].items():
        kept[run] = (key, [])
        if len(results) != len(key[1]):  # one result for each row
            return {}
        for record, points in results:
            if not record.keys() >= (set(RESULTS) if points else {"status"}):
                return {}
            part = slice(start, start + (points or 0))
            columns = dict(zip(names, values[:, part], strict=True))
            curve = Curve(evaluations[part], columns) if points else None
            kept[run][1].append(Result(record, curve))
            start = part.stop
    return kept if start == len(evaluations) else {}


def write_cache(sweep: SweepDir, kept: Kept, metrics: tuple[Metric, ...]) -> None:
    """Writes what was read of each run."""
    runs = {
        run: [key, [[r.record, len(r.curve.evaluations) if r.curve else None] for r in results]]
        for run, (key, results) in kept.items()
    }
    curves = [r.curve for _, results in kept.values() for r in results if r.curve]
    evaluations = np.concatenate([np.empty(0, int), *(c.evaluations for c in curves)])
    names = _columns(metrics)
    values = np.empty((len(names), len(evaluations)))
    for row, name in zip(values, names, strict=True):
        np.concatenate([np.empty(0), *(c.values[name] for c in curves)], out=row)
    about = {"format": _format(metrics), "runs": runs}
    with atomic(sweep.cache) as file:
        np.savez(
            file,
            about=np.frombuffer(json.dumps(about).encode(), np.uint8),
            evaluations=evaluations,
            values=values,
        )
