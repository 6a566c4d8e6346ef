"""The cost of a sweep of very many finished runs: its status, next start, extension and tables.

    python benchmarks/large_sweep.py [--runs 100000]

One run is computed, and its files are written under the ids of the others, as in
tests/trust/test_many_runs.py. Figures are CPU seconds of whole processes, one after the other. The
first tables use two cores, so theirs are wall seconds. The second start is measured, since the
first one reads all runs. The targets are those of 100,000 runs, in proportion. Each peer reads
the same files, or is Snakemake without qdsweep.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from figures import Cost, figure, measure

REPO = Path(__file__).resolve().parents[1]
sys.path.append(str(REPO / "tests/helpers"))

from many_runs import SIGMAS, finish_runs, write_sweep  # noqa: E402

from qdsweep.records.paths import SweepDir  # noqa: E402

BIN = Path(sys.executable).parent
STAT = """
import os
for name in os.listdir("results/runs"):
    for file in ("", "/summary.json", "/state/status.json"):
        os.stat(f"results/runs/{name}{file}")
"""
READ = """
import os
for name in os.listdir("results/runs"):
    for file in ("summary.json", "metrics.csv", "archive.npz", "config.yaml"):
        with open(f"results/runs/{name}/{file}", "rb") as opened:
            opened.read()
"""
BARE = """
rule all:
    input: "tables"

rule tables:
    input: expand("results/runs/{run}/summary.json", run=open("runs").read().split())
    output: "tables"
    shell: "touch {output}"
"""


def snakemake(folder: Path, *words: object) -> Cost:
    start = (BIN / "snakemake", "-s", REPO / "Snakefile", "--configfile", "sweep.yaml")
    return measure(folder, *start, "--cores", 2, *words)


def report(work: str, peer: str, seconds: float, floor: float, wanted: float, cost: Cost) -> None:
    """Prints the ratio to the peer, and the ratio to the target in seconds."""
    detail = f"{cost.cpu:.1f} s of CPU time, {cost.wall:.1f} s, {cost.memory:.2f} GiB"
    figure(work, peer, seconds / floor, detail=f"{detail}; {floor:.1f} s")
    share = f"{peer}: {floor:.1f} s; the rest reads the plan and the index, and prints"
    figure(work, f"{wanted:g} s", seconds / wanted, "<= 1", detail=detail, profile=share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    seeds = parser.parse_args().runs // SIGMAS
    runs = seeds * SIGMAS
    share = runs / 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = finish_runs(folder, seeds)
        (folder / "runs").write_text("\n".join(ids))
        (folder / "Snakefile").write_text(BARE)
        (folder / "tables").touch()
        stat = measure(folder, sys.executable, "-S", "-c", STAT)
        read = measure(folder, sys.executable, "-S", "-c", READ)
        bare = measure(folder, BIN / "snakemake", "-n", "--nolock")
        status = [measure(folder, BIN / "qdsweep", "status", "many") for _ in "ab"][-1]
        again = [snakemake(folder) for _ in "ab"][-1]
        write_sweep(folder, seeds + 1)
        longer = snakemake(folder, "-n", "--quiet", "all")
        SweepDir(folder / "results/sweeps/many").cache.unlink(missing_ok=True)
        tables = measure(folder, BIN / "qdsweep", "aggregate", "many", "--cores", 2)
    done = f"{runs:,} finished runs"
    bare_peer = "a bare Snakefile with these inputs"
    for work, peer, cost, floor, wanted in (
        (f"`qdsweep status` of {done}", "three `stat` of each run", status, stat, 3),
        (f"the same command again, {done}", bare_peer, again, bare, 30),
        (f"`snakemake -n` with one more seed, {done}", bare_peer, longer, bare, 35),
    ):
        report(work, peer, cost.cpu, floor.cpu, wanted * share, cost)
    work = f"first tables of {done}, two cores"
    report(work, "reading of their files", tables.wall, read.wall, 300 * share, tables)


if __name__ == "__main__":
    main()
