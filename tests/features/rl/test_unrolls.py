"""Rows that continue episodes: equal bits with live environments, replays, engines and stops."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import BREAKOUT, outcome, resumed_equals_straight
from refusals import refused
from small_runs import fresh, payload_of
from support import command, write_yaml

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Exploration, Record, Token, Unroll
from qdsweep.domains.experience import check_experience, join_records
from qdsweep.errors import BadInput
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.reload import last_saved
from qdsweep.experiment.stop import Stop
from qdsweep.features.rl.learners.dqn import NStepReplay
from qdsweep.features.rl.learners.steps import join
from qdsweep.records.paths import RunDir
from qdsweep.records.results import write_config

MEASURE = [{"name": "length", "measure": "episode_length", "range": [0, 500]}]


def task(env, **changes):
    """A gymnasium domain whose episodes are short."""
    policy = {"type": "mlp", "hidden": [4]}
    made = {"type": "gymnasium", "env": env, "policy": policy, "objective_range": [-500, 500]}
    return {**made, "measures": MEASURE, "max_episode_steps": 23, **changes}


DOMAINS = {
    "discrete": task("CartPole-v1"),
    "continuous": task("Pendulum-v1"),
    "one-sided": task("MountainCarContinuous-v0"),
    "box2d": task("LunarLander-v3"),
    "reused": task("Acrobot-v1"),
    "stateful wrappers": task(
        "CartPole-v1",
        wrappers=[
            {"type": "TimeAwareObservation"},
            {"type": "NormalizeReward"},
            {"type": "FrameStackObservation", "arguments": {"stack_size": 3}},
        ],
    ),
    "sticky": task(
        "CartPole-v1",
        wrappers=[{"type": "StickyAction", "arguments": {"repeat_action_probability": 0.5}}],
    ),
    "screens": BREAKOUT | {"policy": {"type": "convolutional", "network": "mnih2015"}},
    "memory": {"preset": "atari_pong", "max_frames": 120},
}


def dims(domain):
    return [3] * len(domain.get("measures", "12"))


def domain_of(name):
    return compose(
        {
            "domain": DOMAINS[name],
            "algorithm": "map_elites",
            "archive": {"dims": dims(DOMAINS[name])},
            "num_emitters": 1,
            "batch_size": 1,
            "iterations": 1,
        }
    ).domain


@pytest.fixture(scope="module", params=DOMAINS)
def pair(request):
    """The same domain in two processes, as it were."""
    if request.param in ("screens", "memory"):
        pytest.importorskip("ale_py", reason="the Arcade Learning Environment: `make extras`")
    config = domain_of(request.param)
    return make_domain(config), make_domain(config)


def played(domains, owners, decisions, rows=3):
    """Plays unrolls one after another, each in the process of `owners`; the last row is whole."""
    first = domains[0]
    actor = first.actor
    rng = np.random.default_rng(5)
    solution = rng.normal(scale=0.1, size=first.solution_dim)
    solutions = np.repeat(solution[np.newaxis], rows, axis=0)
    outputs = 1 if actor.discrete else actor.shapes[-1][0]
    scale = np.ones((rows, outputs))
    scale[-1] = 0
    exploration = Exploration("softmax" if actor.discrete else "gaussian", scale)
    tokens, results = [*[Token()] * (rows - 1), None], []
    for number, owner in enumerate(owners):
        seeds = np.arange(rows, dtype=np.uint32) + 100 * number
        result = domains[owner].evaluate(
            solutions,
            seeds,
            experience=True,
            exploration=exploration,
            unroll=Unroll(decisions, tokens, rows - 1),
        )
        tokens = [record.token for record in result.experience]
        results.append(result)
    return results


def same(first: Record, second: Record) -> None:
    for part, other in zip(first[:5], second[:5], strict=True):
        np.testing.assert_array_equal(part, other)
    assert first.token is second.token is None or first.token.seed == second.token.seed
    if first.token is not None:
        np.testing.assert_array_equal(first.token.actions, second.token.actions)


@settings(max_examples=12, deadline=None)
@given(
    owners=st.lists(st.integers(0, 1), min_size=2, max_size=6),
    decisions=st.integers(1, 12),
)
def test_any_process_continues_an_episode_with_the_same_bits(pair, owners, decisions):
    straight = played(pair, [0] * len(owners), decisions)
    for one, other in zip(straight, played(pair, owners, decisions), strict=True):
        for first, second in zip(one.experience, other.experience, strict=True):
            same(first, second)
        np.testing.assert_array_equal(one.objective, other.objective)
        np.testing.assert_array_equal(one.steps, other.steps)


def test_an_episode_in_unrolls_is_the_whole_episode(pair):
    """With one policy and its greedy actions, pauses change nothing."""
    domain, _ = pair
    solution = np.random.default_rng(5).normal(scale=0.1, size=(1, domain.solution_dim))
    greedy = Exploration("softmax" if domain.actor.discrete else "gaussian", np.zeros((1, 1)))
    token, parts, first_seed = Token(), [], None
    while not parts or token.seed is not None:
        unroll = Unroll(1, [token], 1)
        seed = np.array([3], np.uint32)
        options = {"experience": True, "exploration": greedy, "unroll": unroll}
        [record] = domain.evaluate(solution, seed, **options).experience
        token, seen = record.token, record.observations[record.before :]
        parts.append((seen[: 1 if token.seed is not None else 2], *record[1:4]))
        first_seed = token.seed if len(parts) == 1 else first_seed
    whole = domain.evaluate(
        solution, np.array([first_seed], np.uint32), experience=True, exploration=greedy
    ).experience[0]
    joined = join_records(parts, domain.actor.kind)
    for name in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    assert whole.ends[-1] == joined.ends[-1]
    assert (joined.ends[:-1] == CUT).all() and (whole.ends[:-1] == GOES_ON).all()


def test_live_environments_are_as_many_as_the_runs_episodes_and_none_is_played_again(pair):
    domain, _ = pair
    domain._live._waiting.clear()
    before = domain._live.replayed
    last = played(pair, [0] * 8, 5, rows=5)[-1]
    assert domain._live.replayed == before
    tokens = [record.token for record in last.experience[:4]]
    paused = {(token.seed, bytes(token.actions)) for token in tokens if token.seed is not None}
    assert paused <= set(domain._live._waiting) and len(domain._live._waiting) <= 4


def test_the_check_plays_unrolls_again(pair):
    domain, _ = pair
    solutions = np.random.default_rng(1).normal(scale=0.1, size=(3, domain.solution_dim))
    before = domain._live.replayed
    check_experience(domain, solutions, np.arange(3, dtype=np.uint32))
    assert domain._live.replayed > before


def test_a_domain_whose_paused_episodes_cannot_be_played_again_is_refused_by_the_check(
    monkeypatch,
):
    domain = make_domain(small("ppo").domain)
    play = domain._live._resume
    cut = lambda token: play(token._replace(actions=token.actions[:-1]))  # noqa: E731
    monkeypatch.setattr(domain._live, "_resume", cut)
    solutions = np.zeros((3, domain.solution_dim))
    with refused("played again differs in observations", "algorithm.unroll"):
        check_experience(domain, solutions, np.arange(3, dtype=np.uint32))


SMALL = {
    "ppo": {"minibatch": 8, "n_epochs": 2},
    "a2c": {},
    "impala": {"n_steps": 3, "minibatch": 2},
    "dqn": {"buffer_size": 40, "gradient_steps": 2, "learning_starts": 0, "minibatch": 8},
    "apex_dqn": {"buffer_size": 40, "gradient_steps": 2, "learning_starts": 0, "minibatch": 8},
}


def small(kind, domain=DOMAINS["discrete"], **changes):
    data = {
        "domain": domain,
        "algorithm": {
            "type": kind,
            "archive": {"type": "grid"},
            "evaluation_episodes": 1,
            "evaluate_every": 2,
            "unroll": 9,
            **SMALL[kind],
        },
        "archive": {"dims": dims(domain)},
        "num_emitters": 1,
        "batch_size": 3,
        "iterations": 5,
    }
    return compose(data, changes)


CASES = [(kind, "discrete") for kind in SMALL] + [
    ("ppo", "continuous"),
    ("impala", "continuous"),
    ("ppo", "screens"),
    ("apex_dqn", "screens"),
]


@pytest.mark.parametrize(("kind", "domain"), CASES)
def test_stopped_anywhere_and_resumed_with_more_workers_it_is_the_same_run(kind, domain, tmp_path):
    if domain == "screens":
        pytest.importorskip("ale_py", reason="the Arcade Learning Environment: `make extras`")
    exp = small(kind, DOMAINS[domain])
    straight = resumed_equals_straight(exp, (1, 5, 11), 2, tmp_path)
    algorithm = straight.algorithm
    assert straight.iterations == 5 and algorithm.learner.steps > 0
    assert all(token.seed is None or len(token.actions) for token in algorithm.tokens)
    first = make_algorithm(exp, make_domain(exp.domain), tmp_path).learner.policy
    assert (algorithm.learner.policy != first).any()


@pytest.mark.parametrize("kind", ["dqn", "apex_dqn", "impala"])
def test_the_learner_is_behind_by_the_decisions_of_one_batch(kind, tmp_path):
    state, engine = fresh(small(kind), tmp_path)
    learned = []

    def after(*_):
        learned.append(state.algorithm.learner.steps)

    run_loop(small(kind), state, engine, Stop(), after)
    assert learned == [27 * iteration for iteration in range(5)]


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The outcome of a run of screens in one process."""
    pytest.importorskip("ale_py", reason="the Arcade Learning Environment: `make extras`")
    exp = small("ppo", DOMAINS["screens"], iterations=8)
    state, engine = fresh(exp, tmp_path_factory.mktemp("serial"))
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    return exp, outcome(state)


