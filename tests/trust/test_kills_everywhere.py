"""SIGKILL of Snakemake and its jobs at any moment: every engine, every stage, every search."""

import csv
import itertools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from killing import Start, living, warm_process
from results import digests, search_results, steps
from support import POLE, write_yaml
from test_searches import WAYS, write_config
from waiting import wait_until

from qdsweep.config.compose import compose

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
ENGINES = ("serial", "processes", "dask", "ray", "mpi")
SEARCHES = {"halving": {"samples": 9, "halving": {"first": "1/3"}}} | {
    way: WAYS[way] for way in ("hyperband", "random", "tpe", "pbt")
}
CELLS = (*ENGINES, *SEARCHES) if LONG else ("processes", "random")
KILLS = int(os.environ.get("QDSWEEP_KILLS", 1000 if LONG else 4))  # in all, of every cell alike

ALGORITHMS = ("map_elites", "map_elites_line", "openai_es")  # which numba has nothing to do with
EXPERIMENT = {
    "domain": {**POLE["domain"], "max_episode_steps": 30},
    "archive": {"dims": [6, 6]},
    "num_emitters": 1,
    "batch_size": 8,
    "iterations": 120,
    "reload": {"min_seconds": 0.02, "max_cost": 0.5},
}
SWEEP = {
    "name": "mine",
    "experiment": EXPERIMENT,
    "sweep": f"::: algorithm {' '.join(ALGORITHMS)} ::: seed 1",
    "confirm": {"top": 1, "seeds": [101, 101]},
    "reevaluate": {"times": 2},
    "rollouts": {"elites": ["best"]},
}
# All, or what costs the least: tables of every kind, and rendered episodes.
KINDS = ("tables/corrected.csv", "tables/confirmed.csv", "plots/rollouts")
TARGETS = [] if LONG else [f"results/sweeps/mine/{kind}" for kind in KINDS]
total = itertools.count(1)  # kills


class Work:
    """A sweep, or a search, in a folder of its own.

    Args:
        folder: The folder, which is made anew.
        cell: An engine's name, of a sweep; or a way to search.
        engine: What evaluates.
        warm: The socket of the warm process.
    """

    def __init__(self, folder: Path, cell: str, engine: str, warm: Path) -> None:
        self.folder, self.warm = folder, warm
        self.is_search = cell in SEARCHES
        folder.mkdir()
        if self.is_search:
            write_config(folder, SEARCHES[cell])
            self.targets = ["results/sweeps/mine/table.csv"]
        else:
            write_yaml(folder / "mine.yaml", SWEEP)
            self.targets = TARGETS
        workers = 1 if engine == "serial" else 2
        write_yaml(folder / "cluster.yaml", {"engine": engine, "workers_per_node": workers})

    def start(self) -> Start:
        words = [*self.targets, "--cores", "2", "--configfile", "mine.yaml"]
        words += ["--config", "cluster=cluster.yaml"]
        return Start(self.folder, words, {"QDSWEEP_WARM": str(self.warm)})

    def finish(self) -> dict:
        """Starts it and lets it end; returns what is never to depend on kills."""
        begun = self.start()
        wait_until(begun.has_ended, 3000, "its end")
        return self.found(begun)

    def found(self, ended: Start) -> dict:
        """What a start that has ended leaves, after which there is nothing to be done."""
        assert ended.code == 0, ended.printed.read_text()[-5000:]
        again = self.start()
        wait_until(again.has_ended, 300, "its end")
        assert again.says("Nothing to be done"), again.printed.read_text()[-5000:]
        if self.is_search:
            return {**search_results(self.folder), **tables(self.folder)}
        runs = self.folder.glob("results/runs/*")
        return {
            **digests(self.folder),
            **{f"{run.name}: steps": steps(run) for run in runs},
            **tables(self.folder),
            **corrected(self.folder),
            **pictures(self.folder),
        }


def tables(folder: Path) -> dict[str, list]:
    """Tables, and the data of figures, but for how long it took and on what."""
    found = {}
    for path in folder.glob("results/sweeps/mine/**/*.csv"):
        if ".kept" in path.parts or path.stem == "timing":
            continue
        with path.open(newline="") as file:
            head, *rows = csv.reader(file)
        kept = [
            place
            for place, name in enumerate(head)
            if "seconds" not in name and name not in ("engine", "workers")
        ]
        found[str(path.relative_to(folder))] = [[row[k] for k in kept] for row in (head, *rows)]
    assert found
    return found


