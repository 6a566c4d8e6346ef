"""What a run asks of Snakemake: more memory only after it has run out of it."""

import json
from pathlib import Path

from qdsweep.config.cluster import Cluster

GROWTH = 1.5


def memory_mb(cluster: Cluster, run_dir: Path) -> int:
    """Memory of a run [MB]: of the cluster config, times 1.5 for each time it ran out of it.

    Args:
        cluster: The cluster config.
        run_dir: The run's folder, whose `state/last_stop.json` says how it stopped.
    """
    try:
        stops = json.loads((run_dir / "state" / "last_stop.json").read_bytes())["memory_stops"]
    except (OSError, ValueError, KeyError):
        stops = 0
    needed = cluster.mem_mb_main + cluster.workers * cluster.mem_mb_per_worker
    return round(needed * GROWTH ** min(stops, 4))
