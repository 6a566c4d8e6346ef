"""Checks of the records that algorithms learn from."""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import (
    CUT,
    GOES_ON,
    TERMINATED,
    Actor,
    Domain,
    Evaluation,
    Exploration,
    Floats,
    Record,
    Seeds,
    Token,
    Unroll,
    copied,
)
from qdsweep.errors import BadInput

# The largest mean distance of actions from the network's, which may have noise [half ranges].
_NEAR = 0.1
# How many decisions a row of a check plays until it pauses its episode, and how often it does.
_DECISIONS, _UNROLLS = 7, 4


def read_record(given: Any, kind: Any = np.float32) -> Any:
    """Returns a record with the types of `Record`; an object of another class is unchanged.

    No learner uses the observation after a terminated episode. If a number in it is not finite, it
    becomes 0.

    Args:
        given: The record.
        kind: The type of its observations, see `Actor.kind`.

    Raises:
        ValueError: A number is finite, but too large for single precision.
    """
    if not isinstance(given, Record):
        return given
    kinds = (kind, np.float32, np.float32, np.uint8)
    with np.errstate(over="ignore"):
        arrays: Any = map(np.asarray, given[:4], kinds)
        record = Record(*arrays)._replace(before=given.before, token=given.token)
    if kind is np.float32:
        record = record._replace(observations=_without_unused(record))
    parts: Any = zip(Record._fields[:4], given, record, strict=False)
    for name, before, after in parts:
        if after is before or not np.isinf(after).any():
            continue
        too_large = np.asarray(before)[np.isfinite(before) & np.isinf(after)]
        if len(too_large):
            raise ValueError(
                f"experience: {name} has the value {too_large[0]:.6g}, which is too large for the "
                f"single precision of learners (at most {np.finfo(np.float32).max:.2g}). Scale it "
                "in the environment, or with a wrapper"
            )
    return record


def _without_unused(record: Record) -> NDArray[Any]:
    """Returns the observations, with finite ones after terminated episodes."""
    observations, ends = record.observations, np.flatnonzero(record.ends)
    last = (ends + np.arange(1, len(ends) + 1) + record.before)[record.ends[ends] == TERMINATED]
    last = last[last < len(observations)]  # the shapes are checked later
    unused = observations[last]
    if np.isfinite(unused).all():
        return observations
    observations = observations.copy()
    observations[last] = np.where(np.isfinite(unused), unused, 0)
    return observations


def join_records(parts: Sequence[tuple[Any, ...]], kind: Any = np.float32) -> Record:
    """Returns the arrays of several records, each a `Record` or a tuple of them, as one record."""
    arrays: Any = map(np.concatenate, zip(*(part[:4] for part in parts), strict=True))
    joined: Record = read_record(Record(*arrays), kind)
    return joined


def find_fault(record: Any, actor: Actor) -> str | None:
    """Returns the fault of a row's record, or None.

    Args:
        record: As `read_record` returns it.
        actor: The network that has acted.
    """
    if not isinstance(record, Record):
        return f"{type(record).__name__} instead of qdsweep.domains.base.Record"
    outputs, inputs = actor.shapes[-1][0], actor.inputs
    steps = len(record.rewards)
    episodes = int(np.count_nonzero(record.ends))
    if np.shape(record.ends) != (steps,) or not steps or record.ends[-1] == GOES_ON:
        return f"ends has the shape {np.shape(record.ends)}, or no end after {steps} rewards"
    if record.ends.max() > CUT:
        return f"ends has the unknown value {record.ends.max()}"
    seen = record.before + steps + episodes
    shapes = {"observations": (seen, inputs), "actions": (steps, outputs)}
    for name, shape in {**shapes, "rewards": (steps,)}.items():
        values = getattr(record, name)
        if np.shape(values) != shape:
            return f"{name} has the shape {np.shape(values)}, not {shape}"
        if not np.isfinite(values).all():
            return f"{name} is NaN or infinite"
    return None


