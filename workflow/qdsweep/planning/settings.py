"""The settings of a sweep, from what Snakemake made of files and command line."""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.explain import explain
from qdsweep.config.files import nearest, read_yaml, shown
from qdsweep.config.keys import Path
from qdsweep.config.sweep import SweepFile
from qdsweep.config.values import typed
from qdsweep.errors import BadInput
from qdsweep.planning.places import Places
from qdsweep.planning.sources import naming_file
from qdsweep.sweep.expand import recover
from qdsweep.sweep.groups import CHANGES, MEMBER
from qdsweep.sweep.ids import adhoc_name
from qdsweep.sweep.runs import Sweep


def read_sweep(
    config: Mapping[str, Any],
    command_line: Iterable[str] | None = (),
    files: Iterable[str | os.PathLike[str]] = (),
    where: str = "--config",
) -> SweepFile:
    """Reads what Snakemake made of the sweep's files and of `--config`.

    Args:
        config: Snakemake's config.
        command_line: The `KEY=VALUE` of `--config` as they were typed.
        files: The config files, later ones over earlier ones. They are read again: Snakemake's
            YAML reads `1e-3` as text, and accepts a key that stands twice.
        where: Where the config stands if there are no files.

    Raises:
        BadInput: A file, a key or a value is wrong.
    """
    command_line, files = list(command_line or ()), list(files)
    typed_here = {entry.partition("=")[0] for entry in command_line}
    read: dict[str, Any] = {}
    for file in files:
        read |= read_yaml(pathlib.Path(file))
    if read:
        read |= {key: value for key, value in config.items() if key in typed_here}
    data = json.loads(json.dumps(read or dict(config), default=str))
    if "sweep" in data:
        try:
            data["sweep"] = recover(data["sweep"], command_line)
        except BadInput as error:
            source = key_sources(command_line, files, where).get(("sweep",), where)
            raise BadInput(f"{source}: {error}") from None
    if "experiment" not in data:
        near = [key for key in data if nearest(key, ["experiment"])]
        hint = f" ({near[0]!r} is no key)" if near else ""
        source = key_sources(command_line, files, where)[()]
        raise BadInput(
            f"{source}: the key experiment is missing: give a preset's name or a YAML file{hint}"
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
    for key in ("name", "cluster"):
        if isinstance(data.get(key), int | float) and not isinstance(data.get(key), bool):
            data[key] = str(data[key])
    try:
        return SweepFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        sources = key_sources(command_line, files, where)
        raise BadInput(explain(error, SweepFile, data, sources)) from None


def clusters_of(settings: SweepFile, sources: Mapping[Path, str]) -> dict[str, Cluster]:
    """Reads the cluster config of a sweep; for `auto` both that it may become.

    Args:
        settings: The sweep file.
        sources: Where its keys stand, from `key_sources`.

    Raises:
        BadInput: There is none, or a key or value of it is wrong.
    """
    auto = settings.cluster == "auto"
    with naming_file({} if auto else sources, "cluster"):
        names = ("local", "slurm") if auto else (settings.cluster,)
        return {name: read_cluster(name) for name in names}


def plan_data(settings: SweepFile, sweep: Sweep, places: Places | None = None) -> dict[str, Any]:
    """Returns a sweep as plain data: what plan.json says of it."""
    about = {"name": settings.name, "experiment": settings.title, "sweep": settings.sweep}
    plan = sweep.plan(**about, **settings.drawing, **settings.reporting)
    if places is None:
        return plan
    if settings.search and settings.search.pbt:
        plan["columns"] = [MEMBER, *sweep.columns, CHANGES]
    # Its rows are known at its end; until then there is what they are chosen from.
    return {**plan, "rows": [], "base": settings.experiment, **places.plan}


def _typed(value: Any) -> Any:
    """Returns a value of the command line with types: Snakemake leaves all of it as text."""
    if isinstance(value, dict):
        return {key: _typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_typed(part) for part in value]
    return typed(value) if isinstance(value, str) else value


def key_sources(
    command_line: Iterable[str] | None,
    files: Iterable[str | os.PathLike[str]],
    where: str = "--config",
) -> dict[Path, str]:
    """Returns where each key of a sweep stands, for messages; see `read_sweep`.

    Returns:
        Key -> its file, or `--config KEY`; `()` -> the files, for a key that is missing.
    """
    paths = [pathlib.Path(file) for file in files]
    sources: dict[Path, str] = {(): " + ".join(map(shown, paths)) or where}
    for path in paths:
        sources |= {(key,): shown(path) for key in read_yaml(path)}
    names = (entry.partition("=")[0] for entry in command_line or ())
    return sources | {(name,): f"--config {name}" for name in names}
