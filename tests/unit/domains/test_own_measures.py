"""A measure of a task may be a function of the user's, `measure: module:function`."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from domain_makers import LENGTH, make, task
from in_process import qdsweep
from refusals import names_all, refused
from support import write_yaml

from qdsweep.cli import main
from qdsweep.config.compose import compose
from qdsweep.domains.plugin import check_rows
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import EvaluationFailed, evaluate_safely
from qdsweep.planning.checks import require_own_code
from qdsweep.runs.load import load
from qdsweep.sweep.ids import run_id

GAITS = """
import numpy as np


def turns(episode):
    return np.count_nonzero(np.diff(np.sign(episode.observations[1:, 1])))


def right(episode):
    return episode.actions[:, 1].mean()


def first_position(episode):
    return episode.observations[0, 0]


def has_all_steps(episode):
    steps = len(episode.rewards)
    lengths = {len(episode.observations) - 1, len(episode.actions), len(episode.infos)}
    return lengths == {steps} and episode.rewards.sum() == steps


def reached(episode):
    return max(info["reached"] for info in episode.infos)


def changes(episode):
    episode.observations[:] = 0
    return 0.0


def drawn(episode):
    return np.random.rand()


def nothing(episode):
    pass


def several(episode):
    return episode.observations.mean(axis=0)


def missing(episode):
    return np.nan


def late(episode):
    return episode.observations[9999, 0]
"""


def own(name):
    return {"measure": f"gaits:{name}", "range": [-100, 100]}


@pytest.fixture(autouse=True)
def gaits(plugins):
    plugins("gaits", GAITS)
    return plugins


def test_a_function_gets_the_whole_episode():
    right = {"measure": "mean_action", "component": 1, "range": [0, 1]}
    names = ("turns", "right", "first_position", "has_all_steps")
    domain = make(**task("CartPole-v1", *map(own, names), right, max_episode_steps=60))
    assert list(domain.measures)[:4] == ["turns", "right", "first position", "has all steps"]
    assert domain.measures["turns"] == (-100, 100)
    solutions = np.random.default_rng(0).normal(size=(4, domain.solution_dim))
    seeds = np.arange(4, dtype=np.uint32)
    result = domain.evaluate(solutions, seeds)
    env = gym.make("CartPole-v1", max_episode_steps=60)
    for row, seed in enumerate(seeds):
        weights = solutions[row].reshape(2, 4)
        episode = play(env, lambda x, weights=weights: int(np.argmax(weights @ x)), int(seed))
        turns = np.count_nonzero(np.diff(np.sign(episode.observations[1:, 1])))
        share = (episode.actions == 1).mean()
        assert result.measures[row].tolist() == [turns, share, episode.observations[0, 0], 1, share]
    assert len(set(result.measures[:, 0])) > 1
    assert check_rows(domain).measures[:, 3].min() == 1


class Informed(gym.Env):
    """A task that reuses the `info` of its steps."""

    observation_space, action_space = gym.spaces.Box(-9, 9, (1,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.info = {"reached": 0}
        return np.zeros(1), {}

    def step(self, action):
        self.info["reached"] = 7 if self.info["reached"] == 0 else 1
        return np.zeros(1), 1.0, False, False, self.info


def test_a_function_gets_the_info_of_each_step():
    gym.register("Informed-v0", entry_point=Informed, max_episode_steps=3)
    try:
        domain = make(**task("Informed-v0", {**own("reached"), "name": "goals [1]"}))
        result = domain.evaluate(np.zeros((1, 2)), np.zeros(1, np.uint32))
    finally:
        del gym.registry["Informed-v0"]
    assert list(domain.measures) == ["goals [1]"] and result.measures == [[7]]


FAULTS = [
    ("nothing", ("gaits:nothing", "None")),
    ("several", ("gaits:several", "array")),
    ("missing", ("gaits:missing", "nan")),
    ("late", ("IndexError", "gaits.py", "9999")),
    ("changes", ("read-only", "gaits.py")),
]


@pytest.mark.parametrize(("name", "names"), [*FAULTS, ("drawn", ("`seeds`",))])
def test_check_names_what_is_wrong_with_a_function(name, names, capsys):
    file = write_yaml(Path("swing.yaml"), task("CartPole-v1", LENGTH, own(name)))
    assert main(["check", str(file)]) == 2
    names_all(capsys.readouterr().err, *names)


@pytest.mark.parametrize(("name", "names"), FAULTS)
def test_a_run_names_it_too(name, names):
    domain = make(**task("CartPole-v1", LENGTH, own(name)))
    batch = Batch(np.zeros((2, domain.solution_dim)), np.arange(2, dtype=np.uint32))
    with refused(*(each for each in names if each != "gaits.py"), kind=EvaluationFailed):
        evaluate_safely(domain, batch, 0, None)


def swinging(name="turns", **keys):
    return {
        "domain": task("CartPole-v1", own(name), LENGTH, max_episode_steps=40, **keys),
        "algorithm": "map_elites",
        "archive": {"dims": [10, 10]},
        "batch_size": 12,
        "iterations": 3,
    }


def test_a_function_that_is_not_there_is_refused_at_the_start():
    for name, near in (("turn", "turns"), ("nowhere", "turns")):
        with refused("domain.measures.0", f"gaits:{name}", near):
            require_own_code(compose(swinging(name)))
    with refused("domain.measures.0", "gaits:turn", "'turns'"):
        make(**task("CartPole-v1", own("turn")))


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({"measure": "mean_observatio"}, ("'mean_observation'", "module:name")),
        ({"component": 1}, ("gaits:turns", "component")),
        ({"arguments": {"of": 1}}, ("arguments",)),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys, names):
    experiment = swinging()
    experiment["domain"]["measures"][0] |= keys
    with refused("domain.measures.0", *names):
        compose(experiment)


def test_the_code_of_a_function_is_part_of_the_id(gaits):
    changed = GAITS.replace("np.sign(", "np.sign(0.5 + ")
    ids = []
    for code in (GAITS, f"# a comment\n{GAITS}", changed):
        gaits("gaits", code)
        ids.append(run_id(compose(swinging())))
    assert ids[0] == ids[1] != ids[2]
    assert compose(swinging()).own_code == ["gaits:turns"]


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_every_engine_has_the_same_archive(engine, tmp_path):
    file = write_yaml(Path("swing.yaml"), swinging(episodes=2))
    cluster = write_yaml(Path("cluster.yaml"), {"engine": engine, "workers_per_node": 2})
    qdsweep("run", file, "--out", "serial", cwd=tmp_path)
    qdsweep("run", file, "--out", engine, "--cluster", cluster, cwd=tmp_path)
    serial, spread = (load(name).summary for name in ("serial", engine))
    assert (spread["engine"], spread["workers"]) == (engine, 2)
    assert serial["archive_digest"] == spread["archive_digest"]
