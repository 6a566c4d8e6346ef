"""pyribs' parts: rankers, first batches, and settings that change during a run."""

from typing import get_args

import pytest
from composing import installed
from refusals import refused
from small_runs import digest_of
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.ribs import internals
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.config.compose import compose
from qdsweep.config.emitters import Ranker
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.errors import QdsweepError
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop


def test_another_pyribs_is_refused_by_what_it_lacks(monkeypatch):
    monkeypatch.setattr(internals, "SlidingBoundariesArchive", lambda **_: object())
    with refused("_boundaries", "0.12.0", kind=QdsweepError):
        internals._check()


def strategy(kind: str, ranker: str, **keys: object) -> Experiment:
    emitters = [{"type": "evolution_strategy", "ranker": ranker}]
    part = {"archive": {"type": kind, **keys}, "emitters": emitters}
    part["result_archive"] = kind in ("density", "discount")
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
    [
        *((kind, {}) for kind in (*ARCHIVES, "density", "discount")),
        ("proximity", {"local_competition": True}),
        ("density", {"density_method": "kde_sklearn", "bandwidth": 3.0, "buffer_size": 30}),
    ],
)
def test_an_archive_kind_takes_the_rankers_that_work_with_it(kind, keys):
    rankers = strategy(kind, "obj", **keys).algorithm.archive.rankers
    for ranker in set(get_args(Ranker)) - {"nslc_classic"}:
        if ranker in rankers:
            digest_with(installed(strategy(kind, ranker, **keys)))
        else:
            with refused("ranker", ranker, kind):
                strategy(kind, ranker, **keys)


def test_the_density_ranker_is_refused_with_the_archive_that_it_needs():
    with refused("ranker", "density", "grid", "type density"):
        strategy("grid", "density")


@pytest.mark.parametrize(
    ("name", "keys", "names"),
    [
        ("dds", {"result_archive": False}, ["density", "result_archive: true"]),
        ("dds", {"add_mode": "single"}, ["density", "add_mode = single", "add_mode: batch"]),
        ("dds", {"density_method": "cnf"}, ["density_method", "cnf", "zuko", "kde"]),
        ("dms", {"result_archive": False}, ["discount", "result_archive: true"]),
        ("dms", {"add_mode": "single"}, ["discount", "add_mode = single", "add_mode: batch"]),
    ],
)
def test_an_archive_without_elites_is_refused_where_it_cannot_work(name, keys, names):
    with refused(*names):
        compose({**TINY, "algorithm": name}, keys)


@pytest.mark.parametrize("key", ["remap_frequency", "buffer_capacity"])
def test_boundaries_are_made_from_two_solutions_or_more(key):
    with refused(key, 1):
        compose({**TINY, "algorithm": "sliding_boundaries"}, {key: 1})
    digest_with(compose({**TINY, "algorithm": "sliding_boundaries"}, {key: 2}))


def test_emitters_of_a_density_archive_search_with_the_result_archive():
    exp = compose({**TINY, "algorithm": "dds", "restart_rule": 1, "iterations": 2})
    made = make_algorithm(exp, make_domain(exp.domain), None)
    density, result = made.ribs_scheduler.archive, made.archive.ribs_archive
    assert density._bandwidth == 0.05 * 51.2, "5 % of the mean range"
    assert all(emitter.archive is result for emitter in made.emitters)


GENOTYPES = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Genotypes:
    solution_dim, measures, objective_range, step = 3, {"x": (-9, 9)}, (-9, 0), 0.5
    def __init__(self, of_genotypes=True):
        self.fields = {"genotypic_diversity": ()} if of_genotypes else {}
    def evaluate(self, solutions, seeds):
        fields = {name: np.abs(solutions[:, 2]) for name in self.fields}
        return Evaluation(-np.square(solutions[:, 1]), solutions[:, :1], fields)
