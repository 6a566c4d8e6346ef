"""Composes an experiment: defaults < algorithm < domain < experiment file < overrides."""

import contextlib
import copy
import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from qdsweep.config.archive_kinds import PluginArchive
from qdsweep.config.domain import DomainSettings
from qdsweep.config.emitters import PluginEmitter
from qdsweep.config.experiment import BUDGETS, Experiment, ResamplingSettings
from qdsweep.config.explain import explain
from qdsweep.config.families import AlgorithmSettings, PluginAlgorithm, PluginScheduler
from qdsweep.config.files import read_preset, require_text
from qdsweep.config.keys import (
    PRESETS,
    Change,
    Path,
    aliases_in,
    dotted,
    key_paths,
    refuse_fixed,
    resolve,
    with_alias,
)
from qdsweep.config.model import Model
from qdsweep.config.own_code import parameters
from qdsweep.errors import BadInput
from qdsweep.text import quoted

# Pairs of keys for the same thing: the key of a later layer replaces that of an earlier one.
_EXCLUSIVE: tuple[tuple[Path, Path], ...] = (
    *(((first,), (second,)) for first, second in itertools.combinations(BUDGETS, 2)),
    (("archive", "dims"), ("archive", "cells")),
)
# Such a pair in two places: of all emitters together, and of each of a group.
_FIRST: Path = ("first_batch",)
_FIRST_OF_EACH = "initial_solutions"
_EMITTERS: Path = ("algorithm", "emitters")
# A key of the experiment that a preset of an algorithm may have, as it is part of algorithms of
# papers.
_OF_ALGORITHMS = "resampling"
_Kind = Literal["algorithm", "domain", "resampling"]
_MODELS: dict[_Kind, Any] = {
    "algorithm": AlgorithmSettings,
    "domain": DomainSettings,
    "resampling": ResamplingSettings,
}
# The parts of an algorithm that may be the user's; for emitters, each item.
_OWN: tuple[tuple[Path, type[Model]], ...] = (
    (("algorithm",), PluginAlgorithm),
    (("algorithm", "archive"), PluginArchive),
    (("algorithm", "scheduler"), PluginScheduler),
    (("algorithm", "emitters"), PluginEmitter),
)


