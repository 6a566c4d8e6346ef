"""The experience of gymnasium's tasks: one record per row, independent of the batch."""

import numpy as np
import pytest
from refusals import names_all, refused
from short_episodes import CARTPOLE, PENDULUM, make, same

from qdsweep.config.domain import Gymnasium
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Record
from qdsweep.domains.plugin import check_rows
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import EvaluationFailed, evaluate_safely
from qdsweep.experiment.state import Pending


def batch_of(task, count=5):
    rng = np.random.default_rng(1)
    solutions = rng.standard_normal((count, task.solution_dim))
    return Batch(solutions, np.arange(count, dtype=np.uint32), experience=True)


def changing(task, change):
    """Makes a task return other records."""
    evaluate = task.evaluate

    def changed(*given, experience=False):
        result = evaluate(*given, experience=experience)._replace(steps=None)
        return result._replace(experience=change(result.experience)) if experience else result

    task.evaluate = changed
    return task


def test_a_record_has_every_step_once():
    task = make(episodes=2)
    result = evaluate_safely(task, batch_of(task), 0, None).evaluation
    for objective, steps, record in zip(
        result.objective, result.steps, result.experience, strict=True
    ):
        assert record.observations.shape == (24 + 2, 3)
        assert record.actions.shape == (24, 1)
        assert [array.dtype for array in record[:4]] == ["float32", "float32", "float32", "uint8"]
        assert steps == len(record.rewards) == 24
        assert record.rewards.sum() / 2 == pytest.approx(objective, rel=1e-5)
        assert record.ends.tolist() == ([GOES_ON] * 11 + [CUT]) * 2
        assert np.abs(record.actions).max() <= 2.0


def test_an_end_that_is_not_the_time_limit_is_distinguished():
    task = make(CARTPOLE, measures=[{"measure": "episode_length", "range": (0.0, 100.0)}])
    result = evaluate_safely(task, batch_of(task, 20), 0, None).evaluation
    lengths = result.measures[:, 0]
    assert (lengths < 100).any()
    for length, record in zip(lengths, result.experience, strict=True):
        assert record.ends[-1] == (TERMINATED if length < 100 else CUT)
        assert record.actions.shape[1] == 2  # one-hot
        assert len(record.ends) == length


def test_a_row_has_the_same_record_in_any_batch():
    task = make()
    batch = batch_of(task)
    whole = evaluate_safely(task, batch, 0, None).evaluation
    pending = Pending.of(batch)
    for rows in (slice(3, 5), slice(0, 1), slice(1, 3)):  # in any order
        pending.put(rows, evaluate_safely(task, batch.part(rows), 0, None).evaluation)
    parts = pending.evaluation()
    assert same(parts.experience, whole.experience)
    assert parts.steps.tolist() == whole.steps.tolist() == [12] * 5
    assert parts.fields.keys() == whole.fields.keys() == set()
    unwanted = evaluate_safely(task, batch._replace(experience=False), 0, None).evaluation
    assert unwanted.experience is None and unwanted.steps.tolist() == [12] * 5


def test_a_row_that_failed_has_no_record():
    task = make()
    play = task._play

    def fails(solution, *others):
        if solution[0] == 7.0:
            raise RuntimeError("as asked for")
        return play(solution, *others)

    task._play = fails
    batch = batch_of(task, 3)
    batch.solutions[1, 0] = 7.0
    result = evaluate_safely(task, batch, 0, -2000.0).evaluation
    assert [record is None for record in result.experience] == [False, True, False]
    assert result.steps.tolist() == [12, 0, 12]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda record: None, ("NoneType", "qdsweep.domains.base.Record")),
        (lambda record: record._replace(ends=record.ends * 0), (12,)),
        (
            lambda record: record._replace(observations=record.observations[1:]),
            ("observations", "(12, 3)", "(13, 3)"),
        ),
        (lambda record: record._replace(actions=record.actions * np.nan), ("actions", "NaN")),
    ],
)
def test_a_wrong_record_is_named(change, names):
    task = changing(make(), lambda records: [change(record) for record in records])
    with refused(*names, kind=EvaluationFailed):
        evaluate_safely(task, batch_of(task, 1), 0, None)


NAN_AT_THE_END = """
import gymnasium as gym
import numpy as np
from gymnasium import spaces
class AtTheEnd(gym.Env):
    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)
    def __init__(self, last, cut):
        self.last, self.cut = last, cut
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return self.np_random.uniform(-1, 1, 2), {}
    def step(self, action):
        self.left -= 1
        over = self.left == 0
        seen = np.array([self.last, 0.5]) if over else self.np_random.uniform(-1, 1, 2)
        return seen, self.np_random.normal(), over and not self.cut, over and self.cut, {}
gym.register("AtTheEnd-v0", AtTheEnd)
"""
FROM_ACTIONS = [{"measure": "mean_action", "component": 0, "range": (0.0, 1.0)}]


