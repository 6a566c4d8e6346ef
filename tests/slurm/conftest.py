"""A real Slurm cluster of two nodes on this machine, for the tests of this folder."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def slurm():
    """Brings the cluster up. It needs root, so that elsewhere the tests say why they do not run."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("a test cluster of Slurm needs root (munge, slurmctld, slurmd)")
    env = {**os.environ, "NODES": "2", "CPUS": "8", "MEM": "6000"}
    done = subprocess.run(
        [HERE / "slurm-up.sh"], env=env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    yield
    subprocess.run([HERE / "slurm-down.sh"], check=False, timeout=120, capture_output=True)


@pytest.fixture(autouse=True)
def quiet_cluster(slurm):
    """Every test finds both nodes up and leaves no job behind."""
    yield
    for node in ("n1", "n2"):
        state = subprocess.run(
            ["sinfo", "-h", "-n", node, "-o", "%t"], capture_output=True, text=True, check=False
        ).stdout
        pid = Path(f"/var/lib/slurm-test/run/slurmd.{node}.pid")
        alive = pid.exists() and Path(f"/proc/{pid.read_text().strip()}").exists()
        if "down" in state or not alive:
            subprocess.run([HERE / "node-up.sh", node], check=False, timeout=60)
    subprocess.run("scancel $(squeue -h -o %A)", shell=True, check=False, capture_output=True)
