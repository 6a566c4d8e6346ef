"""Kills at any moment: command x engine x moment x killed process. The same command resumes.

After any kill, the results equal those of an undisturbed serial run, bit for bit. No process
stays alive, and no finished file is computed again. `make test` has a short form of each axis,
`make test-all` has more, and `make torture` has all (QDSWEEP_TORTURE=1; QDSWEEP_KILLS at random).
"""

import contextlib
import csv
import itertools
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pytest
from composing import with_algorithm
from counting import EXPERIMENT, add_plugin, evaluated
from in_process import qdsweep
from killing import Start, go_on, living, stop_at, stopped, warm_process
from leftovers import words_of
from results import digest, digests, read_json, search_results, steps
from support import POLE, shared_folder, write_yaml
from waiting import wait_until

from qdsweep.config.compose import compose

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KILLS = int(os.environ.get("QDSWEEP_KILLS", 30 if LONG else 3))  # of a case at random moments

ENGINES = ("serial", "processes", "dask", "ray", "mpi")
# The engine that resumes a run, as any engine can resume the run of another one.
NEXT = dict(zip(ENGINES, ("serial", "serial", "processes", "processes", "serial"), strict=True))
SAVES = (
    "after open",
    "half the bytes",
    "before fsync",
    "before rename",
    "before fsync of folder",
)
SAVED = {"min_seconds": 0, "max_seconds": 1e-6}  # after each iteration
NOISY = {"type": "tally:Counting", "name": "counting", "arguments": {"noise": 1.0}}
TALLY = {**EXPERIMENT, "reload": SAVED, "domain": {**NOISY, "evaluation_seed": "solution"}}
BATCH = TALLY["batch_size"]

# With the state of CMA-ES, restarts and a result archive.
RUN = {
    key: value for key, value in TALLY.items() if key not in ("initial_solutions", "evaluations")
}
RUN |= {"algorithm": "cma_mae", "iterations": 30}

PHASES = ("outcome", "training", "tell")
LEARNERS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("pga_me", "td3", "cma_mega_es", "cma_mega_td3_es", "me_es")},
    # With torch: only greedy rows are inserted, and the learner trains on few steps.
    "apex_dqn": {"evaluate_every": 1, "train_freq": 100, "learning_starts": 50},
    "impala": {
        "evaluate_every": 1,
        "lag": 2,
        "unroll": 10,
        "n_steps": 5,
        "normalize_observations": True,
        "normalize_rewards": True,
    },
    "dqn": {"evaluate_every": 1, "train_freq": 100, "learning_starts": 50},
}
LEARNED = {
    "domain": {"preset": "pendulum", "max_episode_steps": 15},
    "archive": {"dims": [5, 5]},
    "batch_size": 12,
    "iterations": 8,
    "seed": 5,
    "reload": SAVED,
}

ALGORITHMS = ("map_elites", "map_elites_line", "openai_es")  # without numba
SWEPT = {
    "domain": {**POLE["domain"], "max_episode_steps": 30},
    "archive": {"dims": [6, 6]},
    "num_emitters": 1,
    "batch_size": 8,
    "iterations": 120,
    "reload": {"min_seconds": 0.02, "max_cost": 0.5},
}
SWEEP = {
    "name": "mine",
    "experiment": SWEPT,
    "sweep": f"::: algorithm {' '.join(ALGORITHMS)} ::: seed 1",
    "confirm": {"top": 1, "seeds": [101, 101]},
    "reevaluate": {"times": 2},
    "rollouts": {"elites": ["best"]},
}
# All stages, or the cheapest ones: tables of every kind, and rendered episodes.
KINDS = ("tables/corrected.csv", "tables/confirmed.csv", "plots/rollouts")
TARGETS = [] if LONG else [f"results/sweeps/mine/{kind}" for kind in KINDS]

