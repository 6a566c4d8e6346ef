"""No row of a batch depends on the others, in any preset."""

import numpy as np
import pytest
from domain_makers import CHEAP, PRESETS, preset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import REPO

BATCH = 32


@pytest.fixture(scope="module")
def evaluated():
    """Domain, solutions, seeds and the whole batch's result of a preset."""
    known = {}

    def get(name):
        if name not in known:
            domain = preset(name)
            n = BATCH if name in CHEAP else 8
            rng = np.random.default_rng(2)
            x = domain.x0 + domain.step * rng.normal(size=(n, domain.solution_dim))
            seeds = rng.integers(2**32, size=n, dtype=np.uint32)
            known[name] = domain, x, seeds, domain.evaluate(x, seeds)
        return known[name]

    return get


def columns(result):
    return {"objective": result.objective, "measures": result.measures, **result.fields}


@pytest.mark.parametrize("name", CHEAP)
@given(data=st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rows_are_independent_bit_for_bit(evaluated, name, data):
    domain, x, seeds, whole = evaluated(name)
    rows = data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=BATCH))
    # A worker may get its rows in any memory layout.
    part = np.asarray(x[rows], order=data.draw(st.sampled_from("CF")))
    for key, values in columns(domain.evaluate(part, seeds[rows])).items():
        assert values.tobytes() == columns(whole)[key][rows].tobytes(), key
    if hasattr(domain, "jacobian"):
        assert domain.jacobian(part).tobytes() == domain.jacobian(x)[rows].tobytes()


@pytest.mark.parametrize("name", sorted({p.stem for p in PRESETS} - set(CHEAP)))
@given(data=st.data())
@settings(max_examples=4, deadline=None, derandomize=True)
def test_rollouts_are_independent_bit_for_bit(evaluated, name, data):
    domain, x, seeds, whole = evaluated(name)
    rows = data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=3))
    for key, values in columns(domain.evaluate(x[rows], seeds[rows])).items():
        assert values.tobytes() == columns(whole)[key][rows].tobytes(), key


@pytest.mark.parametrize("name", [p.stem for p in PRESETS])
def test_presets_are_documented_and_their_results_lie_in_their_ranges(evaluated, name):
    text = (REPO / "config" / "domains" / f"{name}.yaml").read_text()
    assert text.startswith("# ")
    domain, x, _, result = evaluated(name)
    assert result.objective.shape == (len(x),)
    assert result.measures.shape == (len(x), len(domain.measures))
    assert result.objective.dtype == result.measures.dtype == np.float64
    assert domain.x0.shape == (domain.solution_dim,) and domain.x0.dtype == np.float64
    assert (result.objective <= domain.objective_range[1]).all()
    inside = [
        (low <= result.measures[:, i]) & (result.measures[:, i] <= high)
        for i, (low, high) in enumerate(domain.measures.values())
    ]
    assert np.mean(inside) > 0.8
