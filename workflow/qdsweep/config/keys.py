"""The keys of an experiment: their dotted paths, their short names, and their schedule."""

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator, Field

from qdsweep.config.domain import DomainSettings
from qdsweep.config.families import AlgorithmSettings
from qdsweep.config.model import Model, typed, value_text
from qdsweep.config.own_code import parameters
from qdsweep.errors import BadInput
from qdsweep.text import nearest

Path = tuple[str | int, ...]
# Names of whole parts, whose value is a preset.
PRESETS = ("experiment", "domain", "algorithm")
# Further names of keys in files, sweeps and `--set`. Ids and config.yaml have the key itself.
ALIASES: dict[str, Path] = {"mutation_scale": ("domain", "step"), "env_steps": ("steps",)}
# Every emitter kind has one of these. Its default is the mutation scale of the domain.
STEP_SIZES = ("sigma", "sigma0", "iso_sigma")


def key_paths(model: Any, data: Any) -> Iterator[tuple[Path, Any]]:
    """Yields the path and the annotation of every key that `data` may set.

    Args:
        model: The model of `data`, or a union of models.
        data: What is set so far; the `type` keys in it decide which keys there are.
    """
    return _paths(model, data, ())


def _keys(model: type[Model], data: Any, prefix: Path) -> Iterator[tuple[Path, Any]]:
    data = data if isinstance(data, dict) else {}
    for name, field in model.model_fields.items():
        yield from _paths(field.annotation, data.get(name, field.default), (*prefix, name))
    if "arguments" in model.model_fields and ":" in str(data.get("type")):
        for name in parameters(data["type"])[0]:
            yield (*prefix, "arguments", name), Any