def find_fault_of_unroll(result: Evaluation, unroll: Unroll) -> str | None:
    """Returns the fault of records that continue episodes, or None."""
    records: Any = result.experience
    for record, token in zip(records, unroll.tokens, strict=True):
        if token is None:
            continue
        if not isinstance(record.token, Token):
            return f"token = {record.token!r}, not a Token, from which the next unroll continues"
        if len(record.rewards) != unroll.decisions:
            return f"{len(record.rewards)} decisions, not the {unroll.decisions} of the unroll"
    return None


def takes(domain: Any, argument: str) -> bool:
    """Returns whether `evaluate` of a domain takes "exploration", or an "unroll"."""
    parameters = inspect.signature(domain.evaluate).parameters.values()
    return any(p.name == argument or p.kind == p.VAR_KEYWORD for p in parameters)


def check_experience(domain: Domain, solutions: Floats, seeds: Seeds) -> None:
    """Checks the records of a domain that has an `actor`, by evaluating some solutions.

    The actor must be the network of a solution. Records must have the right shapes, the actions of
    that network, and the same bits when a solution is evaluated again or in a batch of one. Where
    `evaluate` takes an `Exploration`, this also holds for rows that explore, and greedy rows do
    not change.

    Args:
        domain: The domain.
        solutions: ``(n, d)`` solutions.
        seeds: ``(n,)`` their evaluation seeds.

    Raises:
        BadInput: The contract is broken; the message has the reason.
    """
    from qdsweep.domains.policies import explore, kinds_of

    name, actor = type(domain).__name__, domain.actor  # type: ignore[attr-defined]
    fault = _find_fault_of_actor(actor, domain.solution_dim)
    if fault:
        raise BadInput(f"{name}.actor: {fault}; see qdsweep.domains.base.Actor")
    records = _checked(domain, solutions, seeds, None)
    for solution, record in zip(solutions, records, strict=True):
        _check_actions(f"{name}.evaluate(..., experience=True)", solution, record, actor)
    if not takes(domain, "exploration"):
        return
    for kind in kinds_of(discrete=actor.discrete):
        # The first row is greedy.
        exploration = explore(actor, kind, [0.0] + [1.0] * (len(solutions) - 1))
        explored = _checked(domain, solutions, seeds, exploration)
        where = f"{name}.evaluate(..., exploration={kind!r})"
        differs = _differences(explored[0], records[0])
        if differs:
            raise BadInput(
                f"{where}: with scale 0, the record differs in {', '.join(differs)} from the "
                "record without exploration"
            )
        pairs = zip(explored[1:], records[1:], strict=True)
        if len(solutions) > 1 and not any(_differences(*pair) for pair in pairs):
            raise BadInput(f"{where}: with scale 1, rows act as they do without exploration")
        if takes(domain, "unroll"):
            _check_unrolls(domain, solutions, seeds, explore(actor, kind, [1.0] * len(solutions)))


def _check_unrolls(domain: Any, solutions: Floats, seeds: Seeds, exploration: Exploration) -> None:
    """Refuses a domain whose paused episodes cannot be played again.

    Every second row plays a whole episode. A row plays its unrolls one after another, and then once
    more from the last token to the first. The domain has no live environment of those.
    """
    tokens = [Token() if row % 2 == 0 else None for row in range(len(solutions))]
    where = f"{type(domain).__name__}.evaluate(..., unroll=...)"
    asked, live = [], []
    for number in range(_UNROLLS):
        own = (seeds + np.uint32(number)).astype(np.uint32)
        unroll = Unroll(_DECISIONS, tokens, len(tokens))
        options = {"experience": True, "exploration": exploration, "unroll": unroll}
        result = domain.evaluate(solutions.copy(), own, **copied(options))
        if fault := find_fault_of_unroll(result, unroll):
            raise BadInput(f"{where}: the record has {fault}; see qdsweep.domains.base.Unroll")
        asked.append((own, options))
        live.append([read_record(copied(each), domain.actor.kind) for each in result.experience])
        tokens = [record.token for record in live[-1]]
    for number, (own, options) in reversed(list(enumerate(asked))):
        again = domain.evaluate(solutions.copy(), own, **copied(options)).experience
        for row, given in enumerate(again):
            differs = _differences(live[number][row], read_record(given, domain.actor.kind))
            if differs:
                raise BadInput(
                    f"{where}: a paused episode that was played again differs in "
                    f"{', '.join(differs)} (solution {row}, decisions from "
                    f"{number * _DECISIONS} on), so that a run could not resume. Usual causes: "
                    "state that `reset` does not remove, or random numbers without a seed. Use "
                    "whole episodes (no `algorithm.unroll`)"
                )


