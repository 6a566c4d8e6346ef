"""A schedule changes a run once, at its iteration."""

import pickle

import pytest
from refusals import refused
from small_runs import StopsAfter, digest_of, fresh, payload_of
from support import TINY

from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.paths import RunDir


def scheduled(algorithm, *changes: tuple[int, dict], **keys: object) -> Experiment:
    schedule = [{"at": at, "set": values} for at, values in changes]
    return compose({**TINY, "algorithm": algorithm, "iterations": 9, "schedule": schedule}, keys)


def straight(exp: Experiment, folder) -> str:
    state, engine = fresh(exp, folder)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    return digest_of(state)


@pytest.mark.parametrize("rows", [0, 47, 48, 49, 63, 64, 65])
def test_a_run_that_was_stopped_in_an_evaluation_changes_once(rows, tmp_path, monkeypatch):
    """The results equal those of a straight run, see test_resume.py."""
    made = []
    monkeypatch.setattr(RibsAlgorithm, "change", lambda _, key, value: made.append(key))
    exp = scheduled("cma_mae", (3, {"learning_rate": 0.5}), (4, {"ranker": "imp"}))
    state, engine = fresh(exp, tmp_path)
    stop = Stop()
    with pytest.raises(Interrupted):
        run_loop(exp, state, StopsAfter(engine.domain, stop, rows), stop, lambda *_: None)
    run_loop(exp, pickle.loads(payload_of(state)), engine, Stop(), lambda *_: None)
    assert made == [*exp.schedule[0].set, *exp.schedule[1].set]


def test_a_change_after_the_last_iteration_waits_for_a_larger_budget(tmp_path):
    exp = scheduled("map_elites", (4, {"sigma": 0.05}), iterations=4)
    assert exp.late_changes == [4]
    state, engine = fresh(exp, tmp_path)
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert digest_of(state) == straight(exp.donor, tmp_path)
    longer = exp.model_copy(update={"iterations": 9})
    run_loop(longer, state, engine, Stop(), lambda *_: None)
    assert digest_of(state) == straight(longer, tmp_path) != straight(longer.donor, tmp_path)


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
    ("name", "change", "names"),
    [
        ("Annealed", {"kind": "b"}, ("kind",)),
        ("Annealed", {"rate": "b"}, ("rate", "'b'", "change")),
        ("Stubborn", {"rate": 0.1}, ("rate", "change")),
    ],
)
def test_what_a_class_of_the_user_refuses_ends_the_run_before_it_begins(
    plugins, tmp_path, name, change, names
):
    plugins("lab", OWN)
    (tmp_path / "run/state").mkdir(parents=True)
    with refused("schedule", 3, *names):
        compute(Attempt.of(own(name, change), RunDir(tmp_path / "run")), Stop())
    assert not list((tmp_path / "run/state").glob("reload-*"))
