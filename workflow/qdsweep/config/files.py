"""Config files: where they are found and how YAML is read."""

import functools
import json
import os
import re
import shlex
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from qdsweep.config.refused import ALGORITHMS
from qdsweep.errors import BadInput
from qdsweep.text import nearest, quoted

_PACKAGE = Path(__file__).resolve().parents[1]
# The clone's folder; an installed wheel has a copy of the needed parts (see setup.py).
HOME = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parents[1]
# The presets that come with qdsweep. Those of the working directory's config/ come before them.
PRESET_FOLDER = HOME / "config"

CONFIG = "config/config.yaml"
"""The sweep file of a study."""
_SNAKEFILES = (Path("Snakefile"), Path("workflow/Snakefile"))

# A shorter text without aliases is read without a check of its size [characters].
_HARMLESS = 10_000
# The most digits of a number; a longer one does not fit into a float.
LONGEST_INT = 300
_DEEPEST = 200
_MOST_VALUES = 1_000_000

# The numbers of YAML's core schema; `base.typed` reads the values of a sweep with the same ones.
INT = r"[-+]?[0-9]+"
PREFIXED_INT = r"0o[0-7]+|0x[0-9a-fA-F]+"
FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
NOT_FINITE = r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", f"{INT}|{PREFIXED_INT}", "-+0123456789"),
    ("float", f"{FLOAT}|{NOT_FINITE}", "-+.0123456789"),
)


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML with the 1.2 core scalars (`1e-3` is a number, `no` is text) and no repeated keys."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # filled below

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            problem = ""
            if not isinstance(key, Hashable):
                problem = "a key is not plain text"
            elif key in seen:
                problem = f"the key {quoted(key)} appears twice. Leave one out"
            elif key == "<<" and not key_node.style:  # quoted, it is a text
                problem = "YAML 1.2 has no merge keys (<<). Write out the keys that it would copy"
            if problem:
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# libyaml's is four times as fast, which matters in a sweep of 10,000 runs.
class _Dumper(yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper):  # type: ignore[misc]
    """YAML that `_Loader` reads as it was: a text such as 1e3 or 08 is in quotes."""


for _tag, _pattern, _first in _SCALARS:
    _name = f"tag:yaml.org,2002:{_tag}"
    _Loader.add_implicit_resolver(_name, re.compile(f"^(?:{_pattern})$"), list(_first))
    _Dumper.add_implicit_resolver(_name, re.compile(f"^(?:{_pattern})$"), list(_first))


class BlockText(str):
    """Text that YAML shows line by line, after a `|`."""


_Dumper.add_representer(
    BlockText,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|"),
)


def to_yaml(data: Any, **options: Any) -> str:
    """Returns plain data as YAML, in which `read_yaml` finds the same values.

    Args:
        data: The data.
        **options: As `yaml.dump` has them.
    """
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, **options))


def _constructor(kind: str, read: Callable[[str], Any]) -> Callable[[Any, Any], Any]:
    """Returns the constructor of a kind of scalar, also of one with a tag such as `!!bool`."""

    def construct(loader: Any, node: yaml.ScalarNode) -> Any:
        try:
            return read(loader.construct_scalar(node))
        except (KeyError, ValueError):
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"{quoted(node.value)} is not a value of the tag !!{kind}; leave the tag out",
                node.start_mark,
            ) from None

    return construct


def _int(text: str) -> int:
    number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)) if len(text) <= LONGEST_INT else 0
    digits = max(len(text), len(str(number)))  # config.yaml has the digits of a 0x number
    if digits > LONGEST_INT:
        raise yaml.YAMLError(
            f"the number {text[:20]}... has {digits:,} digits, {LONGEST_INT} are allowed"
        )
    return number


