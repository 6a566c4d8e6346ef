"""What two runs must share for their QD scores and colours to be comparable."""

import re
from pathlib import Path
from typing import Any

from qdsweep.analysis.text import TIMES, short
from qdsweep.files import damaged
from qdsweep.records.config import read_config
from qdsweep.records.run_dir import RunFiles


def score_scale_of(run_dir: Path, summary: dict[str, Any]) -> str:
    """Returns the domain (of config.yaml), archive and QD-score offset of a run in words.

    Runs with different texts must not share a QD-score axis or a colour scale.
    """
    archive = summary["archive"]
    dims, cells, ranges = archive.get("dims"), archive.get("cells"), archive.get("ranges")
    if dims and len(dims) > 1:
        size = f" {TIMES} ".join(map(str, dims)) + " cells"
    else:
        size = f"{cells:,} cells" if cells else "no cells"
    parts = [domain_name(run_dir), f"{archive['type']} archive, {size}"]
    if ranges:
        parts.append(f" {TIMES} ".join(f"[{short(low)}, {short(high)}]" for low, high in ranges))
    parts.append(f"QD-score offset {short(archive['qd_score_offset'])}")
    return "; ".join(parts)


def domain_name(run_dir: Path) -> str:
    """Returns the name of a run's domain, with its function or environment if that is another's.

    `lp_sphere` with the key `domain.function` swept is a task for each function.

    Raises:
        BadInput: Its config.yaml is missing or damaged.
    """
    path = RunFiles(run_dir).config
    try:
        domain = read_config(path)["domain"]
        name, task = str(domain["name"]), domain.get("function") or domain.get("env")
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from error
    if task is None or _plain(task) in _plain(name) or _plain(name) in _plain(task):
        return name
    return f"{name} ({task})"


def _plain(name: str) -> str:
    """Returns the letters of a name, without the version of an environment."""
    return "".join(filter(str.isalpha, re.sub(r"-v\d+$", "", name))).lower()