def _paths(annotation: Any, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    value = value.model_dump() if isinstance(value, Model) else value
    models = list(models_in(annotation))
    if get_origin(annotation) is list and models:
        if not value or isinstance(value, str):  # a schedule may be a text
            yield path, annotation
        for index, item in enumerate(value if isinstance(value, list) else []):
            if isinstance(item, str):  # short for a mapping, such as a metric
                yield (*path, index), str
            else:
                yield from _paths(get_args(annotation)[0], item, (*path, index))
    elif models:
        chosen = [model for model in models if len(models) == 1 or _is_chosen(model, value)]
        for model in chosen:
            yield from _keys(model, value, path)
    else:
        yield path, annotation


def models_in(annotation: Any) -> Iterator[type[Model]]:
    """Yields the models that an annotation names, also in unions, lists and Annotated."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType, list):
        for part in get_args(annotation):
            yield from models_in(part)
    elif origin is Annotated:
        yield from models_in(get_args(annotation)[0])
    elif isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation


def _is_chosen(model: type[Model], value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if "type" not in model.model_fields:
        return kind is None
    annotation = model.model_fields["type"].annotation
    if get_origin(annotation) is Literal:
        return kind in get_args(annotation)
    return isinstance(kind, str) and ":" in kind  # a module:Class


def resolve(name: str, paths: Sequence[tuple[Path, Any]], owners: str) -> Path:
    """Returns the path of a name.

    A name is a dotted path, or a unique part of one that ends in the same key: `sigma0` and
    `algorithm.sigma0` stand for `algorithm.emitters.0.sigma0`.

    Args:
        name: As the user wrote it.
        paths: All keys, from `key_paths`.
        owners: "algorithm X and domain Y", for the message.

    Raises:
        BadInput: No key or more than one key has this name; the message lists candidates.
    """
    parts: Path = tuple(int(part) if part.isdecimal() else part for part in name.split("."))
    known = [path for path, _ in paths]
    if parts in known:
        return parts
    matches = [path for path in known if path[-1] == parts[-1] and _within(parts[:-1], path[:-1])]
    # A key of qdsweep comes before an argument of a user's class with the same name.
    matches = [path for path in matches if "arguments" not in path[:-1]] or matches
    if not matches:  # a key of a free mapping, such as es_kwargs.lr
        matches = [
            (*path, parts[-1])
            for path, annotation in paths
            if get_origin(annotation) is dict
            and len(parts) > 1
            and path[-1] == parts[-2]
            and _within(parts[:-2], path[:-1])
        ]
    alias = ALIASES.get(str(parts[-1]), ())
    if not matches and alias in known and _within(parts[:-1], alias[:-1]):
        return alias
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise BadInput(
            f"the name {name!r} is ambiguous: write one of {', '.join(map(dotted, matches))}"
        )
    inner = [path for path in known if path[: len(parts)] == parts]
    # A nested part, such as `policy` of `domain.policy.hidden`.
    inner = inner or [
        path for path in known if any(p == parts for p in _runs_of(path[:-1], len(parts)))
    ]
    if inner:
        raise BadInput(
            f"{name!r} is not one value: set one of {', '.join(dict.fromkeys(map(dotted, inner)))}"
        )
    # Nested parts and keys, without the numbers of emitters.
    names = sorted(
        {*PRESETS, *ALIASES, *(key for path in known for key in path if isinstance(key, str))}
    )
    hint = nearest(name, [*names, *(dotted(path) for path in known)])
    if name in STEP_SIZES:
        hint = (
            f"{', '.join(STEP_SIZES)} are keys of some emitters only. The step size of all of them "
            "is `mutation_scale`, a key of the domain. "
        )
    elif kinds := _kinds_with(name):
        hint = f"It is a key of {', '.join(kinds)}. "
    raise BadInput(
        f"unknown name {name!r}: neither the experiment nor {owners} has such a key. "
        f"{hint}Keys: {', '.join(names)}"
    )


def _kinds_with(key: str) -> list[str]:
    """Returns the types of algorithms and domains that have a key."""
    parts = (AlgorithmSettings, DomainSettings)
    models = (model for part in parts for model in models_in(part) if key in model.model_fields)
    kinds = (get_args(model.model_fields["type"].annotation) for model in models)
    return [str(kind) for names in kinds for kind in names]


def _within(parts: Path, path: Path) -> bool:
    """Returns whether `parts` occur in `path` in this order."""
    rest = iter(path)
    return all(part in rest for part in parts)


def _runs_of(path: Path, length: int) -> Iterator[Path]:
    """Yields the parts of a path that follow each other, `length` of them."""
    for start in range(len(path) - length + 1):
        yield path[start : start + length]


def dotted(path: Path) -> str:
    """Returns the path as a user writes it."""
    return ".".join(map(str, path))


def aliases_in(path: Path) -> dict[str, str]:
    """Returns the further names of the keys of a part: alias -> key."""
    return {name: str(key[-1]) for name, key in ALIASES.items() if key[:-1] == path}


def column_of(name: str, columns: Sequence[str]) -> str:
    """Returns the swept parameter that a name is another name of; else the name itself."""
    if name in columns:
        return name
    for alias, key in ALIASES.items():
        names = {alias, key[-1], dotted((*key[:-1], alias)), dotted(key)}
        if name in names:
            return next((column for column in columns if column in names), name)
    return name


# A key with an alias -> the same with the alias, both as a user writes them.
ALIASED = {dotted(key): dotted((*key[:-1], name)) for name, key in ALIASES.items()}


def with_alias(path: Path) -> str:
    """Returns the path for a message, with the other name of the key where it has one."""
    names = [name for name, key in ALIASES.items() if key == path]
    return f"{dotted(path)} ({names[0]})" if names else dotted(path)


class Change(Model):
    """What changes between two iterations."""

    at: int = Field(ge=1, description="the iteration after which the keys change [iterations]")
    set: dict[str, Any] = Field(
        min_length=1, description="keys, named as in a sweep, and their new values"
    )


def read_schedule(value: Any) -> Any:
    """Returns the changes of a text such as `1000 sigma=0.05; 2000 sigma=0.01 line_sigma=0.1`.

    So a schedule can be a value of a sweep. Values that are not text stay as they are.

    Raises:
        ValueError: It is not such a text.
    """
    if not isinstance(value, str):
        return value
    changes = []
    for part in filter(None, map(str.strip, value.split(";"))):
        at, *pairs = part.split()
        if not at.isdecimal() or not pairs or not all("=" in pair[1:] for pair in pairs):
            raise ValueError(
                f"{part!r} is not a change. Write AT KEY=VALUE ..., such as 1000 sigma=0.05, with "
                "`;` between changes"
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
        BadInput: It cannot; the message has the reason and the keys that can.
    """
    reason, _ = _mid_run(experiment, path)
    if reason:
        can = ", ".join(f"{key} ({when})" for key, when in changeable(experiment))
        raise BadInput(
            f"{dotted(path)} cannot be changed during a run: {reason}. "
            + (f"These keys can: {can}" if can else "No key of this experiment can")
        )


def refuse_fixed_names(experiment: Model, names: Iterable[str]) -> None:
    """Refuses swept parameters that cannot change during a run.

    Args:
        experiment: The experiment that they are swept in.
        names: As a sweep has them.

    Raises:
        BadInput: One cannot; see `refuse_fixed`.
    """
    paths = list(key_paths(type(experiment), experiment.model_dump()))
    for name in names:
        if name in PRESETS:
            raise BadInput(f"{name} cannot be changed during a run: it defines the run")
        refuse_fixed(experiment, resolve(name, paths, "its parts"))


def unchanging(experiment: Model, names: Iterable[str]) -> Change:
    """Returns a change, after the first iteration, of swept parameters to their present values."""
    data = experiment.model_dump()
    paths = list(key_paths(type(experiment), data))
    values = {}
    for path in (resolve(name, paths, "its parts") for name in names):
        value = data
        for part in path:
            value = value[part]  # type: ignore[index]
        values[dotted(path)] = value
    return Change(at=1, set=values)


def changeable(experiment: Model) -> Iterator[tuple[str, str]]:
    """Yields the keys that can change while a run lasts, and when that acts: now or restart."""
    for path, _ in key_paths(type(experiment), experiment.model_dump()):
        reason, when = _mid_run(experiment, path)
        if not reason:
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