@dataclass
class _Draft:
    """Raw values, and the source of each for messages. `written`: each file or mapping as it is."""

    data: dict[str, Any] = field(default_factory=dict)
    sources: dict[Path, str] = field(default_factory=dict)
    written: list[tuple[Any, str]] = field(default_factory=list)

    def put(self, path: Path, value: Any, source: str) -> None:
        """Sets one key. A mapping is merged into the present one if both have the same `type`."""
        if isinstance(value, dict) and value:
            old = self._at(path)
            if isinstance(old, dict) and value.get("type", old.get("type")) != old.get("type"):
                old.clear()
                self.sources = {k: v for k, v in self.sources.items() if k[: len(path)] != path}
            own = aliases_in(path)
            target = str(value.get("type", old.get("type") if isinstance(old, dict) else None))
            for key, item in value.items():
                if key in own and own[key] in value:
                    both = f"{dotted((*path, own[key]))} and {dotted((*path, key))}"
                    raise BadInput(f"{source}: {both} are one key; write one of them")
                if key in own and key in (parameters(target)[0] if ":" in target else ()):
                    raise BadInput(
                        f"{source}: {dotted((*path, key))}: {target} has an argument {key}. Write "
                        f"{dotted((*path, 'arguments', key))} for it, or "
                        f"{dotted((*path, own[key]))} for the key of qdsweep"
                    )
                self.put((*path, own.get(key, str(key))), item, source)
            return
        node: Any = self.data
        for part, following in itertools.pairwise(path):
            if isinstance(node, dict) and (
                not isinstance(node.get(part), list if isinstance(following, int) else dict)
            ):
                node[part] = {}
            node = node[part]
        for pair in _EXCLUSIVE:
            if path in pair and value is not None:
                other = pair[pair.index(path) - 1]
                if node.pop(other[-1], None) is not None and source in self._sources_of(other):
                    raise BadInput(
                        f"{source}: give one of {with_alias(pair[0])} and {with_alias(pair[1])}"
                    )
        if value is not None:
            self._replace_first(path, value, source)
        node[path[-1]] = value
        self.sources[path] = source

    def _sources_of(self, path: Path) -> set[str]:
        """Returns the sources of a key, or of the keys of a mapping there."""
        return {source for key, source in self.sources.items() if key[: len(path)] == path}

    def _replace_first(self, path: Path, value: Any, source: str) -> None:
        """Removes a random first batch that was set by the other one of its two keys.

        A run's config.yaml has all keys, so a first batch excludes those of the emitters.
        """
        if path == _FIRST:
            groups = self._at(_EMITTERS)
            for index, group in enumerate(groups if isinstance(groups, list) else []):
                own = (*_EMITTERS, index, _FIRST_OF_EACH)
                if isinstance(group, dict) and group.pop(_FIRST_OF_EACH, None):
                    self._refuse_both(own, self.sources.get(own, self.sources[_EMITTERS]), source)
        elif (
            path[:2] == _EMITTERS
            and path[-1] == _FIRST_OF_EACH
            and (value or self.sources.get(_FIRST) != source)
            and self.data.pop("first_batch", None) is not None
        ):
            self._refuse_both(path, self.sources[_FIRST], source)

    def _refuse_both(self, path: Path, earlier: str, source: str) -> None:
        if earlier == source:
            raise BadInput(f"{source}: give one of {dotted(_FIRST)} and {dotted(path)}")

    def fold_arguments(self) -> None:
        """Moves the other keys of a user's part of an algorithm to `arguments`."""
        for path, model in _OWN:
            part = self._at(path)
            groups = part if isinstance(part, list) else [part]
            for index, node in enumerate(groups):
                place = (*path, index) if isinstance(part, list) else path
                if isinstance(node, dict) and ":" in str(node.get("type")):
                    for key in [key for key in node if key not in model.model_fields]:
                        self._fold(node, place, key)

    def _fold(self, node: dict[str, Any], place: Path, key: str) -> None:
        inline, folded = (*place, key), (*place, "arguments", key)
        arguments = node.setdefault("arguments", {})
        source = self.sources.get(inline, "the experiment")
        if not isinstance(arguments, dict):
            raise BadInput(
                f"{source}: {dotted(folded[:-1])} = {quoted(arguments)}: a mapping is expected"
            )
        if key in arguments and self.sources.get(folded, source) == source:
            raise BadInput(f"{source}: {dotted(inline)} is also in `arguments`. Write it once")
        arguments[key] = node.pop(key)
        for old in [old for old in self.sources if old[: len(inline)] == inline]:
            self.sources[(*folded, *old[len(inline) :])] = self.sources.pop(old)

    def _at(self, path: Path) -> Any:
        node: Any = self.data
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        return node


def compose(
    experiment: str | Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    *,
    source: str = "the command line",
) -> Experiment:
    """Composes and validates an experiment.

    Args:
        experiment: A preset's name, a path of a YAML file, or the mapping itself.
        overrides: Names (see `keys.resolve`) and their values. `experiment`, `domain` and
            `algorithm` are applied first, wherever they appear.
        source: Where the overrides come from, for messages.

    Returns:
        The resolved experiment.

    Raises:
        BadInput: A file, a key, a value or a combination is wrong.

    Example:
        >>> from qdsweep.config.compose import compose
        >>> experiment = compose("lp_sphere", {"algorithm": "cma_mae", "learning_rate": 0.1})
        >>> experiment.algorithm.archive.learning_rate, experiment.archive.dims
        (0.1, [100, 100])
    """
    overrides = dict(overrides or {})
    presets = {name: overrides.pop(name) for name in PRESETS if name in overrides}
    for name, value in presets.items():
        if not isinstance(value, str):
            raise BadInput(f"{source}: {name} = {quoted(value)}: the name of a preset was expected")
    draft = _base(presets.pop("experiment", experiment), presets, source)
    owners = _owners(draft.data)
    set_by: dict[Path, str] = {}
    for name, value, paths in _types_first(overrides, draft):
        try:
            path = resolve(name, paths, owners)
        except BadInput as error:
            raise BadInput(f"{source}: {error}") from None
        if path in set_by:
            raise BadInput(f"{source}: {set_by[path]} and {name} are one key, {dotted(path)}")
        set_by[path] = name
        draft.put(path, value, source)
    made = _validate(draft)
    for data, file in draft.written:
        require_text(data, file)
    return made


