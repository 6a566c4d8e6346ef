"""Searches beside those of Ray Tune and Optuna (`make bench-search`).

    python benchmarks/searches.py [--tasks 3] [--seeds 10] [--long 10] [--environment DIR]

Each tunes the same function (search_function.py) on two cores with the budget of about 15 whole
runs, once for each task and search seed. The winner's score is the mean of five runs with seeds
that no search has seen. On the first task each search is made twice (is it equal?), one is killed
half-way with SIGKILL and started again (how many evaluations were lost?), and one has so many times
the budget (--long; the wall time, where the start counts less). Ray and Optuna are installed into
DIR, or into a temporary folder.
"""

import argparse
import contextlib
import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import yaml  # noqa: E402
from figures import figure  # noqa: E402
from peers import BIN, install  # noqa: E402
from search_function import COUNTED, SPACES, experiment, held_out  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGES = ("ray[tune]==2.60.0", "optuna==5.0.0")
WHOLES = 2 * (9 / 9 + 3 * 2 / 9 + 2 / 3 + 5 / 3 + 2 / 3 + 3)
"""Whole runs that two rounds of Hyperband from 1/9 cost; halving of 60 settings costs 15.1."""
ONE_SEED = {"seeds": [1, 1, 1]}
OURS: dict[str, dict[str, Any]] = {
    "qdsweep: halving": {"samples": 60, "halving": {**ONE_SEED, "block": "all"}},
    "qdsweep: TPE + Hyperband": {
        "sampling": "tpe",
        "batches": 2,
        "halving": {**ONE_SEED, "brackets": "all"},
    },
}
PEERS = {
    "Ray Tune: ASHA": "asha",
    "Optuna: TPE, HyperbandPruner": "optuna",
    "random search, process pool": "random",
}
TARGET = "results/sweeps/search/search.csv"


class Job(NamedTuple):
    """A search to be made."""

    way: str
    task: str
    scale: int
    seed: int
    counted: bool = False

    @property
    def budget(self) -> int:
        """Evaluations of a whole run."""
        return int(experiment(self.task, self.scale, counted=self.counted)["evaluations"])

    def command(self, folder: Path, python: Path) -> list[str]:
        """The command, to be run in its folder."""
        if self.way in PEERS:
            numbers = (self.scale, self.seed, WHOLES, int(self.counted))
            words = [python, HERE / "search_peers.py", PEERS[self.way], self.task, *numbers]
        else:
            (folder / "sweep.yaml").write_text(yaml.safe_dump(self.sweep()))
            words = [BIN / "snakemake", "-s", HERE.parent / "Snakefile", "--cores", 2]
            words += [TARGET, "--configfile", "sweep.yaml"]
        return list(map(str, words))

    def sweep(self) -> dict[str, Any]:
        """The sweep file of a search of ours."""
        drawn = [
            f":::~ {name} {' '.join(map(str, kind))}" for name, kind in SPACES[self.task].items()
        ]
        return {
            "name": "search",
            "experiment": experiment(self.task, self.scale, counted=self.counted),
            "sweep": "\n".join([*drawn, f"::: seed {self.seed}"]),
            "search": {"seed": self.seed, **OURS[self.way]},
        }


class Made(NamedTuple):
    """A search that was made.

    Attributes:
        records: Setting, evaluations and score of each of its trials or places.
        seconds: Wall time.
        disk: Bytes that it left.
        evaluations: All that were computed, where they were counted.
    """

    records: list[dict[str, Any]]
    seconds: float
    disk: int
    evaluations: int

    def winner(self, budget: int) -> dict[str, Any]:
        """The setting with the best score at the whole budget."""
        whole = [record for record in self.records if record["evaluations"] >= budget]
        return dict(max(whole, key=lambda record: float(record["score"]))["setting"])

    @property
    def kept(self) -> int:
        """Evaluations that its records are about; a place goes on from the one before."""
        runs: dict[str, int] = {}
        for number, record in enumerate(self.records):
            run = str(record.get("run", number))
            runs[run] = max(runs.get(run, 0), int(record["evaluations"]))
        return sum(runs.values())


