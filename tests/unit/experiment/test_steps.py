"""Environment steps: counted, written, a budget, an axis."""

import csv
import json

import pytest
from small_runs import experiment, fresh
from support import command, write_yaml

from qdsweep.config.compose import compose
from qdsweep.errors import BadInput
from qdsweep.experiment.loop import run_loop
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


def test_steps_are_the_same_wherever_it_was_interrupted(tmp_path):
    exp = cartpole()
    straight, engine = fresh(exp, tmp_path)
    run_loop(exp, straight, engine, Stop(), lambda *_: None)
    parts, engine = fresh(cartpole(steps=1), tmp_path)
    for steps in (1, 100, 2000, 4000):  # lengthened
        run_loop(cartpole(steps=steps), parts, engine, Stop(), lambda *_: None)
    assert (parts.steps, parts.iterations) == (straight.steps, straight.iterations)


def test_who_counts_no_steps_has_no_such_budget(tmp_path):
    with pytest.raises(BadInput, match="counts no environment steps"):
        experiment(iterations=None, steps=100)
    exp = cartpole()
    state, engine = fresh(exp, tmp_path)
    state.steps = None  # as in a reload file of an earlier release
    with pytest.raises(BadInput, match="did not count them; give evaluations or iterations"):
        run_loop(exp, state, engine, Stop(), lambda *_: None)


def test_steps_of_an_earlier_release_stay_unknown(tmp_path):
    exp = cartpole(steps=None, evaluations=20)
    state, engine = fresh(exp, tmp_path)
    state.steps = None
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert state.steps is None


def test_only_one_budget():
    with pytest.raises(BadInput, match="give one of evaluations and steps"):
        cartpole(evaluations=20)


def test_files_have_the_steps(tmp_path):
    write_yaml(tmp_path / "run.yaml", {**CARTPOLE, "steps": 300})
    command("qdsweep", "run", "run.yaml", "--out", "run", cwd=tmp_path)
    run = tmp_path / "run"
    rows = list(csv.DictReader((run / "metrics.csv").read_text().splitlines()))
    summary = json.loads((run / "summary.json").read_text())
    assert int(rows[-1]["steps"]) == summary["steps"] >= 300
    assert [int(row["steps"]) for row in rows] == sorted(int(row["steps"]) for row in rows)
    assert json.loads((run / "state/status.json").read_text())["budget"] == {"steps": 300}
