"""`qdsweep scale`: one experiment with several numbers of workers, timed."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qdsweep.analysis.tables.curves import SECONDS
from qdsweep.analysis.tables.run_times import largest_load
from qdsweep.analysis.text import plural
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.experiment.load import load
from qdsweep.experiment.start import STOPPED
from qdsweep.files import read_json_if_whole
from qdsweep.host import briefing
from qdsweep.host.load import BUSY
from qdsweep.host.lock import Lock
from qdsweep.host.parent import die_with_parent
from qdsweep.planning.checks import check_fit
from qdsweep.planning.outlook import planned_evaluations
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import Results
from qdsweep.sweep.ids import run_id


class Stopped(QdsweepError):
    """A run stopped before its end, on purpose: the same command goes on."""

    exit_code = STOPPED


@dataclass(frozen=True)
class Study:
    """What is measured.

    Attributes:
        experiment: The experiment.
        words: What `qdsweep run` is called with for it: its name and `--set` and `--cluster`.
        clusters: Workers as they were asked for -> where they are.
        repeats: Runs of each number of workers.
        out: The folder.
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
        """Yields workers and repeat of each run; the order turns: no number is always first."""
        order = list(self.clusters)
        for repeat in range(1, self.repeats + 1):
            yield from ((workers, repeat) for workers in order)
            order.reverse()


@dataclass(frozen=True)
class Time:
    """A measured run.

    Attributes:
        workers: On all nodes.
        repeat: Number of the repeat, from 1.
        seconds: Of the iterations after the first, which also starts workers and compiles.
        start_up: From the start of the process to its first evaluation [s].
        digest: Of the archive.
        folder: Where it is.
        load: Processes that wanted each core of the machine.
    """

    workers: int
    repeat: int
    seconds: float
    start_up: float
    digest: str
    folder: Path
    load: float


def read_workers(text: str) -> list[int]:
    """Reads `--workers 1,2,4,8`.

    Raises:
        BadInput: It is no list of at least two different numbers.
    """
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise BadInput(f"--workers {text}: whole numbers above 0 were expected, as in 1,2,4,8")
    numbers = sorted({int(word) for word in words})
    if len(numbers) < 2:
        raise BadInput(f"--workers {text}: at least two different numbers are needed, as in 1,2")
    return numbers


def check_study(study: Study, name: str) -> None:
    """Refuses what cannot be measured, before anything is; `name` is of the cluster's file.

    Raises:
        BadInput: Too few iterations, too many workers, or the folder is another study's.
    """
    experiment = study.experiment
    if study.repeats < 1:
        raise BadInput(f"--repeats {study.repeats}: at least 1 is needed")
    if planned_evaluations(experiment) <= experiment.first_iteration:
        raise BadInput(
            f"{experiment.domain.name}: one iteration is too few to be timed, because it also "
            "starts the workers: --set iterations=20 or more"
        )
    for cluster in study.clusters.values():
        check_fit(cluster, name, {study.words[0]: experiment})
        if cluster.over_nodes() and briefing.image() is not None:
            raise BadInput(
                f"cluster {name}: over {cluster.nodes} nodes the runs cannot be started from "
                "inside of an image; start `qdsweep scale` without --image"
            )
    if not Results(study.out).runs.is_dir() and _has_files(study.out):
        raise BadInput(
            f"--out {study.out}: there are files that are not of `qdsweep scale`; take another "
            "folder"
        )
    for workers, repeat in study.schedule():
        _check_folder(study, workers, repeat)
    cores = usable_cores()
    for cluster in study.clusters.values():
        if cluster.workers > cores and not cluster.over_nodes():
            print(
                f"qdsweep: warning: {cluster.workers} workers on {plural(cores, 'core')}: they "
                "share the cores, and the fit leaves them out",
                file=sys.stderr,
            )


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def measure(study: Study) -> list[Time]:
    """Runs what has not been run yet.

    Raises:
        QdsweepError: A run failed, or its archive is not that of the others.
        Stopped: A run was stopped; the same command goes on.
    """
    times: list[Time] = []
    schedule = list(study.schedule())
    for number, (workers, repeat) in enumerate(schedule, start=1):
        folder = study.folder(workers, repeat)
        known = read_json_if_whole(RunDir(folder).summary).get("status") == "finished"
        if not known:
            _run(study, workers, folder)
        time = _read(study, workers, repeat)
        times.append(time)
        print(
            f"qdsweep: {number} of {len(schedule)}: {plural(time.workers, 'worker')}, repeat "
            f"{repeat}: {time.seconds:.2f} s{' (measured before)' if known else ''}"
            f"{', on a busy machine' if time.load > BUSY else ''}",
            file=sys.stderr,
            flush=True,
        )
        if time.digest != times[0].digest:
            raise QdsweepError(
                f"{folder} and {times[0].folder} have different archives (archive_digest "
                f"{time.digest[:12]}... and {times[0].digest[:12]}...), but the number of workers "
                "must never change a result: is the domain pure and its rows independent? "
                "`qdsweep check DOMAIN` tries it"
            )
    return times


