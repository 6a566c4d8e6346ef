"""`add_mode: single`: the quick pass over a batch equals pyribs' own `add_single`, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ribs.archives import CVTArchive, GridArchive, ProximityArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.ribs.single import SingleScheduler
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain

BOTH = {"ranges": [(-1, 1), (-1, 1)], "extra_fields": {"noise": ((2,), np.float32)}}
# None: plain elitism, without thresholds.
RATES = (None, 1.0, 0.01, 0.0)


def archive(kind: str, rate: float | None, threshold_min: float = 0.0):
    keys = {} if rate is None else {"learning_rate": rate, "threshold_min": threshold_min}
    if kind == "cvt":
        points = np.random.default_rng(0).uniform(-1, 1, (9, 2))
        return CVTArchive(solution_dim=3, centroids=points, seed=1, **BOTH, **keys)
    return GridArchive(solution_dim=3, dims=[3, 3], seed=1, **BOTH, **keys)


def batches(rng: np.random.Generator, sizes: list[int], step: float):
    """Batches with many solutions per cell, and equal objectives if `step` is large."""
    for size in sizes:
        objective = rng.normal(0.5, 1, size)
        yield {
            "objective": np.round(objective / step) * step if step else objective,
            "measures": rng.uniform(-1.2, 1.2, (size, 2)),
            "noise": rng.normal(size=(size, 2)),
        }


def scheduler(kind: type, main, result) -> Scheduler:
    emitters = [EvolutionStrategyEmitter(main, x0=[0.0] * 3, sigma0=1.0, batch_size=2, seed=n)
                for n in range(2)]  # fmt: skip
    return kind(main, emitters, result, add_mode="single")


def state(of) -> dict:
    """Everything that an archive's later results depend on, of occupied cells only."""
    store, places = of._store, np.array(of._store.occupied_list)
    return {
        "fields": {name: rows[places].tobytes() for name, rows in store._fields.items()},
        "places": places.tobytes(),
        "occupied": store.occupied.tobytes(),
        "updates": store._props["updates"],
        "sum": np.float64(of._objective_sum).tobytes(),
        "stats": pickle.dumps([None if x is None else float(x) for x in vars(of.stats).values()]),
        "best": None
        if of.best_elite is None
        else {key: (value.dtype, value.tobytes()) for key, value in of.best_elite.items()},
    }


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", ["grid", "cvt"])
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    step=st.sampled_from([0.0, 0.5]),
    threshold_min=st.sampled_from([0.0, -3.0, 9.0]),
)
@pytest.mark.filterwarnings("ignore:`archive` was empty", "ignore:`result_archive` was empty")
def test_it_equals_adding_each_solution(kind, rate, seed, sizes, step, threshold_min):
    infos, states = [], []
    for own in (Scheduler, SingleScheduler):
        main, result = archive(kind, rate, threshold_min), archive("grid", None)
        made, seen = scheduler(own, main, result), []
        for batch in batches(np.random.default_rng(seed), sizes, step):
            solutions = np.arange(3.0 * len(batch["objective"])).reshape(-1, 3)
            made._cur_solutions = solutions
            added = made._add_to_archives({**batch, "solution": solutions})
            seen.append({key: (value.dtype, value.tobytes()) for key, value in added.items()})
            states.append([state(main), state(result)])
        infos.append(seen)
    assert infos[0] == infos[1]
    half = len(states) // 2
    assert states[:half] == states[half:]


def test_whole_runs_equal_those_of_pyribs_scheduler():
    """The emitters get the same statuses and values, so that they ask for the same solutions."""
    for algorithm in ("cma_me", "cma_mae", "cma_mega", "map_elites"):
        exp = compose({**TINY, "algorithm": algorithm}, {"add_mode": "single"})
        domain = make_domain(exp.domain)
        ours = make_algorithm(exp, domain, None)
        theirs = copy.deepcopy(ours)
        assert type(ours.ribs_scheduler) is SingleScheduler
        theirs.ribs_scheduler.__class__ = Scheduler
        asked = 0
        while asked < 12:
            batches = [each.ask() for each in (ours, theirs)]
            if batches[0] is None:
                continue
            asked += 1
            assert batches[0].solutions.tobytes() == batches[1].solutions.tobytes()
            seeds = np.zeros(len(batches[0].solutions), dtype=np.uint64)
            for each, batch in zip((ours, theirs), batches, strict=True):
                evaluation = domain.evaluate(batch.solutions, seeds)
                if batch.gradients:
                    evaluation = evaluation._replace(jacobian=domain.jacobian(batch.solutions))
                each.tell(batch._replace(seeds=seeds), evaluation)
        for name in ("archive", "result_archive"):
            mine, pyribs = (getattr(each.ribs_scheduler, name) for each in (ours, theirs))
            assert state(mine) == state(pyribs)


@pytest.mark.parametrize("algorithm", ["novelty_search", "nslc"])
def test_emitters_take_what_an_archive_without_cells_returns(algorithm):
    exp = compose({**TINY, "algorithm": algorithm}, {"add_mode": "single"})
    domain = make_domain(exp.domain)
    made = make_algorithm(exp, domain, None)
    for _ in range(4):
        if (batch := made.ask()) is None:
            continue
        seeds = np.zeros(len(batch.solutions), dtype=np.uint64)
        made.tell(batch._replace(seeds=seeds), domain.evaluate(batch.solutions, seeds))
    assert len(made.ribs_scheduler.archive) > 0


def test_other_archives_add_each_solution_by_pyribs_own_way():
    keys = {"solution_dim": 3, "measure_dim": 2, "k_neighbors": 2, "novelty_threshold": 0.1}
    keys["extra_fields"] = BOTH["extra_fields"]
    results = []
    for own in (Scheduler, SingleScheduler):
        main = ProximityArchive(seed=1, **keys)
        made = scheduler(own, main, archive("grid", None))
        for batch in batches(np.random.default_rng(3), [7, 7], 0.0):
            made._cur_solutions = np.arange(21.0).reshape(-1, 3)
            made._add_to_archives({**batch, "solution": made._cur_solutions})
        results.append(main.data("measures").tobytes())
    assert results[0] == results[1]
