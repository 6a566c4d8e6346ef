"""Temporary names that no other process has, and what kills leave under them."""

import os
import re
import secrets
import socket
import stat
import time
from pathlib import Path

import pytest
from in_process import qdsweep
from support import REPO

from qdsweep import files
from qdsweep.files import DAY, abandoned, atomic, link, temporary_name
from qdsweep.planning.module import package_folder
from qdsweep.records import sources
from qdsweep.records.leftovers import leftovers
from qdsweep.records.paths import Results

OLD = 2 * DAY
# Of an earlier release, of this one, and of a host that is gone.
NAMES = (".a.npz.7.tmp", ".a.npz.node9-7-0123456789ab.tmp", ".b.localhost-1-000000000000.tmp")


def age(path: Path, seconds: float = OLD) -> Path:
    """Gives a file or a folder, which it creates if needed, an old time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch()
    os.utime(path, (time.time() - seconds,) * 2)
    return path


@pytest.fixture
def equal_processes(monkeypatch):
    """All hosts have one name, and all processes one number, as in containers."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")


@pytest.mark.usefixtures("equal_processes")
def test_two_hosts_with_equal_numbers_write_one_file_in_turn(tmp_path):
    path = tmp_path / "table.csv"
    with atomic(path, "w") as first:
        first.write("first")
        with atomic(path, "w") as second:
            second.write("second, longer")
        assert path.read_text() == "second, longer"
    assert path.read_text() == "first"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.usefixtures("equal_processes")
def test_a_half_of_another_host_is_neither_used_nor_removed(tmp_path, monkeypatch):
    """However unlikely its name is."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    source, path = tmp_path / "source", tmp_path / "config.yaml"
    source.write_text("source")
    half = temporary_name(path)
    half.write_text("half of another host")

    def write_atomically() -> None:
        with atomic(path, "w") as file:
            file.write("own")

    def refuse(*_: object) -> None:
        raise OSError("no hard links")

    for write in (write_atomically, lambda: link(source, path)):
        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(FileExistsError):
            write()
        assert half.read_text() == "half of another host" and not path.exists()


@pytest.mark.usefixtures("equal_processes")
def test_other_makers_of_names_survive_those_that_a_kill_left(tmp_path):
    """A folder of sources, and the link to the package: the next process has another name."""
    folder = tmp_path / "sources/0123456789"
    for left in (folder.with_name(f".{folder.name}.7.tmp"), temporary_name(folder)):
        left.mkdir(parents=True)
        (left / "foreign.py").touch()
    sources._write({"own.py": b"1"}, folder)
    assert [path.name for path in folder.iterdir()] == ["own.py"]
    shared = tmp_path / ".snakemake/qdsweep-package"
    shared.mkdir(parents=True)
    (shared / "7").symlink_to(tmp_path)
    package_folder()


def test_no_name_is_made_of_a_process_number_alone():
    """`temporary_name` makes them all. Logs of workers, in one folder for a run, are no halves."""
    made = re.compile(r"(with_name|with_suffix|/) ?\(?f\"[^\"]*getpid\(\)[^\"]*\"")
    package = REPO / "workflow/qdsweep"
    found = [file for file in package.rglob("*.py") if made.search(file.read_text())]
    assert found == []


def test_a_name_fits_and_has_host_and_a_random_part(tmp_path):
    names = {temporary_name(tmp_path / ("é" * 110)).name for _ in range(100)}
    assert len(names) == 100
    for name in names:
        (tmp_path / name).touch()
        assert socket.gethostname().partition(".")[0][:20] in name and f"-{os.getpid()}-" in name
    assert {*tmp_path.glob(files.TEMPORARY)} == {*tmp_path.iterdir()}


@pytest.mark.parametrize("clock", [-OLD, 0, OLD])
def test_what_kills_left_is_found_after_a_day_with_any_clock(tmp_path, monkeypatch, clock):
    old = {age(tmp_path / name) for name in NAMES}
    torn = tmp_path / ".state.node9-7-0123456789ab.tmp"
    torn.mkdir()
    old.add(age(torn))
    age(tmp_path / "archive.npz")
    for name in NAMES:
        age(tmp_path / f".young{name}", DAY / 2)
    source = age(tmp_path / "reload.pkl")
    os.link(source, tmp_path / ".reload.pkl.node9-7-0123456789ab.tmp")  # just now, of an old file
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + clock)
    before = {*tmp_path.iterdir()}
    assert {*abandoned(tmp_path)} == old
    assert {*tmp_path.iterdir()} == before
    assert [*abandoned(tmp_path / "missing")] == []


def test_halves_are_found_in_every_folder_and_removed_by_clean(tmp_path):
    results = Results(tmp_path / "results")
    run, sweep = results.run("a"), results.sweep("s")
    of_runs = (run.path, run.state.path, run.rollouts, run.state.partial.path)
    of_sweeps = (sweep.path, sweep.tables, sweep.archives, sweep.kept / "archives")
    of_sweeps += (sweep.search / "rung-0", sweep.plan.parent / "state")
    of_all = (results.centroids, results.sources, results.images, results.explore / "a")
    young = []
    for folder in (*of_runs, *of_sweeps, *of_all):
        for name in NAMES:
            age(folder / name)
            young.append(age(folder / f".young{name}", DAY / 2))
    old = [*results.path.rglob(".[ab].*.tmp")]
    assert len(old) == 14 * len(NAMES)
    assert {*leftovers(results)} == {*old}
    assert "would be removed" in qdsweep("clean", "--dry-run", cwd=tmp_path)
    assert all(path.exists() for path in old)
    assert f"{len(old)} found" in qdsweep("clean", cwd=tmp_path)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in young)


def test_a_start_removes_those_of_its_sweep_and_its_runs(tmp_path):
    experiment = {
        "domain": {"preset": "lp_sphere", "solution_dim": 3},
        "algorithm": "map_elites",
        "archive": {"dims": [4, 4]},
        "num_emitters": 1,
        "batch_size": 4,
        "iterations": 2,
    }
    (tmp_path / "experiment.yaml").write_text(str(experiment))
    run = Results(tmp_path).run("a")
    halves = [age(folder / name) for folder in (run.path, run.state.path) for name in NAMES]
    young = age(run.path / ".young.node9-7-0123456789ab.tmp", DAY / 2)
    qdsweep("run", "experiment.yaml", "--out", run.path, cwd=tmp_path)
    assert not any(half.exists() for half in halves) and young.exists()


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
@pytest.mark.parametrize("kind", ["pkl", "npz", "json"])
def test_only_reload_files_are_less_writable_than_the_umask_allows(
    tmp_path, monkeypatch, umask, kind
):
    def refuse(*_: object) -> None:
        raise OSError("no hard links")

    before = os.umask(umask)
    try:
        source, target = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
        with atomic(source) as file:
            file.write(b"1")
        monkeypatch.setattr(os, "link", refuse)
        link(source, target)
    finally:
        os.umask(before)
    allowed = 0o644 if kind == "pkl" else 0o666
    assert stat.S_IMODE(source.stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE(target.stat().st_mode) == allowed & ~umask
    assert target.read_bytes() == b"1"
