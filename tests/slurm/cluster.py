"""The test cluster of Slurm: starts and stops it, and crashes nodes."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
STATE = Path("/var/lib/slurm-test")


def _do(script: str, *words: str, check: bool = True, **env: str) -> None:
    done = subprocess.run(
        [HERE / script, *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr


def is_foreign() -> bool:
    """Whether this machine has a Slurm that does not belong to the tests."""
    config = Path("/etc/slurm/slurm.conf")
    return config.exists() and "ClusterName=testcluster" not in config.read_text()


def up(nodes: int = 2) -> None:
    """Starts the missing processes; each node claims to have 8 cores and 6 GB."""
    _do("slurm-up.sh", NODES=str(nodes), CPUS="8", MEM="6000")


def down() -> None:
    _do("slurm-down.sh", check=False)


def kill_node(node: str) -> None:
    """Kills all processes of a node, as when it loses power."""
    _do("node-kill.sh", node)


def start_node(node: str) -> None:
    _do("node-up.sh", node)


def kill_slurmctld() -> None:
    subprocess.run(f"kill -9 $(cat {STATE}/run/slurmctld.pid)", shell=True, check=True)


def nodes_of(state: str) -> list[str]:
    """The nodes in a state of Slurm."""
    words = ["sinfo", "-h", "-N", "-p", "main", "-o", "%N %T"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines if state in line]


def is_dead(node: str) -> bool:
    """Whether a node has no slurmd."""
    pid = (STATE / f"run/slurmd.{node}.pid").read_text().strip()
    return not Path(f"/proc/{pid}").exists()
