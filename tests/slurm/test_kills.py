"""SIGKILL of the main Snakemake while its Slurm jobs run: the same command waits for them."""

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest
from counting import EXPERIMENT, add_plugin, evaluated
from in_process import compute_sweep
from killing import Start
from results import digests, steps, summary
from support import write_yaml
from test_slurm import SLURM, squeue
from waiting import evaluates, wait_until

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KILLS = int(os.environ.get("QDSWEEP_KILLS", 200 if LONG else 2))
EACH = 8 if LONG else KILLS  # kills per sweep, while its runs are computed
SWEEP = "::: seed 1 2"
EVALUATIONS = 2 * EXPERIMENT["evaluations"]
TABLE = "results/sweeps/mine/table.csv"


def start(folder: Path, seconds: float) -> Start:
    """Starts the sweep. Each evaluation sleeps for some seconds."""
    words = [TABLE, "--configfile", "mine.yaml", *SLURM, "--config", "cluster=cluster.yaml"]
    return Start(folder, words, {"COUNTING_SECONDS": str(seconds)})


def write_sweep(folder: Path) -> Path:
    add_plugin(folder)
    needs = {"engine": "serial", "workers_per_node": 1, "mem_mb_main": 500, "runtime_min": 10}
    write_yaml(folder / "cluster.yaml", {**needs, "mem_mb_per_worker": 200})
    data = {"name": "mine", "experiment": EXPERIMENT, "sweep": SWEEP}
    write_yaml(folder / "mine.yaml", data)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    folder = write_sweep(tmp_path_factory.mktemp("undisturbed"))
    before = Path.cwd()
    os.chdir(folder)
    compute_sweep(folder / "results", EXPERIMENT, SWEEP)
    os.chdir(before)
    assert evaluated(folder) == EVALUATIONS
    return folder


@pytest.mark.timeout(100_000 if LONG else 1000)
def test_nothing_is_computed_twice_after_kills_of_the_main_snakemake(undisturbed, tmp_path):
    chance = random.Random(KILLS)
    done = 0
    for number in itertools.count():
        folder = write_sweep(tmp_path / str(number))
        most = min(EACH, KILLS - done)
        killed = kill(folder, chance, most, done)
        done += killed
        check(folder, undisturbed)
        shutil.rmtree(folder)
        if done == KILLS:
            return


def kill(folder: Path, chance: random.Random, most: int, before: int) -> int:
    """Kills the main Snakemake several times before it may end; returns the number of kills."""
    # A run sleeps, one solution after the other, through all starts of Snakemake.
    seconds = (15 + 10 * most) / EXPERIMENT["evaluations"]
    for done in range(most):
        main = start(folder, seconds)
        waited = main.begins() if done else main.begins("submitted")
        moment = chance.uniform(0, 10)
        if not main.lives(moment):
            assert main.code == 0, main.printed.read_text()[-5000:]
            return done
        if done == most - 1:
            (folder / "hold").touch()  # the remaining evaluations wait for the last start
        main.kill(with_jobs=False)
        states = [line.split()[4] for line in squeue().splitlines()]
        where = f"{moment:.1f} s after its start of {waited:.1f} s"
        print(f"kill {before + done + 1} of {KILLS}: {where}; jobs: {states}", flush=True)
        assert states.count("R") <= 2, "one per run: the others wait in the queue"
    main = start(folder, seconds)
    main.begins("submitted")
    (folder / "hold").unlink()
    wait_until(main.has_ended, 1500, "its end")
    assert main.code == 0, main.printed.read_text()[-5000:]
    return most


def check(folder: Path, undisturbed: Path) -> None:
    """Checks that each iteration was computed once, and the results of an undisturbed sweep."""
    wait_until(lambda: not squeue(), 300, "jobs that waited have ended")
    runs = sorted(path.name for path in (folder / "results/runs").iterdir())
    assert digests(folder) == digests(undisturbed)
    for run in (folder / "results/runs" / name for name in runs):
        assert [attempt["how"] for attempt in summary(run)["attempts"]] == ["finished"]
        assert evaluates(run / "run.log") and not evaluates(run / "run.log", 2)
        assert steps(run) == steps(undisturbed / "results/runs" / run.name)
        for name in ("archive.npz", "summary.json", "metrics.csv", "config.yaml"):
            assert (run / name).read_bytes() == (run / "state" / name).read_bytes(), name
    assert evaluated(folder) == EVALUATIONS, "nothing was evaluated twice"
    again = start(folder, 0)
    wait_until(again.has_ended, 300, "its end")
    if again.says("aggregate "):
        # A job of a killed start was publishing a finished run's files again at the moment when
        # Snakemake recorded the inputs of the tables. The tables are rebuilt once.
        assert not again.says("qd_run "), again.printed.read_text()[-5000:]
        again = start(folder, 0)
        wait_until(again.has_ended, 300, "its end")
    assert again.says("Nothing to be done"), again.printed.read_text()[-5000:]
