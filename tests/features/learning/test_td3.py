"""TD3 equals an implementation in torch, and has the same bits each time."""

import hashlib
import pickle

import numpy as np
import pytest
from refusals import refused
from td3_cases import CASES, OUTPUTS, actor, learner, outputs, record, solutions_of

from qdsweep.domains.base import TERMINATED, Record
from qdsweep.errors import QdsweepError
from qdsweep.features.learning.settings import TD3 as Settings
from qdsweep.features.learning.td3 import TD3, Network

# Of "hopper" after 20 training steps, with one BLAS thread and OpenBLAS' Haswell kernels.
GOLDEN = "69715801c3cba2bf"


def digest(made: TD3) -> str:
    parts = (made.actor, made.critics, made.target_actor, made.target_critics)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


@pytest.mark.parametrize("case", CASES)
def test_it_is_equal_to_torch(case: str):
    """The fixture is benchmarks/td3_torch.py's; double precision but for "hopper"."""
    made = learner(case)
    tolerance = 1e-6 if made.dtype == np.float32 else 1e-12
    with np.load(OUTPUTS) as expected:
        for name, values in outputs(made, solutions_of(made)).items():
            np.testing.assert_allclose(values, expected[f"{case}.{name}"], rtol=0, atol=tolerance)


def test_the_bits_are_the_same_on_every_machine_with_avx2():
    made = learner("hopper")
    made.train(20)
    assert digest(made) == GOLDEN


def test_an_actor_climbs_the_same_whatever_follows_it():
    made = learner("hopper")
    solutions = solutions_of(made)
    alone = pickle.loads(pickle.dumps(made)).ascend(solutions[:1], 2, 64, 1e-3)
    together = made.ascend(solutions, 2, 64, 1e-3)
    np.testing.assert_array_equal(alone[0], together[0])
    assert (together != solutions).any(axis=1).all()


def test_without_experience_nothing_is_learnt():
    _, network, settings = CASES["tanh"]
    made = TD3(network, settings, np.random.SeedSequence(1))
    before = digest(made)
    made.train(3)
    solutions = solutions_of(made)
    np.testing.assert_array_equal(made.ascend(solutions, 2, 5, 1e-3), solutions)
    assert not made.gradient(solutions[0], 10).any()
    assert digest(made) == before
    made.add(record(network, 6))  # fewer than a minibatch
    made.train(2)
    assert digest(made) != before


def test_it_finds_the_best_action_in_the_environments_units():
    """Episodes of one step, whose reward is best at (0, 2.5); bounds are [-2, 1] and [0, 4]."""
    network = actor([16], 2, 2)
    settings = Settings(critic_hidden=[32, 32], minibatch=64, actor_lr=3e-3, critic_lr=3e-3)
    made = TD3(network, settings, np.random.SeedSequence(1))
    rng = np.random.default_rng(2)
    actions = rng.uniform(network.low, network.high, (2000, 2)).astype(np.float32)
    observations = rng.standard_normal((4000, 2), np.float32)
    rewards = -((actions - [0, 2.5]) ** 2).sum(axis=1).astype(np.float32)
    made.add(Record(observations, actions, rewards, np.full(2000, TERMINATED, np.uint8)))
    made.train(600)
    layers = Network(network.shapes, ["tanh", "tanh"], True, 50)
    scaled = layers.forward(made.actor, observations[:50])
    actions = (network.low + network.high) / 2 + (network.high - network.low) / 2 * scaled
    assert np.abs(actions - [0, 2.5]).mean() < 0.1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_training_that_diverges_is_named_before_anything_plays_its_actors():
    made = learner("hopper")
    actors = solutions_of(made)
    made.critics[:] = np.nan
    with refused("TD3", kind=QdsweepError):
        made.ascend(actors, 2, 8, 1e-3)
    with refused("TD3", kind=QdsweepError):
        made.gradient(actors[0], 8)
    with refused("TD3", "critic_lr", kind=QdsweepError):
        made.train(2)
    with refused("TD3", "actor_lr", kind=QdsweepError):
        _ = made.greedy