def corrected(folder: Path) -> dict[str, object]:
    """The corrected values of each run."""
    paths = [*folder.glob("results/runs/*/reevaluated-*.json")]
    assert len(paths) == len(ALGORITHMS)
    return {path.parent.name + ": corrected": json.loads(path.read_text()) for path in paths}


def pictures(folder: Path) -> dict[str, bytes]:
    """Archives, animations and rendered episodes, as far as they were made, byte for byte."""
    plots = folder / "results/sweeps/mine/plots"
    paths = [*plots.glob("archives/*.png"), *plots.glob("*/*.gif")]
    assert len(paths) == (3 if LONG else 1) * len(ALGORITHMS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """A warm process for all starts, so that a kill costs less than a second of a core."""
    from qdsweep.warm import server

    made = [compose(EXPERIMENT, {"algorithm": name}, source="test") for name in ALGORITHMS]
    server.prepare(json.dumps([one.model_dump(mode="json") for one in made]).encode())
    folder = Path(tempfile.mkdtemp(prefix="qdsweep-kills-"))
    with warm_process(folder) as socket:
        yield socket
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def undisturbed(warm, tmp_path_factory):
    """What sweeps and searches leave that nobody disturbs, on the serial engine."""
    known: dict[str, dict] = {}

    def of(cell: str) -> dict:
        kind = cell if cell in SEARCHES else "sweep"
        if kind not in known:
            folder = tmp_path_factory.mktemp("undisturbed") / kind
            known[kind] = Work(folder, cell, "serial", warm).finish()
        return known[kind]

    return of


@pytest.mark.timeout(100_000 if LONG else 600)
@pytest.mark.parametrize("cell", CELLS)
def test_killed_at_any_moment_it_ends_as_if_undisturbed(cell, warm, undisturbed, tmp_path):
    chance = random.Random(f"{cell} {KILLS}")
    left = -(-KILLS // len(CELLS))
    expected = undisturbed(cell)
    for number in itertools.count():
        engine = cell
        if cell in SEARCHES:  # a search of an engine after the other
            engine = (
                ENGINES[(number + [*SEARCHES].index(cell)) % len(ENGINES)] if LONG else "serial"
            )
        work = Work(tmp_path / str(number), cell, engine, warm)
        killed, ended = kill(work, chance, left, f"{cell} on {engine}")
        left -= killed
        found = work.found(ended)
        assert found.keys() == expected.keys()
        for name in expected:
            assert found[name] == expected[name], f"{name} after {killed} kills in {work.folder}"
        assert not living(work.folder)
        shutil.rmtree(work.folder)
        if not left:
            return


def engine_of(way: str, number: int) -> str:
    """What evaluates for a search: in the long form another engine for the next one."""
    place = [*SEARCHES].index(way) + number
    return ENGINES[place % len(ENGINES)] if LONG else "serial"


def kill(work: Work, chance: random.Random, most: int, what: str) -> tuple[int, Start]:
    """Kills starts of it until one has ended, or there were enough kills.

    Returns:
        How many kills there were, and the start that ended by itself.
    """
    usual, alive = 1.0, list[psutil.Process]()  # how long a start takes; what a kill has left
    for done in range(most):
        start = work.start()
        if chance.random() < 0.1:  # before its first job
            where = usual * chance.random()
            lives = start.lives(where)
        else:
            usual = start.begins()
            # From short ones, so that many meet work, to those that let the longest job end.
            where = usual + usual * chance.uniform(0, chance.choice((0.5, 2, 16)))
            lives = start.lives(where - usual)
        if not lives:
            gone(alive)
            return done, start
        jobs = [line for line in start.printed.read_text().splitlines() if line.startswith("Job ")]
        with_jobs = chance.random() < 0.7
        gone(alive)
        alive = start.kill(with_jobs)
        if chance.random() < 0.7:  # else the next start meets what has not ended yet
            gone(alive)
        last = f"; last: {jobs[-1][:60]}" if jobs else ""
        times = f"{where / usual:.1f} x its start{', with its jobs' * with_jobs}"
        print(f"kill {next(total)} of {KILLS}: {what}, after {times}{last}", flush=True)
    start = work.start()
    wait_until(start.has_ended, 3000, "its end")
    gone(alive)
    return most, start


def gone(processes: list[psutil.Process]) -> None:
    """Fails where one lives that a kill of Snakemake should have ended."""
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert not alive, [(process.pid, process.cmdline()) for process in alive]
