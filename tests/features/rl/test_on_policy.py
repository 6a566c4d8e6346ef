"""PPO and A2C make stable-baselines3's updates, from whole episodes of any worker."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from learners import episode, made, resumed_equals_straight, tell
from refusals import refused
from small_runs import digest_of, fresh

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import gymnasium as gym
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import CallbackList

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Record, Token
from qdsweep.errors import QdsweepError
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Stop
from qdsweep.features.rl.learners.on_policy import OnPolicyLearner

KINDS = {"ppo": PPO, "a2c": A2C}
# Discrete actions, with episodes that terminate or are truncated, and continuous actions.
TASKS = {"CartPole-v1": ("rl_cartpole", 18), "Pendulum-v1": ("pendulum", 15)}
ROWS, GREEDY = 3, 2


MLP = {"type": "mlp", "hidden": [16]}


def small(kind: str, task: str = "CartPole-v1", policy=MLP, **changes):
    preset, limit = TASKS[task]
    own = {"n_epochs": 2, "minibatch": 16, "decay_steps": 1000} if kind == "ppo" else {}
    keys = {"n_steps": 90, "vf_hidden": [16], "evaluate_every": 2, "evaluation_episodes": GREEDY}
    data = {
        "domain": {"preset": preset, "max_episode_steps": limit, "policy": policy},
        "algorithm": {"preset": kind, **keys, **own},
        "archive": {"dims": [5, 5]},
        "num_emitters": 1,
        "batch_size": ROWS,
        "iterations": 4,
    }
    return compose(data, changes)


class Watched(gym.Wrapper):
    """Records the rewards and the ends of episodes."""

    def __init__(self, env):
        super().__init__(env)
        self.rewards, self.ends, self.last = [], [], []

    def step(self, action):
        observation, reward, terminated, truncated, about = self.env.step(action)
        self.rewards.append(reward)
        if terminated or truncated:
            self.ends.append(len(self.rewards))
            self.last.append((observation, TERMINATED if terminated else CUT))
        return observation, reward, terminated, truncated, about


def sampled(kind: str, task: str, settings, steps: int):
    """stable-baselines3's own algorithm after this many sampled steps, and its environment."""
    keys = ("gamma", "gae_lambda", "ent_coef", "learning_rate", "normalize_advantage")
    own = {"batch_size": 16, "n_epochs": 2} if kind == "ppo" else {}
    env = Watched(gym.make(task, max_episode_steps=TASKS[task][1]))
    model = KINDS[kind](
        "MlpPolicy",
        env,
        seed=3,
        device="cpu",
        n_steps=steps,
        policy_kwargs={"net_arch": {"pi": [16], "vf": [16]}},
        **{key: getattr(settings, key) for key in keys},
        **own,
    )
    _, callback = model._setup_learn(steps, CallbackList([]))
    model.collect_rollouts(model.env, callback, model.rollout_buffer, steps)
    return model, env