@pytest.mark.parametrize(
    ("engine", "library", "workers"),
    [("processes", "numpy", 3), ("dask", "dask", 2), ("ray", "ray", 2), ("mpi", "mpi4py", 2)],
)
def test_workers_of_any_engine_play_the_same_run_and_no_decision_twice(
    engine, library, workers, serial, tmp_path
):
    pytest.importorskip(library)
    exp, expected = serial
    write_config(tmp_path / "ppo.yaml", exp)
    write_yaml(tmp_path / "cluster.yaml", {"engine": engine, "workers_per_node": workers})
    command("qdsweep", "run", "ppo.yaml", "--cluster", "cluster.yaml", "--out", "out", cwd=tmp_path)
    run = RunDir(tmp_path / "out")
    assert outcome(last_saved(run.state).state) == expected
    # A worker that comes after the first batch takes over its rows, and plays them again.
    late = 0 if engine == "processes" else workers - 1
    assert run.state.log.read_text().count("played again") <= late


def test_an_iteration_is_one_batch_of_rows_of_equal_length(tmp_path):
    exp = small("ppo", evaluate_every=1)
    state, engine = fresh(exp, tmp_path)
    learned = []
    state.algorithm.learner.learn = learned.append
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert [[len(record.rewards) for record in records] for records in learned] == [[9] * 3] * 5
    assert state.evaluations == 5 * (3 + 1)


