"""Many short runs: a Slurm job each, or one Slurm job for all (profiles/pilot/job.sh).

Needs a Slurm cluster (tests/slurm/slurm-up.sh makes one of this machine). Prints core-seconds and
seconds per run, of all that is not the run itself, and their ratio.

    python benchmarks/short_runs.py [--runs 6]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
REPO = Path(__file__).resolve().parents[1]
SWEEP = """\
name: short
experiment:
  domain: {{preset: lp_sphere, solution_dim: 10}}
  algorithm: map_elites
  archive: {{dims: [12, 12]}}
  num_emitters: 2
  batch_size: 8
  iterations: 12
sweep: "::: seed {seeds}"
"""


def core_seconds(since: str) -> float:
    """CPU time of the Slurm jobs since then."""
    words = ["sacct", "-n", "-P", "-S", since, "-o", "JobID,TotalCPU"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    rows = [line.split("|") for line in lines]
    return sum(seconds(total) for job, total in rows if "." not in job)  # a job's has its steps'


def seconds(text: str) -> float:
    *rest, last = text.replace("-", ":").split(":")
    total = float(last)
    for unit, part in zip((60, 3600, 86400), reversed(rest), strict=False):
        total += unit * float(part)
    return total


def clone(folder: Path, runs: int) -> Path:
    names = subprocess.run(
        ["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, folder / name)
    (folder / ".venv").symlink_to(BIN.parent)
    seeds = " ".join(map(str, range(1, runs + 1)))
    (folder / "config/config.yaml").write_text(SWEEP.format(seeds=seeds))
    (folder / "config/clusters/slurm.yaml").write_text("workers_per_node: 1\n")
    return folder


def measure(folder: Path, words: list[str]) -> tuple[float, float]:
    """Seconds and core-seconds of all jobs."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    time.sleep(1)
    start = time.perf_counter()
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)
    took = time.perf_counter() - start
    time.sleep(5)  # until the accounting has it
    return took, core_seconds(since)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=6)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        jobs = clone(Path(name) / "jobs", runs)
        pilot = clone(Path(name) / "pilot", runs)
        until = ["--until", "qd_run"]
        each = ["snakemake", "--executor", "slurm", "--jobs", "2", *until]
        each += ["--slurm-init-seconds-before-status-checks", "2"]
        job = ["sbatch", "--wait", "--cpus-per-task", "2", "--mem", "4G", "--time", "30"]
        job += ["profiles/pilot/job.sh", *until]
        for title, folder, words in (("a job per run", jobs, each), ("one job", pilot, job)):
            took, cores = measure(folder, words)
            summaries = list(folder.glob("results/runs/*/summary.json"))
            assert len(summaries) == runs
            inside = sum(sum(json.loads(s.read_text())["timings"].values()) for s in summaries)
            print(
                f"{title:12} {took / runs:6.1f} s and {cores / runs:6.1f} core-seconds per run, "
                f"of which the QD loop {inside / runs:.2f}"
            )


if __name__ == "__main__":
    main()
