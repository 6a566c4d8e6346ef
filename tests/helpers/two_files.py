"""A study whose domain and simulator are two files, and whose domain declares a file of data."""

from pathlib import Path

from support import write_yaml

TASK = """
import numpy as np
from qdsweep.domains.base import Evaluation
from simulator import height


class Hill:
    solution_dim = 3
    measures = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range = (-100.0, 0.0)
    fields = {}
    depends = ("data/terrain.txt",)

    def __init__(self):
        self.terrain = float(open("data/terrain.txt").read())

    def evaluate(self, solutions, seeds):
        return Evaluation(self.terrain * height(solutions), solutions[:, :2].copy())
"""
SIMULATOR = """
import numpy as np

POWER = 2


def height(solutions):
    return -np.sum(np.abs(solutions) ** POWER, axis=1)
"""
EXPERIMENT = {
    "domain": {"type": "hill:Hill", "name": "hill"},
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 10,
    "initial_solutions": 20,
    "iterations": 4,
}
SWEEP = "::: sigma 0.1 0.4 ::: seed 1 2 3 4 5"


def simulator(folder: Path, text: str = SIMULATOR) -> None:
    (folder / "config/plugins/simulator.py").write_text(text)


def other_simulator(folder: Path) -> None:
    simulator(folder, SIMULATOR.replace("POWER = 2", "POWER = 4"))


def study(folder: Path, sweep: str = SWEEP, **keys) -> Path:
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/hill.py").write_text(TASK)
    (folder / "data").mkdir()
    (folder / "data/terrain.txt").write_text("1.0")
    simulator(folder)
    data = {"name": "mine", "experiment": EXPERIMENT, "sweep": sweep, **keys}
    write_yaml(folder / "mine.yaml", data)
    return folder
