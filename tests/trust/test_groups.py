"""Two users of one group share a folder (setgid, umask 002), each with real processes."""

import grp
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from refusals import names_all
from results import read_json
from support import BIN, POLE, shared_folder, write_yaml

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0 and not os.environ.get("CI"), reason="only root can act as other users"
    ),
    pytest.mark.timeout(600),
]
GROUP = "users"
FIRST, SECOND = "daemon", "games"  # in every Debian, without files of their own here
RUN = {
    "domain": {**POLE["domain"], "max_episode_steps": 20},
    "algorithm": "cvt_map_elites",
    "archive": {"cells": 10},
    "num_emitters": 1,
    "batch_size": 5,
}
# Python may be below a folder that only root can enter, such as /root: the user gets a root folder
# of its own there, with Python in it.
OPENED = """
set -e
mkdir -p "$1/python"; mount --bind "$2" "$1/python"
mount -t tmpfs -o mode=755 none "$3"; mkdir -p "$2"; mount --bind "$1/python" "$2"
shift 3
"""


class Group:
    """A folder of a group, and its users.

    Args:
        folder: The folder, which all users can enter.
        umask: The umask of all users.
    """

    def __init__(self, folder: Path, umask: int) -> None:
        self.folder, self.umask = folder / "study", umask
        self.homes = folder / "homes"
        for user in (FIRST, SECOND):
            home = self.homes / user
            home.mkdir(parents=True)
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)
        self.folder.mkdir()
        os.chown(self.folder, -1, grp.getgrnam(GROUP).gr_gid)
        self.folder.chmod(0o2775)

    def write(self, iterations: int, seeds: str) -> None:
        keys = {"experiment": {**RUN, "iterations": iterations}, "sweep": f"::: seed {seeds}"}
        sweep = {"name": "mine", "reevaluate": {"times": 2}, **keys}
        write_yaml(self.folder / "sweep.yaml", sweep)

    def run(self, user: str, *words: object, code: int = 0) -> str:
        """Runs a command of qdsweep in the folder, and returns its output."""
        base, closed = Path(sys.base_prefix), None
        for place in (base, *base.parents):
            closed = closed if place.stat().st_mode & stat.S_IXOTH else place
        opened = ["sh", "-c", f'{OPENED} exec "$@"', "-", self.homes, base, closed]
        environment = {"HOME": self.homes / user, "PATH": f"{BIN}:/usr/bin:/bin"}
        environment |= {"SLURM_CONF": os.devnull, "MPLBACKEND": "agg"}
        done = subprocess.run(
            [
                *(["unshare", "--mount", *opened] if closed else []),
                *("setpriv", "--reuid", user, "--regid", GROUP, "--clear-groups"),
                *("env", "-i", *(f"{name}={value}" for name, value in environment.items())),
                *("sh", "-c", f"umask {self.umask:03o}; exec {shlex.join(map(str, words))}"),
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture
def group(request) -> Iterator[Group]:
    folder = Path(tempfile.mkdtemp(prefix="group-", dir=shared_folder()))
    folder.chmod(0o755)
    yield Group(folder, getattr(request, "param", 0o002))
    shutil.rmtree(folder)


def modes(folder: Path) -> dict[Path, int]:
    """Returns the mode of each file and folder, but for links."""
    paths = (path for path in folder.rglob("*") if not path.is_symlink())
    return {path.relative_to(folder): stat.S_IMODE(path.stat().st_mode) for path in paths}


def less_writable(results: Path) -> set[Path]:
    """Returns what the group cannot write as the umask 002 would let it."""
    return {path for path, mode in modes(results).items() if not mode & stat.S_IWGRP}


SWEEP = ("qdsweep", "sweep", "sweep.yaml", "--cores", 2)
TABLES = (*SWEEP, "results/sweeps/mine/table.csv")


def test_two_users_of_a_group_share_a_sweep(group):
    """One computes; the other one reports, raises the budget and adds a seed."""
    results = group.folder / "results"
    group.write(3, "1 2")
    group.run(FIRST, *SWEEP)
    assert {path.suffix for path in less_writable(results)} == {".pkl"}
    assert {path.owner() for path in results.rglob("*")} == {FIRST}
    (results / "sweeps/mine/table.csv").unlink()
    group.run(SECOND, *TABLES)
    assert (results / "sweeps/mine/table.csv").owner() == SECOND

    group.write(5, "1 2 3")
    runs = sorted(results.glob("runs/*"))
    before = {run: read_json(run / "summary.json") for run in runs}
    text = group.run(SECOND, *TABLES, code=1)
    reloads = [path for run in runs for path in run.glob("state/reload-*.pkl")]
    names_all(text, FIRST, "qdsweep adopt results/runs/")
    assert any(str(path.relative_to(group.folder)) in text for path in reloads)
    assert "Traceback" not in text and "ProtectedOutput" not in text
    assert before == {run: read_json(run / "summary.json") for run in results.glob("runs/*")}
    group.run(SECOND, "qdsweep", "adopt", *(run.relative_to(group.folder) for run in runs))
    group.run(SECOND, *TABLES)
    for run in runs:
        attempts = read_json(run / "summary.json")["attempts"]
        assert [attempt["from"] for attempt in attempts] == [0, 3]
    assert len(list(results.glob("runs/*"))) == 3
    assert {path.suffix for path in less_writable(results)} == {".pkl"}
    group.write(6, "1 2 3")
    names_all(group.run(FIRST, *TABLES, code=1), SECOND, "qdsweep adopt")


@pytest.mark.parametrize("group", [0o022, 0o027], indirect=True)
def test_what_the_group_may_not_write_is_named_with_its_owner(group):
    group.write(3, "1")
    group.run(FIRST, *SWEEP, "--until", "qd_run")
    for words in (TABLES, ("qdsweep", "aggregate", "mine")):
        text = group.run(SECOND, *words, code=1)
        names_all(text, "results/", FIRST, "chmod")
        assert "Traceback" not in text
