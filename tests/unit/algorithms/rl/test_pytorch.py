"""torch as every run has it, and that CI looks at it."""

import importlib.util
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from qdsweep.experiment.results import all_versions


def test_nothing_here_is_skipped_in_ci():
    if importlib.util.find_spec("stable_baselines3") is None and "CI" not in os.environ:
        pytest.skip("torch and stable-baselines3: `make rl`")
    assert importlib.util.find_spec("stable_baselines3"), "`make rl` has failed"


def test_one_thread_and_kernels_that_every_machine_has():
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    import torch

    import qdsweep.algorithms.rl  # noqa: F401

    assert torch.get_num_threads() == 1
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cpu.get_cpu_capability() == "AVX2"
    assert os.environ["MKL_CBWR"] == "AVX2"


def test_results_name_the_build():
    torch = pytest.importorskip("torch", reason="torch: `make rl`")
    assert all_versions({"torch": "2.13.0"}, "serial")["torch"] == torch.__version__
    assert "torch" not in all_versions({}, "serial"), "nothing of it decides these results"


def test_a_torch_that_is_broken_is_named(tmp_path):
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so: no such file')")
    words = [sys.executable, "-m", "qdsweep", "run", "rl_cartpole", "--out", "out"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "torch cannot be imported (libcudart.so: no such file)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_learners_generators_go_on_from_a_pickle_and_leave_others_alone():
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    import torch

    from qdsweep.algorithms.rl.learner import Generators

    def draw(generators):
        with generators.used():
            return float(np.random.random()), float(torch.rand(1))

    made = Generators(np.random.SeedSequence(4))
    np.random.seed(1), torch.manual_seed(1)
    first = draw(made)
    assert draw(Generators(np.random.SeedSequence(4))) == first
    again = pickle.loads(pickle.dumps(made))
    assert draw(again) == draw(made) != first
    after = float(np.random.random()), float(torch.rand(1))
    np.random.seed(1), torch.manual_seed(1)
    assert after == (float(np.random.random()), float(torch.rand(1)))
