"""What `qdsweep scale` writes: table, fit and figure of the measured times."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.figure import Drawn, Omitted, save_figures
from qdsweep.analysis.figures.marks import COLORS
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.tables.run_times import busy_note
from qdsweep.analysis.tables.sheet import Sheet, as_latex, as_markdown, number_cell
from qdsweep.analysis.text import common_decimals, mean_and_error, number, plural
from qdsweep.files import write_csv, write_json, write_text
from qdsweep.scaling.amdahl import (
    WORTHWHILE,
    Fit,
    efficiency,
    fit_amdahl,
    recommended_workers,
    speedup,
)
from qdsweep.scaling.study import Study, Time, usable_cores
from qdsweep.sweep.ids import run_id

if TYPE_CHECKING:
    import pandas as pd

NAME = "scaling"
# Shorter times are not exact enough [s].
SHORTEST = 1.0
_SECTION, _TITLE = "Time", "Scaling"


def write_scaling(study: Study, times: list[Time]) -> Sheet:
    """Writes scaling.csv, .md, .tex, .json and the figure scaling.pdf, .png, .svg.

    All times are of runs with one digest. Returns the table.
    """
    fit, fitted = _fit(study, times)
    batch = study.experiment.num_emitters * study.experiment.batch_size
    table = scaling_table(times, fit)
    recommended, advice = advise(fit, float(table["seconds"].min()), batch)
    sheet = _sheet(study, table, _note(study, times, fit, fitted, advice))
    write_text(study.out / f"{NAME}.md", as_markdown(sheet))
    write_text(study.out / f"{NAME}.tex", as_latex(sheet))
    write_json(
        study.out / f"{NAME}.json",
        {
            "id": run_id(study.experiment),
            "budget": study.experiment.budget,
            "archive_digest": times[0].digest,
            "cores": usable_cores(),
            "fit": {
                "one_worker_seconds": fit.one_worker,
                "serial_fraction": fit.serial,
                "standard_error": None if math.isnan(fit.error) else fit.error,
                "fitted_workers": fitted,
            },
            "recommended_workers": recommended,
            "workers": table.to_dict("records"),
            "runs": [
                {**asdict(time), "folder": str(time.folder.relative_to(study.out))}
                for time in times
            ],
        },
    )
    with style():
        figure = _figure(table, times, fit, fitted, sheet.note)
        if isinstance(figure, Omitted):
            for suffix in (".pdf", ".png", ".svg"):  # of an earlier start
                (study.out / f"{NAME}{suffix}").unlink(missing_ok=True)
            write_csv(table, study.out / f"{NAME}.csv")
        save_figures(study.out, [figure], NAME + "_figures")
    return sheet


def _fit(study: Study, times: list[Time]) -> tuple[Fit, list[int]]:
    """Fits the times of workers that have a core each, or all if those are too few."""
    alone = {
        cluster.workers
        for cluster in study.clusters.values()
        if cluster.over_nodes() or cluster.workers <= usable_cores()
    }
    if len(alone) < 2:
        alone = {time.workers for time in times}
    used = [time for time in times if time.workers in alone]
    return fit_amdahl([t.workers for t in used], [t.seconds for t in used]), sorted(alone)


def scaling_table(times: list[Time], fit: Fit) -> "pd.DataFrame":
    """Returns a row for each number of workers.

    Args:
        times: The measured runs.
        fit: Amdahl's law, for the time with one worker where that was not measured.

    Returns:
        workers, runs, seconds (median of the runs), seconds_min, seconds_max, speedup and
        efficiency of the median, amdahl (speed-up of the fit), start_up (median).
    """
    import pandas as pd

    table = (
        pd.DataFrame(times)
        .groupby("workers", as_index=False)
        .agg(
            runs=("seconds", "size"),
            seconds=("seconds", "median"),
            seconds_min=("seconds", "min"),
            seconds_max=("seconds", "max"),
            start_up=("start_up", "median"),
        )
    )
    table["speedup"] = _one_worker(table, fit) / table["seconds"]
    table["efficiency"] = table["speedup"] / table["workers"]
    table["amdahl"] = speedup(fit.serial, table["workers"].to_numpy(float))
    return table


def _one_worker(table: "pd.DataFrame", fit: Fit) -> float:
    """Returns the seconds with one worker: measured, or else fitted."""
    first = table.iloc[0]
    return float(first["seconds"]) if first["workers"] == 1 else fit.one_worker


def _note(study: Study, times: list[Time], fit: Fit, fitted: list[int], advice: str) -> str:
    measured = {time.workers for time in times}
    text = (
        f"{run_id(study.experiment)}, {_budget(study)}: median wall time of all iterations but the"
        f" first over {plural(study.repeats, 'run')} each, on {plural(usable_cores(), 'core')}."
    )
    if 1 not in measured:
        text += " The time with one worker is the fit's."
    percent, error = 100 * fit.serial, 100 * fit.error
    serial = mean_and_error(percent, error, common_decimals([percent], [error]))
    text += f" Amdahl's law fits with a serial fraction of {serial} %"
    if set(fitted) < measured:
        text += f" (of {', '.join(map(str, fitted))} workers, which have a core each)"
    text += f": {advice}."
    text += f" All archives are equal (archive_digest {times[0].digest[:16]}...)."
    return text + busy_note([time.load for time in times])


def advise(fit: Fit, shortest: float, batch: int) -> tuple[int | None, str]:
    """Returns how many workers to take, and why; None if the times are not enough to tell.

    Args:
        fit: Amdahl's law. Its serial fraction is taken two standard errors larger, as it may be.
        shortest: The shortest median time [s].
        batch: Solutions of an iteration.
    """
    if fit.serial > 1 - 1e-6:
        return 1, "more workers do not make it faster"
    cannot = "how many workers are worthwhile cannot be told from"
    if shortest < SHORTEST:
        return None, f"{cannot} {shortest:.2g} s of iterations, take more of them"
    if math.isnan(fit.error):
        if fit.serial < 1e-6:
            return None, f"{cannot} times without a serial part, take more workers"
        return None, f"{cannot} two runs, take more repeats or more numbers of workers"
    recommended = recommended_workers(min(1.0, fit.serial + 2 * fit.error), batch)
    return recommended, (
        f"the most workers with an efficiency of at least {WORTHWHILE:.0%} are {recommended}, if"
        " that fraction is two standard errors larger"
    )


def _budget(study: Study) -> str:
    ((unit, amount),) = study.experiment.budget.items()
    return f"{number(amount)} {unit}"


def _sheet(study: Study, table: "pd.DataFrame", note: str) -> Sheet:
    columns = {  # heading -> column, factor, decimals
        "Workers": ("workers", 1, 0),
        "Runs": ("runs", 1, 0),
        "Seconds": ("seconds", 1, 2),
        "Speed-up": ("speedup", 1, 2),
        "Efficiency (%)": ("efficiency", 100, 1),
        "Speed-up by Amdahl": ("amdahl", 1, 2),
        "Start-up (s)": ("start_up", 1, 2),
    }
    rows = [
        [
            number_cell(number(factor * row[n], digits), row[n])
            for n, factor, digits in columns.values()
        ]
        for row in table.to_dict("records")
    ]
    title = f"Scaling of {study.experiment.domain.name}, {study.experiment.algorithm.name}"
    return Sheet(NAME, title, note, list(columns), 0, rows)


def _figure(
    table: "pd.DataFrame", times: list[Time], fit: Fit, fitted: list[int], note: str
) -> Drawn | Omitted:
    """Draws speed-up and efficiency over the number of workers: runs, medians, fit.

    Nothing is drawn of times that are too short.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    shortest = float(table["seconds"].min())
    if shortest < SHORTEST:
        why = f"{shortest:.2g} s of iterations are too short to time, take more of them"
        return Omitted(NAME, _SECTION, _TITLE, why)
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    most = table["workers"].max()
    n = np.unique(np.geomspace(1, most, 200))
    left.plot(n, n, color="0.6", linewidth=1, linestyle=(0, (2, 2)), label="ideal")
    law = f"Amdahl, serial {100 * fit.serial:.3g} %"
    left.plot(n, speedup(fit.serial, n), color=COLORS[1], label=law)
    right.plot(n, 100 * efficiency(fit.serial, n), color=COLORS[1])
    one_worker = _one_worker(table, fit)
    for alone, fill, label in (
        (True, COLORS[0], "measured"),
        (False, "white", "measured, sharing cores"),
    ):
        runs = [time for time in times if (time.workers in fitted) == alone]
        if not runs:
            continue
        workers = np.array([time.workers for time in runs], dtype=float)
        speed = one_worker / np.array([time.seconds for time in runs])
        look = {"color": COLORS[0], "markerfacecolor": fill, "markersize": 5, "zorder": 3}
        left.plot(workers, speed, "o", label=label, **look)
        right.plot(workers, 100 * speed / workers, "o", **look)
    right.axhline(100 * WORTHWHILE, color="0.6", linewidth=1, linestyle=(0, (2, 2)))
    left.set_yscale("log", base=2)
    left.set_ylabel("Speed-up over one worker")
    right.set_ylabel("Efficiency (%)")
    right.set_ylim(0, None)
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks(table["workers"])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("Workers")
        ax.grid(True)
    left.legend(loc="upper left")
    return Drawn(NAME, _SECTION, _TITLE, note, figure, table)
