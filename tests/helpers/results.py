"""Reads the folder of a run for tests."""

import csv
import json
from pathlib import Path

import numpy as np

# What the attempts of a run determine, and not only its experiment.
OF_ATTEMPTS = ("attempts", "versions", "image", "engine", "workers", "timings")
# They depend on a plug-in's code and arguments, also if these change no result.
NAMES = ("id", "fingerprint")


def read_json(path: Path) -> dict:
    return json.loads(path.read_text())


def summary(run: Path) -> dict:
    """Returns the content of a run's summary.json."""
    return read_json(run / "summary.json")


def digest(run: Path) -> str:
    return summary(run)["archive_digest"]


def digests(folder: Path) -> dict[str, str]:
    """Returns id -> digest of all finished runs under a folder's results."""
    return {
        path.parent.name: digest(path.parent) for path in folder.glob("results/runs/*/summary.json")
    }


def forget_sums(folder: Path) -> Path:
    """Removes all checksums below a folder, so a test may edit results; returns the folder."""
    for path in [*folder.rglob("SHA256SUMS"), *folder.rglob("*.sha256")]:
        path.unlink()
    return folder


def search_results(folder: Path, name: str = "mine") -> dict[str, bytes | str]:
    """Returns the bytes of all files of a search, and the ends of its runs."""
    sweep = folder / "results/sweeps" / name
    files = [*sweep.glob("search/*/*.json"), *sweep.glob("search.*"), *sweep.glob("runs.tsv")]
    return {str(file.relative_to(sweep)): file.read_bytes() for file in files} | digests(folder)


def steps(run: Path) -> list[list[str]]:
    """Returns the rows of metrics.csv without the seconds, which always differ."""
    return [line.split(",")[:9] for line in (run / "metrics.csv").read_text().splitlines()]


def outcome(files: Path) -> dict[str, object]:
    """Returns the results of a run that are equal, bit for bit, after any number of stops.

    Args:
        files: The run's folder, or its state/.
    """
    rows = csv.DictReader((files / "metrics.csv").read_text().splitlines())
    about = summary(files)
    history = files / "history.npz"
    insertions = {}
    if history.exists():
        with np.load(history) as arrays:
            insertions = {name: repr(arrays[name].tolist()) for name in arrays}  # with NaN
    return {
        "digest": digest(files),
        "rows": [{key: row[key] for key in row if not key.startswith("seconds")} for row in rows],
        "history": insertions,
        "summary": {name: about[name] for name in about if name not in (*OF_ATTEMPTS, *NAMES)},
    }