def test_returns_of_exploring_episodes_count_over_pauses(tmp_path):
    """Each step of CartPole has the reward 1, so a return is a length."""
    exp = small("ppo", task("CartPole-v1", max_episode_steps=500), iterations=40)
    state, engine = fresh(exp, tmp_path)
    algorithm, lengths, running = state.algorithm, [], [0] * 3
    note = algorithm._note

    def noted(row, record):
        for number, end in enumerate(record.ends, start=1):
            running[row] += 1
            paused = number == len(record.ends) and record.token.seed is not None
            if end != GOES_ON and not paused:
                lengths.append(running[row])
                running[row] = 0
        note(row, record)

    algorithm._note = noted
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert len(lengths) > 10 and max(lengths) > 9
    assert list(algorithm.returns) == lengths[-100:]
    assert algorithm.metrics()["exploring_return"] == pytest.approx(np.mean(lengths[-100:]))


FAILING = """
import gymnasium


class Failing(gymnasium.Wrapper):
    def step(self, action):
        observation, *rest = self.env.step(action)
        if abs(observation[0]) > 0.11:
            raise ArithmeticError("too far")
        return observation, *rest
"""


def test_a_failure_in_a_paused_episode_is_scored_and_the_row_starts_another(tmp_path, monkeypatch):
    plugins = tmp_path / "config" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "failing_pole.py").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    wrappers = [{"type": "failing_pole:Failing"}]
    domain = task("CartPole-v1", wrappers=wrappers, max_episode_steps=200)
    exp = small("a2c", domain, iterations=30, **{"on_failure.objective": -1.0})
    straight = resumed_equals_straight(exp, (7, 50), 2, tmp_path)
    assert 0 < straight.failures < straight.evaluations


