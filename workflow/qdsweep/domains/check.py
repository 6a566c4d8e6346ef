"""The test of a domain's promises, for `qdsweep check module:Class`."""

import traceback
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Domain, Evaluation, Floats, Seeds
from qdsweep.domains.plugin import require_domain
from qdsweep.errors import BadInput

_CUTS = 5
_GRADIENT_ROWS = 3


def check_rows(domain: Domain, batch: int = 24, seed: int = 0) -> None:
    """Checks that a domain is what `Domain` promises, by evaluating random solutions.

    It checks shapes, that values are finite, that the bits are the same when a solution is
    evaluated again or in another batch, that solutions are not changed, and that a jacobian
    agrees with finite differences.

    Args:
        domain: The domain, as `make_domain` made it.
        batch: Solutions to evaluate.
        seed: The seed of the solutions, and of where the batch is cut.

    Raises:
        BadInput: A promise is broken; the message says which and where.
    """
    name = type(domain).__name__
    require_domain(domain, name)
    rng = np.random.default_rng(seed)
    x0 = np.asarray(getattr(domain, "x0", 0.0), dtype=np.float64)
    step = float(getattr(domain, "step", 1.0))
    solutions = x0 + step * rng.normal(size=(batch, domain.solution_dim))
    seeds = rng.integers(2**32, size=batch, dtype=np.uint32)
    before = solutions.copy()
    try:
        result = domain.evaluate(solutions, seeds)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(
            f"{name}.evaluate raised {type(error).__name__}: {error} "
            f"({place.filename}, line {place.lineno}: {place.line})"
        ) from error
    whole = _columns(domain, result, batch)
    if not np.array_equal(before, solutions):
        raise BadInput(f"{name}.evaluate changes the solutions that it is given; copy them")
    _same(name, whole, _evaluate(domain, solutions, seeds), "evaluated a second time")
    for _ in range(_CUTS):
        order = rng.permutation(batch)
        ends = np.sort(rng.choice(np.arange(1, batch), size=min(3, batch - 1), replace=False))
        parts = [_evaluate(domain, solutions[i], seeds[i]) for i in np.split(order, ends)]
        cut = {key: np.concatenate([part[key] for part in parts]) for key in whole}
        shuffled = {key: values[order] for key, values in whole.items()}
        _same(name, shuffled, cut, "evaluated in another batch")
    if callable(getattr(domain, "jacobian", None)):
        _check_jacobian(domain, solutions[:_GRADIENT_ROWS], seeds[:_GRADIENT_ROWS])


def _evaluate(domain: Domain, solutions: Floats, seeds: Seeds) -> dict[str, NDArray]:
    return _columns(domain, domain.evaluate(solutions, seeds), len(solutions))


def _columns(domain: Domain, result: Evaluation, n: int) -> dict[str, NDArray]:
    """Checks shapes and values of a result, and returns it as name -> array."""
    name = type(domain).__name__
    expected: dict[str, tuple[int, ...]] = {
        "objective": (n,),
        "measures": (n, len(domain.measures)),
        **{key: (n, *shape) for key, shape in domain.fields.items()},
    }
    found = {"objective": result.objective, "measures": result.measures, **result.fields}
    if set(found) != set(expected):
        raise BadInput(
            f"{name}.evaluate returns the fields {sorted(result.fields)}, but `fields` names "
            f"{sorted(domain.fields)}"
        )
    for key, shape in expected.items():
        if np.shape(found[key]) != shape:
            raise BadInput(
                f"{name}.evaluate: {key} of {n} solutions has the shape {np.shape(found[key])}; "
                f"it should be {shape}"
            )
    for key in ("objective", "measures"):
        if not np.isfinite(found[key]).all():
            row = int(np.argwhere(~np.isfinite(found[key]))[0][0])
            raise BadInput(f"{name}.evaluate: {key} of solution {row} is {found[key][row]}")
    return {key: np.asarray(values) for key, values in found.items()}


def _same(name: str, one: Mapping[str, NDArray], other: Mapping[str, NDArray], when: str) -> None:
    for key, values in one.items():
        rows = [i for i, row in enumerate(values) if row.tobytes() != other[key][i].tobytes()]
        if rows:
            raise BadInput(
                f"{name} is not row-independent: {key} of {len(rows)} of {len(values)} solutions "
                f"has other bits when {when} (first {values[rows[0]]}, then "
                f"{other[key][rows[0]]}). Usual causes: a matrix product over the whole batch, "
                "randomness that is not from `seeds`, an environment that remembers"
            )


def _check_jacobian(domain: Domain, solutions: Floats, seeds: Seeds) -> None:
    """Compares the jacobian with central differences, which are exact to about 1e-8."""
    name = type(domain).__name__
    n, d = solutions.shape
    jacobian = domain.jacobian(solutions)  # type: ignore[attr-defined]
    shape = (n, 1 + len(domain.measures), d)
    if np.shape(jacobian) != shape:
        raise BadInput(f"{name}.jacobian has the shape {np.shape(jacobian)}, not {shape}")
    width = 1e-6
    for row in range(n):
        shifted = np.concatenate([solutions[row] + sign * width * np.eye(d) for sign in (1, -1)])
        values = _evaluate(domain, shifted, np.repeat(seeds[row], 2 * d))
        both = np.column_stack([values["objective"], values["measures"]])
        expected = (both[:d] - both[d:]).T / (2 * width)
        error = np.abs(jacobian[row] - expected)
        allowed = 1e-4 * np.abs(expected) + 1e-6 * (1 + np.abs(both).max())
        if (error > allowed).any():
            output, parameter = np.argwhere(error > allowed)[0]
            output_name = ["objective", *domain.measures][output]
            raise BadInput(
                f"{name}.jacobian: the derivative of {output_name} by parameter {parameter} is "
                f"{jacobian[row, output, parameter]:g}, finite differences give "
                f"{expected[output, parameter]:g}"
            )
