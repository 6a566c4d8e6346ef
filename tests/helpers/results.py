"""What tests read of the folder of a run."""

import csv
import json
from pathlib import Path

import numpy as np


def read_json(path: Path) -> dict:
    return json.loads(path.read_text())


def summary(run: Path) -> dict:
    """What summary.json says of a run."""
    return read_json(run / "summary.json")


def digest(run: Path) -> str:
    return summary(run)["archive_digest"]


def digests(folder: Path) -> dict[str, str]:
    """The digests of all finished runs under a folder's results, by their ids."""
    return {
        path.parent.name: digest(path.parent) for path in folder.glob("results/runs/*/summary.json")
    }


def forget_sums(folder: Path) -> Path:
    """Removes all checksums below a folder, so that a test may edit results; returns the folder."""
    for path in [*folder.rglob("SHA256SUMS"), *folder.rglob("*.sha256")]:
        path.unlink()
    return folder


def search_results(folder: Path, name: str = "mine") -> dict[str, bytes | str]:
    """All that a search writes down, byte for byte, and how its runs ended."""
    sweep = folder / "results/sweeps" / name
    files = [*sweep.glob("search/*/*.json"), *sweep.glob("search.*"), *sweep.glob("runs.tsv")]
    return {str(file.relative_to(sweep)): file.read_bytes() for file in files} | digests(folder)


def steps(run: Path) -> list[list[str]]:
    """The rows of metrics.csv without the seconds, which are never the same."""
    return [line.split(",")[:9] for line in (run / "metrics.csv").read_text().splitlines()]


def outcome(files: Path) -> dict[str, object]:
    """All of a run's results that are the same, bit for bit, however often it was ended.

    Args:
        files: The run's folder, or its state/.
    """
    rows = csv.DictReader((files / "metrics.csv").read_text().splitlines())
    history = files / "history.npz"
    insertions = {}
    if history.exists():
        with np.load(history) as arrays:
            insertions = {name: arrays[name].tolist() for name in arrays}
    return {
        "digest": digest(files),
        "rows": [{key: row[key] for key in row if not key.startswith("seconds")} for row in rows],
        "history": insertions,
    }
