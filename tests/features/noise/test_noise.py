"""Runs that evaluate their solutions again: budgets, samples, digests and refusals."""

import json
from itertools import count

import numpy as np
import pytest
from composing import BASE, merged, presets
from in_process import compute_run
from refusals import refused
from results import summary
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.base import SEED
from qdsweep.config.compose import compose, read_domain
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.domains import make_domain
from qdsweep.domains.plugin import check_rows
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.records.metrics_file import read_metrics
from qdsweep.records.paths import RunDir
from qdsweep.sweep.ids import run_id

NOISY = {**TINY, "algorithm": "map_elites_line", "domain": "noisy_arm_measures"}
WAYS = {
    "fixed": {"type": "fixed", "times": 3},
    "archive": {"type": "archive"},
    "adaptive": {"type": "adaptive"},
    "extract": {"type": "extract", "share": 0.5},
    "lower bound": {"type": "extract", "depth": 3, "rule": "lower_bound"},
    "deep_grid": {"type": "deep_grid", "depth": 4},
}
SAMPLED_DOMAIN = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Domain:
    solution_dim, objective_range = 2, (0.0, 1.0)
    measures = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    fields = {"samples": ()}
    def evaluate(self, solutions, seeds):
        n = len(solutions)
        return Evaluation(np.ones(n), np.zeros((n, 2)), {"samples": np.ones(n)})
