"""A schedule changes a run at its iteration, wherever the run was stopped."""

import logging
import pickle

import pytest
from small_runs import StopsAfter, digest_of, fresh, payload_of
from support import TINY

from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.errors import BadInput
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.paths import RunDir

GRADIENT = {"archive": {"type": "grid"}, "emitters": [{"type": "gradient_operator"}]}
# One case for each key of an emitter, an archive or an experiment that can change in mid-run.
CHANGES = [
    ("map_elites", {"sigma": 0.05}),
    ("map_elites_line", {"iso_sigma": 0.05, "line_sigma": 0.9}),
    ("cma_me", {"ranker": "2rd", "selection_rule": "filter", "restart_rule": 2}),
    ("cma_me", {"batch_size": 14}),
    ("cma_me_imp", {"sigma0": 3.0}),
    ("sep_cma_es", {"batch_size": 6}),
    ("openai_es", {"sigma0": 0.05, "batch_size": 10}),
    ("cma_mae", {"learning_rate": 0.5}),
    ("cma_mega", {"lr": 0.1, "normalize_grad": False}),
    ("cma_mega", {"sigma0": 1.0, "batch_size": 5}),
    (GRADIENT, {"sigma": 0.05, "sigma_g": 1.0, "batch_size": 12}),
    (GRADIENT, {"measure_gradients": False, "normalize_grad": False}),
]


def scheduled(algorithm, *changes: tuple[int, dict], **keys: object) -> Experiment:
    schedule = [{"at": at, "set": values} for at, values in changes]
    return compose({**TINY, "algorithm": algorithm, "iterations": 9, "schedule": schedule}, keys)


def straight(exp: Experiment, folder) -> str:
    state, engine = fresh(exp, folder)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    return digest_of(state)


@pytest.mark.parametrize(("algorithm", "values"), CHANGES)
def test_a_changed_run_goes_on_bit_for_bit_after_every_iteration(algorithm, values, tmp_path):
    # A restart every second iteration, where the change waits for one.
    keys = {"restart_rule": 2} if "sigma0" in values else {}
    exp = scheduled(algorithm, (3, values), **keys)
    state, engine = fresh(exp, tmp_path)
    for last in range(1, 10):
        short = exp.model_copy(update={"iterations": last})
        run_loop(short, state, engine, Stop(), lambda *_: None)
        state = pickle.loads(payload_of(state))
    expected = straight(exp, tmp_path)
    assert digest_of(state) == expected != straight(exp.donor, tmp_path)


@pytest.mark.parametrize("parts", [0, 30, 47, 48, 49, 50, 63, 64, 65, 80])
@pytest.mark.parametrize("algorithm", ["cma_mae", "cma_mega"])
def test_a_run_that_was_stopped_in_an_evaluation_changes_once(
    algorithm, parts, tmp_path, monkeypatch
):
    made: list[str] = []
    change = RibsAlgorithm.change

    def counted(self: RibsAlgorithm, key: str, value: object) -> None:
        made.append(key)
        change(self, key, value)

    first = {"learning_rate": 0.5} if algorithm == "cma_mae" else {"batch_size": 6}
    exp = scheduled(algorithm, (3, first), (4, {"ranker": "imp"}))
    expected = straight(exp, tmp_path)
    monkeypatch.setattr(RibsAlgorithm, "change", counted)
    state, engine = fresh(exp, tmp_path)
    stop = Stop()
    with pytest.raises(Interrupted):
        run_loop(exp, state, StopsAfter(engine.domain, stop, parts), stop, lambda *_: None)
    state = pickle.loads(payload_of(state))
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert made == [*exp.schedule[0].set, *exp.schedule[1].set]
    assert digest_of(state) == expected


def test_a_change_after_the_last_iteration_waits_for_a_larger_budget(tmp_path, caplog):
    caplog.set_level(logging.INFO, "qdsweep")
    exp = scheduled("map_elites", (4, {"sigma": 0.05}), iterations=4)
    assert exp.late_changes == [4]
    state, engine = fresh(exp, tmp_path)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert "sigma" not in caplog.text
    longer = exp.model_copy(update={"iterations": 9})
    run_loop(longer, state, engine, Stop(), lambda *_: None)
    assert "after iteration 4: algorithm.emitters.0.sigma = 0.05" in caplog.text
    assert digest_of(state) == straight(longer, tmp_path)


OWN = """
from qdsweep.errors import BadInput
from ribs.emitters import GaussianEmitter


class Annealed(GaussianEmitter):
    def __init__(self, archive, *, x0, batch_size, seed, rate=1.0, kind="a"):
        super().__init__(archive, x0=x0, sigma=rate, batch_size=batch_size, seed=seed)

    def change(self, name, value):
        if name != "rate":
            raise BadInput(f"{name} stays")
        self._sigma = self._sigma * 0 + value


class Stubborn(GaussianEmitter):
    def __init__(self, archive, *, x0, batch_size, seed, rate=1.0):
        super().__init__(archive, x0=x0, sigma=rate, batch_size=batch_size, seed=seed)
"""


def own(name: str, change: dict, **keys: object) -> Experiment:
    part = {"archive": {"type": "grid"}, "emitters": [{"type": f"lab:{name}"}]}
    return scheduled(part, (3, change), **keys)


def test_an_emitter_of_the_user_changes_what_its_method_takes(plugins, tmp_path):
    plugins("lab", OWN)
    exp = own("Annealed", {"rate": 0.05})
    assert straight(exp, tmp_path) != straight(exp.donor, tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("Annealed", {"kind": "b"}, "schedule, at 3: kind stays"),
        ("Annealed", {"rate": "b"}, "schedule, at 3: .*rate = 'b': `change` raised"),
        ("Stubborn", {"rate": 0.1}, "rate cannot be changed .* needs a method `change"),
    ],
)
def test_what_a_class_of_the_user_refuses_ends_the_run_before_it_begins(
    plugins, tmp_path, name, change, message
):
    plugins("lab", OWN)
    (tmp_path / "run/state").mkdir(parents=True)
    with pytest.raises(BadInput, match=message):
        compute(own(name, change), RunDir(tmp_path / "run"), Cluster(), Stop())
    assert not list((tmp_path / "run/state").glob("reload-*"))
