"""Tasks of gymnasium equal gymnasium's own loop; refusals."""

import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from domain_makers import LENGTH, config, make, task
from refusals import names_all, refused

from qdsweep.domains import gymnasium_task, make_domain
from qdsweep.domains.policies import split_layers
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import evaluate_safely


@pytest.mark.parametrize(
    ("env", "n"),
    [("CartPole-v1", 20), ("MountainCar-v0", 3), ("Pendulum-v1", 10), ("BipedalWalker-v3", 8)],
)
def test_a_task_equals_gymnasium(env, n):
    known = gym.make(env)
    inputs, space = known.observation_space.shape[0], known.action_space
    is_discrete = isinstance(space, gym.spaces.Discrete)
    outputs = space.n if is_discrete else space.shape[0]
    names = ("final", "mean", "min", "max", "range")
    action = ("mean_action", 1) if is_discrete else ("mean_abs_action", 0)
    measures = [*((f"{name}_observation", 1) for name in names), action]
    above = {"measure": "fraction_above", "component": 0, "threshold": 0.01, "range": [0, 1]}
    mlp = {"type": "mlp", "hidden": [5], "activation": "relu"}
    domain = make(
        **task(
            env,
            *({"measure": name, "component": part, "range": [-9, 9]} for name, part in measures),
            above,
            LENGTH,
            policy={"type": "linear"} if is_discrete else mlp,
        )
    )
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, domain.solution_dim))
    seeds = rng.integers(2**32, size=n, dtype=np.uint32)
    result = domain.evaluate(x, seeds)

    def act(solution, observation):
        if is_discrete:
            return int(np.argmax(solution.reshape(outputs, inputs) @ observation))
        (w1, b1), (w2, b2) = split_layers(solution, [(5, inputs), (outputs, 5)], bias=True)
        output = np.tanh(w2 @ np.maximum(w1 @ observation + b1, 0) + b2)
        return (output * space.high).astype(np.float32)  # these bounds are symmetric

    for row in range(n):
        episode = play(env, partial(act, x[row]), int(seeds[row]))
        seen, y = episode.observations[1:], episode.observations[1:, 1]
        force = episode.actions == 1 if is_discrete else np.abs(episode.actions[:, 0].astype(float))
        expected = [y[-1], y.mean(), y.min(), y.max(), np.ptp(y), force.mean()]
        assert result.objective[row] == episode.total
        assert result.measures[row].tolist() == [*expected, (seen[:, 0] > 0.01).mean(), len(seen)]


def test_task_obeys_its_step_limit_and_its_arguments():
    domain = make(**task("Pendulum-v1", LENGTH, max_episode_steps=7, env_kwargs={"g": 0.0}))
    x, seeds = np.zeros((1, 3)), np.array([1], dtype=np.uint32)
    still = domain.evaluate(x, seeds)
    assert still.measures[0, 0] == 7
    falling = make(**task("Pendulum-v1", LENGTH, max_episode_steps=7)).evaluate(x, seeds)
    assert falling.objective[0] != still.objective[0]


class Buffered(gym.Env):
    """Returns the same array each time, counts its episodes, and has odd spaces on request."""

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


def test_unknown_environments_are_made_for_each_episode_and_their_buffers_copied(buffered):
    mean = {"measure": "mean_observation", "component": 0, "range": [0, 3]}
    result = make(**task("Buffered-v0", mean)).evaluate(np.ones((2, 2)), np.zeros(2, np.uint32))
    assert list(result.objective) == [3, 3]  # no environment saw a second episode
    assert list(result.measures[:, 0]) == [2, 2]


@pytest.mark.parametrize("mode", ["rgb_array", "rgb_array_list"])
def test_a_render_mode_changes_no_result(mode):
    solutions, seeds = np.linspace(-1, 1, 24).reshape(3, 8), np.arange(3, dtype=np.uint32)
    measure = {"measure": "mean_observation", "component": 2, "range": [-1, 1]}
    shown = make(**task("CartPole-v1", measure, env_kwargs={"render_mode": mode}))
    plain = make(**task("CartPole-v1", measure))
    results = [domain.evaluate(solutions, seeds) for domain in (shown, plain)]
    for name in ("objective", "measures"):
        assert np.array_equal(*(getattr(result, name) for result in results))


