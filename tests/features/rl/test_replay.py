"""Whole episodes in stable-baselines3's replay buffer: n-step returns, ends, and the ring."""

import pickle

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Record
from qdsweep.domains.experience import join_records
from qdsweep.features.rl.learners.dqn import NStepReplay

GAMMA = 0.5


def episode(start: int, steps: int, end: int) -> Record:
    """Observations count from `start`, a reward is the observation before it, actions alternate."""
    observations = np.arange(start, start + steps + 1, dtype=np.float32)[:, None]
    ends = np.array([GOES_ON] * (steps - 1) + [end], np.uint8)
    actions = np.eye(2, dtype=np.float32)[np.arange(steps) % 2]
    return Record(observations, actions, observations[:-1, 0].copy(), ends)


def samples(replay: NStepReplay, slots):
    drawn = replay.buffer._get_samples(np.asarray(slots))
    return [values.numpy().ravel().tolist() for values in drawn]


def test_returns_of_three_steps_end_with_the_episode_and_continue_after_a_truncation():
    replay = NStepReplay(100, 1, 2, 3, GAMMA)
    assert replay.add(episode(10, 4, TERMINATED)).tolist() == [0, 1, 2, 3]
    assert replay.add(episode(20, 2, CUT)).tolist() == [4, 5]
    observations, actions, following, dones, rewards, discounts = samples(replay, range(6))
    assert observations == [10, 11, 12, 13, 20, 21]
    assert actions == [0, 1, 0, 1, 0, 1]
    assert following == [13, 14, 14, 14, 22, 22]
    assert dones == [0, 1, 1, 1, 0, 0], "the value counts after a time limit, but not after an end"
    assert rewards == [10 + 11 / 2 + 12 / 4, 11 + 12 / 2 + 13 / 4, 12 + 13 / 2, 13, 20 + 21 / 2, 21]
    assert discounts == [1 / 8, 1 / 8, 1 / 4, 1 / 2, 1 / 4, 1 / 2]


def test_the_episodes_of_an_evaluation_are_distinguished():
    first, second = episode(10, 2, TERMINATED), episode(20, 3, CUT)
    replay = NStepReplay(100, 1, 2, 1, GAMMA)
    replay.add(join_records([first, second]))
    observations, _, following, dones, *_ = samples(replay, range(5))
    assert observations == [10, 11, 20, 21, 22]
    assert following == [11, 12, 21, 22, 23]
    assert dones == [0, 1, 0, 0, 0]


def test_the_oldest_make_room_and_only_what_is_filled_is_pickled():
    replay = NStepReplay(5, 1, 2, 2, GAMMA)
    replay.add(episode(10, 3, TERMINATED))
    again = pickle.loads(pickle.dumps(replay))
    small = len(pickle.dumps(NStepReplay(100_000, 1, 2, 2, GAMMA)))
    assert small < 2_000
    for each in (replay, again):
        assert each.size == 3
        assert each.add(episode(20, 4, CUT)).tolist() == [3, 4, 0, 1]
        assert each.size == 5
        assert samples(each, [3, 4, 0, 1, 2])[0] == [20, 21, 22, 23, 12]
        # A return of two steps over the end of the ring, and none from one episode into another.
        assert samples(each, [4, 1, 2])[2] == [23, 24, 13]
        assert each.add(episode(30, 8, TERMINATED)).tolist() == [2, 3, 4, 0, 1]
        assert samples(each, [2, 3, 4, 0, 1])[0] == [33, 34, 35, 36, 37]
