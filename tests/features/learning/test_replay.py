"""The replay buffer: transitions of records, and which ones replace which."""

import pickle

import numpy as np
import pytest
from refusals import refused

from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Record
from qdsweep.features.learning.td3 import Replay


def record(*lengths: int, first: int = 0) -> Record:
    """Episodes whose observations and actions count on; a reward is twice its action."""
    steps = sum(lengths)
    ends = np.full(steps, GOES_ON, np.uint8)
    ends[np.cumsum(lengths) - 1] = [TERMINATED, CUT] * (len(lengths) // 2) + [TERMINATED] * (
        len(lengths) % 2
    )
    numbers = first + np.arange(steps + len(lengths), dtype=np.float32)
    actions = first + np.arange(steps, dtype=np.float32)
    return Record(np.stack([numbers, -numbers], 1), actions[:, None], 2 * actions, ends)


def held(replay: Replay) -> list[list[float]]:
    """Its content: observation, action, reward, next observation, end."""
    drawn = replay.draw(np.random.default_rng(1), 50 * max(replay.size, 1))
    rows = np.column_stack((drawn.inputs, drawn.rewards, drawn.following, drawn.ends))
    assert (rows[:, 0] == -rows[:, 1]).all()
    return np.unique(rows[:, [0, 2, 3, 4, 6]], axis=0).tolist()


def test_transitions_stay_in_their_episode():
    replay = Replay(100, 2, 1)
    replay.add(record(2, 3, 1))
    assert held(replay) == [
        [0, 0, 0, 1, GOES_ON],
        [1, 1, 2, 2, TERMINATED],
        [3, 2, 4, 4, GOES_ON],
        [4, 3, 6, 5, GOES_ON],
        [5, 4, 8, 6, CUT],
        [7, 5, 10, 8, TERMINATED],
    ]


@pytest.mark.parametrize("lengths", [[4, 3, 2], [1] * 20, [5, 5], [23], [2, 10, 1]])
def test_the_oldest_make_room(lengths: list[int]):
    replay, expected = Replay(5, 2, 1), []
    for number, length in enumerate(lengths):
        replay.add(record(length, first=100 * number))
        expected += [100.0 * number + step for step in range(length)]
        assert replay.size == min(len(expected), 5)
        assert [row[0] for row in held(replay)] == expected[-5:]


@pytest.mark.parametrize("steps", [0, 3, 5, 7])
def test_a_pickle_has_only_the_filled_rows(steps: int):
    replay = Replay(5, 2, 1)
    if steps:
        replay.add(record(steps))
    again = pickle.loads(pickle.dumps(replay))
    for each in (replay, again):
        each.add(record(3, first=50))
    assert held(again) == held(replay)
    assert len(pickle.dumps(Replay(1_000_000, 2, 1))) < 2000


def test_a_buffer_that_no_machine_has_room_for_is_refused():
    with refused("replay_size", 10**15, "GiB"):
        Replay(10**15, 28, 8)
