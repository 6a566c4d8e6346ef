"""The schedule of an experiment: which keys change while a run lasts, and when."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from qdsweep.config.base import Model
from qdsweep.config.keys import PRESETS, Path, dotted, key_paths, resolve
from qdsweep.config.values import typed, value_text
from qdsweep.errors import BadInput


class Change(Model):
    """What changes between two iterations."""

    at: int = Field(ge=1, description="the change comes after this iteration [iterations]")
    set: dict[str, Any] = Field(
        min_length=1, description="keys, named as in a sweep, and their new values"
    )


def read_schedule(value: Any) -> Any:
    """Returns the changes of a text such as `1000 sigma=0.05; 2000 sigma=0.01 line_sigma=0.1`.

    So a schedule can be a value of a sweep. What is no text stays as it is.

    Raises:
        ValueError: It is no such text.
    """
    if not isinstance(value, str):
        return value
    changes = []
    for part in filter(None, map(str.strip, value.split(";"))):
        at, *pairs = part.split()
        if not at.isdecimal() or not pairs or not all("=" in pair[1:] for pair in pairs):
            raise ValueError(
                f"{part!r} is no change: write AT KEY=VALUE ..., such as 1000 sigma=0.05; several "
                "are divided by `;`"
            )
        values = [pair.partition("=") for pair in pairs]
        if len({name for name, _, _ in values}) < len(values):
            raise ValueError(f"{part!r} sets a key twice")
        changes.append({"at": int(at), "set": {name: typed(text) for name, _, text in values}})
    return changes


def schedule_text(changes: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """Returns the text of a schedule, which `read_schedule` reads.

    Args:
        changes: After which iteration, and key -> new value.
    """
    return "; ".join(
        " ".join([str(at), *(f"{name}={value_text(value)}" for name, value in values.items())])
        for at, values in changes
    )


Schedule = Annotated[
    list[Change], BeforeValidator(read_schedule, json_schema_input_type=list[Change] | str)
]


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


def refuse_fixed_names(experiment: Model, names: Iterable[str]) -> None:
    """Refuses swept names whose keys cannot change while a run lasts.

    Args:
        experiment: The experiment that they are swept in.
        names: As a sweep has them.

    Raises:
        BadInput: One cannot; see `refuse_fixed`.
    """
    paths = list(key_paths(type(experiment), experiment.model_dump()))
    for name in names:
        if name in PRESETS:
            raise BadInput(f"{name} cannot be changed in mid-run: it is what a run is made of")
        refuse_fixed(experiment, resolve(name, paths, "its parts"))


def unchanging(experiment: Model, names: Iterable[str]) -> Change:
    """Returns a change of swept names, after the first iteration, to the values that they have."""
    data = experiment.model_dump()
    paths = list(key_paths(type(experiment), data))
    found = {}
    for path in (resolve(name, paths, "its parts") for name in names):
        value = data
        for part in path:
            value = value[part]  # type: ignore[index]
        found[dotted(path)] = value
    return Change(at=1, set=found)


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
