"""What a start is asked for: the sweep file, the source of each key, and the cluster configs."""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.explain import explain, naming_file
from qdsweep.config.files import read_text_value, read_yaml, require_text, shown
from qdsweep.config.keys import Path
from qdsweep.config.model import typed
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.sweep.grammar import recover
from qdsweep.sweep.ids import adhoc_name
from qdsweep.text import nearest

# Keys whose value is text, also where YAML reads it as a number.
_TEXTS = ("name", "cluster", "shard")


class Given(NamedTuple):
    """The config of a sweep, as Snakemake made it of files and command line.

    Attributes:
        config: Snakemake's config.
        command_line: The `KEY=VALUE` of `--config` as they were typed.
        files: The config files, later ones over earlier ones.
        where: The name of the config in messages if there are no files.
    """

    config: Mapping[str, Any]
    command_line: Sequence[str] = ()
    files: Sequence[str | os.PathLike[str]] = ()
    where: str = "--config"


def read_sweep(given: Given) -> SweepFile:
    """Reads what Snakemake made of the sweep's files and of `--config`.

    The files are read again: Snakemake's YAML reads `1e-3` as text, and accepts a key twice.

    Raises:
        BadInput: A file, a key or a value is wrong.
    """
    typed_here = {entry.partition("=")[0] for entry in given.command_line}
    read: dict[str, Any] = {}
    for file in given.files:
        read |= _read(pathlib.Path(file))
    if read:
        read |= {key: value for key, value in given.config.items() if key in typed_here}
    data = json.loads(json.dumps(read or dict(given.config), default=str))
    if "sweep" in data:
        try:
            data["sweep"] = recover(data["sweep"], list(given.command_line))
        except BadInput as error:
            source = key_sources(given).get(("sweep",), given.where)
            raise BadInput(f"{source}: {error}") from None
    if "experiment" not in data:
        near = [key for key in data if nearest(key, ["experiment"])]
        hint = f" ({near[0]!r} is not a key)" if near else ""
        source = key_sources(given)[()]
        raise BadInput(
            f"{source}: the key experiment is missing; give a preset's name or a YAML file{hint}"
        )
    if "sweep" in typed_here and "name" not in typed_here:
        # It must never replace the tables of the sweep that the file names.
        for key in {"search", "exclude"} - typed_here:  # they belong to that sweep
            data.pop(key, None)
        data.pop("published", None)
        parts = {key: data[key] for key in ("search", "exclude") if key in data}
        data["name"] = adhoc_name(data["experiment"], data["sweep"], parts)
    for key in typed_here & data.keys() - {"sweep", "name", "cluster"}:
        data[key] = _typed(data[key])
    for key in _TEXTS:
        if type(data.get(key)) in (int, float):
            data[key] = str(data[key])
    try:
        return SweepFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        sources = key_sources(given)
        raise BadInput(explain(error, SweepFile, data, sources)) from None


def _read(file: pathlib.Path) -> dict[str, Any]:
    """Reads a sweep file.

    It refuses a name whose number is written otherwise, such as 1e3, and keys of the experiment
    that are not text.
    """
    data = read_yaml(file)
    for key in _TEXTS:
        number = data.get(key)
        if type(number) in (int, float):
            text = read_text_value(file, key)
            if text != str(number):
                raise BadInput(
                    f"{shown(file)}: {key} = {text}: YAML reads it as the number {number}. Write "
                    f'it in quotes: {key}: "{text}"'
                )
    require_text(data.get("experiment"), f"{shown(file)}: experiment")
    return data


def _typed(value: Any) -> Any:
    """Returns a value of the command line with types: Snakemake leaves all of it as text."""
    if isinstance(value, dict):
        return {key: _typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_typed(part) for part in value]
    return typed(value) if isinstance(value, str) else value


def key_sources(given: Given) -> dict[Path, str]:
    """Returns the file or option of each key of a sweep, for messages.

    Returns:
        Key -> its file, or `--config KEY`; `()` -> the files, for a key that is missing.
    """
    paths = [pathlib.Path(file) for file in given.files]
    sources: dict[Path, str] = {(): " + ".join(dict.fromkeys(map(shown, paths))) or given.where}
    for path in paths:
        sources |= {(key,): shown(path) for key in read_yaml(path)}
    names = (entry.partition("=")[0] for entry in given.command_line)
    return sources | {(name,): f"--config {name}" for name in names}


def clusters_of(settings: SweepFile, sources: Mapping[Path, str]) -> dict[str, Cluster]:
    """Reads the cluster config of a sweep; for `auto` both that it may become.

    Args:
        settings: The sweep file.
        sources: The file or option of each key, from `key_sources`.

    Raises:
        BadInput: There is none, or a key or value of it is wrong.
    """
    auto = settings.cluster == "auto"
    with naming_file({} if auto else sources, "cluster"):
        names = ("local", "slurm") if auto else (settings.cluster,)
        return {name: read_cluster(name) for name in names}
