"""A hostile package writes nothing outside of its folder, and ends with one message."""

import contextlib
import os
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages import sign
from refusals import names_all, refused
from support import command

from qdsweep.errors import BadInput
from qdsweep.features.audit import package as module
from qdsweep.features.audit.package import unpack_package

FILES = {"sweep.yaml": b"name: x\n", "runs/a/config.yaml": b"seed: 1\n", "more.zip": b"PK\5\6"}


def signed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Adds the checksums."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each, content in files.items():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_bytes(content)
        sign(folder)
        return files | {"SHA256SUMS": (folder / "SHA256SUMS").read_bytes()}


GOOD = signed(FILES)


def packed(entries, into: Path, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Writes a zip of pairs of names (or `ZipInfo`) and contents."""
    file = into / "study.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries:
            entry = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo("x")
            if entry is not name:  # the constructor would cut it at a NUL
                entry.filename, entry.compress_type = name, method
            archive.writestr(entry, content)
    return file


def good() -> list[tuple[object, bytes]]:
    return [(f"tiny/{name}", content) for name, content in GOOD.items()]


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def everything(folder: Path) -> dict[str, bytes | None]:
    """Returns all files below a folder."""
    paths = (path for path in folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


def test_a_good_package_is_copied(tmp_path):
    file = packed([*good(), ("tiny/", b""), ("tiny/empty/", b"")], tmp_path)
    assert {*unpack_package(file, tmp_path / "out")} == {*GOOD}
    for name, content in GOOD.items():
        assert (tmp_path / "out" / name).read_bytes() == content
    assert {*unpack_package(tmp_path / "out", tmp_path / "again")} == {*GOOD}


NAMES = [
    "tiny/../../outside", "../outside", "/outside", "tiny/../outside", "tiny//outside", "tiny/.",
    "tiny/..", "tiny/a/../../../outside", "outside", "other/file", "", "/", ".", "..", "tiny/a\\b",
    "tiny\\..\\..\\outside", "C:\\outside", "tiny/a\nb", "tiny/\x1b[2J", "tiny/" + "x" * 300,
    "tiny/" + "x/" * 600 + "x", "tiny/a\0b", "tiny/sweep.yaml\0.txt", "tiny/SWEEP.yaml",
    "tiny/Runs/b", "tiny/sweep.yaml/b", "tiny/runs", "tiny/runs/a/Config.yaml", "\0", "tiny/\x7f",
    "tiny/sweep.yaml",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_refused(name, tmp_path):
    (tmp_path / "place").mkdir()
    file = packed([*good(), (name, b"hostile")], tmp_path / "place")
    before = everything(tmp_path)
    with refused(file):
        unpack_package(file, tmp_path / "place/deeper/out")
    left = {path for path in everything(tmp_path).keys() - before if "/place/deeper" not in path}
    assert not left and not (tmp_path / "place/deeper").exists()


def test_names_that_are_equal_in_another_normal_form_are_refused(tmp_path):
    names = ["tiny/caf\u00e9", "tiny/cafe\u0301"]
    with refused("caf"):
        unpack_package(
            packed([*good(), *((name, b"") for name in names)], tmp_path), tmp_path / "out"
        )


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip_are_refused(kind, tmp_path):
    file = packed([*good(), (entry("tiny/link", kind | 0o777), b"/etc/passwd")], tmp_path)
    with refused(file, "'tiny/link'"):
        unpack_package(file, tmp_path / "out")


def test_links_and_pipes_in_a_folder_are_refused(tmp_path):
    for number, make in enumerate(
        (
            lambda path: path.symlink_to("/etc/passwd"),
            lambda path: path.symlink_to("/etc"),
            lambda path: path.symlink_to("sweep.yaml"),
            os.mkfifo,
        )
    ):
        folder = tmp_path / f"{number}/tiny"
        for name, content in GOOD.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        make(folder / "runs/link")
        with refused(folder, "runs/link"):
            unpack_package(folder, tmp_path / f"{number}/out")
        assert not (tmp_path / f"{number}/out").exists()


def test_a_zip_bomb_is_refused_by_what_it_declares(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 1000)
    bomb = packed([*good(), ("tiny/zeros", bytes(10**6))], tmp_path)
    with refused(bomb, "larger"):
        unpack_package(bomb, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_zip_bomb_is_refused_by_what_it_writes(tmp_path, monkeypatch):
    """Its sizes are those of a small file: zip has them twice, and neither is true."""
    monkeypatch.setattr(module, "_RATIO", 1)
    monkeypatch.setattr(module, "_SMALL", 10**4)
    files = signed(FILES | {"zeros": bytes(10**6)})
    bomb = packed(((f"tiny/{name}", content) for name, content in files.items()), tmp_path)
    real = struct.pack("<L", 10**6)
    data = bomb.read_bytes()
    assert data.count(real) == 2
    bomb.write_bytes(data.replace(real, struct.pack("<L", 100)))
    with refused(bomb):
        unpack_package(bomb, tmp_path / "out")
    written = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert written <= 10**4


def test_the_free_disk_is_a_limit(tmp_path, monkeypatch):
    file = packed(good(), tmp_path)
    unpack_package(file, tmp_path / "tiny")
    monkeypatch.setattr(module, "_RESERVE", 2**60)
    for target in (file, tmp_path / "tiny"):
        with refused(target, "TMPDIR"):
            unpack_package(target, tmp_path / f"{target.name}.out")


def test_other_methods_and_secret_files_are_refused(tmp_path):
    with refused("unusual"):
        unpack_package(packed(good(), tmp_path, zipfile.ZIP_LZMA), tmp_path / "out")
    file = packed(good(), tmp_path)
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1  # the flag of encryption
    file.write_bytes(data)
    with refused("encrypted"):
        unpack_package(file, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"SHA256SUMS": None}, ["SHA256SUMS"]),
        ({"SHA256SUMS": b""}, ["SHA256SUMS"]),
        ({"SHA256SUMS": b"\xff\n"}, ["SHA256SUMS"]),
        ({"SHA256SUMS": GOOD["SHA256SUMS"] * 2}, ["SHA256SUMS", "line 4"]),
        ({"SHA256SUMS": GOOD["SHA256SUMS"] + b"0" * 64 + b"  SHA256SUMS\n"}, ["SHA256SUMS"]),
        ({"SHA256SUMS": GOOD["SHA256SUMS"] + b"0" * 64 + b"  ../../x\n"}, ["'../../x'", "missing"]),
        ({"SHA256SUMS": GOOD["SHA256SUMS"].rstrip()}, ["SHA256SUMS"]),
        ({"sweep.yaml": None}, ["sweep.yaml", "missing"]),
        ({"sweep.yaml": b"name: y\n"}, ["sweep.yaml", "changed"]),
        ({"extra": b""}, ["extra", "not listed"]),
    ],
)
def test_what_the_checksums_do_not_list_or_lists_otherwise_is_refused(change, names, tmp_path):
    files = {name: content for name, content in (GOOD | change).items() if content is not None}
    file = packed(((f"tiny/{name}", content) for name, content in files.items()), tmp_path)
    with refused(file, *names):
        unpack_package(file, tmp_path / "out")


def test_other_files_in_a_folder_are_named_and_not_copied(tmp_path):
    unpack_package(packed(good(), tmp_path), tmp_path / "tiny")
    names = ["__pycache__/x.pyc", "again/archive.npz", "again/state/x", "config/plugins/x.py"]
    for name in names:
        (tmp_path / "tiny" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tiny" / name).write_bytes(b"x")
    lines: list[str] = []
    assert {*unpack_package(tmp_path / "tiny", tmp_path / "out", lines.append)} == {*GOOD}
    (line,) = lines
    names_all(line, "4 files", "SHA256SUMS", *names[:3])
    assert names[3] not in line
    copied = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert {str(path.relative_to(tmp_path / "out")) for path in copied} == {*GOOD}


@given(st.data())
def test_any_bytes_changed_in_a_zip_are_noticed_or_harmless(data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = packed(good(), folder)
        content = bytearray(file.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        file.write_bytes(content[: data.draw(st.integers(0, len(content)))] if
                         data.draw(st.booleans()) else content)  # fmt: skip
        with contextlib.suppress(BadInput):
            assert {*unpack_package(file, folder / "out")} == {*GOOD}
            for each in GOOD:
                assert (folder / "out" / each).read_bytes() == GOOD[each]


_PARTS = st.sampled_from(["..", ".", "", "a", "A", "tiny", "a\\b", "\0", "c:", "\u00e9", "e\u0301"])
_HOSTILE = st.lists(_PARTS | st.text(max_size=5), max_size=6).map("/".join)


@given(st.lists(_HOSTILE, min_size=1, max_size=4))
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_name_writes_outside_of_the_folder(names):
    """The checksums list all names, so that only the names can be what is refused."""
    sums = GOOD["SHA256SUMS"] + b"".join(
        b"0" * 64 + b"  " + each.partition("/")[2].encode(errors="replace") + b"\n"
        for each in names
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "one/two/three")
        folder.mkdir(parents=True)
        entries = dict(good()) | {"tiny/SHA256SUMS": sums}
        try:
            file = packed([*entries.items(), *((each, b"hostile") for each in names)], folder)
        except UnicodeEncodeError:  # zipfile writes no such name
            return
        before = everything(Path(name))
        with pytest.raises(BadInput):
            unpack_package(file, folder / "out")
        after = everything(Path(name))
        assert all(Path(path).is_relative_to(folder / "out") for path in after.keys() - before)
        assert before.items() <= after.items()


def test_the_command_ends_with_one_message(tmp_path):
    (tmp_path / "temporary").mkdir()
    file = packed([*good(), ("tiny/../../outside", b"")], tmp_path)
    (tmp_path / "torn.zip").write_bytes(file.read_bytes()[:-30])
    (tmp_path / "text.zip").write_text("no zip")
    for name in (file.name, "torn.zip", "text.zip", "nowhere.zip", "temporary"):
        words = ("reproduce", name, "--here", "--yes")
        done = command("qdsweep", *words, cwd=tmp_path, check=2, TMPDIR=str(tmp_path / "temporary"))
        assert done.stdout == "" and done.stderr.count("\n") == 1
        assert name in done.stderr
        assert not list((tmp_path / "temporary").iterdir())
