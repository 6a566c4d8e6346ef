"""Settings of every test."""

import os
import shutil
import subprocess
from pathlib import Path

import cluster
import images
import pytest
from xdist.scheduler import LoadScopeScheduling

from qdsweep.host.cpu import apply_baseline

apply_baseline("avx2")  # before numpy is imported, as `qdsweep run` does it
# Snakemake's Slurm plugin asks a cluster that is down for 9 s, at each start: here there is none.
os.environ.setdefault("SLURM_CONF", os.devnull)


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
    no_slurm = os.environ.pop("SLURM_CONF")
    cluster.up()
    yield
    cluster.down()
    os.environ["SLURM_CONF"] = no_slurm


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


@pytest.fixture(scope="module")
def chromium():
    """A real browser without a window. CI installs it; elsewhere it has to be there.

    One for each module: while playwright runs, nothing else may use asyncio.
    """
    if shutil.which("chromium") is None:
        if not os.environ.get("CI"):
            pytest.skip("the page is looked at in Chromium: apt-get install chromium")
        install = "apt-get update -q && apt-get install -y -q --no-install-recommends chromium"
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, shell=True, check=True, env=environment)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class ByMachinery(LoadScopeScheduling):
    """What takes the one test cluster, or the image, is one process's; the rest goes by files."""

    def _split_scope(self, nodeid: str) -> str:
        folder, file = nodeid.split("::")[0].split("/")[-2:]
        return "cluster" if folder in ("slurm", "container") else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with what takes longest, so that no process waits for the last one's.

    `--no-loadscope-reorder` in pyproject.toml keeps this order.
    """
    items.sort(key=lambda item: item.path.parent.name == "unit")


def pytest_xdist_make_scheduler(config, log):
    return ByMachinery(config, log)
