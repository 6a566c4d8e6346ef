"""A user's own domain, `module:Class`, and the checks of `qdsweep check` for its contract."""

import inspect
import math
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.config.compose import read_domain
from qdsweep.config.domain import Plugin
from qdsweep.config.own_code import load_class
from qdsweep.domains.base import (
    Domain,
    Evaluation,
    Floats,
    Seeds,
    copied,
    evaluated,
    outside,
    real_numbers,
)
from qdsweep.domains.experience import check_experience
from qdsweep.errors import BadInput, raised
from qdsweep.host.answer import answer, answer_of
from qdsweep.records.archive import TAKEN

_TIMES = 3
_CUTS = 4
_GRADIENT_ROWS = 3
_RECORDED_ROWS = 3
# Causes of different bits, and remedies.
_UNSEEDED = (
    "is not reproducible: the same solutions with the same seeds, evaluated a second time, differ"
    " in {which}. It draws random numbers that do not depend on `seeds`, or keeps state between"
    " calls. Remedy: give each row its own generator, np.random.default_rng(int(seed)), or"
    " env.reset(seed=int(seed)), and keep nothing else from one call to the next"
)
_NEIGHBOURS = (
    "is not row-independent: the same solutions with the same seeds, in another batch, differ in"
    " {which}. They are equal in the same batch, so a row depends on its neighbours or on its"
    " position. Usual causes: a matrix product, mean or maximum over the whole batch, or one"
    " generator for all rows. Remedy: sum within each row, (solutions * w).sum(axis=1) instead of"
    " solutions @ w, or loop over the rows"
)

_CLAIMS = (
    "declares is_deterministic = True, but the same solutions with other seeds differ in {which}."
    " Remove is_deterministic: reports would otherwise take lucky evaluations for certain ones"
)

# The number of random solutions for the shares outside the ranges, and their time limit [s].
_SAMPLE, _SAMPLE_SECONDS = 1000, 2.0


def make_plugin(plugin: Plugin) -> Domain:
    """Makes `Class(**arguments)`.

    Args:
        plugin: The class and its arguments.

    Raises:
        BadInput: The class is not found, refuses the arguments, or is not a domain.
    """
    domain_class = load_class(plugin.type)
    signature = inspect.signature(domain_class)
    try:  # checks only the arguments, so an error inside the class shows its own traceback
        signature.bind(**plugin.arguments)
    except TypeError as error:
        raise BadInput(
            f"{plugin.type}: domain.arguments = {plugin.arguments}: {error}; the class takes "
            f"{signature}{_hint(domain_class, plugin.type)}"
        ) from None
    domain = domain_class(**copied(plugin.arguments))
    require_domain(domain, plugin.type)
    return domain


def require_domain(domain: Any, target: str) -> None:
    """Refuses an object that lacks a part of `qdsweep.domains.base.Domain`.

    Args:
        domain: The object.
        target: Its name in the message.

    Raises:
        BadInput: Attributes are missing or of another type; the message lists them all.
    """
    attributes = {
        "solution_dim": ("the number of parameters, an int of at least 1", _is_dim),
        "measures": ("a dict from a measure's name to (lower, upper)", _has_entries),
        "objective_range": ("(lowest, best), two finite numbers in this order", _is_range),
        "fields": ("a dict from an extra field's name to its shape ({} for none)", _is_dict),
        "evaluate": ("a method evaluate(solutions, seeds)", callable),
    }
    missing = object()
    problems = []
    for name, (meaning, fits) in attributes.items():
        value: Any = getattr(domain, name, missing)
        if value is missing:
            problems.append(f"{name} is missing: {meaning}")
        elif not fits(value):
            problems.append(f"{name} = {value!r} is not {meaning}")
        elif name in ("measures", "fields"):
            problems += _faulty_entries(name, value)
    if problems:
        hint = _hint(type(domain), target)
        raise BadInput(f"{target} is not a domain: {'; '.join(problems)}{hint}")


