"""Observations and rewards of learners are normalised as stable-baselines3's VecNormalize does."""

import numpy as np
import pytest
from in_process import compute_run
from learners import resumed_equals_straight
from refusals import refused
from small_runs import StopsAfter, fresh
from support import REPO

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from qdsweep import load
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import refuse_idle
from qdsweep.config.files import read_yaml
from qdsweep.config.sweep import Reevaluate
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Exploration, Record, Token, Unroll
from qdsweep.domains.normalizer import Normalizer, context_of, merge, tally
from qdsweep.elites.reevaluation import reevaluate
from qdsweep.engines.batch import Batch
from qdsweep.engines.pool import Serial
from qdsweep.experiment import run as run_module
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.fresh_seeds import fresh_seeds
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.features.rl.reward_scale import RewardScale
from qdsweep.features.rollouts.rollout import rollout
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import Run
from qdsweep.runs.snapshot import snapshot

ROWS, GREEDY = 3, 2
POLES = {
    "type": "gymnasium",
    "env": "CartPole-v1",
    "max_episode_steps": 18,
    "policy": {"type": "mlp", "hidden": [8]},
    "normalize_observations": True,
    "objective_range": [0, 500],
    "measures": [
        {"measure": "max_observation", "component": 0, "range": [-2, 2]},
        {"measure": "mean_abs_action", "component": 0, "range": [0, 1]},
    ],
}
PENDULUM = {
    **POLES,
    "env": "Pendulum-v1",
    "max_episode_steps": 15,
    "objective_range": [-300, 0],
}
TASKS = {"CartPole-v1": POLES, "Pendulum-v1": PENDULUM}


def small(kind="ppo", domain=PENDULUM, **changes):
    own = {"n_epochs": 2} if kind == "ppo" else {}
    steps = {} if kind == "impala" or "unroll" in changes else {"n_steps": 90}
    keys = {"minibatch": 16, "vf_hidden": [16], "evaluate_every": 2, "evaluation_episodes": GREEDY}
    data = {
        "domain": domain,
        "algorithm": {"preset": kind, "normalize_rewards": True, **keys, **steps, **own},
        "archive": {"dims": [5, 5]},
        "num_emitters": 1,
        "batch_size": ROWS,
        "iterations": 4,
    }
    return compose(data, changes)


class Played(VecEnv):
    """Environments that give a stream: see `stream`."""

    def __init__(self, observations, rewards, ends):
        self.stream = observations, rewards, ends
        self.step = 0
        box = spaces.Box(-np.inf, np.inf, observations.shape[2:], np.float32)
        super().__init__(observations.shape[1], box, spaces.Discrete(2))

    def reset(self):
        return self.stream[0][0]

    def step_async(self, actions):
        self.step += 1

    def step_wait(self):
        observations, rewards, ends = self.stream
        done = ends[self.step - 1] != GOES_ON
        return observations[self.step], rewards[self.step - 1], done, [{} for _ in done]

    def _unknown(self, *_):
        return [None] * self.num_envs

    close = env_is_wrapped = env_method = get_attr = set_attr = _unknown


def stream(steps, seed=0):
    """Returns observations ``(t + 1, n, o)``, rewards and ends ``(t, n)`` of environments."""
    rng = np.random.default_rng(seed)
    observations = (5 + rng.normal(size=(steps + 1, ROWS, 2)) * [0.01, 30]).astype(np.float32)
    rewards = (rng.normal(size=(steps, ROWS)) * 40 - 7).astype(np.float32)
    ends = rng.choice([GOES_ON, TERMINATED, CUT], (steps, ROWS), p=[0.9, 0.06, 0.04])
    return observations, rewards, ends.astype(np.uint8)


def row_of(part, row):
    """Returns the record of a row, which plays a part of the stream."""
    observations, rewards, ends = (values[:, row] for values in part)
    none = np.zeros((len(rewards), 1), np.float32)
    return Record(observations, none, rewards, ends)


