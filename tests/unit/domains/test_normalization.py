"""Observation normalisation has the statistics of the run, with any workers."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_gymnasium import play
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import qdsweep
from small_runs import StopsAfter, digest_of, payload_of
from support import POLE, write_yaml

from qdsweep.algorithms import make_algorithm
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.normalizer import Normalizer, merge, tally
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import evaluate_safely
from qdsweep.engines.pool import Serial
from qdsweep.experiment import reload
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.run import compute
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.features.compare.merged import _settings
from qdsweep.files import read_arrays
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.sources import find_run, form_in, identities
from qdsweep.search.pbt import _child
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs

EXPERIMENT = {**POLE, "domain": {**POLE["domain"], "episodes": 2}}


def begin():
    experiment = compose(EXPERIMENT)
    domain = make_domain(experiment.domain)
    algorithm = make_algorithm(experiment, domain, None)
    return experiment, domain, State(algorithm, context=np.zeros(domain.context_dim))


def run(experiment, state, engine, stop=None):
    run_loop(experiment, state, engine, stop or Stop(), lambda *_: None)
    engine.close()
    return digest_of(state)


@pytest.fixture(scope="module")
def straight():
    experiment, domain, state = begin()
    return run(experiment, state, Serial(domain)), state


def test_the_policy_sees_the_values_of_the_formula():
    """Plays with only gymnasium: (x - mean) / std of all earlier observations."""
    domain = make_domain(compose(EXPERIMENT, {"episodes": 1}).domain)
    rng = np.random.default_rng(2)
    policies, seeds = rng.normal(size=(6, domain.solution_dim)), np.arange(6, dtype=np.uint32)
    mean, std, context, seen = np.zeros(4), np.ones(4), np.zeros(9), []
    for _ in range(2):
        result = domain.evaluate(policies, seeds, context)
        for row, policy in enumerate(policies):
            weights = policy.reshape(2, 4)

            def act(x, weights=weights, mean=mean, std=std):
                scaled = np.clip((x.astype(np.float64) - mean) / std, -10, 10)
                return int(np.argmax(weights @ scaled))

            episode = play("CartPole-v1", act, row)
            seen += [*episode.observations[:-1]]
            assert result.objective[row] == episode.total
            np.testing.assert_array_equal(result.fields["observation_mean"][row], mean)
        for each in result.tally:
            context = merge(context, each)
        assert context[0] == len(seen)
        mean = context[1:5]
        std = np.sqrt(context[5:] / context[0] + 1e-8)
        np.testing.assert_allclose(mean, np.mean(seen, axis=0), rtol=1e-12)
        np.testing.assert_allclose(std, np.std(seen, axis=0), rtol=1e-5)


def test_it_changes_results_and_not_those_without_it(straight):
    plain = compose(EXPERIMENT, {"normalize_observations": False})
    domain = make_domain(plain.domain)
    assert not hasattr(domain, "context_dim")
    state = State(make_algorithm(plain, domain, None))
    assert run(plain, state, Serial(domain)) != straight[0]
    rows = straight[1].algorithm.archive.rows()
    assert (
        rows["observation_mean"].shape == rows["observation_std"].shape == (len(rows["index"]), 4)
    )
    assert len(np.unique(rows["observation_std"], axis=0)) > 1, "elites of several iterations"


@pytest.mark.parametrize(("parts", "workers"), [(0, 1), (3, 2), (25, 3), (47, 1)])
def test_stopped_in_a_batch_and_resumed_by_any_workers_it_is_the_same_run(
    straight, tmp_path, parts, workers
):
    experiment, domain, state = begin()
    stop = Stop()
    with pytest.raises(Interrupted):
        run(experiment, state, StopsAfter(domain, stop, parts), stop)
    again = reload.load_state(io.BytesIO(payload_of(state)), is_own=True)
    cluster = Cluster(engine="processes", workers_per_node=workers)
    assert (
        run(experiment, again, make_engine(cluster, experiment, domain, None, None, {}))
        == (straight[0])
    )
    np.testing.assert_array_equal(again.context, straight[1].context)


def test_a_failed_evaluation_adds_nothing():
    _, domain, state = begin()
    batch = Batch(
        np.full((2, domain.solution_dim), np.nan), np.zeros(2, np.uint32), False, state.context
    )
    domain._policy = None  # every evaluation fails
    outcome = evaluate_safely(domain, batch, 0, 0.0)
    assert len(outcome.failures) == 2
    np.testing.assert_array_equal(outcome.evaluation.tally, np.zeros((2, 9)))


OFFSETS = st.sampled_from([0.0, 1.0, -1e6, 1.7e9, 1e12])
SCALES = st.sampled_from([1e-3, 1.0, 1e5])


@given(OFFSETS, SCALES, st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(0, 9))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_the_deviation_is_exact_for_any_offset(offset, scale, lengths, seed):
    """In units of the resolution of such numbers: a deviation below it is none."""
    rng = np.random.default_rng(seed)
    episodes = [offset + scale * rng.normal(size=(length, 2)) for length in lengths]
    context = np.zeros(5)
    for episode in episodes:
        context = merge(merge(context, tally(episode)), np.zeros(5))  # and a failed row
    known, seen = Normalizer(context), np.concatenate(episodes)
    exact = seen - offset
    error = 1e-12 * scale + 4 * np.spacing(abs(offset))
    np.testing.assert_allclose(known.mean - offset, exact.mean(axis=0), rtol=0, atol=error)
    expected = np.sqrt(exact.std(axis=0) ** 2 + 1e-8)
    np.testing.assert_allclose(known.std, expected, rtol=1e-9, atol=error)


def test_unix_times_keep_their_deviation():
    rng = np.random.default_rng(1)
    times, context = 1.7e9 + rng.normal(size=(200, 500, 1)), np.zeros(3)
    for episode in times:
        context = merge(context, tally(episode))
    assert Normalizer(context).std[0] == pytest.approx((times - 1.7e9).std(), abs=1e-6)


OLD_ID = "pole-map_elites_line-s0-c5f553a327"


def old(experiment):
    """The experiment as earlier releases computed it."""
    return experiment.model_copy(update={"domain": experiment.domain.former})


def test_only_experiments_that_normalise_have_a_new_id(tmp_path):
    now = compose(POLE)
    known = [identity.id for identity in identities(now, Results(tmp_path))]
    assert known == [run_id(now), OLD_ID] and run_id(now) != OLD_ID == run_id(old(now))
    plain = compose(POLE, {"normalize_observations": False})
    assert plain.domain.former is None
    assert [i.id for i in identities(plain, Results(tmp_path))] == [run_id(plain)]
    renamed = compose(POLE, {"algorithm": "cma_me_one_stage"})
    ids = [identity.id for identity in identities(renamed, Results(tmp_path))]
    assert len({name.rsplit("-", 1)[1] for name in ids}) == 2 and len(ids) == 4


def bits(run: RunDir) -> list[bytes]:
    """The elites with the statistics of their observations."""
    return [values.tobytes() for _, values in sorted(read_arrays(run.archive).items())]


def compute_as(form, run, results):
    """Computes a run in this form of its experiment."""
    attempt = Attempt.of(form, run)
    compute(replace(attempt, experiment=form, identity=find_run(form, results)), Stop())


@pytest.mark.parametrize("begun", ["a folder", "an iteration", "finished"])
def test_runs_under_the_old_id_are_continued_by_the_old_sums(tmp_path, monkeypatch, begun):
    """They are found, and there is no second run under the new id."""
    monkeypatch.chdir(tmp_path)
    results, now = Results(Path("results")), compose(POLE)
    straight = RunDir(tmp_path / "straight")
    for folder, form in ((straight, old(now)), (RunDir(tmp_path / "new"), now)):
        folder.state.path.mkdir(parents=True)
        compute_as(form, folder, Results(tmp_path))
        folder.publish()
    assert bits(straight) != bits(RunDir(tmp_path / "new"))
    run, iterations = results.run(OLD_ID), {"a folder": 0, "an iteration": 2, "finished": 4}[begun]
    run.state.path.mkdir(parents=True)
    if iterations:
        form = old(now).model_copy(update={"iterations": iterations})
        compute_as(form, run, results)
    (row,) = table_of_runs(POLE, "", find=lambda each: find_run(each, results)).rows
    assert row.id == OLD_ID
    assert form_in(now, run)[0].domain == now.domain.former
    qdsweep("run", write_yaml(tmp_path / "pole.yaml", POLE), "--out", run.path, cwd=tmp_path)
    assert bits(run) == bits(straight)
    assert json.loads(run.summary.read_text())["id"] == OLD_ID
    workers = ("--workers", 2, "--set", "iterations=6")
    for out in (run.path, straight.path):
        qdsweep("run", "pole.yaml", *workers, "--out", out, cwd=tmp_path)
    assert bits(run) == bits(straight)
    assert [path.name for path in (tmp_path / "results/runs").iterdir()] == [OLD_ID]
    like = [_settings(each, results)[1] for each in (run, straight, RunDir(tmp_path / "new"))]
    assert like[0] == like[1] != like[2], "`qdsweep compare` shows them as two groups"
    child = _child(run, 6, {"algorithm.emitters.0.iso_sigma": 0.1})  # of a population
    assert child.domain == now.domain.former
    (only,) = identities(child.model_copy(update={"schedule": []}), results, former=False)
    assert only.id == OLD_ID