def at_the_end(last: float, *, cut: bool):
    return {
        "type": "gymnasium",
        "env": "at_the_end:AtTheEnd-v0",
        "env_kwargs": {"last": last, "cut": cut},
        "policy": {"type": "mlp", "hidden": [4]},
        "objective_range": (-9.0, 9.0),
        "measures": FROM_ACTIONS,
        "episodes": 2,
    }


@pytest.mark.parametrize("last", [np.nan, np.inf, 1e40])
def test_an_observation_after_an_episode_is_refused_only_where_it_is_used(plugins, last):
    plugins("at_the_end", NAN_AT_THE_END)
    task = make_domain(Gymnasium.model_validate(at_the_end(1.0, cut=False)))
    expected = evaluate_safely(task, batch_of(task), 0, None).evaluation
    task._make.args[1]["last"] = last
    got = evaluate_safely(task, batch_of(task), 0, None).evaluation
    for record, finite in zip(got.experience, expected.experience, strict=True):
        after = np.flatnonzero(record.ends) + np.arange(1, 3)
        assert (record.observations[after] == [0, 0.5]).all()
        finite.observations[after] = record.observations[after]
    assert same(got.experience, expected.experience)
    task._make.args[1]["cut"] = True
    named = ("observations", "NaN") if np.isnan(last) else ("observations",)
    with refused(*named, *(["1e+40", "too large"] if last == 1e40 else []), kind=EvaluationFailed):
        evaluate_safely(task, batch_of(task), 0, None)


@pytest.mark.parametrize("part", ["observations", "actions", "rewards"])
def test_a_finite_number_that_is_too_large_is_not_called_infinite(part):
    def change(record):
        values = getattr(record, part).astype(float)
        values[0] = -1e40
        return record._replace(**{part: values})

    task = changing(make(), lambda records: [change(record) for record in records])
    with pytest.raises(EvaluationFailed) as caught:
        evaluate_safely(task, batch_of(task, 1), 0, None)
    names_all(str(caught.value), part, "-1e+40", "single precision", "3.4e+38")
    assert "NaN or infinite" not in str(caught.value)
    infinite = changing(
        make(),
        lambda records: [each._replace(**{part: getattr(each, part) * np.inf}) for each in records],
    )
    with refused(part, "infinite", kind=EvaluationFailed):
        evaluate_safely(infinite, batch_of(infinite, 1), 0, None)


def test_double_precision_is_cut_wherever_a_row_is_evaluated():
    task = make()
    batch = batch_of(task, 2)
    expected = evaluate_safely(task, batch, 0, None).evaluation.experience
    changing(
        task, lambda records: [Record(*(a.astype(float) for a in each[:4])) for each in records]
    )
    cut = evaluate_safely(task, batch, 0, None).evaluation.experience
    assert [part.dtype for part in cut[0][:4]] == [part.dtype for part in expected[0][:4]]
    assert same(cut, expected)


@pytest.mark.parametrize("settings", [PENDULUM, CARTPOLE])
def test_check_accepts_the_experience_of_a_task(settings):
    check_rows(make(settings), batch=6)


@pytest.mark.parametrize(
    ("actor", "names"),
    [
        (lambda actor: "the main one", ("str", "Actor")),
        (lambda actor: actor._replace(bias=False), (16, 21)),
        (lambda actor: actor._replace(shapes=((3, 4), (2, 2))), ("((3, 4), (2, 2))",)),
        (lambda actor: actor._replace(activation="gelu"), ("'gelu'", "tanh", "relu")),
        (lambda actor: actor._replace(low=None), ("low", "high", "None")),
        (lambda actor: actor._replace(high=actor.low), ("low", "high", "-2.")),
        (lambda actor: actor._replace(activation="relu"), ("experience=True", "`actor`")),
    ],
)
def test_check_finds_an_actor_that_is_not_the_policy(actor, names):
    task = make()
    task.actor = actor(task.actor)
    with refused(*names):
        check_rows(task, batch=6)


def halved(records):
    return [each._replace(actions=each.actions / 2) for each in records]


def unseeded(records):
    return [each._replace(rewards=each.rewards + np.random.rand()) for each in records]


def by_place(records):
    return [each._replace(rewards=each.rewards + place) for place, each in enumerate(records)]


@pytest.mark.parametrize(
    ("settings", "change", "names"),
    [
        (PENDULUM, lambda records: records[1:], (2, 3)),
        (PENDULUM, lambda records: [None, *records[1:]], ("solution 0", "NoneType")),
        (PENDULUM, unseeded, ("solution 0", "rewards")),
        (PENDULUM, by_place, ("solution 1", "rewards")),
        (CARTPOLE, halved, ("one-hot",)),
    ],
)
def test_check_finds_records_that_break_promises(settings, change, names):
    with refused("experience=True", *names):
        check_rows(changing(make(settings), change), batch=6)
