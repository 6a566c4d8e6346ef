"""The seam between the loop and its algorithms, and what pyribs' parts can do behind it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_runs import digest_of
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.base import Algorithm, Archive, Candidates
from qdsweep.algorithms.ribs import internals
from qdsweep.config.algorithm import Composition
from qdsweep.config.archives import ARCHIVES
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.experiment import reload
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.run import compute
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json
from qdsweep.records.paths import RunDir, StateDir


class Best(Archive):
    """One cell."""

    cells, cells_stay = 1, True

    def __init__(self):
        self.elite = None

    def rows(self):
        return {name: np.array([value]) for name, value in (self.elite or {}).items()}

    def describe(self):
        return {"type": "grid", "cells": 1, "dims": [1, 1]}

    def geometry(self):
        return {}

    def cells_of(self, measures):
        return np.zeros(len(measures), dtype=np.int64)

    def objectives(self, cells):
        cells = cells[: 0 if self.elite is None else 1]
        return cells, np.array([self.elite["objective"]] if len(cells) else [])


class RandomSearch(Algorithm):
    """Nothing of pyribs: three batches an iteration, of which the best solution is kept."""

    def __init__(self, experiment, domain, shared):
        self.archive, self.dim = Best(), domain.solution_dim
        self.rng = np.random.default_rng(experiment.seed)
        self.batch = self.trained = 0

    def ask(self):
        self.batch = (self.batch + 1) % 4
        return Candidates(self.rng.normal(size=(5, self.dim))) if self.batch else None

    def tell(self, candidates, evaluation):
        best = int(np.argmax(evaluation.objective))
        elite = self.archive.elite
        if elite is None or evaluation.objective[best] > elite["objective"]:
            self.archive.elite = {
                "index": 0,
                "objective": evaluation.objective[best],
                "measures": evaluation.measures[best],
                "solution": candidates.solutions[best],
            }

    def metrics(self):
        score = float(self.archive.elite["objective"]) if self.archive.elite else None
        names = ("coverage", "qd_score", "norm_qd_score", "obj_max", "obj_mean")
        return {**dict.fromkeys(names, score), "num_elites": 1, "restarts": 0}

    def meanwhile(self):
        self.trained += 1


class Ends(Serial):
    """Evaluates some batches, and is then stopped in the middle of one."""

    def __init__(self, domain, stop, batches):
        super().__init__(domain)
        self.stop, self.batches = stop, batches

    def evaluate(self, batch, rows, meanwhile):
        if self.batches == 0:
            meanwhile()
            self.stop.ask("test")
        self.batches -= 1
        yield from super().evaluate(batch, rows, meanwhile)


@pytest.fixture
def family(monkeypatch) -> None:
    """The model of a family names what makes its algorithms."""
    monkeypatch.setattr(Composition, "code", f"{__name__}:RandomSearch")


def test_a_whole_run_of_another_family(family, tmp_path):
    (tmp_path / "state").mkdir()
    compute(compose(TINY, {"iterations": 4}), RunDir(tmp_path), Cluster(), Stop())
    summary = read_json(tmp_path / "state/summary.json")
    assert (summary["iterations"], summary["evaluations"]) == (4, 60)
    assert summary["archive"]["cells"] == summary["num_elites"] == 1
    with np.load(tmp_path / "state/history.npz") as history:
        assert history["objective"][-1] == summary["obj_max"]
        assert len(set(history["index"])) == 1


@pytest.mark.parametrize("batches", range(6))
def test_it_trains_once_an_iteration_wherever_it_was_stopped(family, tmp_path, batches):
    exp = compose(TINY, {"iterations": 2})
    domain = make_domain(exp.domain)
    state, stop = State(make_algorithm(exp, domain, None)), Stop()
    with pytest.raises(Interrupted):
        run_loop(exp, state, Ends(domain, stop, batches), stop, lambda *_: None)
    reload.save(state, StateDir(tmp_path), "f", {})
    state = reload.newest(StateDir(tmp_path), "f", {}).state
    run_loop(exp, state, Serial(domain), Stop(), lambda *_: None)
    assert state.algorithm.trained == state.iterations == 2
    straight = State(make_algorithm(exp, domain, None))
    run_loop(exp, straight, Serial(domain), Stop(), lambda *_: None)
    assert state.algorithm.metrics() == straight.algorithm.metrics()


def test_the_loop_does_not_import_pyribs():
    code = "import sys, qdsweep.experiment.run; sys.exit('ribs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_another_pyribs_is_refused_by_what_it_lacks(monkeypatch):
    monkeypatch.setattr(internals, "SlidingBoundariesArchive", lambda **_: object())
    with pytest.raises(QdsweepError, match=r"pyribs 0.* has no object\._boundaries, .* 0\.12\.0"):
        internals._check()


def strategy(kind: str, ranker: str, **keys: object) -> Experiment:
    emitters = [{"type": "evolution_strategy", "ranker": ranker}]
    part = {"archive": {"type": kind, **keys}, "emitters": emitters}
    return compose({**TINY, "algorithm": part}, {"iterations": 2})


def digest_with(exp: Experiment, changes: dict[str, object] | None = None) -> str:
    domain = make_domain(exp.domain)
    state = State(make_algorithm(exp, domain, None))
    for key, value in (changes or {}).items():
        state.algorithm.change(key, value)
    run_loop(exp, state, Serial(domain), Stop(), lambda *_: None)
    return digest_of(state)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [*((kind, {}) for kind in ARCHIVES), ("proximity", {"local_competition": True})],
)
def test_an_archive_kind_takes_the_rankers_that_work_with_it(kind, keys):
    rankers = strategy(kind, "obj", **keys).algorithm.archive.rankers
    for ranker in ("imp", "2imp", "rd", "2rd", "obj", "2obj", "nov"):
        if ranker in rankers:
            digest_with(strategy(kind, ranker, **keys))
        else:
            with pytest.raises(BadInput, match=f"ranker {ranker} does not work with a {kind}"):
                strategy(kind, ranker, **keys)


def test_the_density_ranker_is_refused_with_its_reason():
    with pytest.raises(
        BadInput, match=r"emitters.0.ranker: density needs .*DensityArchive.*; take ranker nov"
    ):
        strategy("grid", "density")


@pytest.mark.parametrize(
    ("algorithm", "key", "value"),
    [
        ("map_elites", "algorithm.emitters.0.sigma", 0.1),
        ("map_elites_line", "algorithm.emitters.0.iso_sigma", 0.1),
        ("map_elites_line", "algorithm.emitters.0.line_sigma", 0.9),
        ("cma_me", "algorithm.emitters.0.selection_rule", "filter"),
        ("cma_me", "algorithm.emitters.0.restart_rule", 2),
        ("cma_mae", "algorithm.archive.learning_rate", 0.5),
        ("cma_me", "algorithm.emitters.0.ranker", "2rd"),
        ("cma_mega", "algorithm.emitters.0.lr", 0.1),
        ("cma_mega", "algorithm.emitters.0.normalize_grad", False),
        ("openai_es", "algorithm.emitters.0.sigma0", 0.1),
        *((name, "batch_size", 12) for name in ("map_elites", "map_elites_line", "cma_me")),
        *((name, "batch_size", 12) for name in ("sep_cma_es", "openai_es", "cma_mega")),
    ],
)
def test_a_setting_changed_before_the_first_iteration_is_that_of_a_plain_run(algorithm, key, value):
    exp = compose(TINY, {"algorithm": algorithm, "iterations": 6})
    plain = compose(TINY, {"algorithm": algorithm, "iterations": 6, key: value})
    assert digest_with(exp, {key: value}) == digest_with(plain) != digest_with(exp)


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("cma_me", "algorithm.emitters.0.es"),
        ("cma_me", "algorithm.emitters.1.restart_rule"),
        ("map_elites", "algorithm.archive.learning_rate"),
        ("map_elites", "archive.dims"),
        ("map_elites", "num_emitters"),
        ("lm_ma_es", "batch_size"),
    ],
)
def test_what_cannot_change_in_mid_run_is_refused_by_name(algorithm, key):
    exp = compose(TINY, {"algorithm": algorithm})
    made = make_algorithm(exp, make_domain(exp.domain), None)
    with pytest.raises(BadInput, match=rf"^{re.escape(key)} cannot be changed in mid-run"):
        made.change(key, 1)


def test_a_change_is_of_its_group_alone():
    groups = [{"type": "gaussian", "sigma": 0.5}, {"type": "gaussian", "sigma": 0.7}]
    part = {"archive": {"type": "grid"}, "emitters": groups}
    exp = compose({**TINY, "algorithm": part, "num_emitters": 4})
    made = make_algorithm(exp, make_domain(exp.domain), Path())
    made.change("algorithm.emitters.1.sigma", 0.1)
    assert [float(emitter.sigma) for emitter in made.emitters] == [0.5, 0.5, 0.1, 0.1]


@pytest.mark.parametrize(
    ("changes", "first"), [({"first_batch": 8}, [3, 3, 2]), ({"initial_solutions": 3}, [3, 3, 3])]
)
def test_a_random_first_batch_is_of_the_emitters_and_asks_for_no_gradients(changes, first):
    """The first emitters get the rest; pyribs asks for gradients from the second iteration on."""
    emitter = {"type": "gradient_operator", "operator_type": "iso_line_dd", "line_sigma": 0.2}
    part = {"archive": {"type": "grid"}, "emitters": [emitter]}
    sizes = {"num_emitters": 3, "batch_size": 6, "iterations": 2}
    exp = compose({**TINY, "algorithm": part, **sizes}, changes)
    domain = make_domain(exp.domain)
    state = State(make_algorithm(exp, domain, None))
    assert [len(each.initial_solutions) for each in state.algorithm.emitters] == first
    run_loop(exp, state, Serial(domain), Stop(), lambda *_: None)
    assert state.evaluations == sum(first) + 3 * 6 == exp.evaluations_after(2)
