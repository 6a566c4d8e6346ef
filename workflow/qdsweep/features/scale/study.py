"""`qdsweep scale` times one experiment with several numbers of workers.

It fits Amdahl's law to the times, and writes the table, the fit and the figure.
"""

import functools
import math
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from qdsweep.analysis.figures.figure import Drawn, Omitted, save_figures
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.legend import COLORS
from qdsweep.analysis.sheet import Sheet, as_latex, as_markdown, number_cell
from qdsweep.analysis.timing import busy_note, largest_load
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.errors import STOPPED, BadInput, QdsweepError
from qdsweep.files import read_json_if_whole, write_csv, write_json, write_text
from qdsweep.host import process
from qdsweep.host.lock import Lock
from qdsweep.host.machine import BUSY_LOAD
from qdsweep.host.process import die_with_parent
from qdsweep.metrics import SECONDS
from qdsweep.ornaments import ornament
from qdsweep.planning.checks import check_fit
from qdsweep.planning.outlook import planned_evaluations
from qdsweep.records.paths import Results, RunDir
from qdsweep.runs.load import load
from qdsweep.sweep.ids import run_id
from qdsweep.text import common_decimals, mean_and_error, number, plural

if TYPE_CHECKING:
    import pandas as pd

Workers = TypeVar("Workers", float, np.ndarray)
# The lowest efficiency at which one more worker is worthwhile.
WORTHWHILE = 0.8
_NAME = "scaling"
# Shorter times are too inaccurate [s].
SHORTEST = 1.0

_SECTION, _TITLE = "Time", "Scaling"


class Stopped(QdsweepError):
    """A run was stopped on purpose before its end. The same command resumes the study."""

    exit_code = STOPPED


@dataclass(frozen=True)
class Study:
    """The runs to measure.

    Attributes:
        experiment: The experiment.
        words: The arguments of `qdsweep run` for it: its name, `--set` and `--cluster`.
        clusters: The requested number of workers -> the cluster config.
        repeats: Number of runs for each number of workers.
        out: The folder of the study.
    """

    experiment: Experiment
    words: list[str]
    clusters: dict[int, Cluster]
    repeats: int
    out: Path

    def folder(self, workers: int, repeat: int) -> Path:
        """Returns the folder of a run."""
        return Results(self.out).runs / f"w{workers}-r{repeat}"

    def schedule(self) -> Iterator[tuple[int, int]]:
        """Yields workers and repeat of each run, in an order that rotates with each repeat."""
        order = list(self.clusters)
        for repeat in range(1, self.repeats + 1):
            yield from ((workers, repeat) for workers in order)
            order.reverse()


@dataclass(frozen=True)
class Time:
    """A measured run.

    Attributes:
        workers: Number of workers on all nodes.
        repeat: Number of the repeat, from 1.
        seconds: Time of all iterations but the first [s], which also starts workers and compiles.
        work: Environment steps of these iterations, or evaluations if the domain counts no steps.
        unit: Which of the two. Frames of Atari games are steps.
        start_up: Time from the start of the process to its first evaluation [s].
        digest: The digest of the archive.
        folder: The folder of the run.
        load: Number of processes per core of the machine that wanted to run.
    """

    workers: int
    repeat: int
    seconds: float
    work: int
    unit: str
    start_up: float
    digest: str
    folder: Path
    load: float


def read_workers(text: str) -> list[int]:
    """Reads `--workers 1,2,4,8`.

    Raises:
        BadInput: It is not a list of at least two different numbers.
    """
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise BadInput(f"--workers {text}: give whole numbers above 0, as in 1,2,4,8")
    numbers = sorted({int(word) for word in words})
    if len(numbers) < 2:
        raise BadInput(f"--workers {text}: give at least two different numbers, as in 1,2")
    return numbers


