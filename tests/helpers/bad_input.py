"""Input with one fault, made from the config models, and the names in its message."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

# Each has its own models, from which the faulty inputs are made.
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "cma_mae": {"domain": "lp_sphere", "algorithm": "cma_mae"},
    "cvt": {"domain": "arm", "algorithm": "cvt_map_elites"},
    "line": {"domain": "lunar_lander", "algorithm": "map_elites_line"},
    "novelty": {"domain": "lp_rastrigin", "algorithm": "novelty_search"},
    "mega": {"domain": "lp_sphere", "algorithm": "cma_mega"},
    "bandit": {
        "domain": "arm",
        "algorithm": {"preset": "cma_me", "scheduler": {"type": "bandit"}},
    },
    "pga_me": {"domain": "pendulum", "algorithm": "pga_me"},
    "mega_es": {"domain": "pendulum", "algorithm": "cma_mega_td3_es"},
    "me_es": {"domain": "pendulum", "algorithm": "me_es"},
    "ga": {"domain": "arm", "algorithm": "ga"},
    "ppo": {"domain": "rl_cartpole", "algorithm": "ppo"},
    "dqn": {"domain": "rl_cartpole", "algorithm": "dqn"},
    "apex_dqn": {"domain": "rl_cartpole", "algorithm": "apex_dqn"},
    "impala": {"domain": "rl_cartpole", "algorithm": "impala"},
    "own": {"domain": "maze", "algorithm": {"preset": "map_elites"}},
}
# A key of which only one of several is given -> the others in a small experiment.
_INSTEAD: dict[str, tuple[tuple[str, ...], ...]] = {
    "archive.cells": (("archive", "dims"),),
    "evaluations": (("iterations",),),
    "steps": (("iterations",),),
}
# The names of a type in a message, `a|b` for either.
_KINDS = {
    **{int: "integer", float: "number", bool: "boolean", str: "string|text"},
    **{list: "list", tuple: "list", dict: "mapping"},
}
# Keys with short forms -> the names that their messages may have instead.
_SHORT_FORMS = {
    **{"domain": "lp_sphere", "algorithm": "cma_me", "cluster": "local", "sweep": ":::"},
    **{"schedule": "KEY=VALUE", "search.halving.first": "number", "shard": "NUMBER/COUNT"},
}


@dataclass(frozen=True)
class Case:
    """A command with one fault, and the names that its only message must contain.

    Attributes:
        name: The fault.
        words: The command, `qdsweep ...` or `snakemake ...`.
        files: The files that it reads, by name; None is a folder.
        names: Files, keys, values, bounds and units, which any wording contains; `a|b` for either.
    """

    name: str
    words: tuple[str, ...]
    files: dict[str, bytes | None] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def write(self, folder: Path) -> None:
        """Writes its files."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)

    def faults_of(self, message: str) -> list[str]:
        """Returns the fault of its message."""
        wrong = [f"it lacks {name}" for name in self.names if not _has(message, name)]
        if "Traceback" in message or not message.strip() or "\n\n" in message.strip():
            wrong.append("it is no single message")
        return wrong


def _has(message: str, names: str) -> bool:
    """Whether it has one of `a|b`, but a number not as a part of another number."""
    return any(
        re.search(rf"(?<![\w.]){name}(?!\w)", message) if name.isdigit() else name in message
        for name in names.split("|")
    )


def as_yaml(data: Any) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast
    return yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True).encode()


def case_of(
    name: str, words: tuple[str, ...], data: Any, *names: str, **files: bytes | None
) -> Case:
    """A command that reads bad.yaml, which its message must name."""
    content = data if data is None or isinstance(data, bytes) else as_yaml(data)
    return Case(name, words, {"bad.yaml": content, **files}, ("bad.yaml", *names))


def faults(model: BaseModel) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yields the fault, the data with it and the names to expect, for every key of a model."""
    data = model.model_dump(mode="json")
    for path, info in _keys(model, ()):
        key = ".".join(map(str, path))
        for what, value, names in _wrong_values(key, info):
            changed = _with(data, path, value)
            for other in _INSTEAD.get(key, ()):  # otherwise the pair would be the fault
                changed = _with(changed, other, None)
            yield f"{key} {what}", changed, (key, *names)
        # An algorithm without a type is a composition of emitters.
        there = f"{key}|algorithm.emitters" if key == "algorithm.type" else key
        if isinstance(path[-1], str):
            misspelt = f"{path[-1][:-1]}_{path[-1][-1]}"
            renamed = _without(_with(data, (*path[:-1], misspelt), _at(data, path)), path)
            # Without a type, the other keys are unknown.
            names = (there,) if path[-1] == "type" else (misspelt, path[-1])
            yield f"{key} misspelt", renamed, names
        if info.is_required():
            yield f"{key} absent", _without(data, path), (there,)


def _keys(model: BaseModel, prefix: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], FieldInfo]]:
    for name, info in type(model).model_fields.items():
        value, path = getattr(model, name), (*prefix, name)
        yield path, info
        if isinstance(value, BaseModel):
            yield from _keys(value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _keys(item, (*path, index))


def _leaves(annotation: Any) -> set[Any]:
    """Returns the possible types and texts of a value."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return set(args)
    if origin in (list, dict, tuple):
        return {origin}
    if args:
        first = args[:1] if str(origin).endswith("Annotated'>") else args
        return set().union(*map(_leaves, first))
    return {
        dict if isinstance(annotation, type) and issubclass(annotation, BaseModel) else annotation
    }


