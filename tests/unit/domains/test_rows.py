"""No row of a batch depends on the others, in any preset."""

import numpy as np
import pytest
from domain_makers import CHEAP, PRESETS, preset

from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import evaluate_safely

# Rows in a batch of one, in another order, twice; a worker gets them in any memory layout.
PARTS = (([3], "C"), ([5, 0], "F"), ([1, 6, 1], "F"))


@pytest.fixture(scope="module")
def evaluated():
    """Returns domain, solutions, seeds and the whole batch's result of a preset."""
    known = {}

    def get(name):
        if name not in known:
            domain = preset(name)
            n = 32 if name in CHEAP else 8
            rng = np.random.default_rng(2)
            x = domain.x0 + domain.step * rng.normal(size=(n, domain.solution_dim))
            seeds = rng.integers(2**32, size=n, dtype=np.uint32)
            known[name] = domain, x, seeds, domain.evaluate(x, seeds)
        return known[name]

    return get


def columns(result):
    return {"objective": result.objective, "measures": result.measures, **result.fields}


@pytest.mark.parametrize("name", [path.stem for path in PRESETS])
def test_rows_are_independent_bit_for_bit(evaluated, name):
    domain, x, seeds, whole = evaluated(name)
    more = [(np.random.default_rng(n).permutation(32)[:n], "C") for n in (2, 7, 8, 9, 17, 31)]
    for rows, order in (*PARTS, *(more if name in CHEAP else ())):
        part = np.asarray(x[rows], order=order)
        result = evaluate_safely(domain, Batch(part, seeds[rows]), 0, None).evaluation
        for key, values in columns(result).items():
            assert values.tobytes() == columns(whole)[key][rows].tobytes(), key
        if hasattr(domain, "jacobian"):
            assert domain.jacobian(part).tobytes() == domain.jacobian(x)[rows].tobytes()


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets_are_documented_and_their_results_lie_in_their_ranges(evaluated, path):
    assert path.read_text().startswith("# ")
    domain, x, _, result = evaluated(path.stem)
    assert result.objective.shape == (len(x),)
    assert result.measures.shape == (len(x), len(domain.measures))
    assert result.objective.dtype == result.measures.dtype == np.float64
    assert domain.x0.shape == (domain.solution_dim,) and domain.x0.dtype == np.float64
    noise = 1.0 if path.stem.startswith("noisy_arm") else 0.0  # the range is that of the mean
    assert (result.objective <= domain.objective_range[1] + noise).all()
    low, high = np.array(list(domain.measures.values())).T
    assert np.mean((low <= result.measures) & (result.measures <= high)) > 0.8
