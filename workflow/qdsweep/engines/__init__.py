"""Engines evaluate batches of solutions."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

# No import of numpy here: a worker first applies its CPU settings.
if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.experiment import Experiment
    from qdsweep.domains.base import Domain
    from qdsweep.engines.allocation import Helpers
    from qdsweep.engines.batch import Engine

# Engine -> the function that makes its executor. Its module is only imported for its engine,
# because most of them need a library that other engines do not need.
EXECUTORS = {
    "processes": "qdsweep.engines.executors.processes:start_processes",
    "dask": "qdsweep.engines.executors.dask:connect_dask",
    "ray": "qdsweep.engines.executors.ray:connect_ray",
    "mpi": "qdsweep.engines.executors.mpi:connect_ranks",
}


def make_engine(
    cluster: "Cluster",
    experiment: "Experiment",
    domain: "Domain",
    run: Path | None,
    helpers: "Helpers | None",
    versions: dict[str, str],
) -> "Engine":
    """Makes the engine of a cluster config.

    Args:
        cluster: The cluster config.
        experiment: The experiment.
        domain: Its domain, for an engine in this process.
        run: The run's folder, for the workers' logs; None to leave their output as it is.
        helpers: The process that starts the workers, for engines with `Cluster.has_helpers`.
        versions: Library -> version, which all workers must have.
    """
    scored = experiment.on_failure.objective if experiment.on_failure else None
    if cluster.engine_name == "serial":
        from qdsweep.engines.pool import Serial

        return Serial(domain, scored, experiment.timeout)
    from qdsweep.engines.pool import Pool
    from qdsweep.engines.worker import Order
    from qdsweep.host.machine import settings
    from qdsweep.records.paths import RunDir
    from qdsweep.versions import __version__

    state = None if run is None else RunDir(run).state
    if state is not None:
        state.workers.mkdir(parents=True, exist_ok=True)
    order = Order(
        experiment.domain,
        scored,
        __version__,
        versions,
        settings(),
        str(Path.cwd()),
        None if state is None else str(state.workers),
        experiment.algorithm.needs_gpu,
    )
    module, _, name = EXECUTORS[cluster.engine_name].partition(":")
    connect = getattr(importlib.import_module(module), name)
    return Pool(connect(order, cluster, state, helpers), experiment.timeout)
