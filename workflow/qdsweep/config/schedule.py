"""The schedule of an experiment: which keys change while a run lasts, and when."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from qdsweep.config.base import Model
from qdsweep.config.keys import Path, dotted, key_paths
from qdsweep.errors import BadInput


class Change(Model):
    """What changes between two iterations."""

    at: int = Field(ge=1, description="the change comes after this iteration [iterations]")
    set: dict[str, Any] = Field(
        min_length=1, description="keys, named as in a sweep, and their new values"
    )


def refuse_fixed(experiment: Model, path: Path) -> None:
    """Refuses a key that cannot change while a run lasts.

    Args:
        experiment: The experiment.
        path: The key.

    Raises:
        BadInput: It cannot; the message says why, and which keys can.
    """
    why, _ = _mid_run(experiment, path)
    if why:
        can = ", ".join(f"{key} ({when})" for key, when in changeable(experiment))
        raise BadInput(
            f"{dotted(path)} cannot be changed in mid-run: {why}. "
            + (f"These keys can: {can}" if can else "No key of this experiment can")
        )


def changeable(experiment: Model) -> Iterator[tuple[str, str]]:
    """Yields the keys that can change while a run lasts, and when that acts: now or restart."""
    for path, _ in key_paths(type(experiment), experiment.model_dump()):
        why, when = _mid_run(experiment, path)
        if not why:
            yield dotted(path), when


def _mid_run(experiment: Model, path: Path) -> tuple[str, str]:
    """Returns why a key cannot change (empty where it can), and when a change acts."""
    node: Any = experiment
    owner, key = experiment, str(path[0])
    for part in path:
        if isinstance(node, Model):
            owner, key = node, str(part)
            node = getattr(node, key)
        elif isinstance(node, list) and isinstance(part, int):
            node = node[part]
        else:
            break  # inside of a free mapping, such as `arguments`
    return owner.why_fixed(key), owner.mid_run(key)
