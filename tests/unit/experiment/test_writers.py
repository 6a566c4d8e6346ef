"""A user's code may write into all that it gets and has returned: results are the same."""

from functools import partial

import pytest
from composing import LEARNER
from in_process import compute_run
from results import outcome
from writers import WRITERS

from qdsweep.config.compose import compose
from qdsweep.config.files import read_yaml

SMALL = {
    "archive": {"dims": [9, 9]},
    "num_emitters": 2,
    "batch_size": 12,
    "iterations": 4,
    "seed": 3,
}
MEASURES = [
    {"measure": "mean_action", "component": 0, "range": [-1, 1]},
    {"measure": "final_observation", "component": 0, "range": [-3, 3]},
]


@pytest.fixture(autouse=True)
def writers(plugins):
    plugins("hands", WRITERS)


def task(writes: bool, *, own: bool = False, wrapped: bool = False, **kwargs: object) -> dict:
    """An experiment's domain: a task of gymnasium."""
    measures: list[dict] = [*MEASURES]
    if own:  # the second function gets what the first one got
        measures[0] = {"measure": f"hands:{'seen_and_spoiled' * writes or 'seen'}"}
        measures[0] |= {"range": [-3, 3], "name": "seen"}
        measures[1] = measures[0] | {"name": "again"}
    made = {
        "type": "gymnasium",
        "env": "hands:Point-v0",
        "env_kwargs": {"writes": writes, "limits": {"x": [1.5]}, **kwargs},
        "max_episode_steps": 20,
        "clip_actions": kwargs.get("action") == "half",
        "objective_range": [-100, 100],
        "evaluation_seed": "solution",
        "measures": measures,
    }
    arguments = {"writes": writes, "scale": [1.0, 0.5]}
    return made | {"wrappers": [{"type": "hands:Wrapped", "arguments": arguments}] * wrapped}


def plugin(writes: bool, name: str = "Task") -> dict:
    """An experiment's domain: the user's own class."""
    arguments = {"writes": writes, "centre": {"at": [0.5, -0.5]}}
    return {"type": f"hands:{name}", "arguments": arguments, "evaluation_seed": "solution"}


def with_domain(domain, algorithm: object, **more: object):
    def make(writes: bool) -> dict:
        return {**SMALL, "domain": domain(writes), "algorithm": algorithm, **more}

    return make


def with_part(algorithm, **more: object):
    def make(writes: bool) -> dict:
        domain = {"preset": "lp_sphere", "solution_dim": 6}
        return {**SMALL, "domain": domain, "algorithm": algorithm(writes), **more}

    return make


def parts(writes: bool, archive: bool = False, emitter: bool = False) -> dict:
    """A composition with the user's archive or emitters, and a result archive."""
    own = {"type": "hands:Archive", "writes": writes, "dims": [9, 9]}
    emitters = {"type": "hands:Emitter", "writes": writes, "sigma": [0.5]}
    return {
        "archive": own if archive else {"type": "grid"},
        "emitters": [emitters if emitter else {"type": "gaussian"}],
        **({"result_archive": True} if emitter else {}),
    }


def measured(writes: bool) -> dict:
    """An experiment with a metric."""
    function = f"hands:{'spoiled_metric' if writes else 'metric'}"
    own = parts(writes=True, archive=True)  # its `data` returns its own arrays
    return with_part(lambda _: own, metrics=[{"function": function, "name": "own"}])(writes)


TD3 = {
    "algorithm": {"preset": "td3", "training_ratio": 0.05, "learner": LEARNER},
    "num_emitters": 1,
}
PGA_ME = {
    "algorithm": {"preset": "pga_me", "training_steps": 4, "learner": LEARNER},
    "num_emitters": 1,
}
CASES = {
    "actions of a box": with_domain(task, "map_elites", initial_solutions=24),
    "of a half-open box": with_domain(
        partial(task, action="half"), "map_elites", initial_solutions=24
    ),
    "multi-discrete actions": with_domain(
        partial(task, action="choices"), "map_elites", initial_solutions=24
    ),
    "bits": with_domain(partial(task, action="bits"), "map_elites", initial_solutions=24),
    "infos": with_domain(partial(task, own=True), "map_elites", initial_solutions=24),
    "wrappers": with_domain(partial(task, wrapped=True), "map_elites", initial_solutions=24),
    "td3": with_domain(task, **TD3),
    "pga_me": with_domain(task, **PGA_ME),
    "own domain": with_domain(plugin, "map_elites", initial_solutions=24),
    "gradients": with_domain(plugin, "cma_mega"),
    "a context": with_domain(partial(plugin, name="Learned"), "map_elites", initial_solutions=24),
    "records": with_domain(plugin, **TD3),
    "emitters": with_part(partial(parts, emitter=True)),
    "an archive": with_part(partial(parts, archive=True)),
    "an algorithm": with_part(lambda writes: {"type": "hands:Own", "writes": writes}),
    "metrics": measured,
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_code_that_writes_nowhere(case, tmp_path):
    outcomes = []
    for writes in (False, True):
        experiment = CASES[case](writes)
        expected = compose(experiment).model_dump(mode="json")
        run = compute_run(experiment, tmp_path / str(writes))
        assert read_yaml(run / "state/config.yaml") == expected
        outcomes.append(outcome(run))
    assert outcomes[0] == outcomes[1]