def test_the_statistics_and_the_rewards_are_those_of_vec_normalize():
    """Its rows play the same stream in batches, with pauses between, where episodes continue."""
    gamma, steps, whole = 0.9, 60, stream(240)
    theirs = VecNormalize(Played(*whole), gamma=gamma)
    # Their statistics begin with a ten thousandth of an observation, which is 0.
    theirs.obs_rms, theirs.ret_rms = RunningMeanStd(0.0, (2,)), RunningMeanStd(0.0)
    theirs.reset()
    scale, context = RewardScale(), np.zeros(5)
    for start in range(0, 240, steps):
        part = [values[start : start + steps] for values in whole]
        continues = [bool(end == GOES_ON) for end in part[2][-1]]
        records = [row_of(part, row) for row in range(ROWS)]
        for record in records:
            context = merge(context, tally(record.observations.astype(np.float64)))
        scaled = scale.scale(records, continues, gamma)
        for _ in range(steps):
            observed, *_ = theirs.step(np.zeros(ROWS))
        np.testing.assert_allclose(scale.moments[0], theirs.ret_rms.count)
        for row, record in enumerate(scaled):
            assert record.rewards.dtype == np.float32
            expected = theirs.normalize_reward(part[1][:, row])
            np.testing.assert_allclose(record.rewards, expected, rtol=1e-6)
        assert scale.returns == pytest.approx(theirs.returns)
    # They have counted the observation of the next batch, and not yet our last one.
    last = tally(whole[0][-1].astype(np.float64))
    known = Normalizer(merge(context, last))
    np.testing.assert_allclose(known.mean, theirs.obs_rms.mean, rtol=1e-6)
    np.testing.assert_allclose(known.std, np.sqrt(theirs.obs_rms.var + theirs.epsilon), rtol=1e-5)
    for row in range(ROWS):
        ours = known(whole[0][-1, row].astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(ours, observed[row], atol=1e-5)


def test_the_first_rewards_are_clipped_and_the_end_of_an_episode_forgets():
    scale, none = RewardScale(), np.zeros((4, 1), np.float32)
    ends = np.array([GOES_ON, TERMINATED, GOES_ON, CUT], np.uint8)
    rewards = np.array([0, 0, 0, 1], np.float32)
    (record,) = scale.scale([Record(none, none, rewards, ends)], [False], 0.5)
    assert record.rewards[3] == pytest.approx(1 / np.sqrt(3 / 16))
    assert scale.returns == [0.0]
    many = RewardScale()
    zeros = np.zeros(10_000, np.float32)
    rewards = np.append(zeros, np.float32(3))
    ends = np.append(np.full(10_000, GOES_ON, np.uint8), np.uint8(CUT))
    (record,) = many.scale([Record(none, none, rewards, ends)], [False], 0.5)
    assert record.rewards[-1] == 10.0


def test_a_failed_row_keeps_the_place_of_its_return():
    scale = RewardScale()
    part = [values[:20] for values in stream(20)]
    part[2][:] = GOES_ON
    records = [row_of(part, row) for row in range(ROWS)]
    assert len(scale.scale(records, [True] * ROWS, 0.9)) == ROWS
    before = scale.returns
    assert all(before)
    _, only, _ = scale.scale([None, records[1], None], [True, True, False], 0.9)
    assert scale.returns[0] == before[0] and scale.returns[2] == 0.0
    alone = scale.returns[1]
    start = before[1]
    for reward in records[1].rewards.tolist():
        start = start * 0.9 + reward
    assert alone == start and len(only.rewards) == 20
    assert len(scale.scale([*records, records[0]], [False] * 4, 0.9)) == 4, "a larger batch"


def explored(task, context, episodes=2, unroll=None):
    """Plays three rows, of which the second one is greedy, and the others may be an unroll.

    Returns:
        The domain, the evaluation, all observations of its environment, and what networks saw.
    """
    domain = make_domain(small(domain={**TASKS[task], "episodes": episodes}).domain)
    rng, raw, inputs = np.random.default_rng(4), [], []
    network, vector = domain._policy.network, domain._vector

    def watched(solution):
        forward = network(solution)

        def see(x):
            inputs.append(x.copy())
            return forward(x)

        return see

    def observed(given):
        raw.append(vector(given))
        return raw[-1].copy()

    domain._policy.network, domain._vector = watched, observed
    kind = "softmax" if task == "CartPole-v1" else "gaussian"
    exploration = Exploration(kind, np.array([[1.0], [0.0], [0.5]]))
    solutions, seeds = rng.normal(size=(3, domain.solution_dim)), np.arange(3, dtype=np.uint32)
    wanted = {"experience": True, "exploration": exploration, "unroll": unroll}
    result = domain.evaluate(solutions, seeds, context, **wanted)
    return domain, result, np.array(raw), np.array(inputs)


@pytest.fixture
def statistics():
    """The context of some observations of each task, of which one component is nearly constant."""
    seen = {"CartPole-v1": [0.3, 0.01, 0.1, 1.4], "Pendulum-v1": [0.7, 0.01, 5.0]}
    rng = np.random.default_rng(9)
    return {
        task: tally(0.2 + rng.normal(size=(50, len(scales))) * scales)
        for task, scales in seen.items()
    }


UNROLL = Unroll(25, [Token(), None, Token(3, ())], 2)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("unroll", [None, UNROLL], ids=["episodes", "unrolls"])
def test_a_record_has_what_the_policy_saw(task, unroll, statistics):
    """Also the observation after the last step has the same statistics."""
    context = statistics[task]
    _, result, raw, inputs = explored(task, context, unroll=unroll)
    known = Normalizer(context)
    expected = np.clip((raw - known.mean) / known.std, -10, 10).astype(np.float32)
    seen = np.concatenate([record.observations for record in result.experience])
    assert seen.dtype == np.float32 and seen.tobytes() == expected.tobytes()
    ends = np.concatenate([record.ends for record in result.experience]) != GOES_ON
    before = np.arange(len(ends)) + np.cumsum(ends) - ends
    assert seen[before].tobytes() == inputs.astype(np.float32).tobytes()
    assert ends.sum() >= 6 and np.abs(seen).max() == 10


def test_an_observation_at_a_pause_is_counted_once(statistics):
    """The next unroll counts it, as its policy acts on it."""
    context, counted, tokens, acted = statistics["Pendulum-v1"], [], UNROLL.tokens, []
    for _ in range(3):
        unroll = UNROLL._replace(tokens=tokens)
        _, result, _, inputs = explored("Pendulum-v1", context, unroll=unroll)
        tokens = [record.token for record in result.experience]
        counted.append(result.tally)
        acted.append(inputs[:25])  # of the first row
    assert np.array(counted)[:, :, 0].tolist() == [[25, 0, 25]] * 3
    together = merge(merge(counted[0][0], counted[1][0]), counted[2][0])
    known = Normalizer(context)
    seen = np.concatenate(acted) * known.std + known.mean
    unclipped = np.abs(seen - known.mean).max(axis=0) < 9.9 * known.std
    np.testing.assert_allclose(together[1:4][unclipped], seen.mean(axis=0)[unclipped])
    assert unclipped.sum() == 2


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("unroll", [None, UNROLL], ids=["episodes", "unrolls"])
def test_greedy_rows_of_a_learner_are_not_counted(task, unroll, statistics):
    domain, result, *_ = explored(task, statistics[task], unroll=unroll)
    assert not result.tally[1].any()
    counts = [len(record.rewards) for record in result.experience]
    assert result.tally[:, 0].tolist() == [counts[0], 0, counts[2]]
    everyone = domain.evaluate(
        np.zeros((2, domain.solution_dim)), np.zeros(2, np.uint32), statistics[task]
    )
    assert everyone.tally[:, 0].all(), "a search has only greedy rows, which are counted"


@pytest.mark.parametrize("changes", [{}, {"unroll": 20}], ids=["episodes", "unrolls"])
def test_the_context_of_a_run_has_all_exploring_observations_and_no_others(changes, tmp_path):
    """The statistics of a batch come from the batches before it, in the order of the rows."""
    exp = small("a2c", **changes)
    state, engine = fresh(exp, tmp_path)
    expected, contexts = np.zeros(7), []

    class Counting(Serial):
        def evaluate(self, batch: Batch, rows, meanwhile=lambda: None):
            nonlocal expected
            np.testing.assert_array_equal(batch.context, expected)
            contexts.append(batch.context)
            for part, outcome in super().evaluate(batch, rows, meanwhile):
                for row, each in enumerate(outcome.evaluation.tally, start=part.start):
                    assert bool(each[0]) == (row < ROWS)
                    expected = merge(expected, each)
                yield part, outcome

    run_loop(exp, state, Counting(engine.domain), Stop(), lambda *_: None)
    np.testing.assert_array_equal(state.context, expected)
    learner = state.algorithm.learner
    assert state.context[0] == learner.steps == state.algorithm.reward_scale.moments[0]
    rows = state.algorithm.archive.rows()
    known = {Normalizer(context).std.tobytes() for context in contexts}
    assert {std.tobytes() for std in rows["observation_std"]} <= known
    assert len(np.unique(rows["observation_std"], axis=0)) > 1


def test_returns_continue_over_the_pauses_of_an_episode(tmp_path):
    """Episodes of 15 steps are played in unrolls of 4."""
    exp = small("a2c", unroll=4, iterations=12)
    state, engine = fresh(exp, tmp_path)
    scale, played = state.algorithm.reward_scale, [[] for _ in range(ROWS)]
    own = scale.scale

    def watched(records, continues, gamma):
        for row, record in enumerate(records):
            ends = record.ends.copy()
            ends[-1] *= not continues[row]
            assert continues[row] == bool(record.token.seed is not None)
            played[row] += zip(record.rewards.tolist(), ends.tolist(), strict=True)
        return own(records, continues, gamma)

    scale.scale = watched
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    returns, gamma = [], exp.algorithm.gamma
    for row in played:
        latest, lengths = 0.0, []
        for number, (reward, end) in enumerate(row):
            returns.append(latest := gamma * latest + reward)
            if end:
                latest = 0.0
                lengths.append(number)
        assert np.diff(lengths).tolist() == [15] * (len(lengths) - 1)
    np.testing.assert_allclose(scale.moments, tally(np.array(returns)[:, None]), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "task", "workers", "changes"),
    [
        ("ppo", "Pendulum-v1", 2, {}),
        ("a2c", "CartPole-v1", 3, {}),
        ("impala", "CartPole-v1", 2, {}),
        ("ppo", "CartPole-v1", 3, {"unroll": 20}),
        ("impala", "Pendulum-v1", 2, {"unroll": 20, "n_steps": 10}),
    ],
)
def test_stopped_anywhere_and_resumed_with_workers_it_is_the_same_run(
    kind, task, workers, changes, tmp_path
):
    stops = 1, ROWS + GREEDY, ROWS + GREEDY + 2  # within, between and within batches
    resumed_equals_straight(small(kind, TASKS[task], **changes), stops, workers, tmp_path)