def check_study(study: Study, name: str) -> None:
    """Refuses a study that cannot be measured. `name` is the name of the cluster's file.

    Raises:
        BadInput: There are too few iterations or too many workers, or the folder belongs to
            another study.
    """
    experiment = study.experiment
    if study.repeats < 1:
        raise BadInput(f"--repeats {study.repeats}: at least 1 is needed")
    planned = planned_evaluations(experiment)
    is_short = planned is not None and planned <= experiment.first_iteration
    if is_short or experiment.iterations == 1:
        raise BadInput(
            f"{experiment.domain.name}: one iteration is not enough for a time, because it also "
            "starts the workers. Give --set iterations=20 or more"
        )
    for cluster in study.clusters.values():
        check_fit(cluster, name, {study.words[0]: experiment})
        if cluster.over_nodes() and process.image() is not None:
            raise BadInput(
                f"cluster {name}: runs over {cluster.nodes} nodes cannot be started from inside "
                "an image. Start `qdsweep scale` without --image"
            )
    if not Results(study.out).runs.is_dir() and _has_files(study.out):
        raise BadInput(
            f"--out {study.out}: this folder has files that do not belong to `qdsweep scale`. Use "
            "another folder"
        )
    for workers, repeat in study.schedule():
        _check_folder(study, workers, repeat)
    cores = usable_cores()
    for cluster in study.clusters.values():
        if cluster.workers > cores and not cluster.over_nodes():
            print(
                f"qdsweep: warning: {cluster.workers} workers share {plural(cores, 'core')}, so "
                "the fit leaves them out",
                file=sys.stderr,
            )


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def measure_times(study: Study) -> list[Time]:
    """Runs the remaining measurements.

    Raises:
        QdsweepError: A run failed, or its archive differs from that of the other runs.
        Stopped: A run was stopped. The same command resumes.
    """
    times: list[Time] = []
    schedule = list(study.schedule())
    for position, (workers, repeat) in enumerate(schedule, start=1):
        folder = study.folder(workers, repeat)
        known = read_json_if_whole(RunDir(folder).summary).get("status") == "finished"
        if not known:
            _run(study, workers, folder)
        time = _read(study, workers, repeat)
        times.append(time)
        print(
            f"qdsweep: {position} of {len(schedule)}: {plural(time.workers, 'worker')}, repeat "
            f"{repeat}: {time.seconds:.2f} s{' (measured before)' if known else ''}"
            f"{', on a busy machine' if time.load > BUSY_LOAD else ''}",
            file=sys.stderr,
            flush=True,
        )
        if time.digest != times[0].digest:
            raise QdsweepError(
                f"{folder} and {times[0].folder} have different archives (archive_digest "
                f"{time.digest[:12]}... and {times[0].digest[:12]}...), but the number of workers "
                "must never change a result. Test with `qdsweep check DOMAIN` whether the domain "
                "is pure and row-independent"
            )
    return times


def _has_files(folder: Path) -> bool:
    """Returns whether a folder has more than the files of a run that was killed at its start."""
    return any(path.is_file() and path.name != "lock" for path in folder.rglob("*"))


def _check_folder(study: Study, workers: int, repeat: int) -> None:
    """Refuses a folder with a run of another experiment, budget or cluster."""
    folder = study.folder(workers, repeat)
    config = RunDir(folder).state.config
    if not config.exists():
        if _has_files(folder):
            raise BadInput(
                f"--out {study.out}: {folder} has files that do not belong to `qdsweep scale`. Use "
                "another folder, or remove this one"
            )
        return
    other, experiment = compose(str(config)), study.experiment
    if run_id(other) != run_id(experiment) or other.budget != experiment.budget:
        raise BadInput(
            f"--out {study.out}: {folder} has a run of another experiment ({run_id(other)}, "
            f"{_budget(other)}) than the requested one ({run_id(experiment)}, "
            f"{_budget(experiment)}). Use another folder, or remove this one"
        )
    cluster, summary = study.clusters[workers], read_json_if_whole(RunDir(folder).summary)
    old = summary.get("engine"), summary.get("workers")
    new = cluster.engine_name, cluster.workers
    if summary and old != new:
        raise BadInput(
            f"--out {study.out}: {folder} was measured with engine {old[0]} and {old[1]} workers, "
            f"not with {new[0]} and {new[1]}. Use another folder, or remove this one"
        )


def _budget(experiment: Experiment) -> str:
    return " ".join(f"{unit}={amount}" for unit, amount in experiment.budget.items())


def _run(study: Study, workers: int, folder: Path) -> None:
    """Runs it from the beginning, because the time of an interrupted run is not valid."""
    if folder.exists():
        with Lock(RunDir(folder).state.lock):  # another process may hold it
            pass
        shutil.rmtree(folder)
    words = [sys.executable, "-P", "-m", "qdsweep", "run", *study.words]
    words += ["--workers", str(workers), "--out", str(folder)]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=functools.partial(die_with_parent, signal.SIGTERM),
    )
    if done.returncode == STOPPED:
        raise Stopped(f"{folder} was stopped before its end; the same command measures it again")
    if done.returncode != 0:
        messages = [line for line in done.stderr.splitlines() if line.strip()]
        raise QdsweepError(
            f"{folder}: the run failed (exit code {done.returncode}): "
            f"{messages[-1] if messages else 'no message'} (see {RunDir(folder).log})"
        )


