"""All tests of this folder run on a real Slurm cluster of two nodes on this machine."""

import contextlib
import os
import subprocess

import cluster
import psutil
import pytest


@pytest.fixture(autouse=True)
def quiet_cluster(slurm, tmp_path):
    """Starts every test with both nodes up, and ends its processes and jobs."""
    yield
    for process in psutil.process_iter(["cwd"]):
        folder = process.info["cwd"]
        if folder is not None and folder.startswith(str(tmp_path)) and process.pid != os.getpid():
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end on its own
                process.kill()
    subprocess.run("scancel $(squeue -h -o %A)", shell=True, check=False, capture_output=True)
    for node in ("n1", "n2"):
        if cluster.is_dead(node) or node in cluster.nodes_of("down"):
            cluster.start_node(node)