def test_a_state_of_an_earlier_release_has_no_unrolls(tmp_path):
    state, _ = fresh(small("ppo", unroll=None, n_steps=10), tmp_path)
    algorithm = state.algorithm
    old = {
        name: value
        for name, value in vars(algorithm).items()
        if name not in ("tokens", "returns", "_so_far")
    }
    algorithm.__dict__.clear()
    algorithm.__setstate__(old)
    assert len(algorithm.tokens) == 3 and algorithm.metrics()["exploring_return"] is None


def test_more_and_fewer_rows_during_a_run(tmp_path):
    schedule = [{"at": 2, "set": {"batch_size": 5}}, {"at": 4, "set": {"batch_size": 2}}]
    exp = small("ppo", iterations=6, schedule=schedule)
    state = resumed_equals_straight(exp, (8,), 2, tmp_path)
    assert len(state.algorithm.tokens) == 2


@pytest.mark.parametrize(
    ("kind", "changes", "texts"),
    [
        ("ppo", {"n_steps": 64}, ["algorithm.n_steps = 64", "unroll = 9"]),
        ("a2c", {"n_steps": 7}, ["algorithm.n_steps = 7", "unroll = 9"]),
        ("impala", {"n_steps": 4}, ["unroll = 9", "n_steps = 4"]),
        ("ppo", {"unroll": 0}, ["unroll"]),
    ],
)
def test_keys_that_contradict_are_refused_by_name(kind, changes, texts):
    with refused(*texts):
        from qdsweep.config.experiment import refuse_idle

        refuse_idle(small(kind, **changes))


def test_a_domain_with_only_whole_episodes_is_refused_by_name(tmp_path, monkeypatch):
    exp = small("ppo")
    domain = make_domain(exp.domain)

    def evaluate(solutions, seeds, *, experience=False, exploration=None):
        raise AssertionError

    monkeypatch.setattr(domain, "evaluate", evaluate)
    with pytest.raises(BadInput, match=r"algorithm.unroll = 9: .* plays only whole episodes"):
        make_algorithm(exp, domain, tmp_path)


def test_a_replay_of_frames_has_the_stacks_of_continued_episodes():
    """Also where the buffer has dropped the record before."""
    rng, image, pixels = np.random.default_rng(2), (4, 5, 5), 25
    screens = rng.integers(0, 256, (40, pixels), dtype=np.uint8)

    def record(first, steps, before, end=CUT):
        ends = np.full(steps, GOES_ON, np.uint8)
        ends[-1] = end
        frames = screens[first - before : first + steps + 1]
        actions = np.eye(3, dtype=np.float32)[[0] * steps]
        return Record(frames, actions, np.ones(steps, np.float32), ends, before, Token())

    def stack(number, start):
        return screens[np.maximum(np.arange(number - 3, number + 1), start)]

    records = [record(0, 6, 0), record(6, 5, 3), record(11, 4, 3, TERMINATED), record(15, 2, 3)]
    starts = [0] * 15 + [12] * 2
    for capacity in (30, 8):
        replay = NStepReplay(capacity, pixels, 3, 1, 0.9, image)
        for number, each in enumerate(records):
            replay.add(each)
            if number == 2:
                replay = pickle.loads(pickle.dumps(replay))
        steps = np.arange(17)[-min(capacity, 17) :]
        slots = steps % capacity
        for ahead in (0, 1):
            stacks = replay.frames.stacks(slots, ahead).reshape(len(slots), 4, pixels)
            expected = [stack(step + ahead, starts[step]) for step in steps]
            np.testing.assert_array_equal(stacks, expected)
    # The same stacks come from the steps that on-policy learners join.
    steps = join(records[1:3], discrete=True, image=image)
    for name, ahead in (("observations", 0), ("following", 1)):
        seen = getattr(steps, name)[np.arange(9)].reshape(9, 4, pixels)
        np.testing.assert_array_equal(seen, [stack(step + ahead, 0) for step in range(6, 15)])
    assert steps.position.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]


def test_a_reload_file_within_a_batch_has_the_tokens(tmp_path):
    state, _ = fresh(small("ppo"), tmp_path)
    assert outcome(pickle.loads(payload_of(state))) == outcome(state)
