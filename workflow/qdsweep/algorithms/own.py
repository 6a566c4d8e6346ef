"""Calls of a user's class or function, `module:name`: its arguments and its errors."""

import inspect
from collections.abc import Mapping
from typing import Any

from qdsweep.algorithms.base import Fields
from qdsweep.config.emitters import EmitterKind, PluginEmitter
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import to_yaml
from qdsweep.config.own_code import load_plugin
from qdsweep.domains.base import Domain, copied
from qdsweep.errors import BadInput, raised
from qdsweep.text import nearest


def what_is_given(experiment: Experiment, domain: Domain, fields: Fields) -> dict[str, Any]:
    """Returns the arguments that a user's archive or algorithm may take, with pyribs' names."""
    size = experiment.archive
    return {
        "solution_dim": domain.solution_dim,
        "measure_dim": len(domain.measures),
        "ranges": list(domain.measures.values()),
        "dims": size.dims,
        "cells": size.size,
        "objective_range": domain.objective_range,
        "qd_score_offset": domain.objective_range[0],
        "extra_fields": fields,
    }


def takes_fields(group: EmitterKind) -> bool:
    """Returns whether `tell` of a group's emitters takes further fields."""
    if not isinstance(group, PluginEmitter):
        return True
    tell = getattr(load_plugin(group.type), "tell", None)
    parameters = [] if tell is None else inspect.signature(tell).parameters.values()
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


def part_of(name: str) -> dict[str, Any]:
    """Returns an algorithm with a user's class or function, whose attributes show its role."""
    target: Any = load_plugin(name)
    arguments = list(inspect.signature(target).parameters) if isinstance(target, type) else []
    part: dict[str, Any] = {"archive": {"type": "grid"}, "emitters": [{"type": "gaussian"}]}
    if {"emitters", "emitter_pool"} & set(arguments):
        part["scheduler"] = {"type": name}
    elif arguments[:1] == ["archive"]:
        part["emitters"] = [{"type": name}]
    elif isinstance(target, type) and hasattr(target, "add") and hasattr(target, "data"):
        part["archive"] = {"type": name}
    else:
        part = {"type": name}
    return part


def as_yaml(part: Mapping[str, Any]) -> str:
    """Returns a part of an experiment as one line of YAML, for messages."""
    return to_yaml(dict(part), default_flow_style=True, width=1000).strip()


def call_own(
    where: str,
    target: str,
    arguments: Mapping[str, Any],
    given: Mapping[str, Any],
    positional: tuple[Any, ...] = (),
) -> Any:
    """Calls a user's class or function, and returns the result.

    Args:
        where: The part in the experiment, for messages.
        target: `module:name`.
        arguments: The user's keyword arguments, which override `given`.
        given: Further keyword arguments. Only those in its signature are passed.
        positional: Its first arguments.

    Raises:
        BadInput: It refuses its arguments or raises; the message has the line of code.
    """
    function = load_plugin(target)
    takes, open_ended = _takes(function)
    unknown = [name for name in arguments if name not in takes and not open_ended]
    if unknown:
        raise BadInput(
            f"{where}: {target} takes no argument {unknown[0]!r}; {nearest(unknown[0], takes)}"
            f"it takes: {', '.join(takes) or 'none'}"
        )
    everything = open_ended and isinstance(function, type)
    used = {name: value for name, value in given.items() if everything or name in takes}
    used = copied(used | dict(arguments))
    try:
        inspect.signature(function).bind(*positional, **used)
    except TypeError as error:
        remedy = (
            f"qdsweep passes {', '.join(given)} if the signature has them; write the others next "
            "to `type`"
        )
        if where == "algorithm" and "emitters" in (part := part_of(target)):
            remedy = f"It is a part of an algorithm. Write algorithm: {as_yaml(part)}"
        raise BadInput(
            f"{where}: {target}: {error}; its signature is {inspect.signature(function)}. {remedy}"
        ) from None
    try:
        return function(*positional, **used)
    except BadInput:
        raise
    except (Exception, SystemExit) as error:
        raise BadInput(f"{where}: {target} cannot be made: {raised(error)}") from error


def _takes(function: Any) -> tuple[list[str], bool]:
    """Returns the keyword parameters, and whether others are allowed.

    Where a class passes `**` on to its bases, their parameters are included.
    """
    spots = [function]
    if isinstance(function, type):
        # The last `__init__` is object's.
        spots = [vars(each)["__init__"] for each in function.__mro__ if "__init__" in vars(each)]
        del spots[-1:]
    names: list[str] = []
    for spot in spots:
        parameters = list(inspect.signature(spot).parameters.values())
        by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = parameters if spot is function else parameters[1:]  # without self
        names += [each.name for each in own if each.kind in by_name]
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in own):
            return names, False
    return names, bool(spots)