DRAWN = ":::~ iso_sigma log 0.01 2 :::~ line_sigma log 0.01 1 ::: seed 1 2"
SEARCHES: dict[str, dict[str, Any]] = {
    "halving": {"samples": 9, "halving": {"first": "1/3"}},
    "hyperband": {"halving": {"brackets": "all", "rungs": ["1/3", 1]}},
    "random": {"samples": 8},
    "sobol": {"samples": 8, "sampling": "sobol"},
    "tpe": {"samples": 12, "sampling": "tpe", "batches": 3},
    "tpe_hyperband": {"sampling": "tpe", "batches": 2, "halving": {"brackets": "all"}},
    "pbt": {"pbt": {"population": 4, "generations": 3}},
}


class Work:
    """One command in its own folder, started again and again.

    Args:
        folder: The folder, which it creates.
        kind: The kind of command.
        scratch: The TMPDIR of all its processes.
        warm: The socket of the warm process of all tests; otherwise Snakemake starts one.
    """

    program = "qdsweep"
    words: tuple[object, ...] = ()
    finished: tuple[str, ...] = ()  # files that never change once they exist
    lost = 0  # number of evaluations that a kill may cost

    def __init__(self, folder: Path, kind: str, scratch: Path, warm: Path | None) -> None:
        self.folder, self.kind, self.scratch, self.warm = folder, kind, scratch, warm
        folder.mkdir(parents=True)
        add_plugin(folder)
        self.write()

    def write(self) -> None:
        """Writes the input files of the command."""

    def start(self, engine: str, seconds: float = 0, cores: int = 2) -> Start:
        """Starts the command. Each evaluation of the counting domain sleeps for some seconds."""
        workers = 1 if engine == "serial" else 2
        write_yaml(self.folder / "cluster.yaml", {"engine": engine, "workers_per_node": workers})
        env = {"KILLED_IN": str(self.folder), "COUNTING_SECONDS": str(seconds)}
        env["TMPDIR"] = str(self.scratch)
        if self.warm is not None:
            env["QDSWEEP_WARM"] = str(self.warm)
        return Start(self.folder, self.all_words(cores), env, self.program)

    def all_words(self, cores: int) -> list[object]:
        return [*self.words, "--cluster", "cluster.yaml"]

    def main(self, start: Start) -> psutil.Process:
        """The main process."""
        return psutil.Process(start.pid)

    def begins(self, start: Start) -> None:
        """Waits until the command computes something or has ended."""
        before = evaluated(self.folder)
        wait_until(
            lambda: start.has_ended() or evaluated(self.folder) > before, 300, "an evaluation"
        )

    def finish(self, engine: str) -> None:
        """Starts the command and waits for its end."""
        start = self.start(engine, cores=3)
        wait_until(start.has_ended, 3000, "its end")
        assert start.code == 0, start.printed.read_text()[-5000:]

    def results(self) -> dict[str, Any]:
        """The results, which never depend on kills."""
        raise NotImplementedError

    def kept(self) -> dict[Path, bytes]:
        """The finished files."""
        paths = [path for pattern in self.finished for path in self.folder.glob(pattern)]
        return {path: path.read_bytes() for path in paths}


class Run(Work):
    words = ("run", "experiment.yaml", "--out", "out")
    finished = ("out/state/summary.json",)
    lost = 2 * BATCH  # of the current iteration and of the unsaved one
    experiment: Any = RUN

    def write(self) -> None:
        write_yaml(self.folder / "experiment.yaml", self.experiment)

    def main(self, start: Start) -> psutil.Process:
        lock = self.folder / "out/state/lock"
        wait_until(lambda: lock.read_text() or start.has_ended(), what="the lock has its owner")
        assert lock.read_text(), start.printed.read_text()[-5000:]
        return psutil.Process(read_json(lock)["pid"])

    def results(self) -> dict[str, Any]:
        out = self.folder / "out"
        halves = [path.name for path in out.rglob("*.tmp")]
        with np.load(out / "history.npz") as history:
            rows = {name: history[name].tolist() for name in history}
        return {"digest": digest(out), "steps": steps(out), "history": rows, "halves": halves}


