"""How the image is entered."""

from argparse import Namespace
from pathlib import Path

import pytest

from qdsweep.config.files import PRESETS
from qdsweep.container.enter import PROJECT, binds, options
from qdsweep.container.image import find_image
from qdsweep.errors import BadInput


def test_gpus_are_handed_in_only_where_the_cluster_has_them():
    assert "--nv" in options([], has_gpus=True)
    assert "--nv" not in options([], has_gpus=False)


def test_folders_are_seen_under_their_own_names(tmp_path):
    (tmp_path / "elsewhere/results").mkdir(parents=True)
    Path("results").symlink_to(tmp_path / "elsewhere/results")
    Path("more").mkdir()
    Path("more/cluster.yaml").touch()
    found = binds(Namespace(out=Path("new/run"), cluster="more/cluster.yaml", attempt=1))
    assert set(found) == {
        str(tmp_path),
        str(tmp_path / "results"),
        str(tmp_path / "elsewhere/results"),
        str(tmp_path / "more"),
        f"{PRESETS}:{PROJECT}/config:ro",
    }


def test_folders_that_apptainer_cannot_take(tmp_path, monkeypatch):
    (tmp_path / "a:b").mkdir()
    monkeypatch.chdir(tmp_path / "a:b")
    with pytest.raises(BadInput, match="a:b"):
        binds(Namespace())


def test_an_image_that_is_not_there():
    with pytest.raises(BadInput, match="make image"):
        find_image("nowhere.sif")
    with pytest.raises(BadInput, match="not pulled yet"):
        find_image("docker://localhost/nowhere:1")


def test_what_is_still_to_be_made_has_a_name_too(monkeypatch):
    with pytest.raises(BadInput, match="a:b"):
        binds(Namespace(out=Path("a:b/run")))
    monkeypatch.setattr("qdsweep.container.enter.PRESETS", Path("/clones/one,two/config"))
    with pytest.raises(BadInput, match="one,two"):
        binds(Namespace())


def test_a_name_that_no_file_can_have():
    with pytest.raises(BadInput, match="no such file"):
        find_image("x" * 5000)
