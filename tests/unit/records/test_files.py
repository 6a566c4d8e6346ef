"""Errors of the disk, of which /dev/full is always full, and bits that flip in .npz files."""

import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from refusals import names_all, refused
from support import BIN

from qdsweep.errors import BadInput, StorageError
from qdsweep.files import Appended, naming, read_arrays, write_text

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
    path.mkdir()  # no file can replace it
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
    """With a redirection to a full disk, where a long text is written before the end."""
    with FULL.open("w") as full:
        words = [BIN / "qdsweep", "expand", f"::: seed {values}"]
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    names_all(line, "standard output", os.strerror(errno.ENOSPC))


ARRAYS = {"index": np.arange(3), "objective": np.array([0.1, -1e9, 3.0])}


def test_no_flipped_bit_changes_an_array(tmp_path):
    """Each bit of zip's list of members, which has no checksum, and one of each other byte."""
    path = tmp_path / "some.npz"
    np.savez(path, **ARRAYS)
    content = path.read_bytes()
    start = 8 * content.index(b"PK\1\2")
    others = np.random.default_rng(1).integers(8, size=start // 8) + np.arange(0, start, 8)
    noticed = 0
    for bit in [*others.tolist(), *range(start, 8 * len(content))]:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            arrays = read_arrays(path)
        except BadInput:
            noticed += 1
            continue
        assert arrays.keys() == ARRAYS.keys(), bit
        for name, values in ARRAYS.items():
            assert (arrays[name].dtype, arrays[name].tobytes()) == (values.dtype, values.tobytes())
    assert noticed > 500


@pytest.mark.parametrize("digits", [(b"(3200,", b"(3000,"), (b", 70)", b", 30)"), (b"<f8", b"<i1")])
def test_a_shape_that_is_too_small_is_noticed(tmp_path, digits):
    """zip compares the checksum of a large array only at its end."""
    path = tmp_path / "large.npz"
    np.savez(path, solution=np.zeros((3200, 70)))
    content = path.read_bytes()
    assert content.count(digits[0]) == 1
    path.write_bytes(content.replace(*digits))
    with refused(path):
        read_arrays(path)
