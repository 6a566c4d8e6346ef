"""The example of one's own gymnasium environment: its rules, its seeds and its time limit."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from support import REPO

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.plugin import check_rows

STAY, LEFT, RIGHT = range(3)
SMALL = {"algorithm": "map_elites", "archive": {"dims": [2, 2]}, "num_emitters": 1}
SMALL |= {"batch_size": 4, "iterations": 1}


@pytest.fixture(autouse=True)
def plugins(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPO / "config/plugins")])


@pytest.fixture
def game():
    """A started game whose paddle never repeats an action, and whose balls come from the left."""
    import grid_breakout

    class Chosen:
        def random(self):
            return 1.0

        def integers(self, high):
            return 0

    game = grid_breakout.GridBreakout()
    game.np_random = Chosen()
    game.reset()
    return game


def cells(observation, grid):
    """Returns (row, column) of what is in a grid of an observation."""
    return np.argwhere(observation.reshape(4, 10, 10)[grid]).tolist()


def test_an_observation_has_ball_paddle_last_ball_and_bricks(game):
    observation, *_ = game.step(LEFT)
    assert cells(observation, 0) == [[4, 1]]
    assert cells(observation, 1) == [[9, 3]]
    assert cells(observation, 2) == [[3, 0]]
    assert cells(observation, 3) == [[row, column] for row in (1, 2, 3) for column in range(10)]


def test_a_missed_ball_costs_a_life_and_the_last_one_ends_the_game(game):
    ends = [game.step(LEFT)[2] for _ in range(5 * 6)]  # six steps down, far from the paddle
    assert ends == 29 * [False] + [True]


@pytest.mark.parametrize(
    ("paddle", "columns"),
    [
        (5, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8]),  # below the ball, which continues to the wall
        (6, [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]),  # where the ball would have come: it turns back
    ],
)
def test_the_paddle_returns_the_ball_which_breaks_a_brick(game, paddle, columns):
    moves = (paddle - 4) * [RIGHT]
    steps = [game.step(action) for action in moves + (11 - len(moves)) * [STAY]]
    rows = [4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 4]
    assert [cells(step[0], 0) for step in steps] == [
        [[row, column]] for row, column in zip(rows, columns, strict=True)
    ]
    assert [step[1] for step in steps] == 10 * [0.0] + [1.0]
    assert not any(step[2] for step in steps)
    assert [3, columns[-1]] not in cells(steps[-1][0], 3)
    assert len(cells(steps[-1][0], 3)) == 29


def test_the_wall_of_bricks_comes_back(game):
    game.bricks[:] = False
    for action in [RIGHT, RIGHT, STAY, STAY, STAY]:
        assert not game.step(action)[0].reshape(4, 100)[3].any()
    assert game.step(STAY)[0].reshape(4, 100)[3].sum() == 30


def test_an_episode_depends_on_its_seed_and_has_a_time_limit():
    name = "grid_breakout:GridBreakout-v0"

    def follow(observation):  # the ball
        column, paddle = (cells(observation, grid)[0][1] for grid in (0, 1))
        return STAY if column == paddle else LEFT if column < paddle else RIGHT

    first, again, other = (play(name, follow, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.observations, again.observations)
    assert not np.array_equal(first.observations, other.observations)
    env = gym.make(name, lives=10**6)
    endless = play(env, lambda observation: STAY, 1)
    assert endless.truncated
    assert len(endless.actions) == 2500


def test_its_domain_plays_it():
    domain = make_domain(compose({**SMALL, "domain": "grid_breakout"}).domain)
    check_rows(domain, batch=3)
    solution = np.random.default_rng(0).normal(size=(1, domain.solution_dim))
    result = domain.evaluate(solution, np.array([7], np.uint32))
    network = domain._policy.network(solution[0])
    episode = play("grid_breakout:GridBreakout-v0", lambda seen: int(network(seen).argmax()), 7)
    np.testing.assert_allclose(result.objective, [episode.total])
    shares = [(episode.actions == action).mean() for action in (LEFT, RIGHT)]
    np.testing.assert_allclose(result.measures, [shares])
