"""The cost of `qdsweep merge` of very many finished runs, again with nothing to do, and its list.

    python benchmarks/merge.py [--runs 10000]

The runs are made as in large_sweep.py, on one file system with the results that they are merged
into, which makes large files hard links. Ratios are of CPU seconds. The peer reads the files whose
checksums or digest a merge compares.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from figures import figure, measure
from large_sweep import BIN, READ
from many_runs import SIGMAS, finish_runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    seeds = parser.parse_args().runs // SIGMAS
    with tempfile.TemporaryDirectory() as name:
        theirs, ours = Path(name, "theirs"), Path(name, "ours")
        ours.mkdir()
        runs = len(finish_runs(theirs, seeds))
        read = measure(theirs, sys.executable, "-S", "-c", READ)
        merge = (BIN / "qdsweep", "merge")
        first = measure(ours, *merge, theirs)
        again = measure(ours, *merge, theirs)
        listed = measure(ours, *merge, "--list", theirs)
        assert len([*ours.glob("results/runs/*/state/summary.json")]) == runs
    for work, cost in (
        ("`qdsweep merge` of {}", first),
        ("the same command again, {}", again),
        ("`qdsweep merge --list`, {}", listed),
    ):
        detail = f"{cost.cpu:.1f} s of CPU time, {cost.wall:.1f} s, {cost.memory:.2f} GiB; "
        detail += f"{read.cpu:.1f} s"
        work = work.format(f"{runs:,} finished runs")
        figure(work, "reading of their files", cost.cpu / read.cpu, detail=detail)


if __name__ == "__main__":
    main()
