"""Domains: published values, gradients, row independence, equality with gymnasium, config."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lander_example import by_gymnasium
from pydantic import TypeAdapter, ValidationError

from qdsweep.config.domain import MLP, Domain, Linear
from qdsweep.config.plugin import source_hash
from qdsweep.domains import make_domain
from qdsweep.domains.check import check_rows
from qdsweep.domains.episodes import episode_seeds
from qdsweep.domains.policies import Policy, make_actions
from qdsweep.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "config" / "domains").glob("*.yaml"))
ADAPTER = TypeAdapter(Domain)


def config(**values):
    return ADAPTER.validate_json(json.dumps(values))


def make(**values):
    return make_domain(config(**values))


def preset(name):
    return make(**yaml.safe_load((ROOT / "config" / "domains" / f"{name}.yaml").read_text()))


def linear_projection(function="sphere", d=100, **values):
    return make(type="linear_projection", function=function, solution_dim=d, **values)


def task(env, *measures, **values):
    values.setdefault("objective_range", [-1000, 1000])
    return {"type": "gymnasium", "env": env, "measures": list(measures), **values}


LENGTH = {"measure": "episode_length", "range": [0, 1000]}
NO_SEEDS = np.zeros(0, dtype=np.uint32)


def objective(domain, *solutions):
    return domain.evaluate(np.array(solutions, dtype=float), NO_SEEDS).objective


# ---------------------------------------------------------------- benchmark functions


@pytest.mark.parametrize("function", ["sphere", "rastrigin"])
@pytest.mark.parametrize("d", [2, 7, 100])
def test_linear_projection_is_scaled_from_corner_to_optimum(function, d):
    domain = linear_projection(function, d)
    best, corner = objective(domain, [2.048] * d, [-5.12] * d)
    assert best == 100
    assert corner == pytest.approx(0, abs=1e-10)
    assert domain.objective_range == (0, 100)


def test_golden_values_of_linear_projection():
    # Written out by hand from the formulas of the papers.
    sphere, rastrigin, plateau = (
        linear_projection(f, 2) for f in ("sphere", "rastrigin", "plateau")
    )
    assert objective(sphere, [0, 0])[0] == pytest.approx(100 * (1 - (2.048 / 7.168) ** 2))
    worst = 7.168**2 - 10 * np.cos(2 * np.pi * 7.168) + 10
    middle = 1.0**2 + 0.5**2 - 10 * np.cos(2 * np.pi * 1.0) - 10 * np.cos(np.pi) + 20
    assert objective(rastrigin, [3.048, 1.548])[0] == pytest.approx(
        100 * (1 - middle / (2 * worst))
    )
    assert objective(plateau, [5.12, -5.12], [0, 3], [6.12, 0], [-8.12, 6.12]) == pytest.approx(
        [100, 100, 99.5, 100 - (9 + 1) / 2]
    )


def test_sphere_has_the_bits_of_the_pyribs_example():
    x = np.random.default_rng(0).normal(scale=3, size=(50, 100))
    shift = 5.12 * 0.4
    worst = (-5.12 - shift) ** 2 * 100
    raw = np.sum(np.square(x - shift), axis=1)
    clipped = x.copy()
    outside = (clipped < -5.12) | (clipped > 5.12)
    clipped[outside] = 5.12 / clipped[outside]
    result = linear_projection().evaluate(x, NO_SEEDS)
    np.testing.assert_array_equal(result.objective, (raw - worst) / (0.0 - worst) * 100)
    np.testing.assert_array_equal(result.measures[:, 0], clipped[:, :50].sum(axis=1))
    np.testing.assert_array_equal(result.measures[:, 1], clipped[:, 50:].sum(axis=1))


def test_measures_of_linear_projection_fold_back_outside_the_box():
    domain = linear_projection(d=4)
    measures = domain.evaluate(np.array([[5.12, 10.24, -1, -51.2]]), NO_SEEDS).measures
    assert measures[0] == pytest.approx([5.12 + 0.5, -1 - 0.1])
    assert list(domain.measures.values()) == [(-10.24, 10.24)] * 2


def test_golden_values_of_the_arm():
    domain = make(type="arm", solution_dim=2)
    straight, folded, bent = (0, 0), (0, np.pi), (np.pi / 2, -np.pi / 2)
    result = domain.evaluate(np.array([straight, folded, bent], dtype=float), NO_SEEDS)
    variance = [0, (np.pi / 2) ** 2, (np.pi / 2) ** 2]
    assert result.objective == pytest.approx(100 - 100 * np.array(variance))
    np.testing.assert_allclose(result.measures, [[2, 0], [0, 0], [1, 1]], atol=1e-12)
    assert list(domain.measures.values()) == [(-2, 2)] * 2


@pytest.mark.parametrize(
    "domain",
    [linear_projection(f, d) for f in ("sphere", "rastrigin", "plateau") for d in (2, 5, 20)]
    + [make(type="arm", solution_dim=d) for d in (1, 2, 20)],
    ids=lambda domain: f"{type(domain).__name__}-{domain.solution_dim}",
)
def test_jacobian_agrees_with_finite_differences(domain):
    rng = np.random.default_rng(1)
    x = rng.normal(scale=6, size=(5, domain.solution_dim))  # inside and outside the box
    jacobian = domain.jacobian(x)
    assert jacobian.shape == (5, 3, domain.solution_dim)
    for i in range(domain.solution_dim):
        ends = []
        for width in (1e-6, -1e-6):
            moved = x.copy()
            moved[:, i] += width
            result = domain.evaluate(moved, NO_SEEDS)
            ends.append(np.column_stack([result.objective, result.measures]))
        np.testing.assert_allclose(
            jacobian[:, :, i], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5
        )


# ---------------------------------------------------------------- every preset


CHEAP = ("lp_sphere", "lp_rastrigin", "lp_plateau", "arm", "maze")
BATCH = 32


@pytest.fixture(scope="module")
def evaluated():
    """Domain, solutions, seeds and the whole batch's result of a preset."""
    known = {}

    def get(name):
        if name not in known:
            domain = preset(name)
            n = BATCH if name in CHEAP else 8
            rng = np.random.default_rng(2)
            x = domain.x0 + domain.step * rng.normal(size=(n, domain.solution_dim))
            seeds = rng.integers(2**32, size=n, dtype=np.uint32)
            known[name] = domain, x, seeds, domain.evaluate(x, seeds)
        return known[name]

    return get


