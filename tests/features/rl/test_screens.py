"""Learners of screens: frames once, stacks where they are used, stable-baselines3's networks."""

import pickle

import numpy as np
import psutil
import pytest
from learners import BREAKOUT, resumed_equals_straight
from refusals import refused
from small_runs import fresh

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
pytest.importorskip("ale_py", reason="the Arcade Learning Environment: `make extras`")
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.buffers import NStepReplayBuffer, RolloutBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import NatureCNN

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Exploration, Record
from qdsweep.experiment.loop import ask
from qdsweep.features.rl.learners.dqn import ApexDQNLearner, DQNLearner, NStepReplay
from qdsweep.features.rl.learners.on_policy import OnPolicyLearner
from qdsweep.features.rl.learners.steps import join

IMAGE = (4, 12, 12)
GAMMA = 0.99
SMALL = {
    "ppo": {"n_steps": 30, "minibatch": 16, "n_epochs": 2, "vf_hidden": []},
    "a2c": {"n_steps": 30, "vf_hidden": [6]},
    "impala": {"n_steps": 4, "minibatch": 3, "vf_hidden": []},
    "dqn": {"buffer_size": 40, "train_freq": 20, "gradient_steps": 2, "learning_starts": 0},
    "apex_dqn": {"buffer_size": 40, "train_freq": 20, "gradient_steps": 2, "learning_starts": 0},
}


def small(kind: str, domain=(), **changes):
    data = {
        "domain": {**BREAKOUT, **dict(domain)},
        "algorithm": {"preset": kind, "evaluation_episodes": 1, "minibatch": 8, **SMALL[kind]},
        "archive": {"dims": [2, 2]},
        "num_emitters": 1,
        "batch_size": 2,
        "iterations": 3,
    }
    if kind == "a2c":
        del data["algorithm"]["minibatch"]
    return compose(data, changes)


def episode(steps: int, seed: int, end: int = TERMINATED) -> Record:
    """Random frames, and one-hot actions."""
    rng, pixels = np.random.default_rng(seed), IMAGE[1] * IMAGE[2]
    ends = np.full(steps, GOES_ON, np.uint8)
    ends[-1] = end
    return Record(
        rng.integers(0, 256, (steps + 1, pixels), np.uint8),
        np.eye(3, dtype=np.float32)[rng.integers(0, 3, steps)],
        rng.normal(size=steps).astype(np.float32),
        ends,
    )


def stacked(record: Record) -> np.ndarray:
    """The stack of each frame of an episode by its definition, in which the first is repeated."""
    side = int(record.observations.shape[1] ** 0.5)
    frames = record.observations.reshape(-1, side, side)
    padded = np.concatenate([np.repeat(frames[:1], 3, axis=0), frames])
    return np.stack([padded[row : row + 4] for row in range(len(frames))])


def test_a_stack_has_the_latest_frames_of_its_episode():
    records = [episode(6, 0, CUT), episode(1, 1), episode(3, 2)]
    steps = join(records, discrete=True, image=IMAGE)
    every = np.arange(10)
    wanted = [stacked(record) for record in records]
    np.testing.assert_array_equal(
        steps.observations[every], np.concatenate([stacks[:-1] for stacks in wanted])
    )
    np.testing.assert_array_equal(
        steps.following[every], np.concatenate([stacks[1:] for stacks in wanted])
    )
    assert len(steps.observations.frames) == 13, "a frame is there once"
    assert steps.at(np.array([2, 7])).observations.shape == (2, *IMAGE)


def their_buffer(capacity: int, records: list[Record], n_steps: int, image=IMAGE):
    """stable-baselines3's own buffer of stacks with the same transitions."""
    space = spaces.Box(0, 255, image, np.uint8)
    kinds = space, spaces.Discrete(records[0].actions.shape[1])
    buffer = NStepReplayBuffer(capacity, *kinds, device="cpu", n_steps=n_steps, gamma=GAMMA)
    for record in records:
        stacks = stacked(record)
        for step, end in enumerate(record.ends):
            buffer.add(
                stacks[step],
                stacks[step + 1],
                record.actions[step].argmax(keepdims=True),
                record.rewards[step],
                np.array([end != GOES_ON]),
                [{"TimeLimit.truncated": end == CUT}],
            )
    return buffer


@pytest.mark.parametrize("capacity", [9, 14, 200])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_replay_of_frames_gives_what_stable_baselines3s_replay_of_stacks_gives(capacity, n_steps):
    lengths = (7, 5, 1, 25, 6, 13, 2)
    records = [episode(n, seed, (TERMINATED, CUT)[seed % 2]) for seed, n in enumerate(lengths)]
    replay = NStepReplay(capacity, 144, 3, n_steps, GAMMA, IMAGE)
    for count, record in enumerate(records, 1):
        replay.add(record)
        if count in (2, 4):
            replay = pickle.loads(pickle.dumps(replay))
        theirs = their_buffer(capacity, records[:count], n_steps)
        assert replay.size == theirs.size()
        age = np.arange(replay.size)  # an episode that is too long starts elsewhere
        for name, ours, wanted in zip(
            ("observations", "actions", "next", "dones", "rewards", "discounts"),
            replay.buffer._get_samples((replay.buffer.pos + age) % len(age)),
            theirs._get_samples((theirs.pos + age) % len(age)),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, wanted, err_msg=name)


