"""Every kind of emitter that pyribs has for us, described once."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ribs import emitters
from ribs.archives import ArchiveBase
from ribs.emitters import EmitterBase
from ribs.emitters.opt import LMMAEvolutionStrategy

from qdsweep.algorithms.own import call_own
from qdsweep.algorithms.ribs import internals
from qdsweep.config import emitters as config
from qdsweep.config.experiment import Experiment
from qdsweep.config.plugin import load_plugin
from qdsweep.domains.base import Domain

# Null in the config: the domain's natural mutation scale.
_SCALES = ("sigma", "sigma0", "iso_sigma")


class Kind(NamedTuple):
    """A kind of emitter; the config's keys are the arguments of pyribs' class.

    Attributes:
        model: Its config.
        ribs: Its class in pyribs.
        asked: What pyribs calls its batch size, where our `batch_size` counts the solutions that
            are asked for gradients too.
    """

    model: type[config.EmitterKind]
    ribs: type[EmitterBase]
    asked: Callable[[int], int] = lambda batch_size: batch_size


KINDS = {
    "gaussian": Kind(config.Gaussian, emitters.GaussianEmitter),
    "iso_line": Kind(config.IsoLine, emitters.IsoLineEmitter),
    "evolution_strategy": Kind(config.EvolutionStrategy, emitters.EvolutionStrategyEmitter),
    "gradient_arborescence": Kind(
        config.GradientArborescence,
        emitters.GradientArborescenceEmitter,
        asked=lambda batch_size: batch_size - 1,
    ),
    "gradient_operator": Kind(
        config.GradientOperator,
        emitters.GradientOperatorEmitter,
        asked=lambda batch_size: batch_size // 2,
    ),
}


# The keys that change an emitter in another way than by an attribute of their name.
_CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "ranker": internals.change_ranker,
    "sigma0": internals.change_sigma0,
    "lr": internals.change_lr,
}
_ATTRIBUTES = {(emitters.GradientArborescenceEmitter, "normalize_grad"): "_normalize_grads"}


def kind_of(emitter: EmitterBase) -> Kind | None:
    """The kind of an emitter, None for one of the user's."""
    return next((kind for kind in KINDS.values() if kind.ribs is type(emitter)), None)


def can_change(emitter: EmitterBase, name: str) -> bool:
    """Whether a key of an emitter, or `batch_size`, can change between two iterations."""
    kind = kind_of(emitter)
    if kind is None:
        return name.startswith("arguments.") and hasattr(emitter, "change")
    if name == "batch_size":
        return not isinstance(getattr(emitter, "_opt", None), LMMAEvolutionStrategy)
    return name in kind.model.model_fields and kind.model.mid_run(name) != "never"


def change_emitter(emitter: Any, name: str, value: Any) -> None:
    """Changes a key of an emitter, or `batch_size`, between two iterations; see `can_change`."""
    kind = kind_of(emitter)
    if kind is None:
        emitter.change(name.removeprefix("arguments."), value)
    elif name == "batch_size":
        internals.change_batch_size(emitter, kind.asked(value))
    elif name in _CHANGES:
        _CHANGES[name](emitter, value)
    else:
        internals.change(emitter, _ATTRIBUTES.get((kind.ribs, name), f"_{name}"), value)


def takes_fields(group: config.EmitterKind) -> bool:
    """Whether emitters of a group can be told more than solutions, objective and measures."""
    if not isinstance(group, config.PluginEmitter):
        return True
    tell = getattr(load_plugin(group.type), "tell", None)
    parameters = [] if tell is None else inspect.signature(tell).parameters.values()
    return any(each.kind is each.VAR_KEYWORD for each in parameters)


def wants_gradients(emitter: Any) -> bool:
    """Whether an emitter asks for gradients: one that has an `ask_dqd` of its own."""
    ask = getattr(type(emitter), "ask_dqd", None)
    return ask is not None and ask is not EmitterBase.ask_dqd


def begins_at_random(emitter: Any) -> bool:
    """Whether an emitter that asks for gradients gives its random first batch now, without any."""
    gradients = isinstance(emitter, emitters.GradientOperatorEmitter)
    return gradients and emitter.archive.empty and emitter.initial_solutions is not None


def build_emitter(
    group: Any,
    archive: ArchiveBase,
    experiment: Experiment,
    domain: Domain,
    seed: np.random.SeedSequence,
    drawn: int = 0,
) -> EmitterBase:
    """Builds an emitter from the config of its group; `drawn` solutions are its first batch."""
    arguments: dict[str, Any] = {
        "x0": domain.x0,
        "batch_size": experiment.batch_size,
        "seed": seed,
    }
    if isinstance(group, config.PluginEmitter):
        where = "algorithm.emitters"
        own: EmitterBase = call_own(where, group.type, group.arguments, arguments, (archive,))
        return own
    kind = KINDS[group.type]
    arguments["batch_size"] = kind.asked(experiment.batch_size)
    arguments |= group.model_dump(exclude={"type", "bounds", "initial_solutions"})
    arguments |= {name: domain.step for name in _SCALES if arguments.get(name, 0) is None}
    if group.bounds is not None:
        arguments["bounds"] = [group.bounds] * domain.solution_dim
    if drawn:
        first_seed, arguments["seed"] = seed.spawn(2)
        rng = np.random.default_rng(first_seed)
        noise = rng.standard_normal((drawn, domain.solution_dim))
        arguments["initial_solutions"] = arguments.pop("x0") + noise
    return kind.ribs(archive, **arguments)
