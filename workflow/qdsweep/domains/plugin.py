"""A user's own domain, `module:Class`."""

import inspect
import math
from typing import Any

from qdsweep.config.domain import Plugin
from qdsweep.config.plugin import load_class
from qdsweep.domains.base import Domain
from qdsweep.errors import BadInput

# Names that pyribs' archives and we use for ourselves.
_TAKEN = ("index", "solution", "objective", "measures", "threshold", "jacobian", "evaluation_seed")


def make_plugin(plugin: Plugin) -> Domain:
    """Makes `Class(**arguments)`.

    Args:
        plugin: The class and its arguments.

    Raises:
        BadInput: The class is not found, refuses the arguments, or is no domain.
    """
    found = load_class(plugin.type)
    signature = inspect.signature(found)
    try:  # only the arguments: an error inside the class shows its own traceback
        signature.bind(**plugin.arguments)
    except TypeError as error:
        raise BadInput(
            f"{plugin.type}: domain.arguments = {plugin.arguments}: {error}; the class takes "
            f"{signature}"
        ) from None
    domain = found(**plugin.arguments)
    require_domain(domain, plugin.type)
    return domain


def require_domain(domain: Any, target: str) -> None:
    """Refuses an object without all that `qdsweep.domains.base.Domain` demands.

    Args:
        domain: The object.
        target: Its name in the message.

    Raises:
        BadInput: Attributes are missing or of another kind; the message lists them all.
    """
    wanted = {
        "solution_dim": ("the number of parameters, an int of at least 1", _is_dim),
        "measures": ("a dict from a measure's name to (lower, upper)", _are_ranges),
        "objective_range": ("(lowest, best)", _is_range),
        "fields": ("a dict from an extra field's name to its shape ({} for none)", _are_shapes),
        "evaluate": ("a method evaluate(solutions, seeds)", callable),
    }
    missing = object()
    problems = []
    for name, (meaning, fits) in wanted.items():
        value = getattr(domain, name, missing)
        if value is missing:
            problems.append(f"{name} is missing: {meaning}")
        elif not fits(value):
            problems.append(f"{name} = {value!r} is not {meaning}")
    if problems:
        raise BadInput(f"{target} is no domain: " + "; ".join(problems))


def _is_dim(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


def _is_range(value: Any) -> bool:
    try:
        lower, upper = value
        return bool(lower < upper and math.isfinite(lower) and math.isfinite(upper))
    except (TypeError, ValueError):
        return False


def _are_ranges(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0 and all(map(_is_range, value.values()))


def _are_shapes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(shape, tuple) and name not in _TAKEN for name, shape in value.items()
    )