def _checked(
    domain: Domain, solutions: Floats, seeds: Seeds, exploration: Exploration | None
) -> list[Record]:
    """Returns the records of some rows, after a check of their faults and repeatability."""
    more = "experience=True" if exploration is None else f"exploration={exploration.kind!r}"
    actor = domain.actor  # type: ignore[attr-defined]
    records = _records(domain, solutions, seeds, exploration)
    repeated = _records(domain, solutions, seeds, exploration)
    for row, record in enumerate(records):
        where = f"{type(domain).__name__}.evaluate(..., {more}): the record of solution {row}"
        fault = find_fault(record, actor)
        if fault:
            raise BadInput(f"{where}: {fault}")
        if actor.discrete and not _one_hot(record.actions):
            raise BadInput(f"{where}: the actor is discrete, but its actions are not one-hot")
        rows = slice(row, row + 1)
        part = None if exploration is None else exploration.part(rows)
        alone = _records(domain, solutions[rows], seeds[rows], part)[0]
        for other, when in ((repeated[row], "a second time"), (alone, "in a batch of one")):
            differs = _differences(record, other)
            if differs:
                raise BadInput(f"{where}, evaluated {when}, differs in {', '.join(differs)}")
    return records


def _differences(first: Record, second: Record) -> list[str]:
    return [
        part
        for part in Record._fields[:-1]
        if not np.array_equal(getattr(first, part), getattr(second, part))
    ]


def _one_hot(actions: Any) -> bool:
    return bool(np.isin(actions, (0, 1)).all() and (actions.sum(axis=1) == 1).all())


def _records(
    domain: Any, solutions: Floats, seeds: Seeds, exploration: Exploration | None
) -> list[Any]:
    options = {} if exploration is None else {"exploration": exploration}
    result = domain.evaluate(solutions.copy(), seeds.copy(), experience=True, **copied(options))
    given = copied(result.experience or [])  # the class may use its arrays again
    records = [read_record(record, domain.actor.kind) for record in given]
    if len(records) != len(solutions):
        raise BadInput(
            f"{type(domain).__name__}.evaluate(..., experience=True) gives {len(records)} records "
            f"of {len(solutions)} solutions"
        )
    skip = getattr(domain, "frame_skip", 1)
    for steps, record in zip(
        result.steps if result.steps is not None else (), records, strict=False
    ):
        most = skip * len(record.rewards)
        # The last decision of an episode may be cut short, and a game may play a menu first.
        least = most - (skip - 1) * np.count_nonzero(record.ends)
        if steps < least or (steps > most and not hasattr(domain, "frame_skip")):
            raise BadInput(
                f"{type(domain).__name__}.evaluate: steps = {list(result.steps)}, but the records "
                f"have {[len(each.rewards) for each in records]}"
                + (f" decisions of {skip} frames" if skip > 1 else "")
            )
    return records


def _find_fault_of_actor(actor: Any, solution_dim: int) -> str | None:
    if not isinstance(actor, Actor):
        return f"it is a {type(actor).__name__}, not an Actor"
    size = sum(outputs * (inputs + actor.bias) for outputs, inputs in actor.shapes)
    channels = actor.image[0] if actor.image else 0
    for filters, kernel, _ in actor.convolutions:
        size, channels = size + filters * (channels * kernel**2 + 1), filters
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
    """Refuses actions of another network, because a learner would learn the wrong policy."""
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
            f"{where}: its actions differ from those of the network that `actor` describes by "
            f"{far.mean():.0%} of their half ranges. Usual causes: another layout of the weights, "
            "another activation, or scaled observations"
        )
