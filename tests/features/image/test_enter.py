"""Commands enter the image."""

from argparse import Namespace
from pathlib import Path

from refusals import refused

from qdsweep.config.files import PRESET_FOLDER
from qdsweep.features.image.enter import PROJECT, binds, options
from qdsweep.features.image.image import find_image


def test_gpus_are_handed_in_only_where_the_cluster_has_them():
    assert "--nv" in options([], has_gpus=True)
    assert "--nv" not in options([], has_gpus=False)


def test_folders_are_seen_under_their_own_names(tmp_path):
    (tmp_path / "elsewhere/results").mkdir(parents=True)
    Path("results").symlink_to(tmp_path / "elsewhere/results")
    Path("more").mkdir()
    Path("more/cluster.yaml").touch()
    bound = binds(Namespace(out=Path("new/run"), cluster="more/cluster.yaml", attempt=1))
    assert set(bound) == {
        str(tmp_path),
        str(tmp_path / "results"),
        str(tmp_path / "elsewhere/results"),
        str(tmp_path / "more"),
        f"{PRESET_FOLDER}:{PROJECT}/config:ro",
    }


def test_folders_that_apptainer_cannot_take(tmp_path, monkeypatch):
    (tmp_path / "a:b").mkdir()
    monkeypatch.chdir(tmp_path / "a:b")
    with refused("a:b"):
        binds(Namespace())


def test_an_image_that_is_not_there():
    with refused("'nowhere.sif'", "containers/build.sh"):
        find_image("nowhere.sif")
    with refused("'docker://localhost/nowhere:1'", "images/localhost-nowhere-1"):
        find_image("docker://localhost/nowhere:1")
    with refused("x" * 5000, "containers/build.sh"):  # no file can have this name
        find_image("x" * 5000)


def test_what_is_still_to_be_made_has_a_name_too(monkeypatch):
    with refused("a:b"):
        binds(Namespace(out=Path("a:b/run")))
    monkeypatch.setattr(
        "qdsweep.features.image.enter.PRESET_FOLDER", Path("/clones/one,two/config")
    )
    with refused("one,two"):
        binds(Namespace())