def _types_first(
    values: Mapping[str, Any], draft: _Draft
) -> Iterator[tuple[str, Any, list[tuple[Path, Any]]]]:
    """Yields each name, its value and the keys that the draft may have by then.

    A type decides which keys there are, so it comes before them.
    """
    paths = _keys_of(_as_json(draft.data))
    types = {name for name in values if name.split(".")[-1] == "type"}
    for name in sorted(values, key=lambda name: name not in types):
        yield name, values[name], paths
        if name in types:
            paths = _keys_of(_as_json(draft.data))


def read_domain(name: str) -> DomainSettings:
    """Reads a domain: a preset's name, a path or a `module:Class`.

    Raises:
        BadInput: There is none, or a key or value of it is wrong.
    """
    data, source = _preset("domain", name)
    draft = _Draft()
    draft.put(("domain",), data, source or name)
    domain: DomainSettings = _part("domain", draft.data["domain"], source or name)
    return domain


def read_part(kind: _Kind, data: Mapping[str, Any]) -> Any:
    """Reads a part of a run's config.yaml, or a preset, as its model.

    The key `resampling` of a preset, which belongs to the experiment, is left out. Runs of earlier
    releases have no `title` and no `cite`; those of the preset of that name are
    taken.

    Args:
        kind: Which part.
        data: Its keys and values.

    Returns:
        The model of an algorithm or of a domain, or a `Resampling`.

    Raises:
        BadInput: A key or value is wrong.
    """
    preset: Mapping[str, Any] = {}
    if "title" not in data and kind != "resampling":
        with contextlib.suppress(BadInput):
            preset, _ = read_preset(f"{kind}s", str(data.get("name")))
    data = {key: preset[key] for key in ("title", "cite") if key in preset} | dict(data)
    data.pop(_OF_ALGORITHMS, None)
    return _part(kind, data, f"{kind} of config.yaml")


def _part(kind: _Kind, data: Mapping[str, Any], source: str) -> Any:
    model = _MODELS[kind]
    try:
        return TypeAdapter(model).validate_json(json.dumps(data))
    except ValidationError as error:
        raise BadInput(explain(error, model, data, {(): source})) from None


def _base(experiment: str | Mapping[str, Any], presets: dict[str, str], source: str) -> _Draft:
    """Returns the draft of an experiment without the overrides."""
    if isinstance(experiment, str):
        data, file = read_preset("experiments", experiment)
    else:
        data, file = dict(experiment), "the experiment"
    draft = _Draft(written=[(data, file)])
    data = copy.deepcopy(data)
    for kind in ("algorithm", "domain"):
        part = data.pop(kind, None)
        if not isinstance(part, dict | str | None):
            raise BadInput(
                f"{file}: {kind} = {quoted(part)}: a preset's name or a mapping was expected"
            )
        own = part if isinstance(part, dict) else {}
        named = part if isinstance(part, str) else own.pop("preset", None)
        preset = presets.get(kind, named)
        if named is None and kind in presets:
            own = {}  # it replaced the whole part, and did not change a preset
        if preset is not None:
            by = source if kind in presets else file
            try:
                values, origin = _preset(kind, preset)
            except BadInput as error:
                raise BadInput(f"{by}: {error}") from None
            draft.written.append((values, origin))
            values = copy.deepcopy(values)
            if kind == "algorithm" and _OF_ALGORITHMS in values:
                draft.put((_OF_ALGORITHMS,), values.pop(_OF_ALGORITHMS), origin or by)
            draft.put((kind,), values, origin or by)
            draft.fold_arguments()
        elif not own:
            from difflib import get_close_matches

            others = [key for key in data if key not in Experiment.model_fields]
            close = get_close_matches(kind, others, n=1)
            raise BadInput(
                f"{file}: the key {kind!r} is missing: give a preset's name or the values"
                + (f" (is {close[0]!r} misspelled?)" if close else "")
            )
        if own:
            draft.put((kind,), own, file)
            draft.fold_arguments()
        whole = draft.data[kind]
        if kind == "domain" and "type" not in whole:
            raise BadInput(f"{file}: the key domain.type is missing")
        whole.setdefault("name", _name(whole.get("type", "custom")))
    for key in [key for key in data if key in Experiment.model_fields]:
        draft.put((key,), data.pop(key), file)
    if data:  # the others are short names, as in a sweep
        for name, value, paths in _types_first(data, draft):
            try:
                path = resolve(name, paths, _owners(draft.data))
            except BadInput as error:
                if presets and _goes_with_its_own(name, experiment, source):
                    continue
                raise BadInput(f"{file}: {error}") from None
            if draft.sources.get(path) == file:
                raise BadInput(f"{file}: the key {with_alias(path)} is given twice, also as {name}")
            draft.put(path, value, file)
    return draft


