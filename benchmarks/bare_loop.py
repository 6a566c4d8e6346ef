"""The cost of a whole run compared with a bare pyribs script, with reload files and metrics.

    python benchmarks/bare_loop.py [--iterations 2000] [--repeats 3]

LP sphere, 100 parameters, 540 solutions per iteration, one core: `qdsweep run` (start-up, metrics,
reload files, log, results) against a script of twenty lines with the same emitters. Whole
processes, interleaved, medians of wall and CPU seconds. The floor is ask and tell only, timed
inside the script.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure

from qdsweep.host.machine import apply_baseline, settings

# By the number of iterations; one is the start-up.
WANTED = {
    "cma_me": {1: "<= 1.1", 10_000: "<= 1.03"},
    "map_elites": {1: "<= 1.1", 10_000: "<= 1.15"},
}
BARE = """
import sys
import time
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter, GaussianEmitter
from ribs.schedulers import Scheduler

SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1

def sphere(x):
    shift = 5.12 * 0.4
    worst = x.shape[1] * (-5.12 - shift) ** 2
    objective = (worst - np.sum((x - shift) ** 2, axis=1)) / worst * 100
    clipped = np.where(np.abs(x) > 5.12, 5.12 / x, x)
    half = x.shape[1] // 2
    measures = np.stack([clipped[:, :half].sum(axis=1), clipped[:, half:].sum(axis=1)], axis=1)
    return objective, measures

archive = GridArchive(solution_dim=100, dims=[100, 100], ranges=[(-256, 256)] * 2, seed=1)
if sys.argv[1] == "cma_me":
    emitters = [
        EvolutionStrategyEmitter(archive, x0=np.zeros(100), sigma0=0.5, ranker="2imp",
                                 selection_rule="mu", restart_rule="basic", batch_size=36,
                                 seed=SEED + i)
        for i in range(15)
    ]
else:
    emitters = [GaussianEmitter(archive, sigma=0.5, x0=np.zeros(100), batch_size=540, seed=SEED)]
scheduler = Scheduler(archive, emitters)
inside = 0.0
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    solutions = scheduler.ask()
    inside += time.perf_counter() - start
    results = sphere(solutions)
    start = time.perf_counter()
    scheduler.tell(*results)
    inside += time.perf_counter() - start
print(archive.stats.coverage)
print(inside)
"""


def run(words: list[str]) -> tuple[float, float, str]:
    """Wall and CPU seconds of a process, and what it printed."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(words, stdout=printed, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        assert status == 0, words
        printed.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, printed.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    apply_baseline("avx2")  # one BLAS thread and one kernel for both
    assert settings()
    for algorithm, wanted in WANTED.items():
        ours, bare = [], []
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "bare.py")
            script.write_text(BARE)
            for repeat in range(arguments.repeats):
                out = f"{folder}/{repeat}"
                words = [sys.executable, "-m", "qdsweep", "run", "lp_sphere", "--out", out]
                words += ["--set", f"algorithm={algorithm}"]
                words += ["--set", f"iterations={arguments.iterations}"]
                if algorithm == "map_elites":
                    words += ["--set", "num_emitters=1", "--set", "batch_size=540"]
                ours.append(run(words))
                bare.append(
                    run([sys.executable, str(script), algorithm, str(arguments.iterations)])
                )
            spent = json.loads(Path(out, "summary.json").read_text())["timings"]
        wall, cpu = (
            (statistics.median(s[i] for s in ours), statistics.median(s[i] for s in bare))
            for i in range(2)
        )
        inside = statistics.median(float(printed.split()[-1]) for _, _, printed in bare)
        count = f"{arguments.iterations:,} iteration{'s' * (arguments.iterations > 1)}"
        work = f"{algorithm} on LP sphere, {count}, whole process"
        figure(
            work,
            "a bare pyribs script",
            wall[0] / wall[1],
            wanted.get(arguments.iterations, ""),
            detail=f"wall {wall[0]:.1f} s against {wall[1]:.1f} s, CPU {cpu[0]:.1f} s against "
            f"{cpu[1]:.1f} s (ratio {cpu[0] / cpu[1]:.3f})",
            profile=", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items())
            + f"; ask and tell of the bare script {inside:.1f} s",
        )
        if arguments.iterations > 1:
            figure(
                work,
                "ask and tell only",
                wall[0] / inside,
                limit="1",
                detail=f"{wall[0]:.1f} s against {inside:.1f} s",
            )


if __name__ == "__main__":
    main()