def _has_files(folder: Path) -> bool:
    """Returns whether a folder has more than a run that was killed at once leaves."""
    return any(path.is_file() and path.name != "lock" for path in folder.rglob("*"))


def _check_folder(study: Study, workers: int, repeat: int) -> None:
    """Refuses a folder with a run of another experiment, budget or cluster."""
    folder = study.folder(workers, repeat)
    config = RunDir(folder).state.config
    if not config.exists():
        if _has_files(folder):
            raise BadInput(
                f"--out {study.out}: {folder} has files that are not of `qdsweep scale`; take "
                "another folder, or remove this one"
            )
        return
    other, experiment = compose(str(config)), study.experiment
    if run_id(other) != run_id(experiment) or other.budget != experiment.budget:
        raise BadInput(
            f"--out {study.out}: {folder} has a run of another experiment ({run_id(other)}, "
            f"{_budget(other)}) than asked for ({run_id(experiment)}, {_budget(experiment)}); "
            "take another folder, or remove this one"
        )
    cluster, summary = study.clusters[workers], read_json_if_whole(RunDir(folder).summary)
    was = summary.get("engine"), summary.get("workers")
    asked = cluster.engine_name, cluster.workers
    if summary and was != asked:
        raise BadInput(
            f"--out {study.out}: {folder} was measured with engine {was[0]} and {was[1]} workers, "
            f"not with {asked[0]} and {asked[1]}; take another folder, or remove this one"
        )


def _budget(experiment: Experiment) -> str:
    return " ".join(f"{unit}={amount}" for unit, amount in experiment.budget.items())


def _run(study: Study, workers: int, folder: Path) -> None:
    """Runs it from its beginning: the time of an interrupted run would not count."""
    if folder.exists():
        with Lock(RunDir(folder).state.lock):  # another process may hold it
            pass
        shutil.rmtree(folder)
    words = [sys.executable, "-m", "qdsweep", "run", *study.words]
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
        raise Stopped(f"{folder} was stopped before its end: the same command measures it anew")
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise QdsweepError(
            f"{folder}: the run failed (exit code {done.returncode}): "
            f"{said[-1] if said else 'without a word'} (all of it: {RunDir(folder).log})"
        )


def _read(study: Study, workers: int, repeat: int) -> Time:
    """Reads the time of a finished run."""
    folder = study.folder(workers, repeat)
    run = load(folder)
    return Time(
        workers=study.clusters[workers].workers,
        repeat=repeat,
        seconds=float(run.metrics[list(SECONDS)].iloc[1:].to_numpy().sum()),
        start_up=run.summary["attempts"][-1]["first_evaluation"],
        digest=run.summary["archive_digest"],
        folder=folder,
        load=largest_load(run.summary["attempts"]),
    )
