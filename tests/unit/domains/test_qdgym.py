"""DQD-RL's tasks: PyBullet's robots, with their feet on the ground."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from refusals import refused

from qdsweep.config.compose import compose, read_domain
from qdsweep.domains import make_domain
from qdsweep.features.rollouts.film import filming

pytest.importorskip("pybullet_envs_gymnasium", reason="PyBullet: `make extras` on Python 3.11")
# Weights of a solution, and components of robot.feet_contact, as in DQD-RL.
TASKS = {
    "qdgym_ant": (21256, [0, 1, 2, 3]),
    "qdgym_half_cheetah": (20742, [0, 3]),
    "qdgym_hopper": (18947, [0]),
    "qdgym_walker": (20230, [0, 1]),
}
STEPS = 60


def short(name):
    config = read_domain(name).model_copy(update={"max_episode_steps": STEPS})
    return config, make_domain(config, seed=5)


def fresh(config):
    return gym.make(config.env, disable_env_checker=True, max_episode_steps=STEPS)


def by_pybullet(env, domain, solution, seed, feet):
    """Returns the same with gymnasium's and PyBullet's own functions."""
    network = domain._policy.network(solution)
    episode = play(
        env,
        lambda x: np.tanh(network(x.astype(float))).astype(np.float32),
        seed,
        lambda env: np.array(env.unwrapped.robot.feet_contact)[feet],
    )
    return [episode.total, *np.mean(episode.seen, axis=0, dtype=float)]


@pytest.mark.parametrize("name", TASKS)
def test_it_equals_a_fresh_environment_an_episode(name, capfd):
    config, domain = short(name)
    dim, feet = TASKS[name]
    assert domain.solution_dim == dim
    experiment = compose(name)  # as in the paper
    assert (experiment.batch_size, experiment.evaluations) == (100, 1_000_000)
    assert (experiment.algorithm.emitters[0].initial_solutions, config.step) == (0, 0.02)
    rng = np.random.default_rng(3)
    solutions = domain.x0 + config.step * rng.normal(size=(3, dim))
    seeds = np.array([1, 2, 3], dtype=np.uint32)
    result = domain.evaluate(solutions, seeds)
    rows = np.column_stack([result.objective, result.measures])
    assert capfd.readouterr() == ("", ""), "PyBullet prints nothing"
    for row, solution, seed in zip(rows, solutions, seeds, strict=True):
        env = fresh(config)
        expected = by_pybullet(env, domain, solution, int(seed), feet)
        assert row.tolist() == pytest.approx(expected, abs=0)
        env.close()
    assert ((result.measures >= 0) & (result.measures <= 1)).all() and result.measures.any()


def test_a_used_environment_does_not_repeat_and_a_fresh_one_does_in_any_process():
    config, domain = short("qdgym_ant")
    solution = domain.x0 + 0.2 * np.random.default_rng(0).normal(size=domain.solution_dim)
    env = fresh(config)
    first = by_pybullet(env, domain, solution, 1, [0])
    assert by_pybullet(env, domain, solution, 1, [0]) != first
    env.close()
    code = (
        "import numpy as np; from qdsweep.config.compose import read_domain;"
        "from qdsweep.domains import make_domain;"
        f"config = read_domain('qdgym_ant').model_copy(update={{'max_episode_steps': {STEPS}}});"
        "domain = make_domain(config, seed=5);"
        "x = domain.x0 + 0.2 * np.random.default_rng(0).normal(size=domain.solution_dim);"
        "print(domain.evaluate(x[None], np.array([1], dtype=np.uint32)).objective[0].hex())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == first[0].hex()
    again = domain.evaluate(np.tile(solution, (3, 1)), np.array([7, 1, 1], dtype=np.uint32))
    assert again.objective[1] == again.objective[2] == first[0]


def test_a_foot_that_the_robot_lacks_is_refused():
    config = read_domain("qdgym_walker")
    data = config.model_dump()
    data["measures"][0]["geom"] = "toe"
    with refused("'toe'", "foot, foot_left"):
        make_domain(type(config).model_validate_json(json.dumps(data)))


def test_the_versions_that_its_results_depend_on():
    libraries = read_domain("qdgym_hopper").libraries
    assert set(libraries) >= {"gymnasium", "pybullet", "pybullet_envs_gymnasium"}
    assert "pybullet" not in read_domain("cartpole").libraries


def test_an_episode_that_is_filmed_is_the_same():
    _, domain = short("qdgym_hopper")
    seeds = np.array([1], dtype=np.uint32)
    with filming(1.0) as shot:
        filmed = domain.evaluate(domain.x0[None], seeds)
    assert filmed.objective == domain.evaluate(domain.x0[None], seeds).objective
    first, last = np.asarray(shot.frames[0]), np.asarray(shot.frames[-1])
    assert np.ptp(first) > 0 and (first != last).any()