def columns(result):
    return {"objective": result.objective, "measures": result.measures, **result.fields}


@pytest.mark.parametrize("name", CHEAP)
@given(data=st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rows_are_independent_bit_for_bit(evaluated, name, data):
    domain, x, seeds, whole = evaluated(name)
    rows = data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=BATCH))
    # A worker may get its rows in any memory layout.
    part = np.asarray(x[rows], order=data.draw(st.sampled_from("CF")))
    for key, values in columns(domain.evaluate(part, seeds[rows])).items():
        assert values.tobytes() == columns(whole)[key][rows].tobytes(), key
    if hasattr(domain, "jacobian"):
        assert domain.jacobian(part).tobytes() == domain.jacobian(x)[rows].tobytes()


@pytest.mark.parametrize("name", sorted({p.stem for p in PRESETS} - set(CHEAP)))
@given(data=st.data())
@settings(max_examples=4, deadline=None, derandomize=True)
def test_rollouts_are_independent_bit_for_bit(evaluated, name, data):
    domain, x, seeds, whole = evaluated(name)
    rows = data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=3))
    for key, values in columns(domain.evaluate(x[rows], seeds[rows])).items():
        assert values.tobytes() == columns(whole)[key][rows].tobytes(), key


@pytest.mark.parametrize("name", [p.stem for p in PRESETS])
def test_presets_are_documented_and_their_results_lie_in_their_ranges(evaluated, name):
    text = (ROOT / "config" / "domains" / f"{name}.yaml").read_text()
    assert text.startswith("# ")
    domain, x, _, result = evaluated(name)
    assert result.objective.shape == (len(x),)
    assert result.measures.shape == (len(x), len(domain.measures))
    assert result.objective.dtype == result.measures.dtype == np.float64
    assert domain.x0.shape == (domain.solution_dim,) and domain.x0.dtype == np.float64
    assert (result.objective <= domain.objective_range[1]).all()
    inside = [
        (low <= result.measures[:, i]) & (result.measures[:, i] <= high)
        for i, (low, high) in enumerate(domain.measures.values())
    ]
    assert np.mean(inside) > 0.8


