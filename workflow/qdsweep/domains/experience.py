"""What an algorithm may rely on that learns from the records of a domain's episodes."""

from itertools import pairwise
from typing import Any

import numpy as np

from qdsweep.domains.base import CUT, GOES_ON, Actor, Domain, Floats, Record, Seeds
from qdsweep.errors import BadInput

# How far actions may be from those of the network, as when noise is added to them [half ranges].
_NEAR = 0.1


def read_record(given: Any) -> Any:
    """Returns a record in the types that `Record` has, or what is given where it is none."""
    if not isinstance(given, Record):
        return given
    observations, actions, rewards = (np.asarray(one, dtype=np.float32) for one in given[:3])
    return Record(observations, actions, rewards, np.asarray(given.ends, dtype=np.uint8))


def find_fault(record: Any, actor: Actor) -> str | None:
    """Returns what is wrong with a row's record, or None.

    Args:
        record: As `read_record` returns it.
        actor: The network that has acted.
    """
    if not isinstance(record, Record):
        return f"{type(record).__name__} instead of qdsweep.domains.base.Record"
    outputs, inputs = actor.shapes[-1][0], actor.shapes[0][1]
    steps = len(record.rewards)
    episodes = int(np.count_nonzero(record.ends))
    if np.shape(record.ends) != (steps,) or not steps or record.ends[-1] == GOES_ON:
        return f"ends has the shape {np.shape(record.ends)} or no end behind {steps} rewards"
    if record.ends.max() > CUT:
        return f"ends has the value {record.ends.max()}, which means nothing"
    shapes = {"observations": (steps + episodes, inputs), "actions": (steps, outputs)}
    for name, wanted in {**shapes, "rewards": (steps,)}.items():
        values = getattr(record, name)
        if np.shape(values) != wanted:
            return f"{name} has the shape {np.shape(values)}, not {wanted}"
        if not np.isfinite(values).all():
            return f"{name} is NaN or infinite"
    return None


def check_experience(domain: Domain, solutions: Floats, seeds: Seeds) -> None:
    """Checks the records of a domain that has an `actor`, by evaluating some solutions.

    It checks that the actor is the network of a solution, that records have the right shapes, the
    same bits when a solution is evaluated again or alone, and the actions of that network.

    Args:
        domain: The domain.
        solutions: ``(n, d)`` solutions.
        seeds: ``(n,)`` their evaluation seeds.

    Raises:
        BadInput: A promise is broken; the message says which.
    """
    name, actor = type(domain).__name__, domain.actor  # type: ignore[attr-defined]
    fault = _find_fault_of_actor(actor, domain.solution_dim)
    if fault:
        raise BadInput(f"{name}.actor: {fault}; see qdsweep.domains.base.Actor")
    records = _records(domain, solutions, seeds)
    again = _records(domain, solutions, seeds)
    for row, record in enumerate(records):
        where = f"{name}.evaluate(..., experience=True): the record of solution {row}"
        fault = find_fault(record, actor)
        if fault:
            raise BadInput(f"{where}: {fault}")
        alone = _records(domain, solutions[row : row + 1], seeds[row : row + 1])[0]
        for other, when in ((again[row], "a second time"), (alone, "alone")):
            differs = [
                part
                for part, one, two in zip(Record._fields, record, other, strict=True)
                if not np.array_equal(one, two)
            ]
            if differs:
                raise BadInput(f"{where}, evaluated {when}, differs in {', '.join(differs)}")
        _check_actions(where, solutions[row], record, actor)


def _records(domain: Any, solutions: Floats, seeds: Seeds) -> list[Any]:
    found = domain.evaluate(solutions, seeds, experience=True)
    records = [read_record(one) for one in found.experience or ()]
    if len(records) != len(solutions):
        raise BadInput(
            f"{type(domain).__name__}.evaluate(..., experience=True) gives {len(records)} records "
            f"of {len(solutions)} solutions"
        )
    if found.steps is not None and list(found.steps) != [len(one.rewards) for one in records]:
        raise BadInput(
            f"{type(domain).__name__}.evaluate: steps = {list(found.steps)}, but the records have "
            f"{[len(one.rewards) for one in records]}"
        )
    return records


def _find_fault_of_actor(actor: Any, solution_dim: int) -> str | None:
    if not isinstance(actor, Actor):
        return f"it is a {type(actor).__name__}, not an Actor"
    size = sum(outputs * (inputs + actor.bias) for outputs, inputs in actor.shapes)
    if size != solution_dim:
        return f"layers of the shapes {actor.shapes} have {size} parameters, not {solution_dim}"
    if any(inputs != outputs for (outputs, _), (_, inputs) in pairwise(actor.shapes)):
        return f"layers of the shapes {actor.shapes} do not fit each other"
    if actor.activation not in ("tanh", "relu"):
        return f"activation = {actor.activation!r} is neither tanh nor relu"
    bounds = [bound for bound in (actor.low, actor.high) if bound is not None]
    if len(bounds) == 1 or any(np.shape(bound) != (actor.shapes[-1][0],) for bound in bounds):
        return "low and high are not a bound for each action, or both None"
    if bounds and not (bounds[0] < bounds[1]).all():
        return f"low = {actor.low} is not below high = {actor.high}"
    return None


def _check_actions(where: str, solution: Floats, record: Record, actor: Actor) -> None:
    """Refuses actions that are not the network's: a learner would learn of another policy."""
    if actor.low is None or actor.high is None:
        return
    from qdsweep.domains.policies import split_layers

    ends = np.cumsum(record.ends != GOES_ON) - (record.ends != GOES_ON)
    x = record.observations[np.arange(len(record.ends)) + ends].astype(np.float64)
    for index, (weights, biases) in enumerate(
        split_layers(solution, actor.shapes, bias=actor.bias)
    ):
        if index:
            x = np.tanh(x) if actor.activation == "tanh" else np.maximum(x, 0)
        x = x @ weights.T + (0 if biases is None else biases)
    half = (actor.high - actor.low) / 2
    far = np.abs(record.actions - (actor.low + half + half * np.tanh(x))) / half
    if far.mean() > _NEAR:
        raise BadInput(
            f"{where}: its actions are {far.mean():.0%} of their half ranges from those of the "
            "network that `actor` describes, at these observations. Usual causes: another layout "
            "of the weights, another activation, observations that the policy sees scaled"
        )
