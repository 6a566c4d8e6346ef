"""Engines: what evaluates a batch of solutions."""

from qdsweep.config.cluster import Cluster
from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.domains.base import Domain
from qdsweep.engines.base import Engine


def make_engine(cluster: Cluster, config: DomainConfig, domain: Domain) -> Engine:
    """Makes the engine that a cluster config asks for."""
    if cluster.engine == "processes" or (cluster.engine == "auto" and cluster.workers > 1):
        from qdsweep.engines.processes import Processes

        return Processes(config, cluster.workers)
    from qdsweep.engines.serial import Serial

    return Serial(domain)