def _goes_with_its_own(name: str, experiment: str | Mapping[str, Any], source: str) -> bool:
    """Returns whether a short name of a file is a key of the file's algorithm or domain.

    If another part replaces it, the key no longer exists.
    """
    own = _base(experiment, {}, source)
    path = resolve(name, _keys_of(_as_json(own.data)), _owners(own.data))
    return path[0] in ("algorithm", "domain")


def _preset(kind: str, name: Any) -> tuple[dict[str, Any], str]:
    """Returns a preset's values and its file; no file ("") for a `module:Class`."""
    if not isinstance(name, str):
        raise BadInput(f"{kind}.preset = {quoted(name)}: the name of a preset was expected")
    if ":" in name:
        return {"type": name, "name": _name(name)}, ""
    values, origin = read_preset(f"{kind}s", name)
    stem = name.rsplit("/", 1)[-1].removesuffix(".yaml").removesuffix(".yml")
    return {"name": stem, **values}, origin


def _name(kind: Any) -> str:
    """Returns the name of a part without a preset: its type, or the name of its class."""
    return str(kind).rsplit(":", 1)[-1]


def _owners(data: Mapping[str, Any]) -> str:
    return f"algorithm {data['algorithm']['name']} or domain {data['domain']['name']}"


@functools.lru_cache(maxsize=64)  # many rows of a sweep have the same keys
def _keys_of(data: str) -> list[tuple[Path, Any]]:
    return list(key_paths(Experiment, json.loads(data)))


def _as_json(data: dict[str, Any]) -> str:
    try:
        return json.dumps(data)
    except (TypeError, ValueError) as error:
        raise BadInput(f"a value is not plain data: {error}") from None


def _validate(draft: _Draft) -> Experiment:
    """Returns the experiment of a draft, the names and values of its schedule resolved."""
    experiment = _experiment(draft)
    if not experiment.schedule:  # as in most rows of a sweep
        return experiment
    now = _Draft({**draft.data, "schedule": []}, dict(draft.sources))
    paths, changes = _keys_of(_as_json(now.data)), []
    for change in experiment.schedule:
        source = f"{draft.sources[('schedule',)]}: schedule, at {change.at}"
        now = _Draft(copy.deepcopy(now.data), dict(now.sources))
        settings: dict[Path, Any] = {}
        for name, value in change.set.items():
            try:
                path = resolve(name, paths, _owners(now.data))
                refuse_fixed(experiment, path)
            except BadInput as error:
                raise BadInput(f"{source}: {error}") from None
            if path in settings:
                raise BadInput(f"{source}: the key {dotted(path)} is given twice, also as {name}")
            if value is None:
                raise BadInput(f"{source}: {name} = null: a change needs a value")
            settings[path] = value
            now.put(path, value, source)
        then = _experiment(now).model_dump(mode="json")
        values = {dotted(path): _value(then, path) for path in sorted(settings, key=dotted)}
        changes.append(Change(at=change.at, set=values))
    return experiment.model_copy(update={"schedule": changes})


def _value(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _experiment(draft: _Draft) -> Experiment:
    text = _as_json(draft.data)
    try:
        # As JSON: only there does pydantic's strict mode accept a list as a tuple and 1 as 1.0.
        return Experiment.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(explain(error, Experiment, draft.data, draft.sources)) from None
