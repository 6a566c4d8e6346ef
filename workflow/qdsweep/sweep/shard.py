"""A shard: the part of a sweep's runs that one start computes, as with `shard=3/8`."""

import zlib
from dataclasses import replace

from qdsweep.sweep.runs import Sweep


def cut_shard(sweep: Sweep, number: int, count: int) -> Sweep:
    """Returns the sweep with the runs of one shard, which only their ids decide.

    A run is in the same shard on every machine, and in a larger sweep.

    Args:
        sweep: The whole sweep.
        number: The number of the shard, from 1.
        count: The number of shards.
    """
    runs = {
        run: experiment
        for run, experiment in sweep.runs.items()
        if zlib.crc32(run.encode()) % count == number - 1
    }
    return replace(sweep, rows=tuple(row for row in sweep.rows if row.id in runs), runs=runs)