def make(job: Job, python: Path, *, kill: bool = False) -> Made:
    """Makes a search in a folder of its own; with `kill` in two starts."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        counter = folder / "evaluated"
        counter.touch()
        plugin = folder / "config/plugins/counted.py"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(COUNTED)
        words = job.command(folder, python)
        start = time.perf_counter()
        if kill:
            with started(words, folder) as process:
                while counter.stat().st_size < WHOLES * job.budget / 2:
                    assert process.poll() is None, "it ended before it was killed"
                    time.sleep(0.05)
        with started(words, folder) as process:
            code = process.wait()
        seconds = time.perf_counter() - start
        if code:
            sys.exit(f"{job}: exit code {code}\n{(folder / 'err').read_text()[-3000:]}")
        records = ours(folder) if job.way in OURS else last_json(folder / "out")
        passing = {folder / "session", counter}  # Ray's sockets and logs; it needs them no more
        files = [path for path in folder.rglob("*") if path.is_file()]
        files = [path for path in files if not passing & {path, *path.parents}]
        disk = sum(path.stat().st_size for path in files)
        return Made(records, seconds, disk, counter.stat().st_size)


@contextlib.contextmanager
def started(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own, all of which is killed in the end."""
    env = os.environ | {
        "EVALUATED": str(folder / "evaluated"),
        "PYTHONPATH": str(folder / "config/plugins"),
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "SLURM_CONF": os.devnull,  # without a Slurm that does not answer
    }
    with (folder / "out").open("wb") as out, (folder / "err").open("ab") as err:
        process = subprocess.Popen(
            words, cwd=folder, env=env, stdout=out, stderr=err, start_new_session=True
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ours(folder: Path) -> list[dict[str, Any]]:
    """The records of a search of ours."""
    rows = list(csv.DictReader((folder / TARGET).read_text().splitlines()))
    names = [name for name in rows[0] if any(name in space for space in SPACES.values())]
    return [
        {
            "setting": {name: yaml.safe_load(row[name]) for name in names},
            "evaluations": int(row["budget"]),
            "score": float(row["score"]),
            "run": row["runs"],
        }
        for row in rows
    ]


def last_json(file: Path) -> list[dict[str, Any]]:
    searched: list[dict[str, Any]] = json.loads(file.read_text().splitlines()[-1])
    return searched


def judge(job: tuple[str, int, dict[str, Any]]) -> float:
    return held_out(*job)


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float]:
    error = statistics.stdev(numbers) / len(numbers) ** 0.5 if len(numbers) > 1 else 0.0
    return statistics.fmean(numbers), error


def compare(task: str, seeds: Sequence[int], python: Path) -> dict[str, list[Made]]:
    """Scores of the winners, wall times and disk; returns the searches."""
    made = {
        way: [make(Job(way, task, 1, seed), python) for seed in seeds] for way in (*OURS, *PEERS)
    }
    whole = Job("", task, 1, 1).budget
    with ProcessPoolExecutor(2) as pool:
        scores = {
            way: list(pool.map(judge, [(task, 1, each.winner(whole)) for each in searched]))
            for way, searched in made.items()
        }
    print(f"\n**{task}**, {len(seeds)} search seeds\n")
    print("| search | winner on unseen seeds | seconds | MB | evaluations |")
    print("|---|---:|---:|---:|---:|")
    seconds = {way: statistics.median(each.seconds for each in made[way]) for way in made}
    for way, searched in made.items():
        mean, error = mean_and_error(scores[way])
        disk = statistics.median(each.disk for each in searched) / 1e6
        kept = statistics.fmean(each.kept for each in searched)
        cells = f"{mean:.2f} ± {error:.2f} | {seconds[way]:.1f} | {disk:.1f} | {kept:,.0f}"
        print(f"| {way} | {cells} |", flush=True)
    mean, error = mean_and_error(
        [statistics.median(of) for of in zip(*(scores[way] for way in PEERS), strict=True)]
    )
    for way in OURS:
        figure(
            f"{task}, {way}: score of the winner",
            "median of the peers - 1 standard error",
            statistics.fmean(scores[way]) / (mean - error),
            ">= 1",
            detail=f"{statistics.fmean(scores[way]):.2f} against {mean:.2f} - {error:.2f}",
        )
        wall(task, way, seconds)
    return made


def wall(task: str, way: str, seconds: dict[str, float]) -> None:
    quickest = min(PEERS, key=lambda peer: seconds[peer])
    figure(
        f"{task}, {way}: wall time",
        quickest,
        seconds[way] / seconds[quickest],
        "<= 1.1",
        detail=f"{seconds[way]:.1f} s against {seconds[quickest]:.1f} s",
    )


def check(task: str, made: dict[str, list[Made]], long: int, python: Path) -> None:
    """Whether a search made again is equal, what a kill costs, and a search that takes longer."""
    print(f"\n**{task}**\n\n| search | made again it is equal | evaluations lost by a kill |")
    print("|---|---:|---:|")
    for way, searches in made.items():
        equal = 0
        for seed, each in enumerate(searches, start=1):
            again = make(Job(way, task, 1, seed), python)
            equal += sorted(map(json.dumps, each.records)) == sorted(map(json.dumps, again.records))
        killed = make(Job(way, task, 1, 1, counted=True), python, kill=True)
        lost = killed.evaluations - killed.kept
        share = lost / killed.kept
        print(f"| {way} | {equal} of {len(searches)} | {lost:,} ({share:.1%}) |", flush=True)
    if long:
        jobs = {way: Job(way, task, long, 1) for way in (*OURS, *PEERS)}
        seconds = {way: make(job, python).seconds for way, job in jobs.items()}
        for way in OURS:
            wall(f"{task}, {long} times the budget", way, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--long", type=int, default=10, help="times the budget; 0: not at all")
    parser.add_argument("--environment", type=Path, help="kept for the next time")
    arguments = parser.parse_args()
    tasks, seeds = list(SPACES)[: arguments.tasks], range(1, arguments.seeds + 1)
    with tempfile.TemporaryDirectory() as folder:
        python = install((arguments.environment or Path(folder)).absolute(), PACKAGES)
        made = {task: compare(task, seeds, python) for task in tasks}
        check(tasks[0], made[tasks[0]], arguments.long, python)


if __name__ == "__main__":
    main()