def test_the_scale_of_rewards_changes_what_is_learnt_and_no_result(tmp_path):
    policies, returns = [], []
    for scaled in (True, False):
        exp = small("a2c", normalize_rewards=scaled, iterations=1)
        state, engine = fresh(exp, tmp_path)
        run_loop(exp, state, engine, Stop(), lambda *_: None)
        policies.append(state.algorithm.learner.policy)
        returns.append(state.algorithm.metrics())
    assert (policies[0] != policies[1]).any()
    assert returns[0] == returns[1], "objectives are rewards of the environment"


def all_are_replayed(run):
    """Checks that each elite gets its own objective again; returns the contexts of all elites."""
    for row in range(len(run.cells)):
        elite = run.elite(row)
        again = run.replay(elite)
        assert again.objective[0] == elite.objective
        assert again.measures[0].tolist() == elite.measures.tolist()
    return context_of(run.arrays["observation_mean"], run.arrays["observation_std"])


@pytest.mark.parametrize("changes", [{}, {"unroll": 30}], ids=["episodes", "unrolls"])
def test_elites_are_played_again_with_the_statistics_of_their_evaluation(changes, tmp_path):
    """By `Run.replay`, a film and `reevaluate`."""
    path = compute_run(small("ppo", **changes).model_dump(), tmp_path / "run", iterations=5)
    run = load(path)
    contexts = all_are_replayed(run)
    assert len(np.unique(contexts, axis=0)) > 1
    entries = rollout(path, tmp_path / "out", ["best", "median", "corners"], 0.5)
    assert len(entries) > 1 and all(entry["equal"] and entry["own_seed"] for entry in entries)
    settings = Reevaluate(times=2)
    objective, _ = reevaluate(path, settings, Cluster(), Stop()).by_repeat(2)
    seeds = fresh_seeds(settings, run.summary["id"], len(contexts)).reshape(2, -1)
    for row, context in enumerate(contexts):
        solutions = np.tile(run.elite(row).solution, (2, 1))
        alone = run.domain.evaluate(solutions, seeds[:, row], context)
        assert alone.objective.tolist() == objective[:, row].tolist()