class Learner(Run):
    lost = 0

    def write(self) -> None:
        own = LEARNERS[self.kind]
        self.experiment = with_algorithm(self.kind, LEARNED, **own).model_dump(mode="json")
        super().write()

    def begins(self, start: Start) -> None:
        log = self.folder / "out/state/metrics.csv"
        wait_until(lambda: start.has_ended() or log.exists(), 300, "an iteration")


class Reevaluation(Work):
    words = ("reevaluate", "out", "--times", 8, "--seed", 3)
    lost = 10**6  # evaluations since the last save, some seconds ago

    def write(self) -> None:
        write_yaml(self.folder / "experiment.yaml", RUN)
        run = Start(self.folder, list(Run.words), {}, "qdsweep")
        wait_until(run.has_ended, 300, "a finished run")
        (self.folder / "evaluated.txt").unlink()

    def results(self) -> dict[str, Any]:
        out = self.folder / "out"
        return {path.name: path.read_bytes() for path in out.glob("reevaluated-8-3-own.*")}


class Study(Work):
    words = ("scale", "experiment.yaml", "--workers", "1,2", "--repeats", 1, "--out", "out")
    finished = ("out/runs/*/state/summary.json",)
    lost = TALLY["evaluations"]  # the interrupted run is measured again from its start

    def write(self) -> None:
        write_yaml(self.folder / "experiment.yaml", TALLY)

    def results(self) -> dict[str, Any]:
        runs = sorted((self.folder / "out/runs").iterdir())
        measured = {run.name: read_json(run / "summary.json") for run in runs}
        return {
            name: (about["archive_digest"], [attempt["from"] for attempt in about["attempts"]])
            for name, about in measured.items()
        }


class Sweep(Work):
    program = "snakemake"
    targets = TARGETS
    finished = ("results/runs/*/state/summary.json", "results/runs/*/state/reevaluated-*")

    def write(self) -> None:
        write_yaml(self.folder / "mine.yaml", SWEEP)

    def all_words(self, cores: int) -> list[object]:
        config = ("--configfile", "mine.yaml", "--config", "cluster=cluster.yaml")
        return [*self.targets, "--cores", cores, *config]

    def begins(self, start: Start) -> None:
        start.begins()

    def results(self) -> dict[str, Any]:
        again = self.start("serial")
        wait_until(again.has_ended, 300, "its end")
        assert again.says("Nothing to be done"), again.printed.read_text()[-5000:]
        runs = self.folder.glob("results/runs/*")
        return {
            **digests(self.folder),
            **{f"{run.name}: steps": steps(run) for run in runs},
            **tables(self.folder),
            **corrected(self.folder),
            **pictures(self.folder),
        }


class Counted(Sweep):
    """A sweep without figures, over the counting domain."""

    targets = ("results/sweeps/mine/table.csv",)
    lost = 2 * Run.lost  # of two runs at a time

    def write(self) -> None:
        add_plugin(self.folder)
        sweep = "::: algorithm map_elites map_elites_line ::: seed 1 2"
        write_yaml(self.folder / "mine.yaml", {"name": "mine", "experiment": TALLY, "sweep": sweep})

    def results(self) -> dict[str, Any]:
        again = self.start("serial")
        wait_until(again.has_ended, 300, "its end")
        assert again.says("Nothing to be done"), again.printed.read_text()[-5000:]
        return {**digests(self.folder), **tables(self.folder)}


class Search(Counted):
    finished = ("results/sweeps/mine/search/*/*.json",)

    def write(self) -> None:
        search = SEARCHES[self.kind]
        budget = {"iterations": 24, "evaluations": None} if "pbt" in search else {}
        data = {"name": "mine", "experiment": TALLY | budget, "sweep": DRAWN, "search": search}
        write_yaml(self.folder / "mine.yaml", data)

    def results(self) -> dict[str, Any]:
        again = self.start("serial")
        wait_until(again.has_ended, 300, "its end")
        assert again.says("Nothing to be done"), again.printed.read_text()[-5000:]
        return {**search_results(self.folder), **tables(self.folder)}


