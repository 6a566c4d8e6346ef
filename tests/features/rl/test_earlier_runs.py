"""Learners' runs that began before the returns of exploring episodes were recorded."""

import contextlib

import pytest
from in_process import compute_run

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")

from qdsweep import load
from qdsweep.features.rl.learners.policy import RLAlgorithm
from qdsweep.records import metrics_file
from qdsweep.records.metrics_file import read_lines
from qdsweep.records.paths import RunDir
from qdsweep.records.results import read_summary

EXPLORING = "exploring_return"
# What a reload file had of an algorithm then.
STATE = {
    *("settings", "batch_size", "ribs_archive", "archive", "before", "learner", "episodes"),
    *("sampled", "is_over", "_iteration", "_batch", "_return"),
}
TASK = {
    "domain": {"preset": "rl_cartpole", "max_episode_steps": 30},
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 3,
}
KEYS = {"evaluate_every": 2, "evaluation_episodes": 2}
ALGORITHMS = {
    "ppo": {"n_steps": 90, "minibatch": 16, "n_epochs": 1},
    "dqn": {"learning_starts": 40, "minibatch": 8},
    "impala": {},
}


@contextlib.contextmanager
def earlier_release():
    """Computes as a release that knew no exploring return, and writes its files."""
    metrics = RLAlgorithm.metrics

    def known(algorithm):
        return {name: value for name, value in vars(algorithm).items() if name in STATE}

    def without(algorithm):
        return {name: value for name, value in metrics(algorithm).items() if name != EXPLORING}

    columns = tuple(name for name in metrics_file.COLUMNS if name != EXPLORING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RLAlgorithm, "__getstate__", known)
        patch.setattr(RLAlgorithm, "metrics", without)
        patch.setattr(metrics_file, "COLUMNS", columns)
        yield


def compute(folder, name, iterations):
    algorithm = {"preset": name, **KEYS, **ALGORITHMS[name]}
    return RunDir(compute_run({**TASK, "algorithm": algorithm}, folder, iterations=iterations))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_they_are_resumed_to_the_same_results_and_keep_their_rows(name, tmp_path):
    straight = compute(tmp_path / "straight", name, 4)
    with earlier_release():
        run = compute(tmp_path / "run", name, 2)
    earlier = read_lines(run.state.metrics)
    assert EXPLORING not in earlier[0] and EXPLORING not in read_summary(run)
    compute(run.path, name, 4)
    assert read_summary(run)["archive_digest"] == read_summary(straight)["archive_digest"]
    assert [f"{line}," for line in earlier[1:]] == read_lines(run.state.metrics)[1:3]
    resumed, whole = (load(each.path).metrics for each in (run, straight))
    assert whole[EXPLORING].notna().all()
    assert resumed[EXPLORING].isna().tolist() == [True, True, False, False]
    assert read_summary(run)[EXPLORING] == resumed[EXPLORING].iloc[-1]
    equal = [each for each in whole if not each.startswith("seconds") and each != EXPLORING]
    assert resumed[equal].equals(whole[equal])


def test_finished_ones_are_opened_as_they_are(tmp_path):
    with earlier_release():
        run = compute(tmp_path / "run", "ppo", 2)
    opened = load(run.path)
    assert opened.metrics[EXPLORING].isna().all() and opened.metrics["return"].notna().all()
