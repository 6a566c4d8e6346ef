"""A small experiment around an algorithm or a part of one, to try it."""

import inspect
from collections.abc import Mapping
from typing import Any

from qdsweep.config.compose import compose, read_domain, read_part
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.config.plugin import load_plugin
from qdsweep.domains import make_domain
from qdsweep.errors import BadInput

# Solutions of an emitter: even, and enough for any of them.
BATCH = 6
_CELLS = 10  # along each measure
_DOMAIN = {"preset": "lp_sphere", "solution_dim": 10}
_EPISODES = {"preset": "pendulum", "max_episode_steps": 20}


def small_experiment(
    name: str, domain: str | None, settings: Mapping[str, Any], source: str
) -> Experiment:
    """Composes an experiment of few solutions.

    Args:
        name: An algorithm's preset or file, an experiment's, or the `module:name` of an emitter,
            archive or scheduler class, or of what makes a whole algorithm.
        domain: Its domain: a preset, a file or a `module:Class`; None for that of the experiment,
            or else the sphere, or a pendulum for what learns from episodes.
        settings: Further keys, as `--set` has them.
        source: Where they come from, for messages.

    Raises:
        BadInput: There is no such thing, or it cannot be composed.
    """
    experiment = None if ":" in name else _experiment(name)
    if experiment is not None:
        changes = {} if domain is None else {"domain": domain}
        return compose(experiment, changes | dict(settings), source=source)
    algorithm = _part(name) if ":" in name else name
    groups, home = 1, _DOMAIN
    if not isinstance(algorithm, dict):
        part = read_yaml(find_preset("algorithms", name))
        groups = len(part.get("emitters", [1]))
        if ":" not in str(part.get("type", ":")) and read_part("algorithm", part).needs_experience:
            home = _EPISODES
    measures = 2 if domain is None else len(make_domain(read_domain(domain)).measures)
    data = {
        "domain": domain or home,
        "algorithm": algorithm,
        "archive": {"dims": [_CELLS] * measures},
        "num_emitters": groups,
        "batch_size": BATCH,
        "iterations": 1,
    }
    return compose(data, settings, source=source)


def _experiment(name: str) -> dict[str, Any] | None:
    """The mapping of an experiment of that name; None where it is an algorithm's."""
    try:
        data = read_yaml(find_preset("algorithms", name))
    except BadInput as error:
        try:
            return read_yaml(find_preset("experiments", name))
        except BadInput:
            raise error from None
    return data if "domain" in data or "experiment" in data else None


def _part(name: str) -> dict[str, Any]:
    """What a user's class or function stands for in an algorithm, by what it takes and has."""
    found: Any = load_plugin(name)
    takes = list(inspect.signature(found).parameters) if isinstance(found, type) else []
    part: dict[str, Any] = {"archive": {"type": "grid"}, "emitters": [{"type": "gaussian"}]}
    if {"emitters", "emitter_pool"} & set(takes):
        part["scheduler"] = {"type": name}
    elif takes[:1] == ["archive"]:
        part["emitters"] = [{"type": name}]
    elif isinstance(found, type) and hasattr(found, "add") and hasattr(found, "data"):
        part["archive"] = {"type": name}
    else:
        part = {"type": name}
    return {"name": name.rsplit(":", 1)[1], **part}
