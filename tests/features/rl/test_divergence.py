"""Huge rewards: training changes the weights, or ends with the error of divergence."""

import numpy as np
import pytest
from composing import skipped_if_missing
from refusals import names_all

from qdsweep.config.requirements import require_packages
from qdsweep.domains.base import Actor, Record
from qdsweep.errors import QdsweepError
from qdsweep.features.learning import settings as config

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's overflows
# Powers of ten of rewards. The squares of the middle ones overflow in single precision.
POWERS = (0, 6, 12, 17, 18, 19, 20, 22, 26, 32, 38)


def trained(learner, scale: float) -> bool:
    """Teaches a learner, and returns whether this changed its weights; False if it diverges."""
    from learners import episode

    from qdsweep.algorithms.pytorch import arrays

    records = [episode(9, seed) for seed in range(6)]
    records = [each._replace(rewards=np.float32(scale) * np.sign(each.rewards)) for each in records]
    before = arrays(learner.model.policy.state_dict())
    try:
        learner.learn(records)
        learner.learn(records)
        assert np.isfinite(learner.policy).all()
    except QdsweepError as error:
        names_all(str(error), "has diverged", "huge rewards", "learning_rate")
        return False
    after = arrays(learner.model.policy.state_dict())
    assert any(not np.array_equal(before[key], after[key]) for key in before), scale
    return True


@pytest.mark.parametrize("optimiser", ["clipped", "not clipped"])
@pytest.mark.parametrize("name", ["ppo", "a2c", "impala", "dqn", "apex_dqn"])
def test_rewards_of_any_size_change_the_weights_or_end_the_run(name: str, optimiser: str):
    with skipped_if_missing():
        require_packages(name, "torch", "stable_baselines3")
    from learners import made

    keys = {"max_grad_norm": 1e30} if optimiser == "not clipped" else {}
    learned = [trained(made(name, **keys), 10.0**power) for power in POWERS]
    assert learned[0], "a reward of 1"
    assert "dqn" in name or not learned[-1], "their loss grows with its square"


@pytest.mark.parametrize("limit_is_end", [True, False])
def test_so_it_is_with_td3(limit_is_end: bool):
    from learners import episode

    from qdsweep.features.learning.td3 import TD3

    bounds = np.full(2, 1.0)
    actor = Actor(((8, 4), (2, 8)), True, "tanh", -bounds, bounds)
    settings = config.TD3(critic_hidden=[8], minibatch=8, limit_is_end=limit_is_end)
    learned = []
    for power in POWERS:
        learner = TD3(actor, settings, np.random.SeedSequence(3))
        before = learner.actor.copy(), learner.critics.copy()
        try:
            _teach(learner, [episode(9, seed) for seed in range(6)], 10.0**power)
        except QdsweepError as error:
            names_all(str(error), "TD3 has diverged", "huge rewards")
            learned.append(False)
            continue
        pairs = zip(before, (learner.actor, learner.critics), strict=True)
        assert not any(np.array_equal(old, new) for old, new in pairs), power
        learned.append(True)
    assert learned[0] and not learned[-1]


def _teach(learner, records: list[Record], scale: float) -> None:
    for record in records:
        learner.add(record._replace(rewards=np.float32(scale) * np.sign(record.rewards)))
    learner.train(6)
    solutions = learner.ascend(np.zeros((2, learner.actor.size)), 3, 8, 0.001)
    assert (solutions != 0).any(axis=1).all()
    assert learner.gradient(solutions[0], 8).any()


@pytest.mark.parametrize("power", POWERS)
def test_so_it_is_with_the_discount_model(power: int):
    with skipped_if_missing():
        require_packages("dms", "torch")
    from qdsweep.algorithms.pytorch import arrays
    from qdsweep.algorithms.pytorch.discount import DiscountModel

    settings = {"model_hidden": [8], "model_lr": 0.01, "train_epochs": 2, "train_cutoff_loss": 0.0}
    settings["train_batch_size"] = 8
    ranges = [(-1.0, 1.0), (-1.0, 1.0)]
    model = DiscountModel(settings, ranges, (0.0, 1.0), np.random.SeedSequence(3))
    before = arrays(model.model.state_dict())
    points = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    try:
        model.training_loop(points, points[:, 0] * 10.0**power)
    except QdsweepError as error:
        names_all(str(error), "diverged", "objective_range", "model_lr")
        assert power > 12
    else:
        after = arrays(model.model.state_dict())
        assert all(not np.array_equal(before[key], after[key]) for key in before)
        assert power < 38
