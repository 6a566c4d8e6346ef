"""Algorithms on a constant objective, above, at and below the first threshold of an archive."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from composing import presets

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose, read_part
from qdsweep.config.emitters import ES_ARGUMENTS
from qdsweep.config.families import Composition
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop

FLAT = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Flat:
    solution_dim, measures, objective_range, fields = 4, {"x": (-9, 9), "y": (-9, 9)}, (0, 1), {}
    x0 = np.full(4, 5.0)
    def evaluate(self, solutions, seeds):
        return Evaluation(np.zeros(len(solutions)), solutions[:, :2])
    def jacobian(self, solutions):
        rows = np.zeros((len(solutions), 3, 4))
        rows[:, 1, 0] = rows[:, 2, 1] = 1
        return rows
"""
SMALL: dict[str, Any] = {
    "domain": "flat:Flat",
    "archive": {"dims": [4, 4]},
    "num_emitters": 2,
    "batch_size": 4,
    "iterations": 3,
}
THRESHOLDS = {"above": -1.0, "at": 0.0, "below": 1.0}  # where the objective is
RULES = ("no_improvement", "basic", 1)


@pytest.fixture
def flat(plugins):
    plugins("flat", FLAT)


def ended(algorithm: Any, **keys: Any) -> Any:
    """Computes a small run, and returns its algorithm."""
    experiment = compose({**SMALL, "algorithm": algorithm, **keys})
    domain = make_domain(experiment.domain)
    state = State(make_algorithm(experiment, domain, None))
    run_loop(experiment, state, Serial(domain), Stop(), lambda *_: None)
    return state.algorithm


def composed(archive: str, threshold: float, scheduler: str = "all", **emitter: Any) -> Any:
    return {
        "archive": {"type": archive, "learning_rate": 0.1, "threshold_min": threshold},
        "scheduler": {"type": scheduler},
        "emitters": [{**emitter, **({"sigma0": 0.01} if "ranker" in emitter else {})}],
    }


@pytest.mark.filterwarnings("ignore:`archive` was empty")
@pytest.mark.parametrize("where", THRESHOLDS)
def test_strategies_restart_from_x0_while_the_archive_is_empty(where: str, flat):
    rankers = ("imp", "2imp", "rd", "2rd", "obj", "2obj")
    parts = [
        ("evolution_strategy", es, ranker, rule, selection)
        for es, ranker, rule, selection in product(ES_ARGUMENTS, rankers, RULES, ("mu", "filter"))
    ]
    parts += [
        ("gradient_arborescence", "cma_es", ranker, rule, "filter")
        for ranker, rule in product(rankers, RULES)
    ]
    for kind, es, ranker, rule, selection in parts:
        emitter = {"type": kind, "es": es, "ranker": ranker, "restart_rule": rule}
        made = ended(composed("grid", THRESHOLDS[where], selection_rule=selection, **emitter))
        assert made.ribs_scheduler.archive.empty == (where != "above")
        assert "sample_elites" not in vars(made.ribs_scheduler.archive)
        for each in made.emitters:
            if where != "above" and each.restarts == 3:
                theta = each._opt.adam_opt.theta if es == "openai_es" else each._opt.mean
                mean = theta if kind == "evolution_strategy" else each._grad_opt.theta
                assert np.array_equal(mean, np.full(4, 5.0)), emitter


# pyribs' bandit takes the logarithm of the number of successes.
@pytest.mark.filterwarnings("ignore:`archive` was empty", "ignore::RuntimeWarning")
@pytest.mark.parametrize("where", THRESHOLDS)
def test_every_algorithm_ends_on_a_flat_objective(where: str, flat):
    threshold = {"learning_rate": 0.5, "threshold_min": THRESHOLDS[where]}
    for name in presets("algorithms"):
        preset = read_yaml(find_preset("algorithms", name))
        part = read_part("algorithm", preset)
        if part.needs_experience or "torch" in part.packages:
            continue  # learners have no restarts; the result archive of dms has no thresholds
        # Resampling refuses thresholds.
        annealed = "threshold_min" in type(part.archive).model_fields and "resampling" not in preset
        keys: dict[str, Any] = {"preset": name, **({"archive": threshold} if annealed else {})}
        if isinstance(part, Composition):
            emitters = len(part.emitters)
            ended(keys, num_emitters=emitters)
            if not part.needs_jacobian:
                ended({**keys, "scheduler": {"type": "bandit"}}, num_emitters=emitters)
        else:
            made = ended(keys, num_emitters=1, batch_size=8)
            assert made.ribs_archive.empty == (annealed and where != "above")


@pytest.mark.filterwarnings("ignore:`archive` was empty")
@pytest.mark.parametrize("kind", ["gaussian", "iso_line"])
@pytest.mark.parametrize("initial", [0, 6])
def test_emitters_without_restarts_wait_for_the_first_elite(kind: str, initial: int, flat):
    made = ended(composed("grid", 1.0, type=kind, initial_solutions=initial))
    assert made.ribs_scheduler.archive.empty
