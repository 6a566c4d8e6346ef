"""Settings of every test."""

import os
from pathlib import Path

import cluster
import images
import pytest

from qdsweep.cpu import apply_baseline

apply_baseline("avx2")  # before numpy is imported, as `qdsweep run` does it


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def slurm():
    """Brings a cluster of two nodes up. It needs root: else the tests say why they are skipped."""
    if not os.environ.get("CI"):  # there they are never skipped
        if os.geteuid() != 0:
            pytest.skip("a test cluster of Slurm needs root (munge, slurmctld, slurmd)")
        if cluster.is_foreign():
            pytest.skip("this machine has a Slurm of its own, which is left alone")
    cluster.up()
    yield
    cluster.down()


@pytest.fixture(scope="session")
def workshop():
    """Makes the image with the README's commands. It needs root, as the cluster does."""
    if not os.environ.get("CI") and os.geteuid() != 0:
        pytest.skip("making a base image without a registry needs root (mmdebstrap, buildah)")
    made = images.Workshop()
    try:
        made.set_up()
        made.do(images.readme_command("make image"))
        yield made
    finally:
        made.close()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the one test cluster, or the image, is one worker's; the rest is by files."""
    for item in items:
        folder, file = item.path.parts[-2:]
        shared = folder in ("slurm", "container")
        item.add_marker(pytest.mark.xdist_group("cluster" if shared else file))
