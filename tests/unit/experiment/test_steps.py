"""Environment steps are counted and written, and are a budget and an axis."""

from in_process import compute_run
from refusals import refused
from results import outcome, read_json, summary
from small_runs import experiment, fresh

from qdsweep.config.compose import compose
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
