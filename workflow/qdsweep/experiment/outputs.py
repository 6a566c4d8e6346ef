"""The results of a run's state: archive.npz and summary.json."""

import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from qdsweep.algorithms.base import Archive, Arrays
from qdsweep.config.cluster import LIBRARIES
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Floats, outside
from qdsweep.experiment.state import State, count_failures, measure
from qdsweep.files import atomic
from qdsweep.records.archive import archive_digest
from qdsweep.records.paths import RunFiles
from qdsweep.records.results import Summary, write_summary
from qdsweep.sweep.ids import Identity
from qdsweep.versions import __version__, installed_versions, torch_build


def write_results(
    files: RunFiles,
    identity: Identity,
    experiment: Experiment,
    domain: Domain,
    state: State,
    about: Summary,
    own: Mapping[str, float | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Writes archive.npz and summary.json of a state, and returns the summary.

    Args:
        files: The paths to write.
        identity: The run's identity.
        experiment: The experiment.
        domain: Its domain.
        state: The state. The results are those after its last finished iteration, see `measure`.
        about: Further keys of summary.json: status, versions, engine, workers, attempts.
        own: The values of the user's metrics.
    """
    archive, before = state.algorithm.archive, state.algorithm.before
    rows = final_rows(state)
    digest = archive_digest(rows)
    rows.setdefault("index", np.arange(len(rows["objective"])))
    rows |= archive.geometry() if before is None else before.geometry
    with atomic(files.archive) as file:
        np.savez_compressed(file, **rows)  # type: ignore[arg-type]
    first: Summary = {
        "id": identity.id,
        "fingerprint": identity.fingerprint,
        "iterations": state.iterations,
    }
    # A user's algorithm may return further metrics.
    ours = {*Summary.__annotations__, "iteration"}
    metrics = {name: value for name, value in measure(state).items() if name not in ours}
    others: Summary = {
        "failures": count_failures(state),
        "archive_digest": digest,
        "objectives_outside": count_outside(rows["objective"], domain.objective_range),
        "archive": describe_archive(archive, domain),
        "step": float(domain.step),
        "timings": {**state.seconds, "total": sum(state.seconds.values())},
        "cpu_baseline": experiment.cpu_baseline,
        **about,
    }
    summary = {**first, **metrics, **others, **own}
    write_summary(files, summary)
    return summary


def final_rows(state: State) -> Arrays:
    """Returns the elites after the last finished iteration, see `measure`."""
    archive, before = state.algorithm.archive, state.algorithm.before
    return archive.rows() if before is None else before.rows(archive)


def count_outside(objective: Floats, objective_range: tuple[float, float]) -> dict[str, int]:
    """Counts the elites, ``(n,)`` objectives, `below` and `above` the objective range."""
    below, above = outside(objective, objective_range)
    return {"below": int(below.sum()), "above": int(above.sum())}


def describe_archive(archive: Archive, domain: Domain) -> dict[str, Any]:
    """Returns the geometry of an archive, for readers of archive.npz."""
    return {
        **archive.describe(),
        **describe_domain(domain),
        "qd_score_offset": float(domain.objective_range[0]),
    }


def describe_domain(domain: Domain) -> dict[str, Any]:
    """What archives depend on, for readers of archive.npz and for a resumed run."""
    return {
        "ranges": [[float(low), float(high)] for low, high in domain.measures.values()],
        "measures": list(domain.measures),
        "objective_range": [float(value) for value in domain.objective_range],
        "solution_dim": int(domain.solution_dim),
    }


def all_versions(decisive: dict[str, str], engine: str) -> dict[str, str]:
    """Returns the versions for summary.json: the decisive ones, and others for information."""
    others = installed_versions(("gymnasium", "pandas", "dask", LIBRARIES.get(engine, "dask")))
    build = torch_build() if "torch" in decisive else {}
    python = platform.python_version()
    return {"qdsweep": __version__, **others, **decisive, **build, "python": python}