def test_a_snapshot_of_a_running_learner_replays_its_elites(tmp_path, monkeypatch):
    exp, stop = small("a2c", min_seconds=0.0, max_cost=1.0), Stop()
    engine = StopsAfter(make_domain(exp.domain), stop, 26)  # within the fourth iteration
    monkeypatch.setattr(run_module, "make_engine", lambda *_: engine)
    (tmp_path / "out/state").mkdir(parents=True)
    with pytest.raises(Interrupted):
        run_module.compute(Attempt.of(exp, RunDir(tmp_path / "out")), stop)
    monkeypatch.undo()
    contexts = all_are_replayed(Run(snapshot(tmp_path / "out")))
    assert len(np.unique(contexts, axis=0)) == 2, "of the first and the third iteration"


@pytest.mark.parametrize("kind", ["dqn", "apex_dqn", "td3", "pga_me"])
def test_algorithms_with_a_replay_buffer_are_refused(kind):
    domain = POLES if "dqn" in kind else PENDULUM
    data = {
        "domain": domain,
        "algorithm": kind,
        "archive": {"dims": [5, 5]},
        "num_emitters": 1,
        "batch_size": 4,
        "iterations": 1,
    }
    with refused(kind, "normalize_observations"):
        compose(data)


def test_signs_of_rewards_have_no_scale():
    with refused("clip_rewards", "normalize_rewards"):
        small("ppo", clip_rewards=True)


