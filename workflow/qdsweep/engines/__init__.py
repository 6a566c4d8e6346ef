"""Engines: what evaluates a batch of solutions."""

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain
from qdsweep.engines.base import Engine


def make_engine(cluster: Cluster, experiment: Experiment, domain: Domain) -> Engine:
    """Makes the engine that a cluster config asks for."""
    scored = experiment.on_failure.objective if experiment.on_failure else None
    if cluster.engine_name == "processes":
        from qdsweep.engines.processes import Processes

        return Processes(experiment.domain, cluster.workers, scored)
    from qdsweep.engines.serial import Serial

    return Serial(domain, scored)
