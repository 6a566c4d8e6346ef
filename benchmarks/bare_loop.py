"""What a whole run costs beside a bare pyribs script, reload files and metrics included.

    python benchmarks/bare_loop.py [--iterations 2000] [--repeats 3]

LP sphere, 100 parameters, 540 solutions an iteration, one core: `qdsweep run` (start-up, metrics,
reload files, log, results) against a script of twenty lines with the same emitters. Whole
processes, interleaved, medians of wall and CPU seconds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from qdsweep.cpu import apply_baseline, settings

WANTED = {"cma_me": 1.05, "map_elites": 1.15}
BARE = """
import sys
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
                                 selection_rule="mu", restart_rule="basic", batch_size=36, seed=SEED + i)
        for i in range(15)
    ]
else:
    emitters = [GaussianEmitter(archive, sigma=0.5, x0=np.zeros(100), batch_size=540, seed=SEED)]
scheduler = Scheduler(archive, emitters)
for _ in range(int(sys.argv[2])):
    scheduler.tell(*sphere(scheduler.ask()))
print(archive.stats.coverage)
"""


def run(words: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


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
        wall, cpu = (
            (statistics.median(s[i] for s in ours), statistics.median(s[i] for s in bare))
            for i in range(2)
        )
        print(
            f"{algorithm}, {arguments.iterations} iterations: wall {wall[0]:.1f} s against "
            f"{wall[1]:.1f} s, CPU {cpu[0]:.1f} s against {cpu[1]:.1f} s: ratio "
            f"{wall[0] / wall[1]:.3f} (wall), {cpu[0] / cpu[1]:.3f} (CPU); wanted <= {wanted} at "
            "10,000 iterations"
        )


if __name__ == "__main__":
    main()
