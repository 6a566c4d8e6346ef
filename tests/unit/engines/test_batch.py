"""A pickled batch, as it is sent to a worker."""

import pickle

import numpy as np

from qdsweep.engines.batch import Batch


def test_one_policy_for_all_episodes_travels_once() -> None:
    policy = np.random.default_rng(1).normal(size=5000)
    seeds = np.arange(64, dtype=np.uint32)
    shared = Batch(np.broadcast_to(policy, (64, 5000)), seeds, experience=True)
    many = Batch(np.tile(policy, (64, 1)), seeds, experience=True)
    sent = pickle.dumps(shared.part(slice(8, 40)), protocol=5)
    assert len(sent) < 2 * policy.nbytes < len(pickle.dumps(many, protocol=5))
    received = pickle.loads(sent)
    assert isinstance(received, Batch)
    assert np.array_equal(received.solutions, many.solutions[8:40])
    assert np.array_equal(received.seeds, seeds[8:40])
    assert received.experience
    assert received.gradients is False


def test_a_batch_of_many_solutions_is_the_same_behind_the_wire() -> None:
    solutions = np.arange(12.0).reshape(4, 3)
    received = pickle.loads(pickle.dumps(Batch(solutions, np.arange(4, dtype=np.uint32), True)))
    assert np.array_equal(received.solutions, solutions)
    assert received.gradients is True
