"""The function that benchmarks/searches.py tunes: a small QD run that can be continued."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from search_table import BASE, TASKS

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop

# Kind and arguments as in a sweep's `:::~` sources.
SPACES: dict[str, dict[str, list[Any]]] = {
    "CMA-ME on Rastrigin": {
        "sigma0": ["log", 0.05, 5.0],
        "batch_size": ["choice", 12, 36, 108],
        "ranker": ["choice", "imp", "2imp", "2rd"],
    },
    "CMA-MAE on the arm": {
        "sigma0": ["log", 0.02, 0.5],
        "batch_size": ["choice", 12, 36, 108],
        "learning_rate": ["log", 0.001, 0.1],
    },
    "MAP-Elites on a plateau": {
        "iso_sigma": ["log", 0.02, 0.5],
        "line_sigma": ["log", 0.05, 0.8],
        "batch_size": ["choice", 60, 180, 540],
    },
}
COUNTED = """
import os

from qdsweep.domains.linear_projection import LinearProjection


class Counted(LinearProjection):
    def evaluate(self, solutions, seeds):
        with open(os.environ["EVALUATED"], "ab") as file:
            file.write(b"." * len(solutions))
        return super().evaluate(solutions, seeds)
"""
"""A domain that leaves a mark for each evaluation, so that what a kill loses can be counted."""


def experiment(task: str, scale: int, *, counted: bool) -> dict[str, Any]:
    """The experiment of a task, with a multiple of the table's budget."""
    whole = BASE | TASKS[task][0]
    if counted:
        arguments = {"function": "rastrigin", "solution_dim": 20}
        whole["domain"] = {"type": "counted:Counted", "name": "counted", "arguments": arguments}
    return whole | {"evaluations": scale * int(whole["evaluations"])}


class Run:
    """A run that can be extended, and pickled in between."""

    def __init__(self, whole: Mapping[str, Any], setting: Mapping[str, Any], seed: int) -> None:
        self.experiment = compose(whole, {**setting, "seed": seed})
        algorithm = make_algorithm(self.experiment, make_domain(self.experiment.domain), None)
        self.state = State(algorithm)

    @property
    def evaluations(self) -> int:
        """Those of the finished iterations."""
        return self.state.evaluations

    def extend(self, evaluations: int) -> float:
        """The normalised QD score after a number of evaluations in total."""
        budget = self.experiment.model_copy(update={"evaluations": evaluations})
        engine = Serial(make_domain(self.experiment.domain))
        run_loop(budget, self.state, engine, Stop(), lambda state, seconds: None)
        return float(self.state.algorithm.metrics()["norm_qd_score"])


def held_out(task: str, scale: int, setting: Mapping[str, Any]) -> float:
    """The mean score of a setting on five seeds that no search has seen."""
    whole = experiment(task, scale, counted=False)
    budget = int(whole["evaluations"])
    return float(np.mean([Run(whole, setting, seed).extend(budget) for seed in range(101, 106)]))
