"""What tests share: a tiny experiment, programs that are started, the same in this process."""

import contextlib
import fcntl
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent

# A run of seconds, with every kind of emitter's state: CMA-ES, restarts, a result archive.
TINY = {
    "domain": {"preset": "lp_sphere", "solution_dim": 10},
    "algorithm": "cma_mae",
    "archive": {"dims": [12, 12]},
    "num_emitters": 2,
    "batch_size": 8,
    "iterations": 12,
    "seed": 5,
}


# A task that learns the statistics of its observations.
POLE = {
    "domain": {
        "type": "gymnasium",
        "name": "pole",
        "env": "CartPole-v1",
        "normalize_observations": True,
        "objective_range": [0, 500],
        "evaluation_seed": "solution",
        "measures": [
            {"measure": "max_observation", "component": 0, "range": [-2, 2]},
            {"measure": "mean_abs_action", "component": 0, "range": [0, 1]},
        ],
    },
    "algorithm": "map_elites_line",
    "initial_solutions": 20,
    "archive": {"dims": [10, 10]},
    "num_emitters": 1,
    "batch_size": 20,
    "iterations": 4,
}


def shared_folder() -> Path:
    """Of all processes of this start of pytest; it vanishes with them (tests/conftest.py)."""
    return Path(os.environ["QDSWEEP_TESTS"])


@contextlib.contextmanager
def alone(with_what: str) -> Iterator[None]:
    """Lets one process of pytest at a time make what several of them need."""
    with (shared_folder() / f"{with_what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def command(*words: object, cwd: Path | None = None, check: int | None = 0, **env: str):
    """Runs a program of the venv and returns what it printed and its exit code."""
    program, *arguments = map(str, words)
    return run([str(BIN / program), *arguments], cwd=cwd, env={**os.environ, **env}, check=check)


def run(words: list[str], *, cwd: Path | None, env: dict[str, str], check: int | None):
    """Runs a program to its end, which must have the exit code `check` if that is given."""
    done = subprocess.run(words, cwd=cwd, env=env, text=True, capture_output=True, timeout=500)
    if check is not None:
        assert done.returncode == check, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def copy_project(folder: Path) -> Path:
    """A fresh clone, of what is committed and what is not yet, with this venv."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, folder / name)
    (folder / ".venv").symlink_to(BIN.parent)
    return folder


def locked() -> dict[str, str]:
    """The libraries of the lock file that are for this Python, and their versions."""
    lines = (REPO / "envs/requirements.lock").read_text().replace(" \\\n", " ").splitlines()
    requirements = [Requirement(line.split(" --hash")[0]) for line in lines]
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    }


def snakemake(*words: object, cwd: Path, check: int | None = 0, **env: str):
    """Runs the project's Snakefile in a folder elsewhere."""
    whole = ("snakemake", "-s", REPO / "Snakefile", "--directory", cwd, *words)
    return command(*whole, cwd=cwd, check=check, **env)


def write_yaml(path: Path, data: object) -> Path:
    path.write_text(yaml.safe_dump(data))
    return path


def qdsweep(*words: object, cwd: Path, code: int = 0) -> str:
    """Runs a command of `qdsweep` in this process, which has imported and compiled everything.

    `command` is for tests of the process: what it imports, how a signal ends it.

    Args:
        words: The command.
        cwd: The folder that it is typed in.
        code: The exit code that it must have.

    Returns:
        What it printed.
    """
    from qdsweep.cli import main
    from qdsweep.config.files import read_preset

    read_preset.cache_clear()  # a file may have been written anew since the last command
    root, said = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    alarm, _ = signal.getitimer(signal.ITIMER_REAL)  # of pytest-timeout; a run sets its own
    try:
        with (
            mock.patch("qdsweep.cli._leave_threads"),  # it may end the process: this one
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            found = main([str(word) for word in words])
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        signal.setitimer(signal.ITIMER_REAL, alarm)
    assert found == code, f"{words}: {found}\n{said.getvalue()}"
    return said.getvalue()


def checked_sweep(*files: Path):
    """The sweep of its files, after all checks of a start of Snakemake."""
    from qdsweep.planning.checks import check_sweep
    from qdsweep.planning.settings import key_sources, read_sweep
    from qdsweep.sweep.runs import table_of_runs

    settings = read_sweep({}, (), files)
    made = table_of_runs(settings.experiment, settings.sweep)
    check_sweep(settings, made, key_sources((), files))
    return made


def compute_run(experiment: object, out: Path, **changes: object) -> Path:
    """Computes a run in this process, which has imported and compiled everything after the first.

    Args:
        experiment: A file, or keys.
        out: The run's folder, which is returned.
        changes: Keys that win.
    """
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.compose import compose
    from qdsweep.experiment.run import compute
    from qdsweep.experiment.stop import Stop
    from qdsweep.records.run_dir import RunDir

    (out / "state").mkdir(parents=True, exist_ok=True)
    source = str(experiment) if isinstance(experiment, Path) else experiment
    compute(compose(source, changes), out, Cluster(), Stop())
    RunDir(out).publish()
    return out


def compute_sweep(results: Path, experiment, sweep: str, name: str = "tiny", **reporting) -> Path:
    """Computes a sweep in this process, without Snakemake, to its tables; returns its folder."""
    from qdsweep.analysis.tables.aggregate import aggregate
    from qdsweep.config.cluster import Cluster
    from qdsweep.experiment.run import compute
    from qdsweep.experiment.stop import Stop
    from qdsweep.records.plan import write_plan
    from qdsweep.records.sweep_dir import Results
    from qdsweep.sweep.runs import table_of_runs

    made = table_of_runs(experiment, sweep)
    plan = made.plan(name=name, experiment="tiny", sweep=sweep, **reporting)
    write_plan(plan, made.runs, Results(results))
    for run_id, resolved in made.runs.items():
        compute(resolved, results / "runs" / run_id, Cluster(), Stop())
        Results(results).run(run_id).publish()
    aggregate(results / "sweeps" / name, results / "runs")
    return results / "sweeps" / name


def report_sweep(sweep: Path) -> Path:
    """Makes figures, animations and the page of a sweep that has its tables; returns its folder."""
    from qdsweep.analysis.figures.evolution import evolution
    from qdsweep.analysis.figures.plots import plot
    from qdsweep.analysis.page.report import report

    for stage in (plot, evolution, report):
        stage(sweep, sweep.parents[1] / "runs")
    return sweep
