"""Engines: what evaluates a batch of solutions."""

from pathlib import Path
from typing import TYPE_CHECKING

# No numpy here: a worker makes its settings before it imports numpy.
if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.experiment import Experiment
    from qdsweep.domains.base import Domain
    from qdsweep.engines.base import Engine
    from qdsweep.engines.crew import Crew


def make_engine(
    cluster: "Cluster",
    experiment: "Experiment",
    domain: "Domain",
    run: Path,
    crew: "Crew | None",
    versions: dict[str, str],
) -> "Engine":
    """Makes the engine that a cluster config asks for.

    Args:
        cluster: The cluster config.
        experiment: The experiment.
        domain: Its domain, for an engine in this process.
        run: The run's folder.
        crew: The process that starts the workers of the dask engine.
        versions: Library -> version, equal in all workers.
    """
    scored = experiment.on_failure.objective if experiment.on_failure else None
    if crew is not None:
        from qdsweep.engines.dask import Dask

        return Dask(experiment.domain, cluster, run, crew, versions, scored, experiment.timeout)
    if cluster.engine_name == "processes":
        from qdsweep.engines.processes import Processes

        return Processes(experiment.domain, cluster.workers, scored)
    from qdsweep.engines.serial import Serial

    return Serial(domain, scored)
