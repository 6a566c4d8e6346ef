"""benchmarks/learning_curves.py: windows, areas, intervals, and the episodes of both sides."""

import math

import learning_curves as curves
import numpy as np
import pytest

from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Record, Token

JOBS = [job for job in curves.jobs() if job.who == "qdsweep" and job.seed == 1]


def test_a_window_has_the_mean_of_the_episodes_that_end_in_it():
    episodes = [(11, 1.0, 0.5), (20, 3.0, 0.75), (21, 8.0, 1.0), (200, 4.0, 9.0), (201, 99.0, 9.5)]
    rows = curves.windows(episodes, 200)
    assert [row["decisions"] for row in rows] == list(range(10, 201, 10))
    returns = [row["return"] for row in rows]
    assert math.isnan(returns[0])
    assert returns[1:] == [2.0] + 17 * [8.0] + [4.0]  # the previous value, where none ends
    assert [row["cpu_seconds"] for row in rows] == [0.0, 0.8] + 17 * [1.0] + [9.0]


def test_an_area_is_above_the_worst_return_and_a_last_tenth_is_not():
    returns = np.array([math.nan] + 17 * [-500.0] + [-100.0, -80.0])
    assert curves.value_of(returns, -500.0) == pytest.approx(820 / 19)
    assert curves.value_of(returns, None) == -90


def test_the_interval_of_a_ratio_is_that_of_all_draws_of_seeds():
    assert curves.ratio_of([3.0, 3.0], [4.0]) == (0.75, 0.75, 0.75)
    ours, theirs = [1.0, 2.0, 6.0], [2.0, 4.0]
    draws = np.stack(np.meshgrid(*3 * [ours], *2 * [theirs]), axis=-1).reshape(-1, 5)
    ratios = draws[:, :3].mean(axis=1) / draws[:, 3:].mean(axis=1)
    expected = (1.0, *np.quantile(ratios, [0.05, 0.95], method="inverted_cdf"))
    assert curves.ratio_of(ours, theirs, 200_000) == pytest.approx(expected, rel=1e-9)
    assert curves.ratio_of(ours, theirs) == curves.ratio_of(ours, theirs)


def needs_torch():
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")


def record(ends, token):
    rewards = np.ones(len(ends), np.float32)
    return Record(None, None, rewards, np.array(ends, np.uint8), token=token)


def test_episodes_end_in_the_order_of_the_decisions_and_go_on_over_batches():
    returns = {}
    paused = record([GOES_ON, TERMINATED, CUT], Token(1, [0]))
    ended = record([CUT, GOES_ON, TERMINATED], Token())
    assert curves.finished([paused, ended], returns) == [(2, 1.0), (4, 2.0), (6, 2.0)]
    assert returns == {0: 1.0, 1: 0.0}
    assert curves.finished([ended, paused], returns) == [(2, 2.0), (4, 2.0), (6, 2.0)]


def test_a_resumed_run_continues_its_episodes(tmp_path):
    log = curves.Log(tmp_path)
    for decisions in (40, 80, 120):
        log.add(decisions, decisions / 8)
    with log.file.open("a") as file:
        file.write("160,20")  # it was killed here
    assert [line[0] for line in curves.read_episodes(log.file)] == [40, 80, 120]
    log = curves.Log(tmp_path, done=100)
    log.add(160, 2.5)
    assert [line[:2] for line in curves.read_episodes(log.file)] == [(40, 5), (80, 10), (160, 2.5)]


@pytest.mark.parametrize(
    ("before", "now", "end"), [(0, 49, None), (0, 50, 50), (50, 99, None), (99, 210, 200)]
)
def test_a_window_ends_once(before, now, end):
    assert curves.crossed(before, now, 1000) == end


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.task}-{job.algorithm}")
def test_both_have_the_same_settings(job):
    made = curves.experiment(job)
    settings = job.settings
    assert (made.batch_size, made.algorithm.unroll) == (settings["n_envs"], settings["n_steps"])
    names = {"batch_size": "minibatch"}
    for key in settings.keys() - {"n_envs", "n_steps", "decays", "normalizes"}:
        assert getattr(made.algorithm, names.get(key, key)) == settings[key], key
    decay = curves.TASKS[job.task].decisions if settings["decays"] else None
    assert made.algorithm.decay_steps == decay
    assert made.algorithm.normalize_rewards == settings["normalizes"]


@pytest.mark.parametrize("who", curves.SIDES)
def test_both_record_the_episodes_that_they_play(who, tmp_path):
    needs_torch()
    job = curves.Job("cartpole", "a2c", who, 1)
    rows = curves.curve(job, tmp_path, 800)
    assert [row["decisions"] for row in rows] == list(range(40, 801, 40))
    episodes = curves.read_episodes(tmp_path / "episodes.csv")
    # A return is the length of an episode; those of the 8 environments are not over at the end.
    known = [line for line in episodes if line[0] <= 800]
    assert 0 < 800 - sum(line[1] for line in known) < 8 * 100
    assert all(line[0] % 8 == 0 for line in episodes)


def test_games_of_stable_baselines3_have_the_returns_of_the_game_and_learn_from_signs():
    needs_torch()
    games = curves.make_games("space_invaders", 2, 18_000, 1)
    games.reset()
    rng, total, found = np.random.default_rng(1), np.zeros(2), []
    while not found:
        _, rewards, over, infos = games.step(rng.integers(6, size=2))
        total += rewards
        found = [(total[row], infos[row]["episode"]["r"]) for row in np.flatnonzero(over)]
    games.close()
    (signs, returned), *_ = found
    assert signs < 30  # hits
    assert returned >= 5 * signs > 0  # the least points of an invader
    assert returned % 5 == 0


def test_the_page_has_the_table_of_the_rows():
    table = curves.read_table(curves.STEM.with_suffix(".csv"))
    page = curves.PAGE.read_text()
    assert page == curves.with_table(page, curves.as_markdown(curves.compared(table)))
    assert not table.duplicated(["task", "algorithm", "who", "seed", "decisions"]).any()