@pytest.mark.parametrize("name", ["lp_sphere", "arm", "maze", "cartpole"])
def test_check_rows_accepts(name):
    check_rows(preset(name), batch=8)


# ---------------------------------------------------------------- LunarLander


def test_lunar_lander_has_the_bits_of_the_pyribs_example():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 32))
    # Balances, brakes and so hovers until the time limit, which has to be the same, too.
    tilt = np.array([0.25, 0, 0.5, 0, -0.5, -1, 0, 0])
    x[0] = np.concatenate([np.zeros(8), tilt, [0, 0, 0, -0.5, 0, 0, 0, 0], -tilt])
    seeds = rng.integers(2**32, size=30, dtype=np.uint32)
    seeds[1] = 52
    result = make(type="lunar_lander").evaluate(x, seeds)
    expected = [by_gymnasium(row, int(seed))[0] for row, seed in zip(x, seeds, strict=True)]
    np.testing.assert_array_equal(
        np.column_stack([result.objective, result.measures]), np.array(expected, dtype=float)
    )
    assert result.fields == {}


def test_episodes_are_averaged_over_children_of_the_seed():
    x = np.random.default_rng(4).normal(size=(2, 32))
    one, three = make(type="lunar_lander"), make(type="lunar_lander", episodes=3)
    result = three.evaluate(x, np.array([7, 8], dtype=np.uint32))
    assert three.fields == {"objective_std": ()}
    assert result.fields["objective_std"].shape == (2,)
    children = np.random.SeedSequence(8).generate_state(3)
    singles = one.evaluate(np.repeat(x[1:], 3, axis=0), children)
    assert result.objective[1] == singles.objective.mean()
    assert result.fields["objective_std"][1] == singles.objective.std()
    np.testing.assert_array_equal(result.measures[1], singles.measures.mean(axis=0))


def test_one_episode_has_the_seed_of_its_evaluation():
    assert episode_seeds(np.uint32(52), 1) == [52]
    assert 52 not in episode_seeds(52, 4) and len(set(episode_seeds(52, 4))) == 4


# ---------------------------------------------------------------- gymnasium


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


def test_policies_have_the_right_number_of_parameters_and_layers():
    assert Policy(Linear(type="linear"), 8, 4).solution_dim == 32
    mlp = Policy(MLP(type="mlp", hidden=[3, 2]), 4, 1)
    assert mlp.solution_dim == (4 * 3 + 3) + (3 * 2 + 2) + (2 * 1 + 1)
    x = np.arange(mlp.solution_dim) / 10
    observation = np.array([0.1, -0.2, 0.3, 0.4])
    hidden = np.tanh(x[:12].reshape(3, 4) @ observation + x[12:15])
    hidden = np.tanh(x[15:21].reshape(2, 3) @ hidden + x[21:23])
    np.testing.assert_array_equal(
        mlp.network(x)(observation), x[23:25].reshape(1, 2) @ hidden + x[25:]
    )


def test_actions_stay_in_their_bounds():
    box = gym.spaces.Box(np.array([-1, 2, -np.inf]), np.array([1, 5, 0]), dtype=np.float32)
    actions = make_actions(box, "test")
    np.testing.assert_array_equal(actions.choose(np.array([1e9, -1e9, 7.0])), [1, 2, 7])
    np.testing.assert_array_equal(actions.choose(np.zeros(3)), [0, 3.5, 0])
    assert actions.choose(np.zeros(3)).dtype == np.float32
    discrete = make_actions(gym.spaces.Discrete(3, start=-1), "test")
    assert discrete.choose(np.array([0.0, 0.0, 1.0])) == 1
    np.testing.assert_array_equal(discrete.vectors([-1, 1]), [[1, 0, 0], [0, 0, 1]])


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
        ({"observations": gym.spaces.Box(0, 1, (3, 3))}, "observations are Box.*1-D Box"),
        ({"observations": gym.spaces.Discrete(3)}, "observations are Discrete"),
        ({"actions": gym.spaces.MultiDiscrete([2, 2])}, "actions are MultiDiscrete"),
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


