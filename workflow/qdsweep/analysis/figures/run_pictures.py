"""A picture of each run's archive, in one colour scale for all that compare."""

import json
from pathlib import Path

import numpy as np

from qdsweep.analysis.figures.archive_figures import run_figure
from qdsweep.analysis.figures.heatmap import Limits, objective_limits
from qdsweep.analysis.figures.row_archive import objectives_of
from qdsweep.analysis.figures.style import save, style
from qdsweep.analysis.kept import keep, stamp
from qdsweep.analysis.selection import Tables
from qdsweep.experiment.load import Run, load
from qdsweep.files import write_text
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import SweepDir

_STEADY = 0.05  # the share of a colour scale by which its ends may be off


def run_pictures(sweep: SweepDir, tables: Tables, runs_dir: Path) -> None:
    """Draws `plots/archives/ID.png` of each run.

    Only those are drawn whose archive or colour scale has changed.
    """
    before, limits = _read(sweep.color_limits), {}
    shown: dict[str, tuple[Run, Limits]] = {}
    for scale, groups in tables.score_scales.items():
        rows = tables.with_results
        ids = rows.loc[rows["group"].isin(groups), "id"].unique()
        runs = [load(RunDir(runs_dir / run).results.path) for run in ids]
        if not runs:
            continue
        objectives = np.concatenate([objectives_of(run) for run in runs])
        now = objective_limits(objectives, runs[0].summary["archive"])
        limits[scale] = _steady(before.get(scale), now)
        for run_id, run in zip(ids, runs, strict=True):
            shown[f"{run_id}.png"] = run, limits[scale]
    made_of = {name: f"{stamp(run.files.archive)} {ends}" for name, (run, ends) in shown.items()}
    keep(sweep.archives, sweep, made_of, lambda name: _draw(*shown[name], sweep.archives / name))
    write_text(sweep.color_limits, json.dumps(limits) + "\n")


def _read(path: Path) -> dict[str, Limits]:
    """Reads the colour scales of the pictures that are there; none where that cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {scale: (float(low), float(high)) for scale, (low, high) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _steady(before: Limits | None, now: Limits) -> Limits:
    """Returns the limits as they were while they nearly fit: thousands of pictures stay as is."""
    if before is None:
        return now
    most = _STEADY * (now[1] - now[0])
    near = all(abs(one - other) <= most for one, other in zip(before, now, strict=True))
    return before if near else now


def _draw(run: Run, limits: Limits, picture: Path) -> None:
    with style():
        figure = run_figure(run, limits)
        figure.set_dpi(100)
        save(figure, picture.with_suffix(""), (picture.suffix,))
