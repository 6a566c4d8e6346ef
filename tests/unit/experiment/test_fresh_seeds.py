"""Each run finds out whether evaluations depend on their seed, and this changes no result."""

from pathlib import Path

import numpy as np
import pytest
from in_process import compute_run
from results import outcome, summary
from support import POLE, TINY

from qdsweep.config.compose import compose
from qdsweep.domains.base import Evaluation
from qdsweep.engines.pool import Serial
from qdsweep.experiment.fresh_seeds import CHECKED_ELITES, find_noise
from qdsweep.experiment.stop import OUT_OF_TIME, Interrupted, Stop

DOMAIN = """
import numpy as np
from qdsweep.domains.base import Evaluation

class Lucky:
    solution_dim, fields = 4, {{}}
    measures = {{"a": (-3.0, 3.0), "b": (-3.0, 3.0)}}
    objective_range = (-100.0, 0.0)

    def evaluate(self, solutions, seeds):
        luck = {luck}
        return Evaluation(-(solutions**2).sum(axis=1) + luck, solutions[:, :2] + {moved})
"""
SMALL = {
    "algorithm": "map_elites",
    "archive": {"dims": [12, 12]},
    "num_emitters": 1,
    "batch_size": 20,
    "initial_solutions": 200,
    "iterations": 3,
    "seed": 1,
}
NOISE = "np.array([np.random.default_rng(seed).normal() for seed in seeds])"


def run(plugins, tmp_path: Path, luck: str, moved: str = "0", **keys) -> Path:
    plugins("lucky", DOMAIN.format(luck=luck, moved=moved))
    domain = {"type": "lucky:Lucky", **keys}
    return compute_run({**SMALL, "domain": domain}, tmp_path / "out")


@pytest.mark.parametrize("policy", ["solution", "iteration", "fixed", 7])
@pytest.mark.parametrize(
    ("luck", "moved", "expected"),
    [
        ("0", "0", False),
        (NOISE, "0", True),
        ("0", f"0.01 * {NOISE}[:, None]", True),
    ],
)
def test_it_is_found_with_every_policy_of_seeds(plugins, tmp_path, luck, moved, policy, expected):
    out = run(plugins, tmp_path, luck, moved, evaluation_seed=policy)
    assert summary(out)["stochastic"] is expected
    with np.load(out / "state/noise.npz") as file:
        assert len(file["objective"]) == len(file["measures"]) == CHECKED_ELITES
        assert bool(file["stochastic"]) is expected
        with np.load(out / "archive.npz") as archive:
            assert not np.isin(file["evaluation_seed"], archive["evaluation_seed"]).any()
            assert (archive["objective"][file["row"]] == file["objective"]).all() == (luck == "0")


def test_what_declares_that_it_is_certain_is_not_evaluated_again(tmp_path):
    out = compute_run(TINY, tmp_path / "out")
    assert summary(out)["stochastic"] is False
    assert not (out / "state/noise.npz").exists()


def test_an_elite_has_what_its_run_had_learned_then(tmp_path):
    """CartPole starts at random; its archive has the normalisation of each elite."""
    out = compute_run(POLE, tmp_path / "out")
    assert summary(out)["stochastic"] is True


def test_an_error_changes_no_result_of_a_run(plugins, tmp_path, caplog):
    expected = outcome(run(plugins, tmp_path / "well", NOISE))
    seeds = np.random.SeedSequence(1, spawn_key=(3,)).generate_state(1)
    breaks = f"np.array([1 // int(seed != {seeds[0]}) for seed in seeds]) * 0 + {NOISE}"
    out = run(plugins, tmp_path / "ill", breaks)
    assert summary(out)["stochastic"] == "unknown"
    assert "not known whether evaluations depend on their seed" in caplog.text
    assert outcome(out)["summary"].pop("stochastic") == "unknown"
    for part in ("digest", "rows", "history"):
        assert outcome(out)[part] == expected[part]


@pytest.mark.parametrize(("luck", "further"), [(NOISE, 0), ("0", CHECKED_ELITES)])
def test_a_longer_budget_asks_again_unless_evaluations_depend_on_their_seed(
    plugins, tmp_path, luck, further
):
    path = tmp_path / "evaluated"
    luck = f"{luck} + 0 * open({str(path)!r}, 'a').write('.' * len(seeds))"
    out = run(plugins, tmp_path, luck)
    found, before = summary(out)["stochastic"], path.stat().st_size - summary(out)["evaluations"]
    domain = {"type": "lucky:Lucky"}
    compute_run({**SMALL, "domain": domain, "iterations": 9}, out)
    assert summary(out)["stochastic"] is found is (further == 0)
    assert path.stat().st_size - summary(out)["evaluations"] == before + further


def test_a_damaged_note_is_written_again(plugins, tmp_path):
    out = run(plugins, tmp_path, NOISE)
    (out / "state/noise.npz").write_bytes(b"damaged")
    compute_run({**SMALL, "domain": {"type": "lucky:Lucky"}, "iterations": 9}, out)
    assert summary(out)["stochastic"] is True
    with np.load(out / "state/noise.npz") as file:
        assert bool(file["stochastic"])


class Fake:
    """A domain whose evaluation has the number of its seed, or none."""

    solution_dim, fields = 1, {}
    measures, objective_range = {"a": (0.0, 1.0)}, (0.0, 1.0)

    def __init__(self, depends: bool):
        self.depends = depends

    def evaluate(self, solutions, seeds):
        return Evaluation(solutions[:, 0] + self.depends * seeds, solutions)


@pytest.mark.parametrize("depends", [True, False])
def test_the_mean_that_an_algorithm_keeps_is_no_evaluation(tmp_path, depends):
    """Elites may have the mean of several evaluations; their own seeds decide."""
    experiment, domain = compose({**TINY, "domain": "cartpole"}), Fake(depends)
    solutions = np.linspace(0, 1, 50)[:, None]
    rows = {
        "solution": solutions,
        "objective": solutions[:, 0] + 1e-3,
        "measures": solutions,
        "evaluation_seed": np.arange(50, dtype=np.uint32),
    }
    path = tmp_path / "noise.npz"
    found = find_noise(experiment, domain, lambda: rows, Serial(domain), Stop(), path)
    assert found is depends


@pytest.mark.parametrize(("reason", "ends"), [(OUT_OF_TIME, True), ("SIGTERM", False)])
def test_the_end_of_the_wall_time_does_not_leave_a_run_unfinished(tmp_path, reason, ends):
    """A signal does: the same command then asks again."""
    experiment, domain, stop = compose({**TINY, "domain": "cartpole"}), Fake(True), Stop()
    rows = {"solution": np.zeros((1, 1)), "objective": np.zeros(1), "measures": np.zeros((1, 1))}
    stop.reason = reason
    words = experiment, domain, lambda: rows, Serial(domain), stop, tmp_path / "noise.npz"
    if ends:
        assert find_noise(*words) == "unknown"
    else:
        with pytest.raises(Interrupted):
            find_noise(*words)


def test_no_elite_is_unknown(tmp_path):
    experiment, domain = compose({**TINY, "domain": "cartpole"}), Fake(True)
    rows = {"solution": np.zeros((0, 1)), "objective": np.zeros(0), "measures": np.zeros((0, 1))}
    words = experiment, domain, lambda: rows, Serial(domain), Stop(), tmp_path / "noise.npz"
    assert find_noise(*words) == "unknown"