"""


def test_classic_nslc_ranks_by_a_field_of_the_domain(plugins):
    plugins("genotypes", GENOTYPES)
    part = {"preset": "nslc", "archive": {"novelty_threshold": 0.1}}
    domain = {"type": "genotypes:Genotypes"}
    keys = {"algorithm": part, "domain": domain, "archive": {"dims": [9]}, "iterations": 3}
    plain = compose({**TINY, **keys})
    classic = compose({**TINY, **keys}, {"ranker": "nslc_classic"})
    assert digest_with(classic) != digest_with(plain)
    without = compose({**TINY, **keys}, {"ranker": "nslc_classic", "of_genotypes": False})
    with refused("emitters.0.ranker", "nslc_classic", "genotypic_diversity", "nslc"):
        make_algorithm(without, make_domain(without.domain), None)


@pytest.mark.parametrize(
    ("algorithm", "key", "value"),
    [
        ("map_elites", "algorithm.emitters.0.sigma", 0.1),
        ("map_elites_line", "algorithm.emitters.0.iso_sigma", 0.1),
        ("map_elites_line", "algorithm.emitters.0.line_sigma", 0.9),
        ("cma_me", "algorithm.emitters.0.selection_rule", "filter"),
        ("cma_me", "algorithm.emitters.0.restart_rule", 2),
        ("cma_mae", "algorithm.archive.learning_rate", 0.5),
        ("dms", "algorithm.archive.learning_rate", 0.5),
        ("cma_me", "algorithm.emitters.0.ranker", "2rd"),
        ("cma_mega", "algorithm.emitters.0.lr", 0.1),
        ("omg_mega", "algorithm.emitters.0.sigma", 0.1),
        ("cma_mega", "algorithm.emitters.0.normalize_grad", False),
        ("openai_es", "algorithm.emitters.0.sigma0", 0.1),
        *((name, "batch_size", 12) for name in ("map_elites", "map_elites_line", "cma_me")),
        *((name, "batch_size", 12) for name in ("sep_cma_es", "openai_es", "cma_mega")),
    ],
)
def test_a_setting_changed_before_the_first_iteration_is_that_of_a_plain_run(algorithm, key, value):
    exp = installed(compose(TINY, {"algorithm": algorithm, "iterations": 6}))
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
def test_keys_that_cannot_change_during_a_run_are_refused_by_name(algorithm, key):
    exp = compose(TINY, {"algorithm": algorithm})
    made = make_algorithm(exp, make_domain(exp.domain), None)
    with refused(key):
        made.change(key, 1)


def test_a_change_only_affects_its_group():
    groups = [{"type": "gaussian", "sigma": 0.5}, {"type": "gaussian", "sigma": 0.7}]
    part = {"archive": {"type": "grid"}, "emitters": groups}
    exp = compose({**TINY, "algorithm": part, "num_emitters": 5})
    made = make_algorithm(exp, make_domain(exp.domain), None)
    made.change("algorithm.emitters.1.sigma", 0.1)
    assert [float(emitter.sigma) for emitter in made.emitters] == [0.5, 0.5, 0.1, 0.1, 0.1]


@pytest.mark.parametrize(("number", "sizes"), [(15, [7, 8]), (4, [2, 2]), (2, [1, 1])])
def test_the_last_groups_have_the_remainder_of_the_emitters(number, sizes):
    exp = compose({**TINY, "algorithm": "cma_me_mixed", "num_emitters": number})
    made = make_algorithm(exp, make_domain(exp.domain), None)
    kinds = [type(emitter._ranker).__name__ for emitter in made.emitters]
    names = ("TwoStageRandomDirectionRanker", "TwoStageImprovementRanker")
    assert kinds == [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]


def test_fewer_emitters_than_groups_are_refused():
    with refused("num_emitters", "1", "2", "cma_me_mixed"):
        compose({**TINY, "algorithm": "cma_me_mixed", "num_emitters": 1})


@pytest.mark.parametrize(
    ("changes", "first"), [({"first_batch": 8}, [3, 3, 2]), ({"initial_solutions": 3}, [3, 3, 3])]
)
def test_a_random_first_batch_is_of_the_emitters_and_asks_for_no_gradients(changes, first):
    """The first emitters get the remainder. pyribs asks for gradients from iteration 2 on."""
    emitter = {"type": "gradient_operator", "operator_type": "iso_line_dd", "line_sigma": 0.2}
    part = {"archive": {"type": "grid"}, "emitters": [emitter]}
    sizes = {"num_emitters": 3, "batch_size": 6, "iterations": 2}
    exp = compose({**TINY, "algorithm": part, **sizes}, changes)
    domain = make_domain(exp.domain)
    state = State(make_algorithm(exp, domain, None))
    assert [len(each.initial_solutions) for each in state.algorithm.emitters] == first
    run_loop(exp, state, Serial(domain), Stop(), lambda *_: None)
    assert state.evaluations == sum(first) + 3 * 6 == exp.evaluations_after(2)