for _kind, _read in (
    ("bool", lambda text: {"true": True, "false": False}[text.lower()]),
    ("int", _int),
    ("float", lambda text: float(re.sub(r"\.(?=[iInN])", "", text))),
):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _constructor(_kind, _read))


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML mapping.

    Args:
        path: The file.

    Raises:
        BadInput: The file is missing, unreadable, not YAML or not a mapping.
    """
    try:
        if path.exists() and not path.is_file():  # a fifo, which may never end
            raise OSError("it is not a regular file")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{path}, line {line}: the byte {error.object[error.start]:#x} is not UTF-8. Save the "
            "file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path}: cannot be read ({reason}); a YAML file is expected") from None
    if "\0" in text[:2]:
        raise BadInput(f"{path}: it looks like UTF-16. Save the file as UTF-8")
    try:
        if len(text) > _HARMLESS or "*" in text:
            _refuse_bomb(text)
        data = yaml.load(text, Loader=_Loader)
        json.dumps(data)  # refuses dates, other objects, and a list that contains itself
    except (yaml.YAMLError, LookupError, TypeError, ValueError, RecursionError) as error:
        reason = _tab(text, error) or str(error).replace('in "<unicode string>", ', "")
        raise BadInput(f"{path}: not valid YAML: {reason}") from None
    if not isinstance(data, dict):
        raise BadInput(f"{path}: a mapping of keys to values was expected")
    require_text(dict.fromkeys(data), str(path))
    return data


def require_text(data: Any, where: str) -> None:
    """Refuses a key that is not text, at any depth: JSON would make it one.

    Args:
        data: Plain data.
        where: Its place, for the message.

    Raises:
        BadInput: The message names the key.
    """
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                key = json.dumps(key)
                raise BadInput(f'{where}: the key {key} is not text. Write it in quotes: "{key}"')
            require_text(value, where)
    elif isinstance(data, list):
        for value in data:
            require_text(value, where)


def _tab(text: str, error: Exception) -> str:
    """Returns the reason of an error in a line that is indented with a tab; else nothing."""
    mark = getattr(error, "problem_mark", None)
    lines = text.splitlines()
    number = len(lines) if mark is None else mark.line
    if number < len(lines) and re.match(r"\s*\t", lines[number]):
        return f"line {number + 1} is indented with a tab. Indent it with spaces"
    return ""


def read_text_value(path: Path, key: str) -> str:
    """Returns the value of a key of a YAML mapping as it is written there, such as 1e3."""
    return str(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)[key])


def _refuse_bomb(text: str) -> None:
    """Refuses a small text that would fill the memory, or the stack, once it is read.

    Raises:
        yaml.YAMLError: Values are nested too deeply, or aliases multiply them.
    """
    sizes = [0]  # those of the whole text, and of each open collection
    names: list[str | None] = []
    known: dict[str | None, int] = {}
    anchors: set[str | None] = set()
    for event in yaml.parse(text, Loader=_Loader):
        reason = ""
        if isinstance(event, yaml.AliasEvent) and event.anchor not in anchors:
            name = event.anchor
            reason = (
                f"*{name} repeats a value that &{name} marks before it; quote '*{name}' as text"
            )
        anchors.add(getattr(event, "anchor", None))
        if isinstance(event, yaml.CollectionStartEvent):
            sizes.append(1)
            names.append(event.anchor)
            if len(sizes) > _DEEPEST:
                reason = f"values are nested more than {_DEEPEST} deep. Write fewer levels"
        elif isinstance(event, yaml.CollectionEndEvent):
            known[names.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.AliasEvent):
            sizes[-1] += known.get(event.anchor, 1)
            if sizes[-1] > _MOST_VALUES:
                reason = (
                    f"*{event.anchor} and others make over {_MOST_VALUES:,} values; write fewer"
                )
        elif isinstance(event, yaml.ScalarEvent):
            sizes[-1] += 1
        if reason:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise yaml.YAMLError(f"{reason} (line {line})")


def start_command(*files: str | os.PathLike[str]) -> str:
    """Returns the command that starts a sweep in this folder; `files`: if not that of `CONFIG`."""
    has_rules = any(map(Path.exists, _SNAKEFILES))
    paths, here = [Path(file).resolve() for file in files], Path.cwd()
    others = [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths]
    others = [] if others == [CONFIG] else others
    option = " --configfile" if has_rules and others else ""
    start = "snakemake --cores all" if has_rules else "qdsweep sweep"
    return " ".join([start + option, *map(shlex.quote, others)])


@functools.lru_cache
def read_preset(kind: str, name: str) -> tuple[dict[str, Any], str]:
    """Reads `config/KIND/NAME.yaml`, or the file that `name` is the path of.

    A preset in the working directory's config/ comes before qdsweep's own.

    Args:
        kind: The folder: experiments, domains, algorithms, clusters.
        name: A preset's name, or a path that ends with .yaml or .yml.

    Returns:
        The mapping (not to be changed) and the file as messages name it.

    Raises:
        BadInput: There is no such preset or file; the message names the nearest.
    """
    path = find_preset(kind, name)
    return read_yaml(path), shown(path)


def find_config(name: str) -> str:
    """Returns the file `config/NAME` of the working directory, or else qdsweep's own."""
    path = Path("config", name)
    return str(path if path.exists() else PRESET_FOLDER / name)


def find_preset(kind: str, name: str) -> Path:
    """Finds the file of a preset; see `read_preset`."""
    if name.endswith((".yaml", ".yml")):
        if _is_file(Path(name)):
            return Path(name)
        given = name if _is_plain(name) else quoted(name)
        raise BadInput(f"{given}: there is no such file (looked for a file of config/{kind}/)")
    folders = [Path("config", kind), PRESET_FOLDER / kind]
    for folder in folders:
        if _is_file(folder / f"{name}.yaml"):
            return folder / f"{name}.yaml"
    if kind == "algorithms" and name.lower() in ALGORITHMS:
        raise BadInput(f"algorithm = {name!r}: {ALGORITHMS[name.lower()]}")
    known = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    file = f"config/{kind}/{name if _is_plain(name) else 'NAME'}.yaml"
    path = "; a path must end with .yaml" if "/" in name else ""
    hint = _own_code(kind, name) or nearest(name, known)
    raise BadInput(
        f"{kind[:-1]} = {quoted(name)}: there is no {file}{path}; {hint}known: {', '.join(known)}"
    )


def _own_code(kind: str, name: str) -> str:
    """Returns "did you mean ...? " for the name or path of a file of config/plugins/."""
    path = Path("config/plugins", f"{Path(name).stem}.py")
    if not _is_file(path):
        return ""
    words = "class" if kind == "domains" else "class|def"
    pattern = rf"^(?:{words}) ([A-Za-z]\w*)"
    names = re.findall(pattern, path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    forms = " or ".join(repr(f"{path.stem}:{each}") for each in names)
    return f"did you mean {forms}? " if names else ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no file can have such a name
        return False


def _is_plain(name: str) -> bool:
    return name.isprintable() and len(name) < 100


def shown(path: Path) -> str:
    """Returns a path as messages show it: from the working directory or qdsweep's config/."""
    for folder, name in ((Path.cwd(), ""), (PRESET_FOLDER, "config")):
        if path.is_absolute() and path.is_relative_to(folder):
            return str(name / path.relative_to(folder))
    return str(path)