def _wrong_values(key: str, info: FieldInfo) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yields the fault, the value and the names to expect: the value and the allowed ones."""
    leaves = _leaves(info.annotation)
    if Any in leaves:
        return
    choices = [f"'{leaf}'" for leaf in leaves if isinstance(leaf, str)]
    kinds = [_KINDS[leaf] for leaf in leaves if leaf in _KINDS]
    allowed = tuple(sorted(choices)) + tuple(kinds)
    if key.endswith("type"):  # a model does not know the other types
        allowed = ()
    if key in _SHORT_FORMS:
        allowed = ("|".join((_SHORT_FORMS[key], *kinds)),)
    if not choices and str not in leaves:
        yield "is text", "häß/../x", ("häß/../x", *allowed)
    if not leaves & {bool, str}:
        yield "is true", True, ("True", *allowed)
    if not leaves & {list, tuple}:
        yield "is a list", ["q", 7], ("q", "7", *allowed)
    if dict not in leaves:
        yield "is a mapping", {"q": 7}, ("q", *allowed)
    if not leaves & {int, float}:
        yield "is a number", 7.25, ("7.25", *allowed)
    if leaves & {int, float} and float not in leaves:
        yield "is a fraction", 1.5, ("1.5", *allowed)
    if choices and str not in leaves:
        yield "is no choice", "../../etc/passwd", ("../../etc/passwd", *allowed)
        yield "is empty", "", ("''", *allowed)
    for bound in info.metadata:
        match bound:
            case Ge(ge=low):
                yield "too small", low - 1, (str(low - 1), f"{low:.15g}")
            case Gt(gt=low):
                yield "at its open end", low, (f"{low:.15g}",)
            case Le(le=high):
                yield "too large", high + 1, (str(high + 1), f"{high:.15g}")
            case Lt(lt=high):
                yield "at its open upper end", high, (str(high),)
            case MinLen(min_length=1) if leaves & {list}:
                yield "is empty", [], ("[]", "1")
        if pattern := getattr(bound, "pattern", None):
            for what, value in (
                ("climbs", "../../x"),
                ("is unicode", "ключ ключ"),
                ("has a NUL", "a\0b"),
                ("has a line break", "a\nb"),
            ):
                yield what, value, (repr(value), f"{pattern}|module:name|module:Class")
    if leaves & {float}:
        yield "is infinite", float("inf"), ("inf", *allowed)
        yield "is not a number", float("nan"), ("nan", *allowed)


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        data = data[part]
    return data


def _with(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _without(data: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(data)
    del _at(changed, path[:-1])[path[-1]]
    return changed


SWEEP = {"name": "s", "experiment": "lp_sphere", "sweep": "::: seed 1 2"}
RUN = ("qdsweep", "run", "bad.yaml", "--out", "out")
PLAN = ("qdsweep", "plan", "bad.yaml")


def generated() -> Iterator[Case]:
    """Yields every key of every model, with every fault of its type."""
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.compose import compose
    from qdsweep.config.sweep import SweepFile

    seen: set[str] = set()
    for name, parts in EXPERIMENTS.items():
        of_groups = 2 if name in ("cma_mae", "line") else 1
        sizes = {"archive": {"dims": [10, 10]}, "num_emitters": of_groups, "batch_size": 36}
        for what, data, names in faults(compose({**sizes, "iterations": 3, **parts})):
            if what not in seen:
                seen.add(what)
                yield case_of(f"experiment {name}: {what}", RUN, data, *names)
    credentials = {"tls_ca_file": "a", "tls_cert": "b", "tls_key": "c"}
    for data in (
        {"engine": "dask", "dask": {"address": "tls://h:1", **credentials}},
        {"engine": "ray", "ray": {"address": "auto", "workers": 2}},
        {"engine": "mpi", "mpi": {"launcher": "srun"}},
    ):
        words = ("qdsweep", "run", "arm", "--cluster", "bad.yaml", "--out", "out")
        for what, changed, names in faults(Cluster.model_validate(data)):
            if (what not in seen or what.split(".")[0] in data) and what != "extra climbs":
                seen.add(what)
                yield case_of(f"cluster {data['engine']}: {what}", words, changed, *names)
    where = {
        "where": {"algorithm": "map_elites"},
        "metric": "coverage",
        "mean": 0.5,
        "margin": 0.1,
    }
    value = {"mean": 0.5, "margin": 0.1, "source": "x"}
    two = {"experiment": "lunar_lander", "sweep": "::: algorithm map_elites cma_me ::: seed 1 2"}
    asked = {"reevaluate": {}, "rollouts": {}, "confirm": {"top": 1, "seeds": [101, 110]}}
    drawn = {"experiment": "lp_sphere", "sweep": ":::~ sigma0 log 0.1 1 ::: seed 1 2"}
    for data in (
        {**SWEEP, **two, "published": [{**where, **value}], **asked},
        {**SWEEP, **drawn, "search": {"samples": 9, "halving": {}}},
        {**SWEEP, **drawn, "search": {"pbt": {"population": 4, "generations": 3}}},
    ):
        for what, changed, names in faults(SweepFile.model_validate_json(json.dumps(data))):
            if what not in seen and what != "name is a number":  # a number is a valid name
                seen.add(what)
                yield case_of(f"sweep: {what}", PLAN, changed, *names)
