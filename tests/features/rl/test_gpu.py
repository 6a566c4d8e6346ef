"""Learners on a GPU: refused where there is none, and named in results and reload files."""

import numpy as np
import pytest
import results
from in_process import qdsweep
from learners import KEYS, trained, weights_digest
from refusals import names_all, refused

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import torch

from qdsweep.algorithms.pytorch import gpu
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch
from qdsweep.planning.checks import check_gpus
from qdsweep.records.reload_head import read_head
from qdsweep.records.results import write_config
from qdsweep.sweep.ids import run_id
from qdsweep.warm.trial import try_algorithms

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def small(**changes) -> Experiment:
    keys = {"algorithm": "ppo", "device": "cuda", "n_steps": 50, "evaluation_episodes": 1}
    sizes = {"iterations": 2, "steps": None, "batch_size": 2}
    return compose("rl_cartpole", {**keys, **sizes, **changes})


def test_the_cpu_is_not_in_an_id_and_a_gpu_is():
    cpu = compose("rl_cartpole", {"algorithm": "ppo"})
    assert run_id(compose("rl_cartpole", {"algorithm": "ppo", "device": "cpu"})) == run_id(cpu)
    assert run_id(compose("rl_cartpole", {"algorithm": "ppo", "device": "cuda"})) != run_id(cpu)
    assert not cpu.algorithm.needs_gpu
    for name in KEYS:
        assert compose("rl_cartpole", {"algorithm": name, "device": "cuda"}).algorithm.needs_gpu
    with refused("device", "auto", "cuda"):
        compose("rl_cartpole", {"algorithm": "ppo", "device": "auto"})
    with refused("device"):
        compose("rl_cartpole", {"algorithm": "cma_me", "device": "cuda"})


@without_gpu
def test_without_a_gpu_a_run_is_refused_before_its_first_evaluation(tmp_path):
    write_config(tmp_path / "ppo.yaml", small())
    text = qdsweep("run", "ppo.yaml", "--out", "out", cwd=tmp_path, code=2)
    names_all(text, "algorithm.device", "cuda", torch.__version__, "device: cpu")
    assert not list(tmp_path.rglob("*.pkl")) and not list(tmp_path.rglob("metrics.csv"))
    with refused("algorithm.device", "cuda"):
        try_algorithms([small()], are_here=True)
    try_algorithms([small()], are_here=False)  # the machine of the jobs may have one


@pytest.fixture
def pretended(monkeypatch):
    """Pretends a GPU of some name. Without a real one, stable-baselines3 computes on the CPU."""

    def pretend(name: str) -> None:
        about = {"GPU": name, "GPU driver": "1.0", "CUDA": "13.0"}
        monkeypatch.setattr(gpu, "gpu_versions", lambda: about)

    return pretend


def test_a_resume_on_another_gpu_is_refused_as_other_versions_are(tmp_path, pretended):
    pretended("NVIDIA A100")
    write_config(tmp_path / "ppo.yaml", small())
    qdsweep("run", "ppo.yaml", "--out", "out", cwd=tmp_path)
    about = {"GPU": "NVIDIA A100", "GPU driver": "1.0", "CUDA": "13.0"}
    assert results.summary(tmp_path / "out")["versions"].items() >= about.items()
    (path, *_) = (tmp_path / "out").rglob("reload-*.pkl")
    with path.open("rb") as file:
        header, *_ = read_head(file)
    assert header["versions"].items() >= about.items()
    pretended("NVIDIA H100")
    words = "run", "ppo.yaml", "--out", "out", "--set", "iterations=3"
    text = qdsweep(*words, cwd=tmp_path, code=2)
    names_all(text, "GPU NVIDIA A100 -> NVIDIA H100", "--allow-version-change")
    qdsweep(*words, "--allow-version-change", cwd=tmp_path)
    assert results.summary(tmp_path / "out")["versions"]["GPU"] == "NVIDIA H100"


def test_the_driver_is_that_of_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.driver() == "unknown"
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 580.159.04\necho 580.159.04\n")
    program.chmod(0o755)
    assert gpu.driver() == "580.159.04"
    program.write_text("#!/bin/sh\nexit 9\n")
    assert gpu.driver() == "unknown"


def test_on_slurm_a_learner_of_a_gpu_needs_one():
    runs = {"one": compose("rl_cartpole", {"algorithm": "ppo"}), "other": small()}
    with refused("cluster slurm", "gpus = 0", "other", "algorithm.device = cuda", "gpus: 1"):
        check_gpus(Cluster(), "slurm", runs)
    check_gpus(Cluster(gpus=1), "slurm", runs)
    check_gpus(Cluster(extra="--gpus-per-node=1"), "slurm", runs)
    del runs["other"]
    check_gpus(Cluster(), "slurm", runs)


SEES = """
import os
import numpy as np

class Sees:
    solution_dim, objective_range, step, fields = 2, (0.0, 1.0), 0.1, {}
    measures = {"a": (0.0, 1.0), "b": (0.0, 1.0)}

    def evaluate(self, solutions, seeds):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
        from qdsweep.domains.base import Evaluation
        seen = np.full(len(solutions), float(visible == ""))
        return Evaluation(seen, np.zeros((len(solutions), 2)))
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_only_the_main_process_sees_the_gpu_of_a_learner(device, plugins, monkeypatch):
    """Another run's workers see it, because a domain may compute on it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    plugins("sees", SEES)
    sees = {"domain": {"type": "sees:Sees"}, "archive": {"dims": [2, 2]}, "iterations": 1}
    domain = compose({**sees, "algorithm": "map_elites"}).domain
    experiment = small(device=device).model_copy(update={"domain": domain})
    engine = make_engine(
        Cluster(engine="processes", workers_per_node=1), experiment, None, None, None, {}
    )
    try:
        engine.wait()
        batch = Batch(np.zeros((2, 2)), np.arange(2, dtype=np.uint32))
        outcomes = [outcome for _, outcome in engine.evaluate(batch, [slice(0, 2)])]
    finally:
        engine.close()
    hidden = np.concatenate([outcome.evaluation.objective for outcome in outcomes])
    assert hidden.tolist() == [float(device == "cuda")] * 2


@on_gpu
@pytest.mark.parametrize("kind", ["vectors", "screens"])
@pytest.mark.parametrize("name", KEYS)
def test_on_a_gpu_a_learner_repeats_its_bits_and_is_close_to_the_cpus(name, kind):
    assert len(gpu.gpu_versions()) == 3
    cpu, one, other, shared = (
        trained(name, kind, **keys)
        for keys in ({}, {"device": "cuda"}, {"device": "cuda"},
                     {"device": "cuda", "learner_shares": 3})
    )  # fmt: skip
    assert one.model.policy.device.type == "cuda"
    assert weights_digest(one) == weights_digest(other)
    for learner in (one, shared):
        np.testing.assert_allclose(learner.policy, cpu.policy, rtol=0.01, atol=1e-3)


@on_gpu
def test_a_run_on_a_gpu_names_it(tmp_path):
    write_config(tmp_path / "ppo.yaml", small())
    qdsweep("run", "ppo.yaml", "--out", "out", cwd=tmp_path)
    versions = results.summary(tmp_path / "out")["versions"]
    assert versions.items() >= gpu.gpu_versions().items()
