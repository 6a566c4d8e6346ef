"""Gradients from shares of a minibatch: the number of shares decides the bits, threads do not."""

import pickle
import threading

import numpy as np
import pytest
import results
from in_process import qdsweep
from learners import ACTORS, KEYS, made, record, trained, weights_digest
from refusals import refused
from support import write_yaml

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import torch

from qdsweep.algorithms.pytorch import arrays
from qdsweep.algorithms.pytorch.discount import DiscountModel
from qdsweep.algorithms.pytorch.shares import add_gradients, cut_shares
from qdsweep.config.compose import compose
from qdsweep.domains.base import CUT, TERMINATED, Token
from qdsweep.features.rl.learners.on_policy import OnPolicyLearner
from qdsweep.host.threads import in_order, use_threads
from qdsweep.records.results import write_config
from qdsweep.sweep.ids import run_id

# Of one share: the bits of releases before `learner_shares`.
GOLDEN = {
    ("ppo", "vectors"): "9eff09790ba8d5f3",
    ("ppo", "screens"): "07327efac0b9bf84",
    ("a2c", "vectors"): "59c48633c21919aa",
    ("a2c", "screens"): "e17c3d607aa94e3d",
    ("impala", "vectors"): "ac3704fb170d0cb2",
    ("impala", "screens"): "17d63d7319d8e1f5",
    ("dqn", "vectors"): "b993d384af752471",
    ("dqn", "screens"): "5c9932b6e9559d58",
    ("apex_dqn", "vectors"): "47071c6fa673f7b9",
    ("apex_dqn", "screens"): "83e76881c95a2019",
    ("ppo", "continuous"): "b6ca7e074513213f",
    ("a2c", "continuous"): "db8631fa6a8bad06",
    ("impala", "continuous"): "4a531a4389e0f33d",
}


@pytest.fixture
def threads():
    """Sets the number of threads, and returns to one."""
    yield use_threads
    use_threads(1)


@pytest.mark.parametrize(("name", "kind"), GOLDEN)
def test_one_share_has_the_bits_of_earlier_releases(name, kind):
    if not torch.__version__.startswith("2.13.0"):
        pytest.skip("other versions of torch have other bits")
    assert weights_digest(trained(name, kind)) == GOLDEN[name, kind]


@pytest.mark.parametrize(("name", "kind"), GOLDEN)
def test_shares_decide_the_bits_and_threads_do_not(name, kind, threads):
    """Of 16 shares, each has a row: a minibatch has 8 rows."""
    digests = {}
    for shares in (1, 3, 16):
        for number in (1, 2, 3):
            threads(number)
            digests[shares, number] = weights_digest(trained(name, kind, learner_shares=shares))
        assert len({digests[shares, number] for number in (1, 2, 3)}) == 1
    assert digests[1, 1] != digests[3, 1] != digests[16, 1]


def test_so_it_is_with_the_discount_model(threads):
    weights = {}
    for shares in (1, 3, 16):
        for number in (1, 2, 3):
            threads(number)
            states, losses = _discounts(shares)
            weights.setdefault(shares, []).append(pickle.dumps([states, losses]))
        assert len({*weights[shares]}) == 1
    assert len({many[0] for many in weights.values()}) == 3


def _discounts(shares: int):
    """The weights of a discount model after two trainings, and their losses."""
    settings = {"model_hidden": [8], "model_lr": 0.01, "train_epochs": 3, "train_cutoff_loss": 0.0}
    settings |= {"train_batch_size": 8, "learner_shares": shares}
    ranges = [(-1.0, 1.0), (-1.0, 1.0)]
    model = DiscountModel(settings, ranges, (0.0, 1.0), np.random.SeedSequence(3))
    points = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    losses = [
        *model.training_loop(points, points[:, 0]),
        *model.training_loop(points, points[:, 1]),
    ]
    return [values.tolist() for values in arrays(model.model.state_dict()).values()], losses


def test_shares_of_the_discount_model_train_it_as_one_call_does():
    (alone, losses), (shared, of_shares) = _discounts(1), _discounts(3)
    np.testing.assert_allclose(of_shares, losses, rtol=1e-4)
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-5)


# Settings of all terms of a loss. One share is stable-baselines3's own `train()`, except of IMPALA
# and Ape-X, which it does not have.
LOSSES = {
    "ppo": [
        {"clip_range_vf": 0.1, "ent_coef": 0.1, "vf_coef": 0.3},
        {"normalize_advantage": False, "max_grad_norm": 0.05, "clip_range": 0.01},
        {"target_kl": 0.002, "algorithm.learning_rate": 0.01, "n_epochs": 8},
    ],
    "a2c": [
        {"minibatch": None, "vf_coef": 0.3},
        {"minibatch": 7, "normalize_advantage": False, "max_grad_norm": 0.05},
        {"minibatch": 5, "use_rms_prop": False, "decay_steps": 60},
    ],
    "impala": [{"rho_bar": 2.0, "c_bar": 0.5, "lag": 2}, {"minibatch": 4, "use_rms_prop": False}],
    "dqn": [{"tau": 0.5, "n_steps": 3}, {"max_grad_norm": 0.05, "decay_steps": 60}],
    "apex_dqn": [{"tau": 0.5, "n_steps": 3, "importance_exponent": 0.9}, {"priority_exponent": 0}],
}