def tables(folder: Path) -> dict[str, list]:
    """Tables and data of figures, without times and hosts."""
    kept = {}
    for path in folder.glob("results/sweeps/mine/**/*.csv"):
        if ".kept" in path.parts or path.stem == "timing":
            continue
        with path.open(newline="") as file:
            head, *rows = csv.reader(file)
        columns = [
            place
            for place, name in enumerate(head)
            if "seconds" not in name and name not in ("engine", "workers")
        ]
        name = str(path.relative_to(folder))
        kept[name] = [[row[column] for column in columns] for row in (head, *rows)]
    assert kept
    return kept


def corrected(folder: Path) -> dict[str, object]:
    """The corrected values of each run."""
    paths = [*folder.glob("results/runs/*/reevaluated-*.json")]
    assert len(paths) == len(ALGORITHMS) + 1, "and of the run that confirms"
    return {path.parent.name + ": corrected": read_json(path) for path in paths}


def pictures(folder: Path) -> dict[str, bytes]:
    """The bytes of existing archives, animations and rendered episodes."""
    plots = folder / "results/sweeps/mine/plots"
    paths = [*plots.glob("archives/*.png"), *plots.glob("*/*.gif")]
    assert len(paths) == (3 if LONG else 1) * len(ALGORITHMS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


WORKS: dict[str, type[Work]] = {
    "run": Run,
    "reevaluation": Reevaluation,
    "study": Study,
    "sweep": Sweep,
    "counted": Counted,
    **dict.fromkeys(LEARNERS, Learner),
    **dict.fromkeys(SEARCHES, Search),
}
# A moment may be one of several, or may come after another one.
MOMENTS: dict[str, list[tuple[str, int]]] = {
    **{save: [(save, 3)] for save in SAVES},
    **{phase: [(phase, 3)] for phase in PHASES},
    "confirmation": [("before confirm.json", 1), ("outcome", 30)],
    "computing": [("outcome", 30)],
}
EVALUATIONS = {"run": 150, "reevaluation": 100, "study": 400}  # of a search: 200


class Case(NamedTuple):
    """A cell of the matrix.

    Attributes:
        work: The kind of command.
        engine: The engine.
        moment: The moment of the kill.
        victim: The killed process.
        how: The signal.
        times: How often it is sent, 0.3 s apart.
    """

    work: str
    engine: str
    moment: str
    victim: str = "main process"
    how: signal.Signals = signal.SIGKILL
    times: int = 1

    def __str__(self) -> str:
        words = [self.work, self.engine, self.moment, self.victim]
        return "-".join([*words, *[self.how.name] * self.times]).replace(" ", "_")

    def steps(self) -> list[tuple[str, int]]:
        if self.moment == "evaluation":
            return [("evaluation", EVALUATIONS.get(self.work, 200))]
        return MOMENTS.get(self.moment, [(self.moment, 1)])

    def goes_on(self) -> bool:
        """Whether the remaining processes continue on their own."""
        if self.victim == "worker":
            return self.engine != "mpi"
        return self.victim in ("what forks", "warm process", "client", "job")


def victims(case: Case, work: Work, start: Start) -> list[psutil.Process]:
    """The processes to kill, at a moment at which one of them waits."""
    if case.victim == "main process":
        return [work.main(start)]
    if case.victim in ("command", "snakemake"):
        return [psutil.Process(start.pid)]
    if case.victim in ("group", "group and jobs"):
        group = [process for process in living(work.folder) if in_group(process, start.pid)]
        return living(work.folder) if case.victim == "group and jobs" else group
    if case.victim == "warm process":
        return [
            process
            for process in started(work.folder, "qdsweep.warm.server")
            if not is_job(process)
        ]
    pid = stopped(work.folder)
    assert pid is not None
    waits = psutil.Process(pid)
    if case.victim == "client":
        (run,) = (
            lock.parts[-3]
            for lock in work.folder.glob("results/runs/*/state/lock")
            if str(pid) in lock.read_text()
        )
        return [process for process in started(work.folder, "qdsweep") if run in words_of(process)]
    if case.victim in ("worker", "job"):
        return [waits]
    parent = waits.parent()
    assert parent is not None
    if case.victim == "what forks" or case.engine == "ray":
        return [parent]
    assert case.victim == "supervisor"
    return [process for process in living(work.folder) if "worker" in words_of(process)]


def in_group(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group
    except ProcessLookupError:
        return False


def started(folder: Path, module: str) -> list[psutil.Process]:
    """The processes in a folder whose command is `python -P -m MODULE ...`."""
    command = ["-P", "-m", module]
    return [process for process in living(folder) if words_of(process)[1:4] == command]


def is_job(process: psutil.Process) -> bool:
    """Whether a process is a fork of the warm process, with the same command."""
    parent = process.parent()
    return parent is not None and words_of(parent) == words_of(process)


def kill(case: Case, work: Work, most: int) -> tuple[int, dict[Path, bytes]]:
    """Starts the command and kills once at a moment; returns 1 and the files finished then."""
    (moment, number), *later = case.steps()
    stop_at(work.folder, moment, number)
    start = work.start(case.engine)
    wait_until(lambda: stopped(work.folder) or start.has_ended(), 300, moment)
    for moment, number in later:
        stop_at(work.folder, moment, number)
        go_on(work.folder)
        wait_until(lambda: not (work.folder / "stop").exists() or start.has_ended(), 300, moment)
    wait_until(lambda: stopped(work.folder) or start.has_ended(), 300, moment)
    assert stopped(work.folder), start.printed.read_text()[-5000:]
    kept, sockets = work.kept(), ray_folders(work)
    all_victims = victims(case, work, start)
    for turn in range(case.times):
        time.sleep(0.3 if turn else 0)
        for victim in all_victims:
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end with another process
                victim.send_signal(case.how)
    go_on(work.folder)
    wait_until(start.has_ended, 300, "its end")
    printed = start.printed.read_text()[-5000:]
    if case.how == signal.SIGTERM:
        assert start.code == 75, printed
    else:
        assert (start.code == 0) == case.goes_on(), printed
    gone(living(work.folder))
    wait_until(lambda: not any(map(os.path.exists, sockets)), what="Ray's folder has vanished")
    return 1, kept


def ray_folders(work: Work) -> set[str]:
    """The folder of Ray's sockets, if Ray runs."""
    places = set()
    for process in living(work.folder):
        with contextlib.suppress(psutil.Error):
            places.add(process.environ().get("RAY_TMPDIR", ""))
    return places - {""}


def kill_in_the_start(case: Case, work: Work, most: int) -> tuple[int, dict[Path, bytes]]:
    """Kills before anything is evaluated."""
    (work.folder / "hold").touch()
    start = work.start(case.engine)
    least = 1 if case.engine == "serial" else 2
    lock = work.folder / "out/state/lock"
    wait_until(lambda: lock.exists() and lock.read_text(), 300, "its start")
    wait_until(lambda: len(living(work.folder)) >= least, 300, "what starts the workers")
    work.main(start).kill()
    wait_until(start.has_ended, 300, "its end")
    gone(living(work.folder))
    (work.folder / "hold").unlink()
    assert evaluated(work.folder) == 0
    return 1, {}


def kill_at_random(case: Case, work: Work, most: int) -> tuple[int, dict[Path, bytes]]:
    """Kills starts of the command until one has ended, or the number of kills is reached."""
    chance = random.Random(f"{case} {most}")
    usual, kept = 0.5, dict[Path, bytes]()
    for number in range(1, most + 1):
        start, begun = work.start(case.engine, seconds=0.02), time.monotonic()
        if chance.random() < 0.9:  # otherwise likely before its first job or evaluation
            work.begins(start)
            usual = time.monotonic() - begun
            # From short times, which often interrupt work, to times in which the longest job ends.
            lives = start.lives(usual * chance.uniform(0, chance.choice((0.5, 2, 16))))
        else:
            lives = start.lives(usual * chance.random())
        if not lives:
            assert start.code == 0, start.printed.read_text()[-5000:]
            return number - 1 or 1, work.kept()
        with_jobs = case.victim == "group and jobs" and chance.random() < 0.7
        alive = start.kill(with_jobs)
        kept = work.kept()
        print(f"kill {number} of {most}: {case}{', with its jobs' * with_jobs}", flush=True)
        if chance.random() < 0.7:  # otherwise the next start meets processes that still run
            gone(alive)
    return most, kept


def gone(processes: list[psutil.Process]) -> None:
    """Fails if a process is alive that should have ended after the kill."""
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert not alive, [(process.pid, words_of(process)) for process in alive]


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """A warm process for all starts, so that a kill costs less than a second of a core."""
    from qdsweep.warm import server

    made = [compose(SWEPT, {"algorithm": name}, source="test") for name in ALGORITHMS]
    made.append(compose({**RUN, "domain": {"preset": "lp_sphere", "solution_dim": 4}}))
    server.prepare(json.dumps([experiment.model_dump(mode="json") for experiment in made]).encode())
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir=shared_folder()))
    with warm_process(folder) as socket:
        yield socket
    shutil.rmtree(folder)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for temporary files, whose path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="k", dir=shared_folder()))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def undisturbed(warm, tmp_path_factory) -> Callable[[str], tuple[dict[str, Any], int]]:
    """The results of undisturbed serial commands, and their numbers of evaluations."""
    known: dict[str, tuple[dict[str, Any], int]] = {}

    def of(kind: str) -> tuple[dict[str, Any], int]:
        if kind not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            work = WORKS[kind](folder / kind, kind, folder, warm)
            start = work.start("processes" if kind == "study" else "serial", cores=1)
            wait_until(start.has_ended, 3000, "its end")
            assert start.code == 0, start.printed.read_text()[-5000:]
            known[kind] = work.results(), evaluated(work.folder)
        return known[kind]

    return of


