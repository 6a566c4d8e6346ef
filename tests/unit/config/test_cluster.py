"""Facts that follow from the keys of a cluster."""

import pytest

from qdsweep.config.cluster import Cluster
from qdsweep.planning.slurm_jobs import slurm_request


@pytest.mark.parametrize(
    ("workers", "threads", "cores"), [(1, 1, 1), (4, 1, 4), (4, 16, 16), (1, 3, 3)]
)
def test_a_job_asks_for_the_cores_of_the_workers_or_of_the_learner(workers, threads, cores):
    cluster = Cluster(workers_per_node=workers, learner_workers=threads)
    assert slurm_request(cluster)["cpus_per_task"] == cores
    evaluations = cluster.on_one_node()
    assert slurm_request(evaluations)["cpus_per_task"] == workers, "they train nothing"


def test_the_cores_that_snakemake_gives_a_run_limit_both():
    cluster = Cluster(workers_per_node=4, learner_workers=16)
    for cores, workers, threads in ((16, 4, 16), (8, 4, 8), (2, 2, 2), (0, 1, 1)):
        within = cluster.within(cores)
        assert (within.workers_per_node, within.learner_workers) == (workers, threads)
