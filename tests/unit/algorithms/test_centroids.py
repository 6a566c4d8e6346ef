"""Centroids that many runs share: their file, its checksum and the version of scikit-learn."""

import numpy as np
import pytest
from refusals import names_all, refused

from qdsweep.algorithms.ribs import archives
from qdsweep.algorithms.ribs.archives import Centroids
from qdsweep.config.archive_kinds import CVTArchive
from qdsweep.versions import installed_versions

ARCHIVE, CELLS, RANGES = CVTArchive(type="cvt", samples=500), 40, [(-1.0, 1.0), (0.0, 3.0)]


def get(folder):
    return Centroids(folder).get(ARCHIVE, CELLS, RANGES)


@pytest.fixture
def file(tmp_path):
    """The file of centroids, and what it holds."""
    made = get(tmp_path)
    (path,) = tmp_path.glob("cvt-*.npy")
    return path, made


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 16
    path.write_bytes(content)


def positions(path, count=40):
    """Bytes of the header and of all values."""
    return [*range(0, 128, 7), *np.linspace(128, path.stat().st_size - 1, count, dtype=int)]


def test_a_changed_byte_anywhere_is_repaired_and_named(file, caplog):
    path, made = file
    whole = path.read_bytes()
    for position in positions(path):
        flip(path, position)
        caplog.clear()
        np.testing.assert_array_equal(get(path.parent), made)
        assert path.read_bytes() == whole
        names_all(caplog.text, path)


def test_a_truncated_file_is_repaired_and_named(file, caplog):
    path, made = file
    path.write_bytes(path.read_bytes()[:50])
    np.testing.assert_array_equal(get(path.parent), made)
    names_all(caplog.text, path)


def test_a_checksum_that_has_changed_is_written_again(file, caplog):
    path, made = file
    sums = path.with_suffix(".sha256")
    whole = sums.read_bytes()
    flip(sums, 5)
    np.testing.assert_array_equal(get(path.parent), made)
    names_all(caplog.text, sums)
    assert sums.read_bytes() == whole


def test_other_points_than_before_are_refused(file, monkeypatch):
    path, _ = file
    flip(path, 300)
    before = path.read_bytes()
    monkeypatch.setattr(archives, "_k_means", lambda *_: np.zeros((CELLS, 2)))
    for _ in range(2):
        with refused(path, path.with_suffix(".sha256").name):
            get(path.parent)
    assert path.read_bytes() == before
    path.unlink()
    assert not get(path.parent).any(), "the user wants other cells"


def test_another_scikit_learn_has_another_file(file, monkeypatch):
    path, made = file
    np.save(path, made + 1)
    path.with_suffix(".sha256").unlink()
    monkeypatch.setattr(archives, "installed_versions", lambda names: dict.fromkeys(names, "9.9"))
    np.testing.assert_array_equal(get(path.parent), made)
    assert len([*path.parent.glob("cvt-*.npy")]) == 2


def test_a_file_of_an_earlier_release_is_used_as_long_as_it_is_there(tmp_path, caplog):
    """Its name lacks the version, and it has no checksum until it is read."""
    assert "scikit-learn" in installed_versions(("scikit-learn",))
    old = archives._centroids_file(tmp_path, [CELLS, RANGES, 500, ARCHIVE.centroids_seed])
    assert old.name == "cvt-40-165399f8b8.npy", "as version 0.2.0 has named it"
    kept = np.random.default_rng(1).random((CELLS, 2))
    np.save(old, kept)
    for _ in range(2):
        np.testing.assert_array_equal(get(tmp_path), kept)
    assert [*tmp_path.glob("cvt-*.npy")] == [old]
    for position in positions(old):
        flip(old, position)
        with refused(old):
            get(tmp_path)
        flip(old, position)
    old.unlink()
    assert not np.array_equal(get(tmp_path), kept)
    assert old not in tmp_path.glob("cvt-*.npy")