def refuse_fields(domain: Domain, target: str) -> None:
    """Refuses extra fields with the name of a result or array of qdsweep or pyribs.

    A finished run of an earlier release may have some, so it is only asked of new ones.

    Args:
        domain: The domain.
        target: Its name in the message.

    Raises:
        BadInput: The message lists the fields.
    """
    if not domain.fields:
        return
    from ribs.archives import ArchiveBase
    from ribs.emitters import EmitterBase

    owners = dict.fromkeys(TAKEN, "archive.npz") | dict.fromkeys(Evaluation._fields, "Evaluation")
    for method in (EmitterBase.tell, EmitterBase.tell_dqd, ArchiveBase.add):
        owners |= dict.fromkeys(inspect.signature(method).parameters, f"pyribs' {method.__name__}")
    taken = [f"{name!r} is a name of {owners[name]}" for name in domain.fields if name in owners]
    if taken:
        raise BadInput(
            f"{target}: fields: {', '.join(taken)}. Take another name, such as"
            f" my_{next(name for name in domain.fields if name in owners)}, in `fields` and in"
            " the result of evaluate"
        )


def _hint(kind: type, target: str) -> str:
    """Returns the remedy for a class that is a part of an algorithm; else nothing."""
    if not (hasattr(kind, "ask") or hasattr(kind, "add")):
        return ""
    return f". Is it an emitter, archive or algorithm? `qdsweep check --algorithm {target}`"