"""
# Algorithms whose solutions the key cannot evaluate again, on a domain that they work on.
OTHERS = {
    "ga": {"num_emitters": 1},
    "me_es": {"num_emitters": 1, "batch_size": 40},
    "cma_mega": {},
    "td3": {
        "domain": {"preset": "pendulum", "evaluation_seed": "solution"},
        "num_emitters": 1,
    },
    "ppo": {"domain": "rl_cartpole", "num_emitters": 1},
}


def test_no_resampling_is_no_key_of_an_id():
    assert run_id(compose(BASE, {"resampling.type": None})) == run_id(compose(BASE))
    assert run_id(compose({**BASE, "resampling": {"type": None}})) == run_id(compose(BASE))
    ids = {run_id(compose({**BASE, "resampling": way})) for way in WAYS.values() if way}
    assert len(ids - {run_id(compose(BASE))}) == len(WAYS)
    # A default is no key of an id either.
    whole = {"type": "extract", "share": 0.25, "depth": 8, "rule": "mean"}
    short = compose({**BASE, "resampling": {"type": "extract"}})
    assert run_id(compose({**BASE, "resampling": whole})) == run_id(short)


SAMPLED = [
    name
    for name in presets("algorithms")
    if "resampling" in read_yaml(find_preset("algorithms", name))
]


def test_each_way_is_that_of_a_preset():
    ways = {compose({**BASE, "algorithm": name}).resampling.type for name in SAMPLED}
    assert ways == {way["type"] for way in WAYS.values()}


@pytest.mark.parametrize("name", SAMPLED)
def test_a_preset_of_an_algorithm_may_set_the_key_and_others_take_it_away(name: str):
    made = compose({**BASE, "domain": "noisy_arm_joint", "algorithm": name})
    assert compose({**BASE, "algorithm": name}, {"algorithm": "cma_me"}).resampling.type is None
    own = compose({**BASE, "algorithm": name, "resampling": WAYS["fixed"]})
    assert own.resampling.type == "fixed", "the experiment's key comes later"
    again = Experiment.model_validate_json(json.dumps(made.model_dump(mode="json")))
    assert again == made


@pytest.mark.parametrize("algorithm", ["map_elites_line", "cma_me", "cma_mae", "cvt_map_elites"])
def test_one_sample_without_noise_has_the_digest_of_none(tmp_path, algorithm: str):
    changes = {"algorithm": algorithm, "iterations": 5}
    if algorithm == "cvt_map_elites":
        changes["archive"] = {"cells": 30}
    for folder, way in (("none", {}), ("one", {"resampling": {"type": "fixed", "times": 1}})):
        compute_run(merged(TINY, changes | way), tmp_path / folder)
    none, one = (summary(tmp_path / folder) for folder in ("none", "one"))
    assert none["archive_digest"] == one["archive_digest"]
    assert none["evaluations"] == one["evaluations"]


@pytest.mark.parametrize("way", WAYS)
def test_every_evaluation_counts_and_every_sample_of_an_elite_can_be_replayed(tmp_path, way: str):
    settings = {**NOISY, "domain": "noisy_arm_joint", "resampling": WAYS[way], "iterations": 8}
    exp = compose(settings, {"initial_solutions": 10})
    compute_run(json.loads(exp.model_dump_json()), tmp_path)
    domain = make_domain(exp.domain)
    with np.load(tmp_path / "archive.npz") as arrays:
        rows = dict(arrays)
    assert len(rows["index"]) > 5
    for place, solution in enumerate(rows["solution"]):
        seeds = rows["sample_seeds"][place, : rows["samples"][place]]
        assert len(set(seeds.tolist())) == len(seeds), "each sample has a seed of its own"
        again = domain.evaluate(np.repeat(solution[np.newaxis], len(seeds), axis=0), seeds)
        values = np.column_stack([again.objective, again.measures])
        own = rows["objective"][place], *rows["measures"][place]
        np.testing.assert_allclose(own, values.mean(axis=0), rtol=1e-12, atol=1e-12)
        spread = rows["objective_variance"][place], *rows["measures_variance"][place]
        np.testing.assert_allclose(spread, values.var(axis=0), atol=1e-12)
        assert rows[SEED][place] == seeds[-1]
    if way not in ("deep_grid",):
        assert rows["samples"].max() > 1
    evaluations = read_metrics(RunDir(tmp_path).state.metrics)["evaluations"].tolist()
    planned = [exp.evaluations_after(n) for n in range(1, 9)]
    assert (evaluations == planned) != exp.resampling.may_evaluate_more
    assert all(made >= least for made, least in zip(evaluations, planned, strict=True))
    about = summary(tmp_path)
    assert about["stochastic"] is True
    assert about["obj_max"] == rows["objective"].max()
    assert "class" not in about["archive"]


def test_adaptive_sampling_is_that_of_lists():
    """Batch by batch: which solutions are evaluated again, and which elites there are then."""
    changes = {"dims": [3, 3], "resampling.type": "adaptive", "initial_solutions": 6}
    exp = compose({**NOISY, "batch_size": 12, "num_emitters": 1}, changes)
    domain = make_domain(exp.domain)
    algorithm = make_algorithm(exp, domain, None)
    elites: dict[int, tuple] = {}  # cell -> solution and samples
    most = 0

    def mean(samples) -> np.ndarray:
        total = np.zeros(3)
        for n, sample in enumerate(samples, start=1):
            total = total + (sample - total) / n
        return total

    def cell_of(samples) -> int:
        return int(algorithm.archive.cells_of(mean(samples)[np.newaxis, 1:])[0])

    def evaluated(candidates, iteration: int, first: int):
        rows = len(candidates.solutions)
        seeds = evaluation_seeds("solution", 1, iteration, first, rows)
        result = domain.evaluate(candidates.solutions, seeds)
        algorithm.tell(candidates._replace(seeds=seeds), result)
        return list(np.column_stack([result.objective, result.measures]))

    def needed(samples) -> tuple[float, int]:
        cell = cell_of(samples)
        if cell not in elites:
            return -np.inf, 0
        own, waits = elites[cell][1], cell in challenged and not is_sampled
        return mean(own)[0], len(own) + waits

    for iteration in range(25):
        asked = algorithm.ask()
        new = [[sample] for sample in evaluated(asked, iteration, 0)]
        challenged = sorted({cell_of(samples) for samples in new} & elites.keys())
        is_sampled, first = False, len(new)
        for number in count():
            is_open = []
            for row, samples in enumerate(new):
                best, least = needed(samples)
                if mean(samples)[0] > best and len(samples) < least:
                    is_open.append(row)
            if not challenged or (is_sampled and not is_open):
                break
            batch = algorithm.ask()
            again = [asked.solutions[row] for row in is_open]
            again += [elites[cell][0] for cell in challenged] * (not is_sampled)
            np.testing.assert_array_equal(batch.solutions, again)
            results = evaluated(batch, iteration, first)
            first += len(results)
            for row, sample in zip(is_open, results, strict=False):
                new[row].append(sample)
            if not is_sampled:
                for cell, sample in zip(challenged, results[len(is_open) :], strict=True):
                    elites[cell][1].append(sample)
            is_sampled, most = True, max(most, number)
        assert algorithm.ask() is None
        better = [
            (solution, samples)
            for solution, samples in zip(asked.solutions, new, strict=True)
            if mean(samples)[0] > needed(samples)[0] and len(samples) >= needed(samples)[1]
        ]
        moved = [elites.pop(cell) for cell in challenged]
        for solution, samples in moved + better:
            cell = cell_of(samples)
            if cell not in elites or mean(samples)[0] > mean(elites[cell][1])[0]:
                elites[cell] = (solution, samples)
        rows = algorithm.archive.rows()
        assert rows["index"].tolist() == sorted(elites)
        for place, cell in enumerate(sorted(elites)):
            np.testing.assert_array_equal(rows["solution"][place], elites[cell][0])
            assert rows["samples"][place] == len(elites[cell][1])
            assert rows["objective"][place] == mean(elites[cell][1])[0]
    assert most >= 2, "some solutions needed several batches"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OTHERS)
def test_what_decides_itself_what_it_evaluates_is_refused(name: str, way: str):
    keys = {**BASE, "algorithm": name, **OTHERS[name]}
    compose(keys)
    kind = WAYS[way]["type"]
    words = (f"resampling.type = {kind}: algorithm {name} cannot", "Remove the key resampling")
    with refused(*words):
        compose({**keys, "resampling": WAYS[way]})


REFUSED = {
    "one seed": (
        {"domain": "lunar_lander", "resampling": WAYS["extract"]},
        "domain.evaluation_seed = 52",
    ),
    "averages": (
        {
            "domain": {"preset": "lunar_lander", "evaluation_seed": "solution", "episodes": 2},
            "resampling": WAYS["fixed"],
        },
        "domain.episodes = 2",
    ),
    "thresholds": ({"algorithm": "cma_mae", "resampling": WAYS["archive"]}, "learning_rate"),
    "no cells": ({"algorithm": "novelty_search", "resampling": WAYS["extract"]}, "proximity"),
    "one by one": (
        {"algorithm": {"preset": "cma_me", "add_mode": "single"}, "resampling": WAYS["deep_grid"]},
        "add_mode = single",
    ),
    "two archives": (
        {
            "algorithm": {"preset": "cma_mae", "archive": {"learning_rate": None}},
            "resampling": WAYS["adaptive"],
        },
        "result_archive = true",
    ),
    "no such way": ({"resampling": {"type": "extrakt"}}, "did you mean 'extract'?"),
    "no number": ({"resampling": {"type": "fixed"}}, "resampling.times is missing"),
    "another's key": ({"resampling": {"type": "extract", "times": 2}}, "times"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_it_is_refused(name: str):
    keys, words = REFUSED[name]
    with refused(words):
        compose({**BASE, **keys})


def test_a_field_with_the_name_of_samples_is_refused(plugins, tmp_path):
    plugins("sampled", SAMPLED_DOMAIN)
    keys = {"domain": {"type": "sampled:Domain"}, "resampling": WAYS["extract"]}
    with refused("'samples'"):
        compute_run({**NOISY, **keys}, tmp_path)


@pytest.mark.parametrize("name", [name for name in presets("domains") if "noisy" in name])
def test_a_noisy_arm_keeps_the_contract_and_has_noise_around_the_arm(name: str):
    domain = make_domain(read_domain(name))
    check_rows(domain)
    still = np.full((4000, 8), 0.6)
    result = domain.evaluate(still, np.arange(4000, dtype=np.uint32))
    values = np.column_stack([result.objective, result.measures])
    angles = 2 * np.pi * 0.6 * np.arange(1, 9) - np.pi * np.arange(1, 9)
    ends = np.array([np.cos(angles).sum(), np.sin(angles).sum()]) / 16 + 0.5
    kind, deviation = name.removeprefix("noisy_arm_"), values.std(axis=0)
    noisy = {
        "objective": ([0.1, 0, 0], [0, 0, 0]),
        "measures": ([0, 0.03, 0.03], [0, 0, 0]),
        "bimodal_objective": ([0.357, 0, 0], [-0.15, 0, 0]),
        "bimodal_measures": ([0, 0.357, 0.357], [0, 0.15, 0.15]),
        "two_spreads": ([0, 0.01, 0.01], [0, 0, 0]),
    }
    if kind in noisy:
        spread, shift = map(np.array, noisy[kind])
        np.testing.assert_allclose(deviation, spread, rtol=0.05, atol=1e-9)
        np.testing.assert_allclose(values.mean(axis=0), np.add([0, *ends], shift), atol=0.02)
    else:
        assert (deviation > 0.01).all()