def test_only_what_is_filled_is_pickled():
    replay = NStepReplay(100_000, 144, 3, 1, GAMMA, IMAGE)
    replay.add(episode(10, 0))
    assert len(pickle.dumps(replay)) < 10_000


def test_what_no_memory_holds_is_refused_before_anything_runs():
    from qdsweep.config.memory import require_memory_of

    for kind, key in (("dqn", "buffer_size"), ("dqn", "minibatch"), ("ppo", "n_steps")):
        require_memory_of(small(kind, **{key: 10**6}))
        with refused(f"algorithm.{key}", 10**8):
            require_memory_of(small(kind, **{key: 10**8}))
    with refused("algorithm.buffer_size", 10**8):
        NStepReplay(10**8, 7056, 3, 1, GAMMA, (4, 84, 84))


@pytest.fixture(scope="module")
def nature():
    """A domain with the network of Mnih et al. (2015), and exploring episodes of it."""
    domain = make_domain(
        small("ppo", {"policy": {"type": "convolutional", "network": "mnih2015"}}).domain
    )
    solutions, seeds = np.zeros((2, domain.solution_dim)), np.arange(2, dtype=np.uint32)
    exploration = Exploration("softmax", np.ones((2, 1)))
    played = domain.evaluate(solutions, seeds, experience=True, exploration=exploration)
    rewards = np.random.default_rng(0)
    return domain, [
        record._replace(rewards=rewards.normal(size=15).astype(np.float32))
        for record in played.experience
    ]


def stable_baselines3s(kind: str, settings):
    """Its own algorithm with its CnnPolicy."""
    cls, own = {
        "ppo": (PPO, {"batch_size": 16, "n_epochs": 2}),
        "a2c": (A2C, {}),
        "dqn": (DQN, {"buffer_size": 1}),
    }[kind]
    keys = ("gamma", "gae_lambda", "learning_rate", "normalize_advantage", "max_grad_norm")
    given = {key: getattr(settings, key) for key in keys if hasattr(settings, key)}
    torch.manual_seed(1)
    model = cls("CnnPolicy", None, device="cpu", _init_setup_model=False, **given, **own)
    model.observation_space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    model.action_space = spaces.Discrete(4)
    model.n_envs = 1
    model._setup_model()
    model.set_logger(Logger(None, []))
    assert isinstance((model.q_net if kind == "dqn" else model.policy).features_extractor,
                      NatureCNN)  # fmt: skip
    return model


def its_rollout(model, records: list[Record]):
    """Its rollout buffer of stacks, filled as its `collect_rollouts` does."""
    buffer = RolloutBuffer(
        sum(len(record.rewards) for record in records),
        model.observation_space,
        model.action_space,
        device="cpu",
        gae_lambda=model.gae_lambda,
        gamma=model.gamma,
    )
    for record in records:
        stacks = torch.from_numpy(stacked(record))
        actions = torch.from_numpy(record.actions.argmax(axis=1))
        with torch.no_grad():
            values, log_probs, _ = model.policy.evaluate_actions(stacks[:-1], actions)
            last = float(model.policy.predict_values(stacks[-1:]))
        rewards = record.rewards.copy()
        assert record.ends[-1] == CUT
        rewards[-1] += model.gamma * last
        for step in range(len(rewards)):
            buffer.add(
                stacks[step].numpy(),
                actions[step].numpy(),
                rewards[step],
                np.array([step == 0]),
                values[step],
                log_probs[step],
            )
    buffer.compute_returns_and_advantage(torch.zeros(1), np.ones(1))
    return buffer


@pytest.mark.parametrize("kind", ["ppo", "a2c", "dqn"])
def test_an_update_is_that_of_stable_baselines3_on_the_same_screens(kind, nature):
    domain, records = nature
    settings = small(kind, vf_hidden=[]).algorithm if kind == "a2c" else small(kind).algorithm
    model = stable_baselines3s(kind, settings)
    cls = DQNLearner if kind == "dqn" else OnPolicyLearner
    learner = cls(domain.actor, settings, np.random.SeedSequence(0))
    learner.model.policy.load_state_dict(model.policy.state_dict())
    learner._generators._numpy = np.random.get_state()
    if kind == "dqn":
        model.replay_buffer = their_buffer(40, records, settings.n_steps, (4, 84, 84))
        for record in records:
            learner._add(record)
        with learner._generators.used():
            learner._train(3)
        model.train(3, settings.minibatch)
    else:
        model.rollout_buffer = its_rollout(model, records)
        learner.learn(records)
        model.train()
    for name, wanted in model.policy.state_dict().items():
        updated = learner.model.policy.state_dict()[name]
        np.testing.assert_allclose(updated, wanted, rtol=1e-3, atol=1e-6, err_msg=name)
    fresh_model = stable_baselines3s(kind, settings)
    assert any(
        (before != after).any()
        for before, after in zip(
            fresh_model.policy.parameters(), model.policy.parameters(), strict=True
        )
    )


