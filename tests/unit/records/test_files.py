"""Errors of the disk; /dev/full is one that is always full."""

import errno
import os
import subprocess
from pathlib import Path

import pytest
from refusals import names_all
from support import BIN

from qdsweep.errors import StorageError
from qdsweep.files import Appended, naming, write_text

FULL = Path("/dev/full")


def test_a_file_that_grows_is_named():
    file = Appended(FULL, "a")
    file.write("row\n")
    for act in (file.flush, file.close):
        with pytest.raises(OSError) as caught:
            act()
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(FULL))
    names_all(str(StorageError(caught.value, "elsewhere")), FULL, os.strerror(errno.ENOSPC))


def test_a_file_that_takes_anothers_place_is_named_and_not_its_second_half(tmp_path):
    path = tmp_path / "table.csv"
    path.mkdir()  # which no file takes the place of
    with pytest.raises(OSError) as caught:
        write_text(path, "text")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_named_already_stays_so():
    with pytest.raises(OSError) as caught, naming(FULL):
        Path("/nowhere/at/all").touch()
    assert caught.value.filename == "/nowhere/at/all"


@pytest.mark.parametrize("values", ["1 2", " ".join(map(str, range(9999)))])
def test_an_output_that_cannot_be_written_is_one_line(tmp_path, values):
    """A redirection to a full disk; a long text is written before the command ends."""
    with FULL.open("w") as full:
        words = [BIN / "qdsweep", "expand", f"::: seed {values}"]
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    names_all(line, "standard output", os.strerror(errno.ENOSPC))
