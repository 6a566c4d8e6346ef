"""Run ids. An experiment has the same id in every sweep."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from qdsweep.config.domain import Plugin
from qdsweep.config.experiment import MODEL_VERSION, Experiment
from qdsweep.config.families import Composition
from qdsweep.config.own_code import source_hash
from qdsweep.errors import BadInput

# Keys that no result depends on.
_NOT_IDENTITY: Any = {
    "iterations": True,
    "evaluations": True,
    "steps": True,
    "timeout": True,
    "reload": True,
    "metrics": True,
    "domain": {"name", "title", "cite"},
    "algorithm": {"name", "title", "cite", "tuned_by"},
}

# Returns the hash of the source of a `module:Class` [hex].
Hash = Callable[[str], str]


class Identity(NamedTuple):
    """The identity of a run, computed once because a user's source may change during the run.

    Attributes:
        id: The run's id.
        fingerprint: SHA-256 of all data that decide its result [hex].
    """

    id: str
    fingerprint: str


def decisive(experiment: Experiment, source: Hash = source_hash) -> dict[str, Any]:
    """Returns all data that decide a run's result. Its fingerprint is their hash."""
    part: dict[str, Any] = experiment.model_dump(
        mode="json", exclude=_NOT_IDENTITY, exclude_defaults=True
    )
    drawn, algorithm = part.pop("first_batch", None), experiment.algorithm
    if drawn is not None and isinstance(algorithm, Composition) and algorithm.draws_first:
        part |= _first_batch(drawn, part["algorithm"], algorithm, experiment.num_emitters)
    part["model_version"] = MODEL_VERSION
    domain = experiment.domain
    part |= domain.id_parts
    own = isinstance(domain, Plugin)
    part["domain_version"] = _seen("domain", domain.type, source) if own else domain.version
    inside = {} if own else domain.own_parts  # wrappers, and functions of measures
    if inside:
        part["wrapper_versions"] = [_seen(key, spec.type, source) for key, spec in inside.items()]
    parts = experiment.algorithm.own_parts
    if parts:
        part["emitter_versions"] = [_seen(key, spec.type, source) for key, spec in parts.items()]
    return part


def _seen(key: str, target: str, source: Hash) -> str:
    try:
        return source(target)
    except BadInput as error:
        raise BadInput(f"{key} = {error}") from None


def _first_batch(
    drawn: int, part: dict[str, Any], algorithm: Composition, num_emitters: int
) -> dict[str, Any]:
    """Returns the data of a first batch. Equal shares count as `initial_solutions` of each."""
    drawing = [emitter.draws_first for emitter in algorithm.emitters]
    share, rest = divmod(drawn, algorithm.number_drawing(num_emitters))
    if rest:
        return {"first_batch": drawn}
    emitters = [
        {**emitter, "initial_solutions": share} if draws else emitter
        for emitter, draws in zip(part["emitters"], drawing, strict=True)
    ]
    return {"algorithm": {**part, "emitters": emitters}}


def identify(experiment: Experiment, source: Hash = source_hash) -> Identity:
    """Returns the identity of an experiment's run.

    Its id is `DOMAIN-ALGORITHM-sSEED-HASH`, with only the characters `[A-Za-z0-9_.-]`. The hash is
    the start of the SHA-256 of the canonical experiment, without its budget.

    Args:
        experiment: The experiment.
        source: Returns the hash of the user's code, by default in its current state.
    """
    return identify_seeds(experiment, source)(experiment.seed)


def identify_seeds(experiment: Experiment, source: Hash) -> Callable[[int], Identity]:
    """Returns the identities of an experiment's runs by their seed; see `identify`."""
    part = decisive(experiment, source)
    default = Experiment.model_fields["seed"].default

    def identity(seed: int) -> Identity:
        part["seed"] = seed
        if seed == default:
            del part["seed"]
        text = json.dumps(part, sort_keys=True, separators=(",", ":"))
        full = hashlib.sha256(text.encode()).hexdigest()
        name = f"{experiment.domain.name}-{experiment.algorithm.name}-s{seed}"
        return Identity(f"{name}-{full[:10]}", full)

    return identity


def run_id(experiment: Experiment) -> str:
    """Returns the run id of an experiment, with the current state of the user's code."""
    return identify(experiment).id


def adhoc_name(
    experiment: str | Mapping[str, Any],
    sweep: str,
    further: Mapping[str, Any],
) -> str:
    """Returns the name of a sweep that was given on the command line without one.

    Args:
        experiment: The swept experiment.
        sweep: The sweep in GNU parallel's grammar.
        further: Its keys `search` and `exclude`. More samples belong to the same sweep.
    """
    parts: list[Any] = [experiment, " ".join(sweep.split())]
    search = further.get("search")
    if isinstance(search, dict):
        further = {**further, "search": {**search, "samples": None}}
    if further:
        parts.append(further)
    text = json.dumps(parts, sort_keys=True, default=str)
    return f"adhoc-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
