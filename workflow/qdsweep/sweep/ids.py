"""Run ids: the same experiment has the same id, whatever sweep asks for it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from qdsweep.config.domain import Plugin
from qdsweep.config.emitters import PluginEmitter
from qdsweep.config.experiment import MODEL_VERSION, Experiment
from qdsweep.config.plugin import source_hash

# Keys that no result depends on.
_NOT_IDENTITY: Any = {
    "iterations": True,
    "evaluations": True,
    "timeout": True,
    "reload": True,
    "domain": {"name", "title", "cite"},
    "algorithm": {"name", "title", "cite"},
}


def identity(experiment: Experiment) -> dict[str, Any]:
    """Returns all that decides a run's result, as plain data. The fingerprint is made of it."""
    part: dict[str, Any] = experiment.model_dump(
        mode="json", exclude=_NOT_IDENTITY, exclude_defaults=True
    )
    part["model_version"] = MODEL_VERSION
    domain = experiment.domain
    own = isinstance(domain, Plugin)
    part["domain_version"] = source_hash(domain.type) if own else domain.version
    emitters = [e.type for e in experiment.algorithm.emitters if isinstance(e, PluginEmitter)]
    if emitters:
        part["emitter_versions"] = [source_hash(emitter) for emitter in emitters]
    return part


def fingerprint(experiment: Experiment) -> str:
    """Returns the SHA-256 of the canonical experiment, without its budget [hex]."""
    text = json.dumps(identity(experiment), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def run_id(experiment: Experiment) -> str:
    """Returns `DOMAIN-ALGORITHM-sSEED-HASH`, of the characters `[A-Za-z0-9_.-]` alone."""
    return (
        f"{experiment.domain.name}-{experiment.algorithm.name}-s{experiment.seed}-"
        f"{fingerprint(experiment)[:10]}"
    )


def adhoc_name(experiment: str | Mapping[str, Any], sweep: str) -> str:
    """Returns the name of a sweep that was given on the command line without one."""
    text = json.dumps([experiment, " ".join(sweep.split())], sort_keys=True, default=str)
    return f"adhoc-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
