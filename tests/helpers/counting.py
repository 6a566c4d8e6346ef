"""A domain that counts its evaluations, and an experiment of it.

Its plug-in is called `tally`, because `counting` is this module in forks of the tests.
"""

from pathlib import Path

# It counts its evaluations, sleeps for COUNTING_SECONDS, waits while there is a file
# `hold`, stops at the evaluation in the file `stop` (killing.py), and fails for one slope.
COUNTING = """
import os, time
import numpy as np
from qdsweep.domains.base import Evaluation

FOLDER = os.path.abspath(__file__).rsplit("/config/", 1)[0]  # also on workers elsewhere


def path(name):
    return os.path.join(FOLDER, name)


def stop_here(evaluated):
    with open(path("stop")) as file:
        number, moment = file.read().split(" ", 1)
    if moment == "evaluation" and evaluated >= int(number):
        os.rename(path("stop"), path("claimed"))  # only one process can
        with open(path("waits"), "w") as file:  # another one may still read the first file
            file.write(str(os.getpid()))
        os.rename(path("waits"), path("stopped"))
        while os.path.exists(path("stopped")):
            time.sleep(0.01)


class Counting:
    solution_dim = 4
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def __init__(self, slope=1.0, noise=0.0):
        self.slope, self.noise = slope, noise
        self.is_deterministic = noise == 0  # else each run evaluates 32 elites again

    def evaluate(self, solutions, seeds):
        if self.slope == 13:
            raise FloatingPointError("it diverged")
        time.sleep(float(os.environ.get("COUNTING_SECONDS", "0")))
        while os.path.exists(path("hold")):
            time.sleep(0.05)
        file = os.open(path("evaluated.txt"), os.O_RDWR | os.O_APPEND | os.O_CREAT)
        os.write(file, b"%d\\n" % len(solutions))
        if os.path.exists(path("stop")):
            os.lseek(file, 0, os.SEEK_SET)
            try:
                stop_here(sum(map(int, os.read(file, 10**6).split())))
            except FileNotFoundError:  # another process has come before
                pass
        os.close(file)
        noise = [self.noise * np.random.default_rng(seed).normal() for seed in seeds]
        objective = noise - self.slope * np.sum(solutions**2, axis=1)
        return Evaluation(objective, solutions[:, :2].copy())
"""
EXPERIMENT = {
    "domain": {"type": "tally:Counting", "name": "counting", "arguments": {"slope": 1.0}},
    "algorithm": "map_elites_line",
    "initial_solutions": 10,
    "archive": {"dims": [10, 10]},
    "num_emitters": 1,
    "batch_size": 10,
    "evaluations": 270,
    "reload": {"min_seconds": 0.0, "max_cost": 1.0},
}


def add_plugin(folder: Path) -> None:
    """Makes the domain known to processes that start in a folder."""
    (folder / "config/plugins").mkdir(parents=True, exist_ok=True)
    (folder / "config/plugins/tally.py").write_text(COUNTING)


def evaluated(folder: Path) -> int:
    """Returns the number of evaluations in a folder, including those that a kill has lost."""
    file = folder / "evaluated.txt"
    return sum(map(int, file.read_text().split())) if file.exists() else 0