def resumed_on(case: Case) -> str:
    same = WORKS[case.work].program == "snakemake" or case.work == "study"
    return case.engine if same or case.moment == "random" else NEXT[case.engine]


# The processes that can be killed while a process of an engine evaluates.
CREW = {
    "serial": ("main process",),
    "processes": ("main process", "worker", "what forks"),
    "dask": ("main process", "worker", "what forks", "supervisor"),
    "ray": ("main process", "worker", "supervisor"),
    "mpi": ("main process", "worker", "command"),
}
TYPED = ("group", "group and jobs", "snakemake", "client", "job", "warm process")
KILL, TERM, CTRL_C = signal.SIGKILL, signal.SIGTERM, signal.SIGINT
SHORT = [
    *(Case("run", "serial", save) for save in SAVES),
    Case("run", "serial", "random", "group"),
    Case("run", "processes", "evaluation"),
    Case("run", "processes", "evaluation", "worker"),
    Case("run", "dask", "start"),
    Case("run", "dask", "evaluation"),
    Case("run", "dask", "evaluation", "worker"),
    Case("td3", "processes", "training"),
    Case("reevaluation", "processes", "evaluation"),
    Case("sweep", "serial", "before table.csv", "group and jobs"),
    Case("counted", "serial", "evaluation", "warm process"),
    Case("counted", "serial", "evaluation", "group", CTRL_C, 2),
    Case("halving", "serial", "evaluation", "group"),
]
# Each learner has another engine and signal in each phase.
PHASE_OF = [
    Case(name, ENGINES[(place + turn) % 3], phase, how=(KILL, TERM)[(place + turn) % 2])
    for place, name in enumerate(LEARNERS)
    for turn, phase in enumerate(PHASES)
]
MORE = [
    *(Case("run", engine, "evaluation", who) for engine in ENGINES for who in CREW[engine]),
    *(Case("run", engine, "evaluation", how=TERM) for engine in ("serial", "dask", "ray")),
    *PHASE_OF,
    Case("study", "processes", "evaluation"),
    Case("reevaluation", "dask", "evaluation", "worker"),
    Case("reevaluation", "serial", "evaluation", how=TERM),
    *(Case("counted", "serial", "evaluation", who) for who in TYPED),
    Case("counted", "serial", "evaluation", "group", CTRL_C),
    Case("sweep", "processes", "confirmation", "job"),
    Case("sweep", "processes", "random", "group and jobs"),
    *(Case(search, "serial", "evaluation", "group") for search in ("tpe", "pbt")),
    Case("random", "serial", "random", "group and jobs"),
]
# All cases. Ranks of MPI are new programs, whose only moment is an evaluation.
ALL = [
    *(Case("run", engine, moment) for engine in ENGINES[:4] for moment in (*SAVES, "start")),
    *(Case("run", engine, "random", "group") for engine in ENGINES),
    *(
        Case(name, engine, phase, how=how)
        for name, engine, phase, how in itertools.product(
            LEARNERS, ENGINES[:4], PHASES, (KILL, TERM)
        )
    ),
    *(Case("reevaluation", engine, "evaluation") for engine in ENGINES),
    *(Case("study", engine, "evaluation") for engine in ENGINES[1:]),
    *(Case("counted", engine, "evaluation", who) for engine in ENGINES[:3] for who in TYPED),
    *(
        Case("sweep", "serial", f"before {name}", "group and jobs")
        for name in ("confirm.json", "corrected.csv", "confirmed.csv", "report.html")
    ),
    *(Case("sweep", engine, "random", "group and jobs") for engine in ENGINES),
    *(
        Case(search, engine, "random", "group and jobs")
        for search, engine in itertools.product(SEARCHES, ENGINES)
    ),
]