# ---------------------------------------------------------------- config


ARM = {"type": "arm", "solution_dim": 5}
LP = {"type": "linear_projection", "function": "sphere"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (LP | {"solution_dim": 1}, "greater than or equal to 2"),
        (LP | {"function": "cube"}, "'sphere', 'rastrigin' or 'plateau'"),
        (LP | {"colour": 1}, "Extra inputs"),
        (LP | {"step": 0}, "greater than 0"),
        ({"type": "lunar_lander", "evaluation_seed": -1}, "greater than or equal to 0"),
        ({"type": "lunar_lander", "episodes": 0}, "greater than or equal to 1"),
        (task("X-v0"), "at least 1 item"),
        (task("X-v0", {"measure": "mean_observaton", "range": [0, 1]}), "'mean_observation'"),
        (task("X-v0", LENGTH | {"component": 1}), "has no component"),
        (task("X-v0", {"measure": "episode_length"}), "range"),
        (task("X-v0", LENGTH, LENGTH), "2 measures have the name 'episode length'"),
        (task("X-v0", LENGTH, ranges=[[0, 1], [0, 1]]), "ranges has 2 entries"),
        ({"type": "gymnasium", "env": "X-v0", "measures": [LENGTH]}, "objective_range"),
        (task("X-v0", LENGTH, policy={"type": "mlp", "hidden": []}), "at least 1 item"),
        ({"type": "a:b:c"}, "match pattern"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        config(**values)


def test_config_values_end_up_on_the_domain():
    domain = make(**ARM, ranges=[[-1, 1], [0, 2]], objective_range=[-5, 50], x0=0.5, step=2)
    assert domain.measures == {"end effector x": (-1, 1), "end effector y": (0, 2)}
    assert domain.objective_range == (-5, 50)
    np.testing.assert_array_equal(domain.x0, [0.5] * 5)
    assert domain.x0.flags.writeable
    assert domain.step == 2
    default = make(**ARM)
    assert (default.step, list(default.x0)) == (0.1, [0.0] * 5)
    assert list(make(**ARM, x0=[1, 2, 3, 4, 5]).x0) == [1, 2, 3, 4, 5]


def test_x0_of_a_task_is_checked_when_its_size_is_known():
    with pytest.raises(BadInput, match="8 parameters"):
        make(**task("CartPole-v1", LENGTH, x0=[0, 1]))


def test_what_is_known_before_the_domain_is_made():
    assert [config(**ARM).measure_dim, config(**ARM).known_solution_dim] == [2, 5]
    lander = config(type="lunar_lander")
    assert [lander.measure_dim, lander.known_solution_dim, lander.has_jacobian] == [2, 32, False]
    assert lander.evaluation_seed == "fixed" and lander.step == 1.0
    walker = config(**task("X-v0", LENGTH))
    assert [walker.measure_dim, walker.known_solution_dim] == [1, None]
    plugin = config(type="maze:Maze")
    assert [plugin.measure_dim, plugin.has_jacobian] == [None, None]


@pytest.mark.parametrize(
    ("measure", "label"),
    [
        ({"measure": "final_observation", "component": 3}, "final observation 3"),
        (
            {"measure": "fraction_above", "component": 8, "threshold": 0.5},
            "share of time with observation 8 above 0.5",
        ),
        ({"measure": "episode_length"}, "episode length"),
        ({"measure": "episode_length", "name": "steps"}, "steps"),
    ],
)
def test_measures_have_readable_names(measure, label):
    assert config(**task("X-v0", measure | {"range": [0, 1]})).measures[0].label == label


# ---------------------------------------------------------------- plugins


GOOD = """
import numpy as np
from qdsweep.domains.base import Evaluation

class Good:
    measures = {"a": (0.0, 1.0)}
    objective_range = (0.0, 1.0)
    fields = {}
    step = 3.0
    x0 = np.array([1.0, 2.0])
    def __init__(self, d=2):
        self.solution_dim = d
    def evaluate(self, solutions, seeds):
        return Evaluation(solutions[:, 0], solutions[:, :1])
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Writes modules into a working directory's config/plugins."""
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name, text):
        (folder / f"{name}.py").write_text(text)

    yield write
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_plugin_gets_its_arguments_and_keeps_its_own_values(plugins):
    plugins("mine_one", GOOD)
    domain = make(type="mine_one:Good", arguments={"d": 2})
    assert (domain.solution_dim, domain.step, list(domain.x0)) == (2, 3.0, [1, 2])
    changed = make(type="mine_one:Good", x0=5, step=1, ranges=[[0, 9]], objective_range=[2, 3])
    assert (changed.step, list(changed.x0), changed.measures) == (1, [5, 5], {"a": (0, 9)})
    assert changed.objective_range == (2, 3)
    assert make(type="mine_one:Good").measures == {"a": (0, 1)}
    with pytest.raises(BadInput, match=r"ranges has 2 entries.*1 measures: a"):
        make(type="mine_one:Good", ranges=[[0, 1], [0, 1]])


def test_working_directory_comes_before_the_clone(plugins, monkeypatch):
    monkeypatch.delitem(sys.modules, "maze", raising=False)
    plugins("maze", GOOD.replace("Good", "Maze"))
    assert make(type="maze:Maze").step == 3.0


def test_plugin_with_the_name_of_a_loaded_module_is_refused(plugins):
    plugins("yaml", GOOD)
    with pytest.raises(BadInput, match="another module has the name yaml already"):
        make(type="yaml:Good")


@pytest.mark.parametrize(
    ("target", "text", "message"),
    [
        ("mine_too:Good", GOOD, "no module mine_too; did you mean 'mine_two'"),
        ("mine_two:God", GOOD, "has no class God; did you mean 'Good'"),
        ("mine_two:Good", GOOD.replace("fields = {}", ""), "fields is missing"),
        ("mine_two:Good", GOOD.replace("(0.0, 1.0)}", "1}"), "measures = .* is not a dict"),
        ("mine_two:Good", GOOD.replace("d=2", "d"), "missing a required argument: 'd'"),
        ("mine_two:Good", "import no_such_thing", "mine_two.py cannot be imported: ModuleNotF"),
        ("mine_two:Good", "def", "mine_two.py cannot be imported: SyntaxError"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_named(plugins, target, text, message):
    plugins("mine_two", text)
    with pytest.raises(BadInput, match=message):
        make(type=target)


def test_source_hash_follows_the_file_and_imports_nothing(plugins, tmp_path):
    plugins("mine_three", GOOD)
    first = source_hash("mine_three:Good")
    assert first == source_hash("mine_three:Good") and len(first) == 64
    plugins("mine_three", GOOD + "# changed\n")
    assert source_hash("mine_three:Good") != first
    package = tmp_path / "config" / "plugins" / "heavy"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "part.py").write_text(GOOD)
    assert source_hash("heavy.part:Good") == first
    assert not {"mine_three", "heavy"} & set(sys.modules)
    with pytest.raises(BadInput, match=r"no module heavy\.nothing"):
        source_hash("heavy.nothing:Good")
    with pytest.raises(BadInput, match="no module sys"):
        source_hash("sys:Good")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solutions @ np.ones((self.solution_dim, 7))[:, 0]", None),
        ("solutions[:, 0] - solutions[:, 0].mean()", "in another batch"),
        ("np.random.rand(len(solutions))", "a second time"),
        ("np.array([solutions[0, 0]])", r"shape \(1,\)"),
        ("solutions[:, 0] / 0", "objective of solution 0 is"),
        ("np.negative(solutions, out=solutions)[:, 0]", "changes the solutions"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_check_rows_finds_broken_promises(plugins, line, message):
    plugins("mine_four", GOOD.replace("Evaluation(solutions[:, 0]", f"Evaluation({line}"))
    domain = make(type="mine_four:Good")
    if message is None:
        check_rows(domain)
    else:
        with pytest.raises(BadInput, match=message):
            check_rows(domain)


def test_check_rows_finds_a_wrong_gradient():
    domain = linear_projection(d=4)
    true = domain.jacobian
    check_rows(domain)
    domain.jacobian = lambda x: true(x) * [[[1], [1], [1.01]]]
    with pytest.raises(BadInput, match="derivative of sum of second half by parameter 2"):
        check_rows(domain)
