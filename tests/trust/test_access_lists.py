"""POSIX access lists (setfacl): who could write a reload file, tried by that user."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import compute_run
from refusals import names_all
from results import digest, summary
from stranger import NOBODY, as_nobody
from support import shared_folder
from test_strangers import RUN, forge, go_on, newest

from qdsweep.cli import main
from qdsweep.files import atomic
from qdsweep.host.permissions import is_kept_alone

GROUP = 54320  # of no one else: only the stranger of this test is in it
ENTRIES = ("u:{0}:rw", "u:{0}:r", "g:{1}:rw", "g:{1}:r", "u:{2}:rw", "g::rw", "o::rw", "m::r")


@pytest.fixture
def folder(monkeypatch) -> Iterator[Path]:
    """A folder that all users can enter, on a file system with access lists."""
    if shutil.which("setfacl") is None:
        pytest.skip("access lists are set by setfacl: apt-get install acl")
    made = Path(tempfile.mkdtemp(prefix="lists-", dir=shared_folder()))
    try:
        if subprocess.run(["setfacl", "-m", "u:0:r", made], capture_output=True).returncode:
            pytest.skip(f"the file system of {made} has no access lists")
        subprocess.run(["setfacl", "-b", made], check=True)
        made.chmod(0o755)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(made / "home"))
        yield made
    finally:
        shutil.rmtree(made)


def allow(path: Path, *entries: str, default: bool = False) -> None:
    names = [entry.format(NOBODY, GROUP, os.geteuid()) for entry in entries]
    words = ["setfacl", *(["-d"] if default else []), "-m", ",".join(names), path]
    subprocess.run(words, check=True)


def kept_alone(path: Path) -> bool:
    with path.open("rb") as file:
        return is_kept_alone(file.fileno(), path.parent)


# The user that entries name, in the group that they name or not, and any other user.
STRANGERS = list(itertools.product((NOBODY, NOBODY - 1), ((), (GROUP,))))


def any_may(act: int, path: Path) -> bool:
    """Whether one of the strangers can read or write (os.R_OK, os.W_OK) a file or a folder."""
    may = (as_nobody(lambda: os.access(path, act), groups, user) for user, groups in STRANGERS)
    return any(answer is True for answer in may)


as_root = pytest.mark.skipif(
    os.geteuid() != 0 and not os.environ.get("CI"), reason="only root can act as another user"
)


@as_root
@pytest.mark.parametrize("first", ENTRIES)
@pytest.mark.parametrize("second", ENTRIES)
def test_a_file_is_kept_alone_unless_another_user_can_write_it(folder, first, second):
    file = folder / "file"
    file.touch(0o600)
    for path in (file, folder):
        os.chown(path, -1, GROUP)  # the group of g::
        allow(path, *dict.fromkeys((first, second)))
        assert kept_alone(file) is not any_may(os.W_OK, path)
        subprocess.run(["setfacl", "-b", path], check=True)
        path.chmod(0o700)


def test_entries_of_others_count_without_root(folder):
    """The same lists on a user's machine, where no other user can try them."""
    file = folder / "file"
    file.touch(0o600)
    assert kept_alone(file)
    for entries, is_alone in {
        ("u:{0}:r",): True,
        ("u:{2}:rw",): True,
        ("u:{0}:rw", "m::r"): True,
        ("u:{0}:rw",): False,
        ("g:{1}:rw",): False,
        ("u:{0}:r", "g:{1}:rw"): False,
    }.items():
        subprocess.run(["setfacl", "-b", file], check=True)
        allow(file, *entries)
        assert kept_alone(file) is is_alone, entries


@pytest.fixture
def half_done(folder) -> Path:
    return compute_run({**RUN, "iterations": 2}, folder / "out")


@as_root
@pytest.mark.parametrize("entry", ["u:{0}:rw", "g:{1}:rw"])
def test_bytes_that_another_user_wrote_by_a_list_are_not_unpickled(
    half_done, capsys, monkeypatch, entry
):
    """Written in place, so that the owner stays; without a digest, as of an earlier release."""
    file = newest(half_done)
    allow(file, entry)
    forged = half_done / "forged"
    shutil.copy(file, forged)
    forge(forged)
    content = forged.read_bytes()
    assert as_nobody(lambda: file.write_bytes(content) > 0, [GROUP])
    loaded = []
    monkeypatch.setattr("qdsweep.experiment.reload.load_state", lambda *_, **__: loaded.append(1))
    assert go_on(half_done) == 2
    names_all(capsys.readouterr().err, file, "qdsweep adopt")
    assert loaded == [] and not Path("hurt").exists()


@as_root
@pytest.mark.parametrize("entry", ["u:{0}:rwx", "g:{1}:rwx"])
def test_in_a_folder_with_a_default_list_own_files_are_written_by_no_one_else(folder, entry):
    """A group's folder: others may read them, and `qdsweep adopt` a copy, as the list permits."""
    shared = folder / "shared"
    shared.mkdir()
    allow(shared, entry)
    allow(shared, entry, default=True)
    with atomic(shared / "reload-1.pkl", mode=0o644) as file:
        half = Path(file.name)
        assert half.stat().st_size == 0 and not any_may(os.W_OK, half)
    run = compute_run({**RUN, "iterations": 2}, shared / "out")
    files = [path for path in run.rglob("*") if path.is_file()]
    writable = {path for path in files if any_may(os.W_OK, path)}
    assert {*files} - writable == {path for path in files if path.suffix == ".pkl"}
    assert all(any_may(os.R_OK, path) for path in files)
    assert go_on(run) == 0
    assert summary(run)["attempts"][-1]["from"] == 2
    straight = compute_run({**RUN, "iterations": 4}, folder / "straight")
    assert digest(run) == digest(straight)


PAYLOADS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"forged": True},
    "list": lambda: [1],
    "str": lambda: "state",
    "int": lambda: 1,
    "NoneType": lambda: None,
    "ndarray": lambda: np.zeros(3),
    "Counter": Counter,
    "Generator": lambda: np.random.default_rng(1),
}


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_payload_of_another_type_is_refused_before_it_is_used(half_done, capsys, kind, signed):
    file = newest(half_done)
    forge(file, PAYLOADS[kind]())
    if signed:
        assert main(["adopt", str(half_done)]) == 0
    assert go_on(half_done) == 2
    names_all(capsys.readouterr().err, file, f" {kind}.")
    assert json.loads(file.read_bytes().split(b"\n")[1])["iteration"] == 2