def _read(study: Study, workers: int, repeat: int) -> Time:
    """Reads the time of a finished run."""
    folder = study.folder(workers, repeat)
    run = load(folder)
    unit = "evaluations" if run.metrics["steps"].isna().any() else "steps"
    amount = run.metrics[unit]
    return Time(
        workers=study.clusters[workers].workers,
        repeat=repeat,
        seconds=float(run.metrics[list(SECONDS)].iloc[1:].to_numpy().sum()),
        work=int(amount.iloc[-1] - amount.iloc[0]),
        unit=unit,
        start_up=run.summary["attempts"][-1]["first_evaluation"],
        digest=run.summary["archive_digest"],
        folder=folder,
        load=largest_load(run.summary["attempts"]),
    )


@dataclass(frozen=True)
class Fit:
    """Amdahl's law fitted to measured times: ``T(n) = T(1) (s + (1 - s) / n)``.

    Attributes:
        one_worker: Time with one worker, T(1) [s].
        serial: Serial fraction s, between 0 and 1.
        error: The standard error of s. It is nan if there are no more times than parameters, or if
            s is 0 or 1.
    """

    one_worker: float
    serial: float
    error: float


def speedup(serial: float, workers: Workers) -> Workers:
    """Returns the speed-up over one worker for a serial fraction of its time (Amdahl 1967)."""
    return 1 / (serial + (1 - serial) / workers)


def efficiency(serial: float, workers: Workers) -> Workers:
    """Returns the speed-up divided by the number of workers."""
    return speedup(serial, workers) / workers


def recommended_workers(serial: float, most: int) -> int:
    """Returns the largest number of workers with an efficiency of at least `WORTHWHILE`.

    It is at most the number of solutions in an iteration, because further workers would idle.
    """
    if serial <= 0:
        return most
    # The efficiency is 1 / (1 + s (n - 1)).
    workers = 1 + (1 / WORTHWHILE - 1) / serial
    return max(1, min(most, math.floor(workers + 1e-9)))


def fit_amdahl(workers: Sequence[int], seconds: Sequence[float]) -> Fit:
    """Fits Amdahl's law by least squares of the relative errors.

    Args:
        workers: Number of workers of each measurement, with at least two different values.
        seconds: Time of each measurement [s].
    """
    from scipy.optimize import OptimizeWarning, curve_fit

    n, times = np.asarray(workers, dtype=float), np.asarray(seconds, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)  # with too few times the error is nan
        (one_worker, serial), covariance = curve_fit(
            lambda n, single, s: single * (s + (1 - s) / n),
            n,
            times,
            p0=(times[n.argmin()] * n.min(), 0.1),
            sigma=times,
            bounds=([0, 0], [np.inf, 1]),
        )
    # At a bound the error is unknown. At 1, more workers make it slower.
    known = len(times) > 2 and 1e-6 < serial < 1 - 1e-6
    error = math.sqrt(covariance[1, 1]) if known else math.nan
    return Fit(float(one_worker), float(serial), error)