def _is_dim(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


def _is_range(value: Any) -> bool:
    try:
        lower, upper = value
        return bool(lower < upper and math.isfinite(lower) and math.isfinite(upper))
    except (TypeError, ValueError):
        return False


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _has_entries(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0


def _faulty_entries(name: str, entries: dict[Any, Any]) -> Iterator[str]:
    """Yields the faults in `measures` or `fields`."""
    for key, value in entries.items():
        if name == "measures" and not _is_range(value):
            order = "(lower, upper), two finite numbers in this order"
            yield f"measures: {key!r} = {value!r} is not {order}"
        elif name == "fields" and not isinstance(value, tuple):
            yield f"fields: {key!r} = {value!r} is not a shape, such as (3,), or () for a number"


class Findings(NamedTuple):
    """Measurements of a domain that keeps the contract.

    Attributes:
        seconds: The shortest time of an evaluation [s].
        batch: Solutions per batch.
        measures: ``(n, m)`` the measures of random solutions.
        ranges: Name -> (lower, upper) range of each measure.
        objective: ``(n,)`` the objectives of the same solutions.
        objective_range: The domain's own.
        is_stochastic: Whether evaluations of these solutions depend on their seed.

    Example:
        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> from qdsweep.domains.plugin import check_rows
        >>> findings = check_rows(make_domain(read_domain("arm")))
        >>> findings.lines()[-1]
        '0.0% of them are outside the objective range'
    """

    seconds: float
    batch: int
    measures: Floats
    ranges: dict[str, tuple[float, float]]
    objective: Floats
    objective_range: tuple[float, float]
    is_stochastic: bool

    def lines(self) -> list[str]:
        """Returns the text for the user, with remedies for values that are out of range."""
        low, high = np.array(list(self.ranges.values())).T
        beyond = (self.measures < low) | (self.measures > high)
        below, above = outside(self.objective, self.objective_range)
        lines = [
            f"{1000 * self.seconds:.3g} ms per evaluation, in a batch of {self.batch} on one core",
            f"{beyond.any(axis=1).mean():.1%} of {len(beyond)} random solutions"
            " (x0 + step * N(0, I)) are outside the measure ranges",
        ]
        for index, (name, ends) in enumerate(self.ranges.items()):
            if beyond[:, index].any():
                lines.append(_seen(name, self.measures[:, index], beyond[:, index], ends))
        if beyond.any():
            lines.append(
                "  all of these would share the cells at the edge; to separate them, widen the"
                " ranges or choose a smaller `step`"
            )
        lines.append(f"{(below | above).mean():.1%} of them are outside the objective range")
        if (below | above).any():
            lines += [
                _seen("objective", self.objective, below | above, self.objective_range),
                "  the QD score subtracts the lower end, so elites below it count as negative;"
                " widen `objective_range`",
            ]
        if self.is_stochastic:
            lines.append(
                "evaluations depend on their seed, so each elite is kept for a lucky one: give a"
                " sweep the key reevaluate (docs/tutorials/noise.md)"
            )
        return lines


def _seen(name: str, values: Floats, beyond: NDArray[np.bool_], ends: tuple[float, float]) -> str:
    """Returns the line on values of which some are outside their range."""
    return (
        f"  {name}: {beyond.mean():.1%}; seen {values.min():.4g} to {values.max():.4g},"
        f" range {ends[0]:.4g} to {ends[1]:.4g}"
    )


def check_rows(domain: Domain, batch: int = 24, seed: int = 0) -> Findings:
    """Checks that a domain keeps the contract of `Domain`, with random solutions.

    Shapes must be right and values finite. The results of a solution must have the same bits when
    it is evaluated again or in another batch, and with other seeds where the domain declares
    `is_deterministic`. `evaluate` must not change the solutions. A
    jacobian must agree with finite differences. Records must agree with the `actor`, if there is
    one. A `draw` must return lines.

    Args:
        domain: The domain, as `make_domain` made it.
        batch: Solutions to evaluate.
        seed: The seed of the solutions, and of the random parts of the batch.

    Returns:
        The time of an evaluation, and the results of random solutions.

    Raises:
        BadInput: The contract is broken; the message has the reason and the line of code.

    Example:
        >>> import numpy as np
        >>> from qdsweep.domains.base import Evaluation
        >>> from qdsweep.domains.plugin import check_rows
        >>> class Noisy:
        ...     solution_dim, fields = 2, {}
        ...     measures, objective_range = {"x": (-3.0, 3.0)}, (0.0, 1.0)
        ...
        ...     def evaluate(self, solutions, seeds):
        ...         return Evaluation(np.random.default_rng().random(len(seeds)), solutions[:, :1])
        >>> check_rows(Noisy())
        Traceback (most recent call last):
        qdsweep.errors.BadInput: Noisy is not reproducible: the same solutions with...
    """
    name = type(domain).__name__
    require_domain(domain, name)
    refuse_fields(domain, name)
    rng = np.random.default_rng(seed)
    x0 = np.asarray(getattr(domain, "x0", 0.0), dtype=np.float64)
    step = float(getattr(domain, "step", 1.0))
    solutions = x0 + step * rng.normal(size=(batch, domain.solution_dim))
    seeds = rng.integers(2**32, size=batch, dtype=np.uint32)
    before = solutions.copy()
    whole = _evaluate(domain, solutions, seeds)
    if not np.array_equal(before, solutions):
        raise BadInput(f"{name}.evaluate changes its argument `solutions`; copy it")
    times = []  # repetitions of one batch; the shortest is the least disturbed
    for _ in range(_TIMES):
        start = time.perf_counter()
        repeated = _evaluate(domain, solutions, seeds)
        times.append(time.perf_counter() - start)
        _same(name, whole, repeated, _UNSEEDED)
    seconds = min(times) / batch
    for _ in range(_CUTS):
        order = rng.permutation(batch)
        ends = np.sort(rng.choice(np.arange(1, batch), size=min(3, batch - 1), replace=False))
        for rows in np.split(order, ends):
            expected = {key: values[rows] for key, values in whole.items()}
            part = _evaluate(domain, solutions[rows], seeds[rows])
            if _difference(expected, part):  # rare randomness may show only now
                _same(name, part, _evaluate(domain, solutions[rows], seeds[rows]), _UNSEEDED)
            _same(name, expected, part, _NEIGHBOURS)
    others = _evaluate(domain, solutions, ~seeds)
    if getattr(domain, "is_deterministic", None) is True:
        _same(name, whole, others, _CLAIMS)
    if callable(getattr(domain, "jacobian", None)):
        _check_jacobian(domain, solutions[:_GRADIENT_ROWS], seeds[:_GRADIENT_ROWS])
    if hasattr(domain, "draw"):
        drawn_lines(domain, solutions[0])
    if hasattr(domain, "actor"):
        check_experience(domain, solutions[:_RECORDED_ROWS], seeds[:_RECORDED_ROWS])
    more = min(_SAMPLE, int(_SAMPLE_SECONDS / seconds)) - batch
    objective, measures = whole["objective"], whole["measures"]
    if more > 0:
        further = x0 + step * rng.normal(size=(more, domain.solution_dim))
        further_seeds = rng.integers(2**32, size=more, dtype=np.uint32)
        seen = _evaluate(domain, further, further_seeds)
        objective = np.concatenate([objective, seen["objective"]])
        measures = np.concatenate([measures, seen["measures"]])
    return Findings(
        seconds,
        batch,
        measures,
        dict(domain.measures),
        objective,
        domain.objective_range,
        any(_difference({key: whole[key]}, others) for key in ("objective", "measures")),
    )


def drawn_lines(domain: Any, solution: Floats) -> list[Floats]:
    """Returns the lines of a domain's `draw(solution)`, each ``(k, 2)`` points.

    Raises:
        BadInput: The method fails, or returns something else.
    """
    name = f"{type(domain).__name__}.draw"
    try:
        lines = [np.asarray(line, dtype=np.float64) for line in domain.draw(solution.copy())]
    except Exception as error:
        raise BadInput(f"{name}: {raised(error)}") from error
    for line in lines:
        if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
            raise BadInput(
                f"{name} returns a line of the shape {line.shape}. Each line should be finite "
                "numbers of the shape (points, 2)"
            )
    return lines


def _evaluate(domain: Domain, solutions: Floats, seeds: Seeds) -> dict[str, NDArray]:
    try:
        result = evaluated(domain.evaluate(solutions, seeds.copy()))
        return _columns(domain, result, len(solutions))
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"{type(domain).__name__}.evaluate: {raised(error)}") from error


def _columns(domain: Domain, result: Evaluation, n: int) -> dict[str, NDArray]:
    """Checks shapes and values of a result, and returns it as name -> array."""
    name = type(domain).__name__
    expected: dict[str, tuple[int, ...]] = {
        "objective": (n,),
        "measures": (n, len(domain.measures)),
        **{key: (n, *shape) for key, shape in domain.fields.items()},
    }
    columns = {"objective": result.objective, "measures": result.measures, **result.fields}
    if set(columns) != set(expected):
        raise BadInput(
            f"{name}.evaluate returns the fields {sorted(result.fields)}, but `fields` names "
            f"{sorted(domain.fields)}"
        )
    for key, shape in expected.items():
        columns[key] = real_numbers(key, columns[key]).copy()  # the class may use it again
        if columns[key].shape != shape:
            raise BadInput(
                f"{name}.evaluate: {key} of {n} solutions has the shape {columns[key].shape}; "
                f"it should be {shape}"
            )
    for key in ("objective", "measures"):
        if not np.isfinite(columns[key]).all():
            row = int(np.argwhere(~np.isfinite(columns[key]))[0][0])
            raise BadInput(f"{name}.evaluate: {key} of solution {row} is {columns[key][row]}")
    return columns


def _same(
    name: str, result: Mapping[str, NDArray], other: Mapping[str, NDArray], problem: str
) -> None:
    which = _difference(result, other)
    if which:
        raise BadInput(f"{name} {problem.format(which=which)}")


def _difference(result: Mapping[str, NDArray], other: Mapping[str, NDArray]) -> str:
    """Returns a description of the first result with other bits; empty if there is none."""
    for key, values in result.items():
        rows = [i for i, row in enumerate(values) if row.tobytes() != other[key][i].tobytes()]
        if rows:
            first, then = values[rows[0]], other[key][rows[0]]
            return f"{key} of {len(rows)} of {len(values)} (first {first}, then {then})"
    return ""


def _check_jacobian(domain: Domain, solutions: Floats, seeds: Seeds) -> None:
    """Compares the jacobian with central differences, which are exact to about 1e-8."""
    name = type(domain).__name__
    n, d = solutions.shape
    jacobian = np.array(domain.jacobian(solutions.copy()))  # type: ignore[attr-defined]
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


def check_elsewhere(name: str) -> str:
    """Checks a domain in another process, so that a crash does not end this one.

    Args:
        name: A preset's name, a path or a `module:Class`.

    Returns:
        The text for the user.

    Raises:
        BadInput: The contract is broken, or the process has crashed; the message has the reason.
    """
    return answer_of("qdsweep.domains.plugin", name, name, {}).rstrip("\n")


def _check(name: str) -> str:
    from qdsweep.domains import make_domain

    return "\n".join(check_rows(make_domain(read_domain(name))).lines())


if __name__ == "__main__":
    sys.exit(answer(_check))
