"""The genetic algorithm: an elite, and mutants of the better solutions."""

import numpy as np
import pytest

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import Evaluation

BATCH, PARENTS = 40, 3


@pytest.fixture()
def made():
    settings = {"algorithm": "ga", "parents": PARENTS, "num_emitters": 1, "batch_size": BATCH}
    experiment = compose("lp_sphere", {**settings, "sigma": 0.01, "solution_dim": 10})
    domain = make_domain(experiment.domain, experiment.seed)
    return make_algorithm(experiment, domain, None), domain


def generation(algorithm, objective=None):
    """Asks for a generation, passes its scores, and returns its solutions."""
    candidates = algorithm.ask()
    n = len(candidates.solutions)
    objective = np.zeros(n) if objective is None else objective(candidates.solutions)
    evaluated = candidates._replace(seeds=np.zeros(n, dtype=np.uint32))
    algorithm.tell(evaluated, Evaluation(objective, np.zeros((n, 2))))
    assert algorithm.ask() is None
    return candidates.solutions


def test_the_best_lives_on_and_only_the_better_have_mutants(made):
    algorithm, _ = made
    spread = 100 * np.random.default_rng(0).standard_normal((BATCH, 10))
    algorithm._better, algorithm.settings = (
        spread,
        algorithm.settings.model_copy(update={"parents": BATCH}),
    )
    first = generation(algorithm, lambda x: x[:, 0])
    algorithm.settings = algorithm.settings.model_copy(update={"parents": PARENTS})
    best = first[np.argsort(-first[:, 0])][:PARENTS]
    second = generation(algorithm, lambda x: -x[:, 0])
    assert second[0].tolist() == best[0].tolist()
    distance = np.abs(second[:, None] - best).max(axis=2)
    assert distance.min(axis=1).max() < 0.1
    assert len(set(distance.argmin(axis=1))) == PARENTS
    assert len(generation(algorithm)) == BATCH


def test_it_climbs_and_never_falls(made):
    algorithm, domain = made

    def objective(solutions):
        return domain.evaluate(solutions, np.zeros(len(solutions), dtype=np.uint32)).objective

    best = [objective(generation(algorithm, objective)).max() for _ in range(30)]
    assert best == sorted(best) and best[-1] > best[0] + 0.1
