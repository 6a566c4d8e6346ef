"""The resolved experiments of a sweep: what all groups share and what tells them apart."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.selection import Tables
from qdsweep.analysis.tables.sheet import Sheet, text_cell
from qdsweep.config.values import value_text
from qdsweep.experiment.load import Run
from qdsweep.records.run_dir import RunDir

# The seed differs within a group; titles and citations are for the methods paragraph.
_NO_SETTINGS = {
    "seed",
    *(f"{part}.{key}" for part in ("algorithm", "domain") for key in ("title", "cite")),
}


@dataclass(frozen=True)
class Settings:
    """What every group of a sweep shares, as YAML; and a table of what differs, if anything."""

    common: str
    differing: Sheet | None


def median_runs(tables: Tables, runs_dir: Path) -> dict[str, Run]:
    """Returns the run of each group that figures show: the one with the median score."""
    return {
        group: Run(RunDir(runs_dir / str(tables.median_run(group)["id"])).results.path)
        for group in tables.series
    }


def settings(runs: dict[str, Run]) -> Settings:
    """Returns the settings of a sweep, without seeds, from a run of each group."""
    import yaml

    flat = {group: _flat(run.config) for group, run in runs.items()}
    keys = list(dict.fromkeys(key for config in flat.values() for key in config))
    varying = [key for key in keys if len({_text(config, key) for config in flat.values()}) > 1]
    common = {key: value for key, value in next(iter(flat.values())).items() if key not in varying}
    text = yaml.safe_dump(common, sort_keys=False, default_flow_style=None, width=90)
    if not varying:
        return Settings(text, None)
    table = [[_text(config, key) for key in varying] for config in flat.values()]
    heads, columns = list(flat), varying
    if len(varying) > len(flat):  # the longer side becomes the rows
        heads, columns, table = varying, list(flat), [list(row) for row in zip(*table, strict=True)]
    rows = [[text_cell(t) for t in (head, *row)] for head, row in zip(heads, table, strict=True)]
    corner = "group" if heads == list(flat) else "key"
    note = "Keys that a group's algorithm or domain does not have are empty."
    names, title = [corner, *columns], "What tells the groups apart"
    return Settings(text, Sheet("settings", title, note, names, len(names), rows))


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a config with dotted keys, without the seed and what the methods paragraph says."""
    flat: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                walk(part, f"{path}.{key}" if path else str(key))
        elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
            for position, part in enumerate(value):
                walk(part, f"{path}.{position}" if len(value) > 1 else path)
        else:
            flat[path] = value

    walk(config, "")
    return {key: value for key, value in flat.items() if key not in _NO_SETTINGS}


def _text(config: dict[str, Any], key: str) -> str:
    return value_text(config[key]) if key in config else ""