def chosen() -> list[Any]:
    """The cases of this pytest command."""
    cases = dict.fromkeys([*SHORT, *MORE, *(ALL if LONG else ())])
    return [
        pytest.param(case, id=str(case), marks=() if case in SHORT else pytest.mark.rest)
        for case in cases
    ]


@pytest.mark.timeout(100_000 if LONG else 600)
@pytest.mark.parametrize("case", chosen())
def test_killed_it_ends_as_if_undisturbed(case, warm, undisturbed, scratch, tmp_path):
    if LEARNERS.get(case.work):
        pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    expected, needed = undisturbed(case.work)
    own = case.victim in ("warm process", "client")  # Snakemake's own warm process
    act = {"random": kill_at_random, "start": kill_in_the_start}.get(case.moment, kill)
    left = KILLS if case.moment == "random" else 1
    while left:
        work = WORKS[case.work](tmp_path / str(left), case.work, scratch, None if own else warm)
        kills, kept = act(case, work, left)
        left -= kills
        if case.how == CTRL_C:
            assert " stopped" in qdsweep("status", cwd=work.folder)
        work.finish(resumed_on(case))
        results = work.results()
        assert results.keys() == expected.keys()
        for name in expected:
            assert results[name] == expected[name], f"{name} in {work.folder}"
        for path, content in kept.items():
            assert path.read_bytes() == content, f"{path} was finished"
        assert needed <= evaluated(work.folder) <= needed + kills * work.lost
        gone(living(work.folder))
        assert not [*scratch.glob("qdsweep-*")]
        shutil.rmtree(work.folder)
