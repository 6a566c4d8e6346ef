"""The user's key is made once, and no other user can read it."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from qdsweep.host.key import key_file, own_digest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def test_many_processes_that_need_it_first_have_one(home):
    code = "from qdsweep.host.key import own_digest; print(own_digest('x'))"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    digests = {process.communicate()[0].strip() for process in processes}
    assert digests == {own_digest("x")}
    assert len(digests.pop()) == 64
    assert [path.name for path in key_file().parent.iterdir()] == ["key"]
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file().parent.stat().st_mode) == 0o700


def test_another_key_gives_another_digest(home, monkeypatch):
    mine = own_digest("x")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "of_another"))
    assert own_digest("x") not in (None, mine)


def test_without_hard_links_it_is_made_too(monkeypatch):
    def link(*_: object) -> None:
        raise OSError("not here")

    monkeypatch.setattr("os.link", link)
    assert own_digest("x") is not None
    assert [path.name for path in key_file().parent.iterdir()] == ["key"]


@pytest.mark.parametrize("spoilt", ["readable", "short", "a folder", "no folder"])
def test_an_unusable_image_is_named_and_does_not_change(home, caplog, spoilt):
    key_file().parent.mkdir(parents=True)
    if spoilt == "a folder":
        key_file().mkdir()
    elif spoilt == "no folder":
        key_file().parent.rmdir()
        key_file().parent.touch()
    else:
        key_file().write_text("0" * (64 if spoilt == "readable" else 10))
        key_file().chmod(0o644 if spoilt == "readable" else 0o600)
    assert own_digest("x") is None
    assert str(key_file()) in caplog.text
