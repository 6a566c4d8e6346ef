"""Hours on a Slurm where something is killed each minute: equal results, and what it costs.

The goodput is the seconds of evaluations that are kept over those that workers were allocated:
imports, Snakemake's own start in each job, and what was computed since the last save are lost.
"""

import contextlib
import io
import itertools
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cluster
import psutil
import pytest
from in_process import compute_sweep
from patient import EXPERIMENT, add_plugin
from results import digests, read_json
from support import BIN, REPO, write_yaml
from test_slurm import SLURM, squeue
from waiting import wait_until

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
MINUTES = float(os.environ.get("QDSWEEP_MINUTES", 120 if LONG else 0.75))
EVERY = 60 if LONG else 15  # seconds between two kills
NODES = 5 if LONG else 2
SECONDS = 0.25  # of an evaluation, which sleeps
BATCH = EXPERIMENT["num_emitters"] * EXPERIMENT["batch_size"]
NEEDS = {"mem_mb_main": 600, "mem_mb_per_worker": 200, "runtime_min": 60}


class Sweep:
    """A sweep whose Snakemake is started again where it has ended before its runs have.

    Args:
        folder: Its folder, which is made.
        nodes: Of a run; 2 workers each.
        jobs: How many runs are computed at a time.
        minutes: How long a run evaluates.
        runs: How many there are.
    """

    def __init__(self, folder: Path, nodes: int, jobs: int, minutes: float, runs: int) -> None:
        self.folder, self.workers, self._jobs = folder, 2 * nodes, jobs
        iterations = round(60 * minutes * self.workers / (SECONDS * BATCH))
        self.experiment = {**EXPERIMENT, "iterations": iterations}
        self.sweep = f"::: seed {' '.join(map(str, range(1, runs + 1)))}"
        first = EXPERIMENT["num_emitters"] * EXPERIMENT["initial_solutions"]
        self.useful = runs * SECONDS * (first + (iterations - 1) * BATCH)
        add_plugin(folder)
        needs = {**NEEDS, "engine": "dask" if nodes > 1 else "processes"}
        write_yaml(folder / "cluster.yaml", {**needs, "nodes": nodes, "workers_per_node": 2})
        data = {"name": "s", "experiment": self.experiment, "sweep": self.sweep}
        write_yaml(folder / "sweep.yaml", {**data, "cluster": "cluster.yaml"})
        self.starts = 0
        self._start()

    def _start(self) -> None:
        self.starts += 1
        words = [
            "-s",
            REPO / "Snakefile",
            "--configfile",
            "sweep.yaml",
            "--until",
            "qd_run",
            *SLURM,
        ]
        with (self.folder / "printed.txt").open("ab") as printed:
            self.snakemake = subprocess.Popen(
                [BIN / "snakemake", *words, "--jobs", str(self._jobs), "--retries", "30"],
                cwd=self.folder,
                env={**os.environ, "PATIENT_SECONDS": str(SECONDS)},
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Whether all runs are finished; starts Snakemake again where it gave some up."""
        if self.snakemake.poll() is None:
            return False
        if self.snakemake.returncode == 0:
            return True
        assert self.starts < 20, (self.folder / "printed.txt").read_text()[-5000:]
        self._start()
        return False

    def processes(self) -> list[psutil.Process]:
        """The main processes of the runs that are computed now."""
        processes = []
        for lock in self.folder.glob("results/runs/*/state/lock"):
            try:
                process = psutil.Process(read_json(lock)["pid"])
                if process.cwd() == str(self.folder) and "qdsweep" in process.cmdline():
                    processes.append(process)
            except (ValueError, psutil.NoSuchProcess):  # nobody has it
                continue
        return processes

    def allocated(self) -> float:
        """The seconds that workers were allocated, those of jobs that were started again too.

        A job that has lost a node has a row of before, and one of after. Where slurmctld is killed
        just then, a row of a job that has ended may lack its end for ever: it is none.
        """
        words = ["sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1day"]
        words += ["-o", "ElapsedRaw,NNodes,End,State,WorkDir"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        seconds = 0.0
        for elapsed, nodes, end, state, place in (line.split("|") for line in printed.splitlines()):
            if place == str(self.folder) and (end != "Unknown" or state == "RUNNING"):
                seconds += 2 * int(nodes) * int(elapsed)
        return seconds


class Faults:
    """What happens to the sweeps: a run is killed, and by turns something else."""

    def __init__(self, sweeps: list[Sweep]) -> None:
        self.seen = Counter[str]()
        self._sweeps = sweeps
        self._chance = random.Random(20)
        self._turns = itertools.cycle((self._lose_node, self._preempt, self._restart_slurmctld))

    def kill(self) -> None:
        alive = [process for sweep in self._sweeps for process in sweep.processes()]
        if alive:
            self._chance.choice(alive).send_signal(signal.SIGKILL)
            self.seen["runs killed"] += 1

    def next(self) -> None:
        """By turns: a node that loses power, a job that needs a node of another one, slurmctld."""
        next(self._turns)()

    def _lose_node(self) -> None:
        self.seen["nodes lost"] += 1
        node = self._node()
        cluster.kill_node(node)
        wait_until(lambda: node in cluster.nodes_of("down"), 300, "Slurm gives the node up")
        cluster.start_node(node)

    def _preempt(self) -> None:
        self.seen["nodes preempted"] += 1
        words = ["sbatch", "-p", "short", "-w", self._node(), "--exclusive", "-D", "/tmp"]
        words += ["-o", "/dev/null", "--wrap", "sleep 5"]
        subprocess.run(words, check=True, capture_output=True)

    def _restart_slurmctld(self) -> None:
        self.seen["starts of slurmctld"] += 1
        cluster.kill_slurmctld()
        time.sleep(1)
        cluster.up(NODES)

    def _node(self) -> str:
        return f"n{self._chance.randint(1, NODES)}"


@pytest.fixture
def nodes(slurm) -> Iterator[None]:
    """As many nodes as are needed."""
    if NODES > 2:
        cluster.down()
        cluster.up(NODES)
    yield
    if NODES > 2:
        cluster.down()
        cluster.up()


@pytest.mark.timeout(60 * MINUTES + 3600)
def test_something_is_killed_all_the_time(nodes, tmp_path):
    if LONG:
        sweeps = [Sweep(tmp_path / "one", 1, 7, 20, round(MINUTES * 33 / 120))]
        sweeps += [Sweep(tmp_path / "two", 2, 3, 20, round(MINUTES * 14 / 120))]
    else:
        sweeps = [Sweep(tmp_path / "one", 1, 2, 0.5, 2), Sweep(tmp_path / "two", 2, 1, 0.5, 1)]
    faults = Faults(sweeps)
    wait_until(lambda: all(sweep.processes() for sweep in sweeps), 300, "runs are computed")
    begun = time.monotonic()
    for number in itertools.count(1):
        moment = begun + number * EVERY
        while time.monotonic() < moment and not have_ended(sweeps):
            time.sleep(0.5)
        if have_ended(sweeps):
            break
        if time.monotonic() - begun > 60 * MINUTES:
            continue  # they go on to their end
        faults.kill()
        if number % 3 == 0 or not LONG:
            faults.next()
        jobs = Counter(line.split()[4] for line in squeue().splitlines())
        at = f"{number * EVERY / 60:.2f} min"
        print(f"{at}: {dict(faults.seen)}; jobs: {dict(jobs)}", flush=True)
    minutes = (time.monotonic() - begun) / 60
    starts = [sweep.starts for sweep in sweeps]
    print(f"{minutes:.0f} minutes, {dict(faults.seen)}; {starts} starts of Snakemake")
    useful, allocated = 0.0, 0.0
    for sweep in sweeps:
        useful, allocated = useful + sweep.useful, allocated + (seconds := sweep.allocated())
        print(f"{sweep.workers} workers a run: goodput {sweep.useful / seconds:.3f}")
    goodput = useful / allocated
    print(f"goodput {goodput:.3f}: {useful:.0f} of {allocated:.0f} worker-seconds", flush=True)
    for sweep in sweeps:
        expected = undisturbed(sweep, tmp_path / "undisturbed" / sweep.folder.name)
        assert digests(sweep.folder) == expected
    assert goodput >= (0.9 if LONG else 0.2)


def have_ended(sweeps: list[Sweep]) -> bool:
    """Whether all have, each of which is asked."""
    return all({sweep.folder: sweep.has_ended() for sweep in sweeps}.values())


def undisturbed(sweep: Sweep, folder: Path) -> dict[str, str]:
    """The digests of the serial engine, in this process."""
    add_plugin(folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        compute_sweep(folder / "results", sweep.experiment, sweep.sweep)
    return digests(folder)
