"""Environment steps are counted and written, and are a budget and an axis."""

from itertools import pairwise

from in_process import compute_run
from refusals import refused
from results import outcome, read_json, summary
from small_runs import experiment, fresh

from qdsweep.config.compose import compose
from qdsweep.errors import QdsweepError
from qdsweep.experiment.loop import IDLE, run_loop
from qdsweep.experiment.stop import Stop

CARTPOLE = {
    "domain": "cartpole",
    "algorithm": "cma_me",
    "num_emitters": 1,
    "batch_size": 5,
    "archive": {"dims": [8, 8]},
    "steps": 4000,
}


def cartpole(**changes):
    data = {**CARTPOLE, **changes}
    return compose({key: value for key, value in data.items() if value is not None})


def test_a_run_ends_with_the_first_iteration_that_reaches_its_steps(tmp_path):
    state, engine = fresh(cartpole(), tmp_path)
    seen = []
    run_loop(cartpole(), state, engine, Stop(), lambda state, _: seen.append(state.steps))
    assert seen == sorted(seen)
    assert seen[-1] >= 4000 > seen[-2]
    assert state.steps == seen[-1]


def test_who_counts_no_steps_has_no_such_budget(tmp_path):
    with refused("lp_sphere", "steps"):
        experiment(iterations=None, steps=100)
    exp = cartpole()
    state, engine = fresh(exp, tmp_path)
    state.steps = None  # as in a reload file of an earlier release
    with refused("steps", 4000, "evaluations", "iterations"):
        run_loop(exp, state, engine, Stop(), lambda *_: None)


def test_steps_of_an_earlier_release_stay_unknown(tmp_path):
    exp = cartpole(steps=None, evaluations=20)
    state, engine = fresh(exp, tmp_path)
    state.steps = None
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert state.steps is None


def test_only_one_budget():
    with refused("evaluations", "steps"):
        cartpole(evaluations=20)


def test_files_have_the_steps(tmp_path):
    out = compute_run({**CARTPOLE, "steps": 300}, tmp_path / "run")
    steps = [int(row["steps"]) for row in outcome(out)["rows"]]
    assert steps == sorted(steps)
    assert steps[-1] == summary(out)["steps"] >= 300
    assert read_json(out / "state/status.json")["budget"] == {"steps": 300}


FLAKY = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Flaky:
    solution_dim, fields, objective_range = 3, {}, (-100.0, 0.0)
    measures = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    def __init__(self, limit=0.0, counts=True):
        self.limit, self.counts = limit, counts
    def evaluate(self, solutions, seeds):
        if (solutions[:, 0] < self.limit).any():
            raise RuntimeError("the simulator exploded")
        steps = np.full(len(solutions), 10) if self.counts else None
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2], steps=steps)
"""
SMALL = {
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 2,
    "initial_solutions": 4,
    "seed": 1,
    "on_failure": {"objective": -100.0},
}


def flaky(**arguments):
    return {**SMALL, "domain": {"type": "flaky:Flaky", "arguments": arguments, "x0": 0.0}}


def test_a_batch_in_which_all_evaluations_fail_made_no_steps(plugins, tmp_path):
    plugins("flaky", FLAKY)
    out = compute_run({**flaky(), "steps": 2000}, tmp_path / "out")
    rows = outcome(out)["rows"]
    steps = [0, *(int(row["steps"]) for row in rows)]
    made = [later - before for before, later in pairwise(steps)]
    assert set(made[1:]) == {0, 10, 20}, "none, one or both of two solutions"
    assert steps[-1] == summary(out)["steps"] >= 2000
    assert summary(out)["failures"] == summary(out)["evaluations"] - steps[-1] / 10


def test_a_budget_that_no_evaluation_uses_ends(plugins, tmp_path):
    plugins("flaky", FLAKY)
    with refused("steps", 2000, "Flaky", "evaluations", "iterations", kind=QdsweepError):
        compute_run({**flaky(limit=1e9), "steps": 2000}, tmp_path / "out")
    rows = (tmp_path / "out/state/metrics.csv").read_text().splitlines()
    assert len(rows) == 1 + (IDLE - 4) / 2 + 1, "the first batch has four solutions"
    out = compute_run({**flaky(limit=1e9), "iterations": 9}, tmp_path / "other")
    assert summary(out)["steps"] == 0


def test_a_domain_that_counts_no_steps_counts_none_for_failures(plugins, tmp_path):
    plugins("flaky", FLAKY)
    out = compute_run({**flaky(counts=False), "iterations": 40}, tmp_path / "out")
    assert summary(out)["steps"] is None
