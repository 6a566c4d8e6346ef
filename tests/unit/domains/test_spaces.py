"""All spaces of gymnasium: observations like FlattenObservation's, actions in parts."""

from itertools import product
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from domain_makers import LENGTH, make, task
from gymnasium import spaces
from in_process import compute_run
from refusals import refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.domains import gymnasium_task
from qdsweep.domains.gymnasium_task import make_vector
from qdsweep.domains.policies import make_actions
from qdsweep.runs.load import Run
from qdsweep.sweep.ids import run_id

OBSERVATIONS = (
    spaces.Box(-1, 1, ()),
    spaces.Box(0, 255, (2, 3, 3), np.uint8),
    spaces.Box(-np.inf, np.inf, (4,), np.float64),
    spaces.Discrete(5, start=2),
    spaces.MultiBinary([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2, 2)), spaces.MultiBinary(2))),
    spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Dict({"c": spaces.Box(0, 1, (3,))})}),
)


class Lights(gym.Env):
    """Switches that an agent sees as a dictionary. The state has the past actions."""

    observation_space = spaces.Dict({"on": spaces.MultiBinary(3), "at": spaces.Discrete(4)})

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.on = self.np_random.integers(2, size=3).astype(np.int8)
        return {"on": self.on, "at": 0}, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.on[:] = self.np_random.integers(2, size=3)  # the buffer is reused
        total = float(np.sum(action))
        return {"on": self.on, "at": int(total) % 4}, total, False, False, {}


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_observations_are_those_of_the_wrapper(space):
    env = Lights(spaces.Discrete(2))
    env.observation_space = space
    wrapper = gym.wrappers.FlattenObservation(env)
    size, vector = make_vector(space, "Any-v0")
    space.seed(1)
    for _ in range(20):
        raw = space.sample()
        seen = vector(raw)
        assert seen.shape == (size,) and seen.dtype == np.float64
        assert np.array_equal(seen, wrapper.observation(raw))
        assert not np.shares_memory(seen, raw) if isinstance(raw, np.ndarray) else True


@pytest.mark.parametrize(
    "space",
    [spaces.Sequence(spaces.Discrete(2)), spaces.Graph(spaces.Box(0, 1, (2,)), None)],
    ids=str,
)
def test_observations_that_differ_in_size_are_refused(space):
    with refused("domain.env", "Any-v0", type(space).__name__, "module:Class"):
        make_vector(space, "Any-v0")


@pytest.mark.parametrize(
    ("space", "output", "action", "vector"),
    [
        (spaces.MultiDiscrete([2, 3]), [0, 1, 5, 2, 4], [1, 0], [0, 1, 1, 0, 0]),
        (spaces.MultiDiscrete([2, 3], start=[4, -1]), [1, 0, 0, 0, 1], [4, 1], [1, 0, 0, 0, 1]),
        (spaces.MultiDiscrete([[2], [2]]), [0, 1, 1, 0], [[1], [0]], [0, 1, 1, 0]),
        (spaces.MultiBinary(3), [-1, 0.5, 0], [0, 1, 0], [0, 1, 0]),
        (spaces.MultiBinary([2, 2]), [1, -1, 0, 2], [[1, 0], [0, 1]], [1, 0, 0, 1]),
    ],
    ids=str,
)
def test_actions_of_several_parts(space, output, action, vector):
    actions = make_actions(space, "Any-v0")
    chosen = actions.choose(np.array(output, dtype=float))
    assert space.contains(chosen)
    assert chosen.tolist() == action
    assert actions.size == len(output)
    assert actions.vectors([chosen, chosen]).tolist() == [vector, vector]


@pytest.mark.parametrize(
    "space", [spaces.Box(0, 9, (2,), np.int64), spaces.Box(0, 1, (2, 2))], ids=str
)
def test_other_actions_are_refused(space):
    with refused("domain.env", "Any-v0", "MultiDiscrete", "module:Class"):
        make_actions(space, "Any-v0")


def boxes():
    """Yields boxes of all combinations of bounds of three components."""
    lows, highs = (-np.inf, -3.0, 0.1), (np.inf, 0.7, 100.0)
    for low in product(lows, repeat=3):
        for high in (highs, highs[1:] + highs[:1], (np.inf, np.inf, 1.0)):
            yield spaces.Box(np.float32(low), np.float32(high))


def test_actions_are_in_every_box():
    for box in boxes():
        clipped, actions = (make_actions(box, "Any-v0", clip=clip) for clip in (True, False))
        one = np.isfinite(box.low) != np.isfinite(box.high)
        assert actions.one_sided == tuple(np.flatnonzero(one))
        for scale in (0.0, 0.3, 5.0, 1e9):
            for signs in product((-1.0, 1.0), repeat=3):
                output = scale * np.array(signs)
                chosen = clipped.choose(output.copy())
                assert box.contains(chosen), (box, output, chosen)
                before = actions.choose(output.copy())  # as runs of earlier releases
                assert np.array_equal(chosen[~one], before[~one])
                assert chosen[one].tolist() == np.clip(before, box.low, box.high)[one].tolist()


ONE_SIDED = """
import gymnasium as gym
import numpy as np
from gymnasium import spaces
class Half(gym.Env):
    observation_space = spaces.Box(-1, 1, (3,))
    def __init__(self, high=np.inf):
        low = np.float32([0, -1])
        self.action_space = spaces.Box(low, np.float32([high, 1]))
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}
    def step(self, action):
        seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return seen, float(np.sum(action)), False, False, {}
gym.register("Half-v0", Half, max_episode_steps=5)
"""


