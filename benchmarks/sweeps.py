"""The cost of a whole sweep, compared with GNU parallel and a bare Snakefile.

    python benchmarks/sweeps.py [second] [short] [dry] [job]      (default: all)

second: 1,000 runs that evaluate for 1 s of CPU time each, two at a time; GNU parallel runs the
        same command, forked from a warm process as ours are. That is Snakemake's own cost.
short:  200 runs of 50 iterations of MAP-Elites on LP sphere, which is less than their start-up;
        GNU parallel starts a bare pyribs script for each.
dry:    `snakemake -n` of 10,000 runs, compared with a Snakefile of 10,000 jobs with the same
        files.
job:    the two Snakemakes of a Slurm job read the workflow: CPU time in a sweep of 10,000 runs and
        in one of 10 runs.

It needs GNU parallel. Figures are seconds of whole processes, one after the other.
"""

import argparse
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from bare_loop import BARE
from figures import figure, measure
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args

from qdsweep.config.compose import compose
from qdsweep.records.paths import Results
from qdsweep.records.plan import write_plan
from qdsweep.sweep.runs import Sweep, table_of_runs
from qdsweep.warm.launcher import start_warm

BIN = Path(sys.executable).parent
REPO = Path(__file__).resolve().parents[1]
SPIN = """
import time
import numpy as np
from qdsweep.domains.base import Evaluation


class Spin:
    solution_dim = 10
    measures = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    objective_range = (0.0, 1.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        end = time.process_time() + 0.01 * len(solutions)
        while time.process_time() < end:
            pass
        return Evaluation(np.zeros(len(solutions)), solutions[:, :2].copy())
"""
SECOND = {
    "domain": {"type": "spin:Spin", "name": "spin"},
    "algorithm": "map_elites",
    "archive": {"dims": [20, 20]},
    "num_emitters": 1,
    "batch_size": 10,
    "initial_solutions": 0,
    "iterations": 10,
}
SHORT = {
    "domain": "lp_sphere",
    "algorithm": "map_elites",
    "archive": {"dims": [100, 100]},
    "num_emitters": 1,
    "batch_size": 540,
    "iterations": 50,
}
# The same files as ours: what Snakemake costs is mostly their number.
JOBS = """
rule all:
    input: expand("runs/{i}/{file}", i=range(RUNS), file=FILES)

rule run:
    output: expand("runs/{{i}}/{file}", file=FILES)
    log: "runs/{i}/run.log"
    shell: "touch {output}"
"""


def seconds(words: list[object], folder: Path) -> float:
    """Wall time of a command that succeeds."""
    start = time.perf_counter()
    with (folder / "log").open("wb") as log:
        # Without a Slurm that does not answer, as on a machine that has none.
        subprocess.run(
            [str(word) for word in words],
            cwd=folder,
            env={**os.environ, "SLURM_CONF": os.devnull},
            stdout=log,
            stderr=log,
            check=True,
        )
    return time.perf_counter() - start


def profile(folder: Path, *words: object) -> str:
    """Which of our functions Snakemake spends its time in, as cProfile sees it."""
    file = folder / "profile"
    start = ["-m", "cProfile", "-o", file, "-m", "snakemake", "-s", REPO / "Snakefile"]
    command = [sys.executable, *start, "--configfile", "sweep.yaml", "--cores", 2, *words]
    seconds(command, folder)
    # (file, line, function): calls, primitive calls, own seconds, seconds, callers.
    stats = pstats.Stats(str(file)).stats.items()
    whole = sum(own for _, (_, _, own, _, _) in stats)
    ours = {
        f"`{place[2]}`": spent
        for place, (_, _, _, spent, callers) in stats
        if place[0].startswith(f"{REPO / 'workflow'}/")
        and place[2] not in ("<module>", "execute_with")  # which calls Snakemake
        and any(caller[0].endswith(".smk") or "/snakemake/" in caller[0] for caller in callers)
    }
    most = sorted(ours.items(), key=lambda item: -item[1])[:8]
    parts = ", ".join(f"{name} {spent / whole:.1%}" for name, spent in most)
    return f"of {whole:.0f} s under cProfile, in functions of qdsweep: {parts}"


def make_sweep(folder: Path, experiment: dict, runs: int) -> Sweep:
    """Writes `sweep.yaml`."""
    folder.mkdir(exist_ok=True)
    seeds = "::: seed " + " ".join(map(str, range(1, runs + 1)))
    config = {"name": "bench", "experiment": experiment, "sweep": seeds}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(config))
    return table_of_runs(experiment, seeds)


def snakemake(folder: Path, *words: object) -> float:
    start = [BIN / "snakemake", "-s", REPO / "Snakefile", "--directory", folder]
    return seconds([*start, "--configfile", "sweep.yaml", "--cores", 2, *words], folder)


