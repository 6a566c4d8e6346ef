"""Any task of gymnasium: equal to gymnasium's own loop, and what is refused."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from domain_makers import LENGTH, config, make, task

from qdsweep.domains import make_domain
from qdsweep.errors import BadInput


def play(env_id, choose, seed):
    """An episode of a fresh gymnasium.make, wrappers and all: return, observations, actions."""
    env = gym.make(env_id)
    observation, _ = env.reset(seed=seed)
    total, observations, actions, ended = 0.0, [], [], False
    while not ended:
        action = choose(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        observations.append(observation)
        actions.append(action)
        ended = terminated or truncated
    env.close()
    return total, np.array(observations, dtype=float), np.array(actions)


@pytest.mark.parametrize(("env", "n"), [("CartPole-v1", 20), ("MountainCar-v0", 3)])
def test_discrete_task_equals_gymnasium(env, n):
    domain = make(
        **task(
            env,
            {"measure": "final_observation", "component": 0, "range": [-3, 3]},
            {"measure": "range_observation", "component": 1, "range": [0, 3]},
            {"measure": "fraction_above", "component": 1, "threshold": 0.01, "range": [0, 1]},
            {"measure": "mean_action", "component": 1, "range": [0, 1]},
            LENGTH,
        )
    )
    space = gym.make(env)
    shape = space.action_space.n, space.observation_space.shape[0]
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, domain.solution_dim))
    seeds = rng.integers(2**32, size=n, dtype=np.uint32)
    result = domain.evaluate(x, seeds)
    for row in range(n):
        weights = x[row].reshape(shape)
        total, seen, done = play(env, lambda o, w=weights: int(np.argmax(w @ o)), int(seeds[row]))
        assert result.objective[row] == total
        assert list(result.measures[row]) == [
            seen[-1, 0],
            seen[:, 1].max() - seen[:, 1].min(),
            np.mean(seen[:, 1] > 0.01),
            np.mean(done == 1),
            len(seen),
        ]


@pytest.mark.parametrize(("env", "n"), [("Pendulum-v1", 10), ("BipedalWalker-v3", 8)])
def test_continuous_task_equals_gymnasium(env, n):
    domain = make(
        **task(
            env,
            {"measure": "mean_observation", "component": 2, "range": [-8, 8]},
            {"measure": "min_observation", "component": 0, "range": [-8, 8]},
            {"measure": "max_observation", "component": 0, "range": [-8, 8]},
            {"measure": "mean_abs_action", "component": 0, "range": [0, 2]},
            policy={"type": "mlp", "hidden": [5], "activation": "relu"},
        )
    )
    bounds = gym.make(env).action_space
    inputs, outputs = gym.make(env).observation_space.shape[0], bounds.shape[0]
    rng = np.random.default_rng(6)
    x = rng.normal(size=(n, domain.solution_dim))
    seeds = rng.integers(2**32, size=n, dtype=np.uint32)
    result = domain.evaluate(x, seeds)

    def act(solution, observation):
        w1, rest = np.split(solution, [5 * inputs])
        b1, w2, b2 = np.split(rest, [5, 5 + outputs * 5])
        hidden = np.maximum(w1.reshape(5, inputs) @ observation + b1, 0)
        output = np.tanh(w2.reshape(outputs, 5) @ hidden + b2)
        return (output * bounds.high).astype(np.float32)  # these bounds are symmetric

    for row in range(n):
        total, seen, done = play(env, lambda o, s=x[row]: act(s, o), int(seeds[row]))
        assert result.objective[row] == total
        assert list(result.measures[row]) == [
            seen[:, 2].mean(),
            seen[:, 0].min(),
            seen[:, 0].max(),
            np.abs(done[:, 0].astype(float)).mean(),
        ]


def test_task_obeys_its_step_limit_and_its_arguments():
    domain = make(**task("Pendulum-v1", LENGTH, max_episode_steps=7, env_kwargs={"g": 0.0}))
    x, seeds = np.zeros((1, 3)), np.array([1], dtype=np.uint32)
    still = domain.evaluate(x, seeds)
    assert still.measures[0, 0] == 7
    falling = make(**task("Pendulum-v1", LENGTH, max_episode_steps=7)).evaluate(x, seeds)
    assert falling.objective[0] != still.objective[0]


def test_other_seeds_give_other_results():
    domain = make(**task("Pendulum-v1", LENGTH))
    seeds = np.array([1, 2, 1], dtype=np.uint32)
    first, second, again = domain.evaluate(np.ones((3, 3)), seeds).objective
    assert first == again != second


class Buffered(gym.Env):
    """Returns one array again and again, counts its episodes, and has odd spaces on demand."""

    def __init__(self, observations=None, actions=None):
        self.observation_space = observations or gym.spaces.Box(-9, 9, (1,))
        self.action_space = actions or gym.spaces.Discrete(2)
        self.buffer, self.episodes = np.zeros(1, dtype=np.float32), 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        self.buffer[:] = 0
        return self.buffer, {}

    def step(self, action):
        self.buffer += 1
        return self.buffer, float(self.episodes), self.buffer[0] >= 3, False, {}


@pytest.fixture
def buffered():
    gym.register("Buffered-v0", entry_point=Buffered)
    yield
    del gym.registry["Buffered-v0"]


def test_unknown_environments_are_made_anew_and_their_buffers_copied(buffered):
    mean = {"measure": "mean_observation", "component": 0, "range": [0, 3]}
    result = make(**task("Buffered-v0", mean)).evaluate(np.ones((2, 2)), np.zeros(2, np.uint32))
    assert list(result.objective) == [3, 3]  # no environment saw a second episode
    assert list(result.measures[:, 0]) == [2, 2]


@pytest.mark.parametrize(
    ("env_kwargs", "message"),
    [
        ({"actions": gym.spaces.Box(0, 1, (2, 2))}, "actions are Box"),
        ({"colour": 1}, "cannot be made with env_kwargs"),
    ],
)
def test_unfit_spaces_and_arguments_are_refused(buffered, env_kwargs, message):
    plain = config(**task("Buffered-v0", LENGTH))
    with pytest.raises(BadInput, match=message):
        make_domain(plain.model_copy(update={"env_kwargs": env_kwargs}))


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v7", "'CartPole-v7'.*CartPole-v1"),
        ("CartPoll-v1", "Near: CartPole-v1"),
        ("CartPole", "Near: CartPole-v1"),
        ("no_such_module:X-v0", "no_such_module"),
        ("not an id!", "not an id!"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_unknown_environment_is_named_with_near_ones(env, message):
    with pytest.raises(BadInput, match=message):
        make(**task(env, LENGTH))


def test_missing_dependency_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(BadInput, match=r"pip install .*mujoco"):
        make(**task("HalfCheetah-v5", LENGTH))


@pytest.mark.parametrize(
    ("measure", "message"),
    [("final_observation", "observation of CartPole-v1.*0 to 3"), ("mean_action", "0 to 1")],
)
def test_component_out_of_range_is_refused(measure, message):
    with pytest.raises(BadInput, match=message):
        make(**task("CartPole-v1", {"measure": measure, "component": 4, "range": [0, 1]}))


def test_x0_of_a_task_is_checked_when_its_size_is_known():
    with pytest.raises(BadInput, match="8 parameters"):
        make(**task("CartPole-v1", LENGTH, x0=[0, 1]))