@pytest.mark.parametrize(
    ("name", "keys", "kind"),
    [
        (name, keys, kind)
        for name, variants in LOSSES.items()
        for keys in variants
        for kind in ACTORS
        if kind != "continuous" or "dqn" not in name
    ],
)
def test_shares_train_a_learner_as_one_call_does(name, keys, kind):
    actor = ACTORS[kind]
    before = made(name, actor, **{**KEYS[name], **keys})
    alone, shared = (trained(name, kind, **keys, learner_shares=shares) for shares in (1, 3))
    updated = shared.model.policy.state_dict()
    for part, wanted in alone.model.policy.state_dict().items():
        np.testing.assert_allclose(updated[part], wanted, rtol=1e-3, atol=1e-5, err_msg=part)
    rates = [one.model.policy.optimizer.param_groups[0]["lr"] for one in (alone, shared)]
    assert rates[0] == rates[1]
    assert np.abs(shared.policy - before.policy).max() > 1e-4


def test_the_divergence_of_all_shares_ends_an_iteration_of_ppo():
    steps = {}
    for target in (None, 0.002):
        keys = {**KEYS["ppo"], "target_kl": target, "algorithm.learning_rate": 0.01}
        steps[target] = _gradient_steps(made("ppo", **keys, learner_shares=3))
    assert 0 < steps[0.002] < steps[None]
    assert _gradient_steps(made("ppo", **keys)) == steps[0.002]


def _gradient_steps(learner) -> int:
    learner.learn([record("vectors", seed, 11 + seed) for seed in range(3)])
    (state, *_) = learner.model.policy.optimizer.state_dict()["state"].values()
    return int(state["step"])


def test_a_share_of_impala_has_whole_unrolls_also_where_an_episode_ends_in_one(monkeypatch):
    learner = made("impala", unroll=20, n_steps=5, minibatch=4, learner_shares=3)
    ends = np.zeros(20, np.uint8)
    ends[7], ends[19] = TERMINATED, CUT
    seen = np.random.default_rng(4).normal(size=(22, 4)).astype(np.float32)
    row = record("vectors", 0, 20)._replace(observations=seen, ends=ends, token=Token())
    sizes, loss_of = [], learner._loss_of

    def noted(steps, *others):
        sizes.append(len(steps.rewards))
        return loss_of(steps, *others)

    monkeypatch.setattr(learner, "_loss_of", noted)
    learner.learn([row])
    assert sizes == [5, 5, 10]


def test_each_thread_computes_with_one_thread(threads):
    threads(2)
    barrier = threading.Barrier(2)

    def look():
        barrier.wait(60)  # both threads are here
        torch.ones(200, 200) @ torch.ones(200, 200)
        return threading.get_ident(), torch.get_num_threads()

    (one, its), (other, others) = in_order([look, look])
    assert its == others == 1
    assert len({one, other, threading.get_ident()}) == 3


@pytest.mark.parametrize(
    ("count", "parts", "sizes"), [(8, 3, [2, 3, 3]), (2, 16, [1, 1]), (256, 16, [16] * 16)]
)
def test_shares_are_consecutive_and_of_nearly_equal_sizes(count, parts, sizes):
    rows = cut_shares(count, parts)
    assert [part.stop - part.start for part in rows] == sizes
    assert np.concatenate([np.arange(count)[part] for part in rows]).tolist() == [*range(count)]


def test_a_bias_that_stays_zero_and_what_no_loss_needs_get_no_gradient():
    unused, fixed, used = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    fixed.requires_grad_(False)
    calls = [lambda rows=rows: ((used * fixed)[rows].sum(), rows) for rows in cut_shares(2, 2)]
    assert add_gradients([unused, fixed, used], calls) == [slice(0, 1), slice(1, 2)]
    assert unused.grad is None and fixed.grad is None and used.grad.tolist() == [1, 1]


def test_the_default_is_not_in_an_id_and_other_shares_are():
    plain = compose("rl_cartpole", {"algorithm": "ppo"})
    assert run_id(compose(plain.model_dump(mode="json"), {"learner_shares": 1})) == run_id(plain)
    shared = compose("rl_cartpole", {"algorithm": "ppo", "learner_shares": 16})
    assert run_id(shared) != run_id(plain)
    for name in KEYS:
        assert compose("rl_cartpole", {"algorithm": name, "learner_shares": 2})
    assert compose("lp_sphere", {"algorithm": "dms", "learner_shares": 2})
    with refused("learner_shares"):
        compose("rl_cartpole", {"algorithm": "cma_me", "learner_shares": 2})


def test_a_run_trains_in_the_threads_of_its_cluster_with_the_same_result(tmp_path, monkeypatch):
    seen = set()
    loss = OnPolicyLearner._loss

    def watched(self, *given):
        seen.add(threading.current_thread() is threading.main_thread())
        return loss(self, *given)

    monkeypatch.setattr(OnPolicyLearner, "_loss", watched)
    data = compose("rl_cartpole", {"algorithm": "ppo", "learner_shares": 3, "n_steps": 50})
    data = compose(data.model_dump(mode="json"), {"iterations": 2, "steps": None, "batch_size": 2})
    write_config(tmp_path / "ppo.yaml", data)
    digests = set()
    for number in (1, 2):
        write_yaml(tmp_path / "cluster.yaml", {"learner_workers": number})
        words = "run", "ppo.yaml", "--cluster", "cluster.yaml", "--out", f"out{number}"
        qdsweep(*words, cwd=tmp_path)
        assert seen == {number == 1}
        seen.clear()
        digests.add(results.digest(tmp_path / f"out{number}"))
    assert len(digests) == 1