def second(folder: Path, runs: int) -> None:
    for name in ("ours", "theirs"):
        plugin = folder / name / "config/plugins/spin.py"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(SPIN)
        os.chdir(folder / name)  # plug-ins are looked for here, and start_warm's process works here
        sweep = make_sweep(folder / name, SECOND, runs)
    ours = snakemake(folder / "ours", "--until", "qd_run")
    again = snakemake(folder / "ours", "--until", "qd_run")
    write_plan(sweep.plan(name="bench"), sweep.runs, Results(Path("results")))
    os.environ["PYTHONPATH"] = str(REPO / "workflow")
    start = time.perf_counter()
    experiments = [compose(SECOND), compose(SECOND)]
    start_warm(experiments, experiments, "qdsweep.cli:main", Path("warm.log"))
    launch = f"{sys.executable} -m qdsweep --image= launch {{}} --budget iterations=10 --cores 1"
    seconds(["parallel", "-j2", launch, ":::", *sweep.runs], folder / "theirs")
    theirs = time.perf_counter() - start
    os.chdir(REPO)
    assert len(list(folder.glob("*/results/runs/*/summary.json"))) == 2 * runs
    figure(
        f"{runs:,} runs of 1 s, two at a time",
        "GNU parallel with the same command",
        ours / theirs,
        "<= 1.08",
        detail=f"{ours:.0f} s, {theirs:.0f} s",
        profile=f"Snakemake without jobs (the same command again) takes {again:.1f} s; "
        f"the rest, {1000 * (ours - again - theirs) / runs:.0f} ms per run, is how it starts jobs "
        "and checks their files",
    )


def short(folder: Path, runs: int) -> None:
    make_sweep(folder / "ours", SHORT, runs)
    ours = snakemake(folder / "ours", "--until", "qd_run")
    assert len(list(folder.glob("ours/results/runs/*/summary.json"))) == runs
    (folder / "theirs").mkdir()
    (folder / "theirs/bare.py").write_text(BARE)
    bare = f"OMP_NUM_THREADS=1 {sys.executable} bare.py map_elites 50 {{}}"
    theirs = seconds(["parallel", "-j2", bare, ":::", *range(1, runs + 1)], folder / "theirs")
    figure(
        f"{runs} MAP-Elites runs of 50 iterations",
        "GNU parallel with bare pyribs scripts",
        ours / theirs,
        "<= 0.5",
        detail=f"{ours:.0f} s, {theirs:.0f} s",
    )


def dry(folder: Path, runs: int, repeats: int = 3) -> None:
    make_sweep(folder / "ours", SHORT, runs)
    (folder / "theirs").mkdir()
    files = ("config.yaml", "metrics.csv", "archive.npz", "reload.pkl", "summary.json")
    jobs = f"RUNS, FILES = {runs}, {files}\n{JOBS}"
    (folder / "theirs/Snakefile").write_text(jobs)
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(snakemake(folder / "ours", "-n"))
        theirs.append(seconds([BIN / "snakemake", "-n", "--nolock"], folder / "theirs"))
    middle = statistics.median(ours), statistics.median(theirs)
    shares = profile(folder / "ours", "-n")
    figure(
        f"`snakemake -n` of {runs:,} runs",
        "a bare Snakefile of as many jobs and files",
        middle[0] / middle[1],
        "<= 1.2",
        detail=f"{middle[0]:.1f} s, {middle[1]:.1f} s",
        profile=shares,
    )


def job(folder: Path, runs: int, repeats: int = 5) -> None:
    spent: dict[int, list[float]] = {10: [], runs: []}
    for count in spent:
        sweep = make_sweep(folder / str(count), SHORT, count)
        results = Results(folder / str(count) / "results")
        write_plan(sweep.plan(name="bench"), sweep.runs, results)
    (target,) = encode_target_jobs_cli_args([TargetSpec("qd_run", {"run": next(iter(sweep.runs))})])
    start = [BIN / "snakemake", "-s", REPO / "Snakefile", "--configfile", "sweep.yaml", "-n"]
    words = ["--target-jobs", target, "--allowed-rules", "qd_run", "--mode", "remote", "--force"]
    words += ["--no-hooks", "--cores", "2"]
    for _ in range(repeats):
        for count, times in spent.items():
            times.append(measure(folder / str(count), *start, *words).cpu)
    few, many = (2 * statistics.median(times) for times in spent.values())
    figure(
        f"two parses of a Slurm job, sweep of {runs:,} runs, CPU time",
        "sweep of 10 runs, and 0.3 s",
        many / (few + 0.3),
        "<= 1",
        detail=f"{many:.2f} s, {few:.2f} s",
    )


PARTS = {
    "second": (second, 1000),
    "short": (short, 200),
    "dry": (dry, 10_000),
    "job": (job, 10_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of runs")
    arguments = parser.parse_args()
    for name, (part, runs) in PARTS.items():
        if name in arguments.parts:
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), max(2, round(arguments.scale * runs)))


if __name__ == "__main__":
    main()