@pytest.mark.parametrize("network", ["mnih2013", "mnih2015"])
@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_workers_act_as_the_learners_network(kind, network, nature):
    """Torch and numpy add in different orders, so outputs differ in the last bits of float32."""
    _, records = nature
    exp = small(kind, {"policy": {"type": "convolutional", "network": network}})
    domain = make_domain(exp.domain)
    cls = DQNLearner if kind == "dqn" else OnPolicyLearner
    learner = cls(domain.actor, exp.algorithm, np.random.SeedSequence(2))
    for parameter in learner.model.policy.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    assert learner.policy.dtype == np.float32 and len(learner.policy) == domain.solution_dim
    network = domain._policy.network(learner.policy)
    policy = learner.model.policy
    for record in records:
        stacks = torch.from_numpy(stacked(record))
        with torch.no_grad():
            if kind == "dqn":
                theirs = learner.model.q_net(stacks).numpy()
            else:
                theirs = policy.action_net(policy.extract_features(stacks)).numpy()
        seen = stacks.numpy() / np.float32(255)
        ours = np.array([network(stack.ravel()).copy() for stack in seen])
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        # A greedy action differs at most where two outputs are closer than that.
        best, second = np.sort(theirs, axis=1)[:, :-3:-1].T
        clear = best - second > 1e-4
        assert clear.any()
        assert (ours.argmax(axis=1) == theirs.argmax(axis=1))[clear].all()


def test_new_screens_get_their_priorities_in_blocks_that_memory_holds():
    exp, seen = small("apex_dqn", buffer_size=600, learning_starts=1000), []
    seed = np.random.SeedSequence(0)
    learner = ApexDQNLearner(make_domain(exp.domain).actor, exp.algorithm, seed)
    learner.model.q_net.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    frames = np.random.default_rng(0).integers(0, 256, (601, 7056), np.uint8)
    actions = np.eye(4, dtype=np.float32)[[0] * 600]
    learner.learn([episode(600, 0)._replace(observations=frames, actions=actions)])
    assert sum(seen) == 2 * 600 and max(seen) <= 256
    assert (learner.priorities[np.arange(600)] > 0).all()


@pytest.mark.parametrize("kind", SMALL)
def test_stopped_anywhere_and_resumed_with_more_workers_it_is_the_same_run(kind, tmp_path):
    exp = small(kind, clip_rewards=True)
    straight = resumed_equals_straight(exp, (1, 4), 2, tmp_path)
    first = make_algorithm(exp, make_domain(exp.domain), tmp_path).learner.policy
    assert (straight.algorithm.learner.policy != first).any()


def test_freed_memory_goes_back_to_the_system_after_learning():
    """Otherwise gaps between blocks in use stay with the process, and long runs grow."""
    experiment, process = small("ppo"), psutil.Process()
    algorithm = make_algorithm(experiment, make_domain(experiment.domain), None)
    blocks = [b"x" * 100_000 for _ in range(3000)]
    del blocks[:-1]
    before = process.memory_info().rss
    algorithm.learn()
    assert before - process.memory_info().rss > 200e6


def test_learners_see_the_signs_of_rewards_and_the_return_has_the_rewards(tmp_path):
    exp = small("ppo", clip_rewards=True)
    made, engine = fresh(exp, tmp_path)[0].algorithm, fresh(exp, tmp_path)[1]
    asked = made.ask()
    played = engine.domain.evaluate(asked.solutions, np.arange(3, dtype=np.uint32), experience=True)
    rewards = np.array([-3, 0, 7] * 5, np.float32)
    records = [record._replace(rewards=rewards) for record in played.experience]
    learned = []
    made.learner.learn = learned.extend
    made.tell(
        asked._replace(seeds=np.arange(3)),
        played._replace(experience=records, objective=np.full(3, 20.0)),
    )
    made.learn()
    assert [record.rewards.tolist() for record in learned] == [[-1, 0, 1] * 5] * 2
    assert made.metrics()["return"] == made.metrics()["exploring_return"] == 20


def test_the_policy_of_a_batch_travels_in_single_precision(tmp_path):
    exp = small("ppo", {"policy": {"type": "convolutional", "network": "mnih2015"}})
    state, _ = fresh(exp, tmp_path)
    ask(exp, state)
    batch = state.pending.batch
    weights = batch.solutions.shape[1]
    assert len(pickle.dumps(batch)) < 4 * weights + 10_000
    assert pickle.loads(pickle.dumps(batch)).solutions.dtype == np.float32