def test_the_default_is_in_no_id():
    plain = small("ppo", normalize_rewards=False)
    assert "normalize_rewards" not in plain.model_dump(exclude_defaults=True)["algorithm"]


def test_the_sweep_of_half_cheetah_has_the_settings_of_the_zoo():
    """Those of HalfCheetah-v4 in hyperparams/ppo.yml of rl-baselines3-zoo."""
    zoo = {"gamma": 0.98, "learning_rate": 2.0633e-05, "ent_coef": 0.000401762, "clip_range": 0.1}
    zoo |= {"n_epochs": 20, "gae_lambda": 0.92, "max_grad_norm": 0.8, "vf_coef": 0.58096}
    networks = {"log_std_init": -2, "ortho_init": False}
    exp = compose(read_yaml(REPO / "config/sweeps/rl_half_cheetah.yaml")["experiment"])
    refuse_idle(exp)
    settings, policy = exp.algorithm, exp.domain.policy
    assert {key: getattr(settings, key) for key in zoo | networks} == zoo | networks
    assert (settings.minibatch, settings.unroll * exp.batch_size) == (64, 512)
    assert policy.hidden == settings.vf_hidden == [256, 256] and policy.activation == "relu"
    assert exp.domain.normalize_observations and settings.normalize_rewards
    assert 1_000_000 <= 512 * exp.iterations < 1_000_000 + 512
    assert (exp.iterations - 1) % settings.evaluate_every == 0, "the last policy is judged"