class Failing(gym.Env):
    """A task whose observation or reward becomes NaN; it ends at the step `end`, or never."""

    observation_space, action_space = gym.spaces.Box(-9, 9, (2,)), gym.spaces.Discrete(2)

    def __init__(self, end=None, observation=None, reward=None):
        self.end, self.nan = end, {"observation": observation, "reward": reward}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(2), {}

    def step(self, action):
        self.steps += 1
        values = {
            name: np.nan if step is not None and self.steps >= step else 1.0
            for name, step in self.nan.items()
        }
        seen = np.array([0.5, values["observation"]])
        return seen, values["reward"], self.steps == self.end, False, {}


@pytest.fixture
def failing():
    gym.register("Failing-v0", entry_point=Failing)
    yield
    del gym.registry["Failing-v0"]


def evaluated(domain):
    """Evaluates like an engine; failures are scored with -7."""
    batch = Batch(np.ones((2, domain.solution_dim)), np.arange(2, dtype=np.uint32))
    return evaluate_safely(domain, batch, 0, -7.0)


@pytest.mark.parametrize("limit", [{}, {"max_episode_steps": 5}, {"env_kwargs": {"end": 5}}])
@pytest.mark.parametrize("source", ["observation", "reward"])
def test_nan_fails_an_evaluation(failing, source, limit):
    """Also if no measure uses it."""
    kwargs = {"end": 8, source: 3, **limit.get("env_kwargs", {})}
    outcome = evaluated(make(**task("Failing-v0", LENGTH, **{**limit, "env_kwargs": kwargs})))
    assert list(outcome.evaluation.objective) == [-7, -7]
    for failure in outcome.failures:
        names_all(failure.problem, "NaN")
        if source == "observation":
            names_all(failure.problem, "Failing-v0", "step 3")


def test_a_task_may_end_by_itself_because_of_nan(failing):
    """Like MuJoCo's robots, where the policy never acts on it."""
    kwargs = {"end": 3, "observation": 3}
    outcome = evaluated(make(**task("Failing-v0", LENGTH, env_kwargs=kwargs)))
    assert list(outcome.evaluation.objective) == [3, 3] and not outcome.failures


@pytest.mark.parametrize("wrappers", [[], [{"type": "NormalizeReward"}]])
def test_an_episode_that_never_ends_names_the_key_that_limits_it(failing, monkeypatch, wrappers):
    monkeypatch.setattr(gymnasium_task, "MAX_STEPS", 50)
    domain = config(**task("Failing-v0", LENGTH, wrappers=wrappers))
    outcome = evaluated(make_domain(domain))
    for failure in outcome.failures:
        names_all(failure.problem, "Failing-v0", "50", "domain.max_episode_steps")
    assert len(outcome.failures) == 2
    limited = domain.model_copy(update={"max_episode_steps": 60})
    assert list(evaluated(make_domain(limited)).evaluation.measures) == [60, 60]


def test_unfit_arguments_are_refused(buffered):
    with refused("domain.env", "Buffered-v0", "env_kwargs", "colour"):
        make(**task("Buffered-v0", LENGTH, env_kwargs={"colour": 1}))


def test_missing_dependency_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    with refused("pip install", "mujoco"):
        make(**task("HalfCheetah-v5", LENGTH))


@pytest.mark.parametrize(("measure", "last"), [("final_observation", 3), ("mean_action", 1)])
def test_component_out_of_range_is_refused(measure, last):
    with refused("CartPole-v1", f"0 to {last}"):
        make(**task("CartPole-v1", {"measure": measure, "component": 4, "range": [0, 1]}))


def test_x0_of_a_task_is_checked_when_its_size_is_known():
    with refused("x0", 8):
        make(**task("CartPole-v1", LENGTH, x0=[0, 1]))
