"""What two runs must share for their QD scores and colours to be comparable."""

from pathlib import Path
from typing import Any

from qdsweep.analysis.files import require
from qdsweep.analysis.text import TIMES, short
from qdsweep.config.files import read_yaml


def scale_of(run_dir: Path, summary: dict[str, Any]) -> str:
    """Returns the domain, archive and QD-score offset of a run in words.

    Runs with different texts must not share a QD-score axis or a colour scale.

    Args:
        run_dir: The run's folder, whose config.yaml names the domain.
        summary: The run's summary.json.
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
    """Returns the name of a run's domain."""
    path = require(run_dir / "config.yaml", "Run `snakemake` again to make it.")
    return str(read_yaml(path)["domain"]["name"])
