"""Helpers for all tests: a tiny experiment, and starts of programs."""

import contextlib
import fcntl
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

# A run of some seconds with all kinds of state: CMA-ES, restarts, a result archive.
TINY = {
    "domain": {"preset": "lp_sphere", "solution_dim": 10},
    "algorithm": "cma_mae",
    "archive": {"dims": [12, 12]},
    "num_emitters": 2,
    "batch_size": 8,
    "iterations": 12,
    "seed": 5,
}


# A task with observation normalisation.
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
    """Returns the folder of all processes of this pytest command (tests/conftest.py)."""
    return Path(os.environ["QDSWEEP_TESTS"])


@contextlib.contextmanager
def alone(with_what: str) -> Iterator[None]:
    """Lets only one process of pytest at a time make a file that several of them need."""
    with (shared_folder() / f"{with_what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def command(*words: object, cwd: Path | None = None, check: int | None = 0, **env: str):
    """Runs a program of the venv, and returns its output and exit code."""
    program, *arguments = map(str, words)
    return run([str(BIN / program), *arguments], cwd=cwd, env={**os.environ, **env}, check=check)


def run(words: list[str], *, cwd: Path | None, env: dict[str, str], check: int | None):
    """Runs a program to its end, and checks its exit code if `check` is given."""
    done = subprocess.run(words, cwd=cwd, env=env, text=True, capture_output=True, timeout=500)
    if check is not None:
        assert done.returncode == check, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def copy_project(folder: Path) -> Path:
    """Returns a fresh clone with this venv, including uncommitted changes."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, folder / name)
    (folder / ".venv").symlink_to(BIN.parent)
    return folder


def requirements_of(file: str) -> list[Requirement]:
    """Returns the lines of a lock file, without their hashes."""
    lines = (REPO / "envs" / file).read_text().replace(" \\\n", " ").splitlines()
    return [Requirement(line.split(" --hash")[0]) for line in lines]


def locked(file: str = "requirements.lock") -> dict[str, str]:
    """Returns library -> version of a lock file for this Python."""
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in requirements_of(file)
        if requirement.marker is None or requirement.marker.evaluate()
    }


def snakemake(*words: object, cwd: Path, check: int | None = 0, **env: str):
    """Runs the project's Snakefile in another folder."""
    whole = ("snakemake", "-s", REPO / "Snakefile", "--directory", cwd, *words)
    return command(*whole, cwd=cwd, check=check, **env)


def cpu_seconds() -> float:
    """Returns the CPU time of the child processes that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_yaml(path: Path, data: object) -> Path:
    path.write_text(yaml.safe_dump(data))
    return path
