"""What a run's state amounts to: archive.npz and summary.json."""

import platform
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import qdsweep
from qdsweep.algorithms import import_plugins
from qdsweep.algorithms.base import Archive
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain
from qdsweep.experiment import reload
from qdsweep.experiment.state import State, measure
from qdsweep.files import atomic, read_attempts, read_json, write_json
from qdsweep.records.archive import archive_digest
from qdsweep.records.metrics import COLUMNS, read_rows
from qdsweep.sweep.ids import fingerprint, run_id
from qdsweep.versions import installed_versions


def write_results(
    folder: Path, experiment: Experiment, domain: Domain, state: State, about: dict[str, Any]
) -> None:
    """Writes archive.npz and summary.json of a state.

    Args:
        folder: Where to.
        experiment: The experiment.
        domain: Its domain.
        state: The state, between two iterations.
        about: What else summary.json says: status, versions, engine, workers, attempts.
    """
    archive = state.algorithm.archive
    rows = archive.rows()
    digest = archive_digest(rows)
    rows.setdefault("index", np.arange(len(rows["objective"])))
    rows |= archive.geometry()
    with atomic(folder / "archive.npz") as file:
        np.savez_compressed(file, **rows)  # type: ignore[arg-type]
    metrics = measure(state)
    del metrics["iteration"]
    write_json(
        folder / "summary.json",
        {
            "id": run_id(experiment),
            "iterations": state.iterations,
            **metrics,
            "failures": state.failures,
            "archive_digest": digest,
            "archive": describe_archive(archive, domain),
            "timings": {**state.seconds, "total": sum(state.seconds.values())},
            "cpu_baseline": experiment.cpu_baseline,
            **about,
        },
    )


def describe_archive(archive: Archive, domain: Domain) -> dict[str, Any]:
    """The geometry of an archive, for whoever reads archive.npz."""
    return {
        **archive.describe(),
        "ranges": [[float(low), float(high)] for low, high in domain.measures.values()],
        "measures": list(domain.measures),
        "objective_range": [float(value) for value in domain.objective_range],
        "qd_score_offset": float(domain.objective_range[0]),
        "solution_dim": int(domain.solution_dim),
    }


def all_versions(decisive: dict[str, str]) -> dict[str, str]:
    """The versions that summary.json lists: decisive ones and some that are good to know."""
    others = installed_versions(("gymnasium", "pandas", "dask"))
    python = platform.python_version()
    return {"qdsweep": qdsweep.__version__, **others, **decisive, "python": python}


def snapshot(run_dir: Path) -> Path | None:
    """Writes `state/partial/`: the results of an unfinished run, from its newest reload file.

    Args:
        run_dir: The run's folder; it may be computed at this moment.

    Returns:
        The folder, or None where the run has not been saved yet.
    """
    folder = run_dir / "state"
    if not (folder / "config.yaml").exists():
        return None
    experiment = compose(str(folder / "config.yaml"))
    domain = make_domain(experiment.domain)
    import_plugins(experiment)
    state = reload.newest(folder, fingerprint(experiment), {}, allow_version_change=True)
    if state is None:
        return None
    target = folder / "partial"
    target.mkdir(exist_ok=True)
    shutil.copyfile(folder / "config.yaml", target / "config.yaml")
    with atomic(target / "metrics.csv", "w") as file:
        rows = read_rows(folder / "metrics.csv")[: state.iterations]
        file.write("\n".join([",".join(COLUMNS), *rows]) + "\n")
    status = read_json(folder / "status.json")
    about = {
        "status": "partial",
        "versions": all_versions({}),
        "engine": status.get("engine", ""),
        "workers": status.get("workers", 1),
        "attempts": read_attempts(folder / "status.json"),
    }
    write_results(target, experiment, domain, state, about)
    return target