def write_scaling(study: Study, times: list[Time]) -> Sheet:
    """Writes scaling.csv, .md, .tex, .json and the figure scaling.pdf, .png, .svg.

    All runs have the same digest.

    Returns:
        The table.
    """
    fit, fitted = _fit(study, times)
    batch = study.experiment.num_emitters * study.experiment.batch_size
    table = scaling_table(times, fit)
    recommended, advice = advise(fit, float(table["seconds"].min()), batch)
    sheet = _sheet(study, table, times[0].unit, _note(study, times, fit, fitted, advice))
    write_text(study.out / f"{_NAME}.md", as_markdown(sheet))
    write_text(study.out / f"{_NAME}.tex", as_latex(sheet))
    write_json(
        study.out / f"{_NAME}.json",
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
            for suffix in (".pdf", ".png", ".svg"):  # an earlier start may have left them
                (study.out / f"{_NAME}{suffix}").unlink(missing_ok=True)
            write_csv(table, study.out / f"{_NAME}.csv")
        save_figures(study.out, [figure], _NAME + "_figures")
    return sheet


def _fit(study: Study, times: list[Time]) -> tuple[Fit, list[int]]:
    """Fits the times of workers with one core each, or all times if those are too few."""
    uncontended = {
        cluster.workers
        for cluster in study.clusters.values()
        if cluster.over_nodes() or cluster.workers <= usable_cores()
    }
    if len(uncontended) < 2:
        uncontended = {time.workers for time in times}
    used = [time for time in times if time.workers in uncontended]
    return fit_amdahl([t.workers for t in used], [t.seconds for t in used]), sorted(uncontended)


def scaling_table(times: list[Time], fit: Fit) -> "pd.DataFrame":
    """Returns one row per number of workers.

    Args:
        times: The measured runs.
        fit: Amdahl's law, for the time with one worker if that was not measured.

    Returns:
        The columns workers, runs, seconds (median of the runs), seconds_min, seconds_max,
        throughput (environment steps or evaluations per second), speedup and efficiency of the
        median, amdahl (speed-up of the fit) and start_up (median).
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
            throughput=("work", "median"),
            start_up=("start_up", "median"),
        )
    )
    table["throughput"] /= table["seconds"]
    table["speedup"] = _one_worker(table, fit) / table["seconds"]
    table["efficiency"] = table["speedup"] / table["workers"]
    table["amdahl"] = speedup(fit.serial, table["workers"].to_numpy(float))
    return table


def _one_worker(table: "pd.DataFrame", fit: Fit) -> float:
    """Returns the measured time with one worker [s], or else the fitted one."""
    first = table.iloc[0]
    return float(first["seconds"]) if first["workers"] == 1 else fit.one_worker


def _note(study: Study, times: list[Time], fit: Fit, fitted: list[int], advice: str) -> str:
    measured = {time.workers for time in times}
    text = (
        f"{run_id(study.experiment)}, {_budget_of(study)}: median wall time of all iterations but "
        f"the first over {plural(study.repeats, 'run')} each, on {plural(usable_cores(), 'core')}."
    )
    if 1 not in measured:
        text += " The time with one worker is that of the fit."
    percent, error = 100 * fit.serial, 100 * fit.error
    serial = mean_and_error(percent, error, common_decimals([percent], [error]))
    text += f" Amdahl's law fits with a serial fraction of {serial} %"
    if set(fitted) < measured:
        text += f" (of {', '.join(map(str, fitted))} workers, which have one core each)"
    text += f": {advice}."
    text += f" All archives are equal (archive_digest {times[0].digest[:16]}...)."
    return text + busy_note([time.load for time in times])


def advise(fit: Fit, shortest: float, batch: int) -> tuple[int | None, str]:
    """Returns the recommended number of workers and the reason.

    Args:
        fit: Amdahl's law. Two standard errors are added to its serial fraction, to be safe.
        shortest: The shortest median time [s].
        batch: Number of solutions in an iteration.

    Returns:
        The number, or None if the times do not suffice, and the reason.
    """
    if fit.serial > 1 - 1e-6:
        return 1, "more workers do not make it faster"
    cannot = "no number of workers can be recommended from"
    if shortest < SHORTEST:
        return None, f"{cannot} {shortest:.2g} s of iterations; measure more iterations"
    if math.isnan(fit.error):
        if fit.serial < 1e-6:
            return None, f"{cannot} times without a serial part; measure more workers"
        return None, f"{cannot} two runs; measure more repeats or more numbers of workers"
    recommended = recommended_workers(min(1.0, fit.serial + 2 * fit.error), batch)
    return recommended, (
        f"the largest number of workers with an efficiency of at least {WORTHWHILE:.0%} is"
        f" {recommended}, even if that fraction is two standard errors larger"
    )


def _budget_of(study: Study) -> str:
    ((unit, amount),) = study.experiment.budget.items()
    return f"{number(amount)} {unit}"


def _sheet(study: Study, table: "pd.DataFrame", unit: str, note: str) -> Sheet:
    columns = {  # heading -> column, factor, decimals
        "Workers": ("workers", 1, 0),
        "Runs": ("runs", 1, 0),
        "Seconds": ("seconds", 1, 2),
        f"{unit.capitalize()} per second": ("throughput", 1, 0),
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
    return Sheet(_NAME, title, note, list(columns), 0, rows)


@ornament("the figure of the scaling", lambda why, *about: Omitted(_NAME, _SECTION, _TITLE, why))
def _figure(
    table: "pd.DataFrame", times: list[Time], fit: Fit, fitted: list[int], note: str
) -> Drawn | Omitted:
    """Draws speed-up, throughput and efficiency over the number of workers, with runs and fit.

    It draws nothing if the times are too short.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    shortest = float(table["seconds"].min())
    if shortest < SHORTEST:
        why = f"{shortest:.2g} s of iterations are too short to time; measure more iterations"
        return Omitted(_NAME, _SECTION, _TITLE, why)
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.1})
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
    once = float(table["throughput"].iloc[0] / table["speedup"].iloc[0])
    other = left.secondary_yaxis("right", functions=(lambda y: y * once, lambda y: y / once))
    other.set_ylabel(f"{times[0].unit.capitalize()} per second")
    other.yaxis.set_minor_locator(NullLocator())
    ticks = once * 2.0 ** np.arange(1 + math.log2(most))
    other.set_yticks(ticks, [number(tick, 0) for tick in ticks])
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks(table["workers"])
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("Workers")
        ax.grid(True)
    left.legend(loc="upper left")
    return Drawn(_NAME, _SECTION, _TITLE, note, figure, table)
