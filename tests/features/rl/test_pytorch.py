"""torch with the settings of every run; CI checks that it is installed."""

import importlib.util
import os
import pickle

import numpy as np
import pytest
from refusals import names_all
from support import command

from qdsweep.experiment.outputs import all_versions


def test_nothing_here_is_skipped_in_ci():
    if importlib.util.find_spec("stable_baselines3") is None and "CI" not in os.environ:
        pytest.skip("torch and stable-baselines3: `make rl`")
    assert importlib.util.find_spec("stable_baselines3"), "`make rl` has failed"


@pytest.fixture
def torch():
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    import torch

    import qdsweep.algorithms.pytorch  # noqa: F401

    return torch


def test_one_thread_and_kernels_that_every_machine_has(torch):
    assert torch.get_num_threads() == 1
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cpu.get_cpu_capability() == "AVX2"
    assert os.environ["MKL_CBWR"] == "AVX2"


def test_results_name_the_build_where_it_decides_them(torch):
    assert all_versions({"torch": "2.13.0"}, "serial")["torch"] == torch.__version__
    assert "torch" not in all_versions({}, "serial")


def test_a_torch_that_is_broken_is_named(torch, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so: no such file')")
    words = ("qdsweep", "run", "rl_cartpole", "--out", "out")
    done = command(*words, cwd=tmp_path, check=2, PYTHONPATH=str(tmp_path))
    names_all(done.stderr, "torch", "libcudart.so: no such file")
    assert "Traceback" not in done.stderr


def test_a_learners_generators_resume_from_a_pickle_and_do_not_change_others(torch):
    from qdsweep.features.rl.learners.sb3_learner import Generators

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