def records(model, env, *, discrete: bool) -> list[Record]:
    """The episodes of its rollout buffer."""
    buffer, episodes = model.rollout_buffer, []
    for (start, stop), (last, how) in zip(pairwise([0, *env.ends]), env.last, strict=True):
        actions = buffer.actions[start:stop, 0]
        ends = np.zeros(stop - start, np.uint8)
        ends[-1] = how
        episodes.append(
            Record(
                np.concatenate([buffer.observations[start:stop, 0], last[None]]),
                np.eye(2, dtype=np.float32)[actions[:, 0].astype(int)] if discrete else actions,
                np.array(env.rewards[start:stop], np.float32),
                ends,
            )
        )
    return episodes


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("kind", "minibatch"), [("ppo", 16), ("a2c", None), ("a2c", 20)])
@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
def test_an_update_is_that_of_stable_baselines3_on_its_own_rollout(kind, minibatch, task):
    settings = small(kind, task, decay_steps=None, minibatch=minibatch).algorithm
    _, env = sampled(kind, task, settings, 120)
    model, env = sampled(kind, task, settings, env.ends[-1])  # the same, up to an end
    actor = make_domain(small(kind, task).domain).actor
    learner = OnPolicyLearner(actor, settings, np.random.SeedSequence(0))
    learner.model.policy.load_state_dict(model.policy.state_dict())
    learner._generators._numpy = np.random.get_state()
    episodes = records(model, env, discrete=actor.discrete)
    if task == "CartPole-v1":
        assert {how for _, how in env.last} == {TERMINATED, CUT}
    ours = learner._buffer(episodes)
    for name in ("observations", "actions", "rewards", "values", "log_probs", "advantages"):
        wanted = getattr(model.rollout_buffer, name)
        np.testing.assert_allclose(getattr(ours, name), wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    before = learner.policy
    if kind == "a2c":  # stable-baselines3's has no minibatches, but its buffer has
        get = model.rollout_buffer.get
        model.rollout_buffer.get = lambda batch_size: get(minibatch)
    model.train()
    learner.learn(episodes)
    assert np.abs(learner.policy - before).max() > 1e-4
    for name, wanted in model.policy.state_dict().items():
        updated = learner.model.policy.state_dict()[name]
        np.testing.assert_allclose(updated, wanted, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("lam", [1.0, 0.9])
def test_returns_of_five_steps_are_those_of_rollouts_of_five_steps(lam):
    """A row of 20 decisions in which an episode ends, and the 4 rollouts that it is cut into."""
    rng = np.random.default_rng(4)
    exp = small("a2c", return_steps=5, unroll=20, n_steps=5, gae_lambda=lam)
    learner = OnPolicyLearner(
        make_domain(exp.domain).actor, exp.algorithm, np.random.SeedSequence(0)
    )
    ends = np.zeros(20, np.uint8)
    ends[7], ends[19] = TERMINATED, CUT
    seen = rng.normal(size=(22, 4)).astype(np.float32)
    actions = np.eye(2, dtype=np.float32)[rng.integers(0, 2, 20)]
    rewards = rng.normal(size=20).astype(np.float32)
    record = Record(seen, actions, rewards, ends, token=Token())
    ours = learner._buffer([record])
    seen = np.delete(seen, 8, axis=0)  # after the end of the first episode
    value = learner.model.policy.predict_values
    starts = np.concatenate([[1], ends[:-1] == TERMINATED])
    for first in range(0, 20, 5):
        theirs = RolloutBuffer(
            5,
            learner.model.observation_space,
            learner.model.action_space,
            device="cpu",
            gae_lambda=lam,
            gamma=exp.algorithm.gamma,
        )
        for step in range(first, first + 5):
            with torch.no_grad():
                now = value(torch.from_numpy(seen[step : step + 1]))
            action, start = actions[step].argmax(keepdims=True), starts[step : step + 1]
            theirs.add(seen[step], action, rewards[step], start, now, torch.zeros(1))
        with torch.no_grad():
            after = value(torch.from_numpy(seen[first + 5 : first + 6]))
        theirs.compute_returns_and_advantage(after, ends[first + 4 : first + 5] == TERMINATED)
        for name in ("advantages", "returns"):
            own = getattr(ours, name)[first : first + 5]
            np.testing.assert_allclose(own, getattr(theirs, name), rtol=1e-4, atol=1e-5)


def test_returns_that_are_longer_than_every_row_change_nothing(tmp_path):
    outcomes = []
    for length in (None, 10**6):
        exp = small("a2c", return_steps=length)
        state, engine = fresh(exp, tmp_path)
        run_loop(exp, state, engine, Stop(), lambda *_: None)
        outcomes.append((digest_of(state), state.algorithm.learner.policy.tobytes()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("kind", "task", "workers"), [("ppo", "CartPole-v1", 2), ("a2c", "Pendulum-v1", 3)]
)
def test_stopped_anywhere_and_resumed_with_more_workers_it_is_the_same_run(
    kind, task, workers, tmp_path
):
    """An iteration has several batches, whose episodes wait for the update at its end."""
    stops = 0, ROWS + GREEDY, ROWS + GREEDY + 1  # before, between and within batches
    resumed_equals_straight(small(kind, task), stops, workers, tmp_path)


def test_batches_follow_one_another_until_enough_is_sampled(tmp_path):
    exp = small("a2c")
    state, engine = fresh(exp, tmp_path)
    made, batches, trained, played = state.algorithm, [], [], []
    assert made.metrics()["exploring_return"] is None
    learn = made.learner.learn
    made.learner.learn = lambda episodes: (trained.append(episodes), learn(episodes))
    for iteration in range(3):
        steps = 0
        while (asked := made.ask()) is not None:
            assert len(trained) == iteration, "the iteration learns at its end"
            assert (asked.solutions == made.learner.policy).all()
            greedy = len(asked.solutions) - ROWS
            scales = [1.0] * ROWS + [0.0] * greedy
            assert asked.exploration.scale[:, 0].tolist() == scales
            batches.append((iteration, greedy))
            before = made.metrics()
            result = tell(made, engine.domain, asked, 100 * len(batches))
            played += result.objective[:ROWS].tolist()
            after = made.metrics()
            assert after.pop("exploring_return") == np.mean(played[-100:])
            if greedy:
                assert after["return"] == result.objective[ROWS:].mean()
            else:
                assert after.items() <= before.items()
            steps += result.steps[:ROWS].sum()
        assert steps - result.steps[:ROWS].sum() < 90 <= steps
        assert sum(len(record.rewards) for record in trained[iteration]) == steps
    assert [greedy for iteration, greedy in batches if greedy] == [GREEDY] * 2
    assert {iteration for iteration, greedy in batches if greedy} == {0, 2}
    assert len(batches) > 3


def test_the_exploring_return_is_of_the_latest_100_episodes_and_survives_a_reload(tmp_path):
    """An evaluation may have several episodes; one that has failed has none."""
    state, engine = fresh(small("a2c", n_steps=10_000), tmp_path)  # it learns from none of them
    asked = state.algorithm.ask()
    result = tell(state.algorithm, engine.domain, asked)
    ends = np.array([GOES_ON, TERMINATED, CUT], np.uint8)
    made, returns = state.algorithm, result.objective[:ROWS].tolist()
    for number in range(40):
        rewards = np.float32([number, 0.25, -number])
        record = result.experience[0]._replace(rewards=rewards, ends=ends)
        rows = [record, None, *result.experience[2:]]
        made.tell(asked._replace(seeds=range(len(rows))), result._replace(experience=rows))
        returns += [number + 0.25, -number, result.objective[2]]
        made = pickle.loads(pickle.dumps(made))
        assert made.metrics()["exploring_return"] == pytest.approx(np.mean(returns[-100:]))
    assert len(returns) > 120


def test_settings_change_during_the_run_and_weights_stay(tmp_path):
    exp = small("ppo", schedule="2 algorithm.learning_rate=1e-9 batch_size=5")
    state, engine = fresh(exp, tmp_path)
    policies = []
    run_loop(
        exp, state, engine, Stop(), lambda now, _: policies.append(now.algorithm.learner.policy)
    )
    assert np.abs(policies[1] - policies[0]).max() > 1e-4
    assert 0 < np.abs(policies[3] - policies[1]).max() < 1e-6
    assert state.algorithm.batch_size == 5


def test_rates_fall_linearly_and_stay_at_zero(tmp_path):
    exp = small("ppo", decay_steps=200)
    state, engine = fresh(exp, tmp_path)
    learner, rates = state.algorithm.learner, {}

    def after(*_):
        rates[learner.steps] = learner.model.policy.optimizer.param_groups[0]["lr"]

    run_loop(exp, state, engine, Stop(), after)
    for steps, rate in rates.items():
        assert rate == pytest.approx(exp.algorithm.learning_rate * max(1 - steps / 200, 0))
    assert rate == 0


def test_a_linear_policy_has_no_biases_and_gets_none(tmp_path):
    exp = small("a2c", policy={"type": "linear"})
    state, engine = fresh(exp, tmp_path)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    learner = state.algorithm.learner
    assert learner.policy.shape == (engine.domain.solution_dim,)
    assert not learner.model.policy.action_net.bias.any()


def test_a_single_transition_at_the_end_is_no_minibatch_of_a2c():
    exp = small("a2c", minibatch=8)
    actor = make_domain(exp.domain).actor
    learner = OnPolicyLearner(actor, exp.algorithm, np.random.SeedSequence(0))
    seen = np.random.default_rng(0).normal(size=(18, 4)).astype(np.float32)
    ends = np.array([*[GOES_ON] * 16, TERMINATED], np.uint8)
    rewards = np.arange(17, dtype=np.float32)
    learner.learn([Record(seen, np.eye(2, dtype=np.float32)[[0] * 17], rewards, ends)])
    assert exp.algorithm.normalize_advantage and np.isfinite(learner.policy).all()


@pytest.mark.parametrize("minibatch", [None, 8])
def test_an_iteration_of_a_single_transition_trains_a2c(minibatch):
    learner = made("a2c", minibatch=minibatch, normalize_advantage=True)
    before = learner.policy
    learner.learn([episode(1)])
    assert np.isfinite(learner.policy).all() and (learner.policy != before).any()
    learner.learn([episode(20)])
    assert learner.model.normalize_advantage


@pytest.mark.parametrize("kind", ["ppo", "a2c", "impala", "dqn", "apex_dqn"])
def test_a_learner_that_has_diverged_is_refused_by_name(kind):
    learner = made(kind, **{"algorithm.learning_rate": 1e30})
    with refused(kind, "NaN", "learning_rate", kind=QdsweepError):
        for seed in range(4):
            learner.learn([episode(40, seed)])
        assert learner.policy is None