def half(**values):
    domain = task("half:Half-v0", {"measure": "mean_action", "component": 0, "range": [-5, 5]})
    keys = {"algorithm": "map_elites", "archive": {"dims": [9]}, "domain": {**domain, **values}}
    return compose({**TINY, **keys})


def test_a_new_run_clips_actions_with_one_bound_and_an_earlier_one_does_not(plugins, tmp_path):
    """An id never has two results: only `clip_actions` changes the actions, and it is in the id."""
    plugins("half", ONE_SIDED)
    plain, clips = half(), half(clip_actions=True)
    assert run_id(plain) != run_id(clips)
    with refused("domain.env", "half:Half-v0", "component 0", "domain.clip_actions: true"):
        compute_run(plain.model_dump(mode="json"), tmp_path / "new")
    run = Run(compute_run(clips.model_dump(mode="json"), tmp_path / "clips"))
    assert run.arrays["measures"].min() >= 0
    with mock.patch.object(gymnasium_task, "_why_not_new", return_value=""):  # an earlier release
        compute_run(plain.model_dump(mode="json"), tmp_path / "old")
    old = Run(tmp_path / "old")
    assert old.arrays["measures"].min() < 0
    longer = {**plain.model_dump(mode="json"), "iterations": 15}
    longer = Run(compute_run(longer, tmp_path / "old"))
    assert longer.summary["iterations"] == 15 and longer.summary["id"] == run_id(plain)
    elite = longer.elite(0)
    assert elite.measures[0] < 0 and longer.replay(elite).objective[0] == elite.objective


def test_clip_actions_is_refused_where_it_has_no_effect(plugins, tmp_path):
    plugins("half", ONE_SIDED)
    bounded = half(clip_actions=True, env_kwargs={"high": 3.0})
    with refused("domain.clip_actions = true", "half:Half-v0", "Leave it out"):
        compute_run(bounded.model_dump(mode="json"), tmp_path / "run")


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)], ids=str)
def test_a_task_with_both(space):
    gym.register("QdsweepLights-v0", Lights, max_episode_steps=5, kwargs={"action_space": space})
    measure = {"measure": "mean_observation", "component": 0, "range": [0, 1]}
    domain = make(**task("QdsweepLights-v0", LENGTH, measure))
    solutions = np.random.default_rng(1).normal(size=(4, domain.solution_dim))
    result = domain.evaluate(solutions, np.arange(4, dtype=np.uint32))
    env = gym.wrappers.FlattenObservation(gym.make("QdsweepLights-v0"))
    actions = make_actions(space, "")
    for row, solution in enumerate(solutions):
        weights = solution.reshape(actions.size, -1)
        episode = play(env, lambda x, w=weights: actions.choose(w @ x.astype(float)), row)
        assert result.objective[row] == episode.total
    gym.registry.pop("QdsweepLights-v0")


@pytest.mark.parametrize("env", ["Blackjack-v1", "Taxi-v4", "FrozenLake-v1"])
def test_gymnasiums_tables_are_played(env):
    domain = make(**task(env, LENGTH, max_episode_steps=20))
    result = domain.evaluate(np.ones((2, domain.solution_dim)), np.arange(2, dtype=np.uint32))
    assert np.isfinite(result.objective).all()


WRAPPER = """
import gymnasium as gym


class Double(gym.RewardWrapper):
    def __init__(self, env, factor=2.0):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward):
        return self.factor * reward
"""


def test_wrappers_are_those_that_gymnasium_applies(plugins):
    plugins("halves", WRAPPER)
    wrappers = [
        {"type": "TimeAwareObservation"},
        {"type": "halves:Double", "arguments": {"factor": 0.5}},
    ]
    domain = make(**task("CartPole-v1", LENGTH, wrappers=wrappers, max_episode_steps=30))
    assert domain.solution_dim == 2 * 5
    solution = np.linspace(-1, 1, domain.solution_dim)
    env = gym.wrappers.TimeAwareObservation(gym.make("CartPole-v1", max_episode_steps=30))
    steps = len(play(env, lambda x: int(np.argmax(solution.reshape(2, 5) @ x)), 3).actions)
    result = domain.evaluate(solution[np.newaxis], np.array([3], dtype=np.uint32))
    assert result.objective[0] == 0.5 * steps
    assert result.measures[0, 0] == steps


@pytest.mark.parametrize(
    ("wrapper", "names"),
    [
        ({"type": "TimeAwareObservations"}, ["TimeAwareObservation"]),
        (
            {"type": "FrameStackObservation", "arguments": {"size": 4}},
            ["FrameStackObservation", "size"],
        ),
        ({"type": "nowhere:Class"}, ["nowhere"]),
    ],
    ids=str,
)
def test_a_wrapper_that_does_not_fit_is_named(wrapper, names):
    with refused("domain.wrappers.0", *names):
        make(**task("CartPole-v1", LENGTH, wrappers=[wrapper]))


def test_the_code_of_a_wrapper_is_part_of_the_id(plugins):
    ids = []
    for code in (WRAPPER, "# a comment\n" + WRAPPER, WRAPPER.replace("2.0", "3.0")):
        plugins("halves", code)
        wrapped = task("CartPole-v1", LENGTH, wrappers=[{"type": "halves:Double"}])
        experiment = {"domain": wrapped, "algorithm": "map_elites", "archive": {"dims": [9]}}
        ids.append(run_id(compose({**experiment, "iterations": 1}, {}, source="test")))
    assert ids[0] == ids[1] != ids[2]
    plain = {**experiment, "domain": task("CartPole-v1", LENGTH), "iterations": 1}
    assert run_id(compose(plain, {}, source="test")) not in ids
