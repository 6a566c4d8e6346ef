"""Policies explore only from the row's seed, and only on request."""

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused
from short_episodes import CARTPOLE, PENDULUM, make, same

from qdsweep.domains.base import Exploration
from qdsweep.domains.plugin import check_rows
from qdsweep.domains.policies import explore, make_actions, make_choice
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import EvaluationFailed, evaluate_safely

DISCRETE = make_actions(gym.spaces.Discrete(3, start=5), "test")
BOX = make_actions(gym.spaces.Box(np.float32([-1, 0]), np.float32([1, 4])), "test")
OUTPUT = np.array([0.5, 0.0, -1.0])


def drawn(kind, scale, seed=3, steps=20_000):
    choice = make_choice(DISCRETE, Exploration(kind, np.array([[scale]])), 0, seed)
    actions = [choice.action(OUTPUT.copy()) for _ in range(steps)]
    return np.bincount(np.array(actions) - 5, minlength=3) / steps


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_softmax_draws_from_the_softmax_of_the_output(temperature):
    expected = np.exp(OUTPUT / temperature)
    np.testing.assert_allclose(drawn("softmax", temperature), expected / expected.sum(), atol=0.015)


def test_epsilon_is_the_probability_of_a_uniform_action():
    third = 0.3 / 3
    np.testing.assert_allclose(drawn("epsilon", 0.3), [0.7 + third, third, third], atol=0.015)


def test_gaussian_noise_is_added_before_the_bounds():
    scale = np.array([[0.0, 0.0], [0.5, 2.0]])
    choice = make_choice(BOX, Exploration("gaussian", scale), 1, 3)
    actions = np.array([choice.action(np.array([1.0, -1.0])) for _ in range(20_000)])
    outputs = np.array(choice.outputs)
    np.testing.assert_allclose(outputs.mean(axis=0), [1.0, -1.0], atol=0.05)
    np.testing.assert_allclose(outputs.std(axis=0), [0.5, 2.0], atol=0.05)
    np.testing.assert_allclose(actions, np.tanh(outputs) * [1, 2] + [0, 2], atol=1e-6)
    assert make_choice(BOX, Exploration("gaussian", scale), 0, 3).outputs is None


def test_noise_is_not_what_the_environment_draws():
    choice = make_choice(BOX, Exploration("gaussian", np.ones((1, 2))), 0, 3)
    choice.action(np.zeros(2))
    assert choice.outputs[0].tolist() != np.random.default_rng(3).standard_normal(2).tolist()


def batch_of(task, scales, kind):
    rng = np.random.default_rng(1)
    solutions = np.tile(rng.standard_normal(task.solution_dim), (len(scales), 1))
    return Batch(
        solutions,
        np.arange(len(scales), dtype=np.uint32),
        experience=True,
        exploration=explore(task.actor, kind, scales),
    )


CASES = [(CARTPOLE, "softmax"), (CARTPOLE, "epsilon"), (PENDULUM, "gaussian")]


@pytest.mark.parametrize("episodes", [1, 2])
@pytest.mark.parametrize(("settings", "kind"), CASES)
def test_a_row_explores_alike_in_any_part_and_a_greedy_one_not_at_all(settings, kind, episodes):
    task = make(settings, episodes=episodes)
    batch = batch_of(task, [0.0, 1.0, 0.0, 2.0, 4.0], kind)
    whole = evaluate_safely(task, batch, 0, None).evaluation
    plain = evaluate_safely(task, batch._replace(exploration=None), 0, None).evaluation
    for row in range(5):
        rows = slice(row, row + 1)
        part = evaluate_safely(task, batch.part(rows), row, None).evaluation
        assert same(part.experience, whole.experience[rows])
        assert part.objective == whole.objective[row]
        assert same(plain.experience[rows], whole.experience[rows]) == (row in (0, 2))
        if row in (0, 2):
            assert plain.measures[row].tobytes() == whole.measures[row].tobytes()


def test_records_have_the_outputs_that_measures_do_not_see():
    task = make(PENDULUM)
    result = evaluate_safely(task, batch_of(task, [9.0], "gaussian"), 0, None).evaluation
    outputs = result.experience[0].actions
    assert np.abs(outputs).max() > 2
    assert result.measures[0, 0] == pytest.approx((2 * np.tanh(outputs)).mean(), abs=1e-5)


@pytest.mark.parametrize(("settings", "kind"), [(CARTPOLE, "gaussian"), (PENDULUM, "softmax")])
def test_exploration_that_does_not_suit_the_actions_is_a_failed_evaluation(settings, kind):
    task = make(settings)
    with refused(f"'{kind}'", kind=EvaluationFailed):
        evaluate_safely(task, batch_of(task, [1.0], kind), 0, None)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (lambda scale: None, ("scale 1",)),
        (lambda scale: scale + 1, ("scale 0", "actions")),
        (lambda scale: scale * np.random.rand(), ("solution 1", "actions")),
        (lambda scale: scale * len(scale), ("solution 1", "actions")),
    ],
)
def test_check_finds_exploration_that_breaks_promises(wrong, names):
    task = make(PENDULUM)
    evaluate = task.evaluate

    def explores(*given, exploration=None, **more):
        if exploration is not None:
            scale = wrong(exploration.scale)
            exploration = None if scale is None else exploration._replace(scale=scale)
        return evaluate(*given, exploration=exploration, **more)

    task.evaluate = explores
    with refused("exploration='gaussian'", *names):
        check_rows(task, batch=6)
