"""DQN on whole episodes: exploration, training times, and training equal to SB3's."""

import numpy as np
import pytest
from composing import with_algorithm

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import torch
from learners import episode, made
from refusals import refused
from stable_baselines3.common.buffers import ReplayBuffer

from qdsweep.algorithms import make_algorithm
from qdsweep.cli import main
from qdsweep.config import domain_keys as policies
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, Actor
from qdsweep.domains.policies import Policy


def counted(learner):
    """The gradient steps of each training."""
    steps = []
    train = learner.model.train
    learner.model.train = lambda count, size: (steps.append(count), train(count, size))
    return steps


def test_the_policy_is_the_network_of_the_values():
    learner = made()
    policy = Policy(policies.MLP(type="mlp", hidden=[8], activation="relu"), 4, 2)
    x = np.random.default_rng(1).normal(size=4)
    values = learner.model.q_net(torch.tensor(x[None], dtype=torch.float32)).detach().numpy()[0]
    assert learner.policy.dtype == np.float64 and len(learner.policy) == policy.solution_dim
    np.testing.assert_allclose(policy.network(learner.policy)(x), values, atol=1e-6)


def test_a_linear_policy_has_no_biases_however_long_it_learns():
    learner = made(actor=Actor(((2, 4),), False, "tanh", None, None, discrete=True))
    before = learner.policy
    learner.learn([episode(60)])
    assert before.shape == (8,) and (learner.policy != before).all()
    x = torch.zeros((1, 4))
    assert learner.model.q_net(x).abs().max() == learner.model.q_net_target(x).abs().max() == 0


@pytest.mark.parametrize("starts, warned", [(400, True), (399, False)])
def test_a_budget_that_ends_before_it_learns_is_named(tmp_path, capsys, starts, warned):
    words = ["--set", "algorithm=dqn", "--set", f"learning_starts={starts}", "--set", "steps=400"]
    assert main(["run", "rl_cartpole", *words, "--out", str(tmp_path / "out")]) == 0
    assert ("learning_starts" in capsys.readouterr().err) == warned


def test_random_actions_become_rarer_with_the_environment_steps():
    learner = made(
        exploration_steps=100, exploration_initial_eps=0.9, exploration_final_eps=0.1, train_freq=99
    )
    seen = []
    for _ in range(4):
        exploration = learner.exploration(3)
        assert exploration.kind == "epsilon" and exploration.scale.shape == (3, 1)
        assert len(set(exploration.scale.ravel())) == 1
        seen.append(exploration.scale[0, 0])
        learner.learn([episode(25), episode(25)])
    assert seen == pytest.approx([0.9, 0.5, 0.1, 0.1])


@pytest.mark.parametrize(
    ("preset", "own"),
    [("impala", {}), *((name, {"buffer_size": 50}) for name in ("dqn", "apex_dqn"))],
)
def test_a_return_or_an_unroll_may_be_longer_than_any_episode(preset, own):
    policies = []
    for n_steps in (50, 10**13):
        learner = made(preset, n_steps=n_steps, **own)
        for seed in range(3):
            learner.learn([episode(30, seed)])
        policies.append(learner.policy.tobytes())
    assert policies[0] == policies[1]


def test_it_trains_in_proportion_to_the_steps_and_not_before_it_starts():
    learner = made(learning_starts=30)
    trained = counted(learner)
    learner.learn([])
    learner.learn([episode(14), episode(16)])
    assert trained == []
    learner.learn([episode(12), episode(13)])
    assert trained == [3, 3]
    learner.learn([episode(5)])  # with the remaining 5
    assert trained == [3, 3, 3] and learner.replay.size == learner.steps == 60


def test_the_target_network_follows_at_its_interval():
    learner = made(target_update_interval=30, gradient_steps=1)

    def difference():
        networks = learner.model.q_net, learner.model.q_net_target
        values, target = (torch.cat([p.ravel() for p in net.parameters()]) for net in networks)
        return float((values - target).detach().abs().max())

    learner.learn([episode(20)])
    assert difference() > 0
    followed = []
    polyak = learner._follow
    learner._follow = lambda steps: (polyak(steps), followed.append(difference()))
    learner.learn([episode(40)])
    assert [distance == 0 for distance in followed] == [True, False, False, True]


def test_its_training_is_that_of_stable_baselines3():
    learner, other = (made(n_steps=1, decay_steps=None) for _ in range(2))
    records = [episode(20, 1), episode(30, 2, CUT)]
    learner.learn(records)
    model = other.model
    buffer = ReplayBuffer(1000, model.observation_space, model.action_space, "cpu")
    for record in records:
        for t, end in enumerate(record.ends):
            step = record.observations[t], record.observations[t + 1], record.actions[t].argmax()
            infos = [{"TimeLimit.truncated": end == CUT}]
            buffer.add(*step, record.rewards[t], end != GOES_ON, infos)
    model.replay_buffer = buffer
    model.replay_buffer.full = False
    with other._generators.used():
        for _ in range(5):
            model.train(3, 8)
    np.testing.assert_allclose(learner.policy, other.policy, rtol=1e-5, atol=1e-6)
    assert np.abs(learner.policy - made().policy).max() > 1e-4


def test_vectors_are_refused_by_name():
    for name in ("dqn", "apex_dqn"):
        experiment = with_algorithm(name)
        domain = make_domain(experiment.domain)
        domain.actor = domain.actor._replace(discrete=False)
        with refused(name, "ppo", "a2c"):
            make_algorithm(experiment, domain, None)
