"""Settings of every test."""

import logging
import os
import shutil
import signal
import subprocess
from pathlib import Path

import cluster
import images
import leftovers
import pytest
import support
from xdist.scheduler import LoadScopeScheduling

from qdsweep.config.files import read_preset
from qdsweep.host.machine import apply_baseline

TESTS = Path(__file__).parent
# A shell ignores Ctrl-C for what it starts in the background, and all its processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
apply_baseline("avx2")  # before numpy is imported, as `qdsweep run` does it
# Snakemake's Slurm plugin asks a cluster that is down for 9 s, at each start: here there is none.
os.environ.setdefault("SLURM_CONF", os.devnull)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the folder that all processes of a start of pytest share."""
    if not hasattr(config, "workerinput"):  # those of xdist inherit it from this one
        leftovers.open_folder()
        if config.option.numprocesses:  # tests are forked from others: SIGTERM is Ctrl-C here
            signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = support.shared_folder()
        if any("slurmctld" in process.name() for process in leftovers.processes(folder)):
            cluster.down()  # Ctrl-C cut its fixture off
        images.remove_workshop()
        if left := leftovers.remove(folder):
            print("Processes that outlived the tests were ended:", *left, sep="\n")


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts in an empty folder, which may have presets of its own."""
    read_preset.cache_clear()
    if "MUJOCO_GL" not in os.environ:  # a rollout sets it: the next test must not have it
        monkeypatch.setenv("MUJOCO_GL", "")
        monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def own_logging():
    """What a test logs to is closed with it: no handler of its own stays."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)


@pytest.fixture(scope="session")
def slurm():
    """Brings a cluster of two nodes up. It needs root: else the tests say why they are skipped."""
    if not os.environ.get("CI"):  # there they are never skipped
        if os.geteuid() != 0:
            pytest.skip("a test cluster of Slurm needs root (munge, slurmctld, slurmd)")
        if cluster.is_foreign():
            pytest.skip("this machine has a Slurm of its own, which is left alone")
    no_slurm = os.environ.pop("SLURM_CONF")
    with support.alone("packages"):
        cluster.up()
    yield
    cluster.down()
    os.environ["SLURM_CONF"] = no_slurm


@pytest.fixture(scope="session")
def workshop():
    """The image, made with the commands of docs/guide. It needs root, as the cluster does."""
    if not os.environ.get("CI") and os.geteuid() != 0:
        pytest.skip("making a base image without a registry needs root (mmdebstrap, buildah)")
    return images.open_workshop()


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
        with support.alone("packages"):
            subprocess.run(install, shell=True, check=True, env=environment)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class ByMachinery(LoadScopeScheduling):
    """What shares something is one process's: the test cluster, the images, sweeps of a folder."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder.split("/")[1] in ("slurm", "container") else file


# What takes longest comes first, so that no process waits for the last one's.
ORDER = ("slurm", "container", "readme", "workflow", "install", "faults", "trust", "report", "unit")
# `make test` leaves it to `make test-all`: it starts a cluster, images or a browser, installs
# something, or takes minutes where `make test` has a short form of the promise.
REST = (
    *("container/", "report/", "slurm/"),
    *(f"install/test_{name}.py" for name in ("commands", "module", "release", "wheel")),
    *(f"trust/test_{name}.py" for name in ("bits", "disks", "file_locks", "file_system")),
    *(f"trust/test_{name}.py" for name in ("machines", "many_runs", "strangers")),
    "trust/test_bad_input.py::test_real_processes_say_the_same",
    *("readme/test_commands.py", "readme/test_site.py"),
    *(f"workflow/test_{name}.py" for name in ("confirm", "population", "rollouts", "study", "tpe")),
    *(f"faults/test_{name}.py" for name in ("mpi", "ray", "warm")),
    "faults/test_failures.py::test_a_full_disk_leaves_the_last_reload_file_whole",  # needs root
    "faults/test_workers.py::test_a_worker_with_other_versions_is_turned_away",
    "faults/test_workers.py::test_a_plain_dask_worker_joins_and_leaves",
    "faults/test_workers.py::test_two_runs_share_a_cluster_that_is_there",
    "faults/test_workers.py::test_nobody_without_the_credentials_gets_in",
    "unit/sweep/test_grammar.py::test_rows_are_those_of_gnu_parallel",  # installed in few places
)
# `make test-all` leaves it to `make torture`: most hold once more, for a minute, what a test of
# another layer holds; goodput, odd file systems and failing disks in every stage are too long.
TORTURE = (
    "container/test_image.py::test_an_image_of_a_url_is_pulled_once",
    "container/test_image.py::test_another_image_goes_on_unless_its_versions_differ",
    "faults/test_ray.py::test_runs_in_a_cluster_that_is_there",
    "faults/test_warm.py::test_one_run_another_cpu_baseline_or_a_wish_starts_by_itself[::: seed 1-",
    "slurm/test_goodput.py",
    "slurm/test_image.py::test_two_nodes_in_the_image_equal_one_machine[root-",
    "slurm/test_kills.py",
    "slurm/test_learning.py",
    "slurm/test_mpi.py::test_ranks_over_two_nodes_stopped_in_an_evaluation_and_again",
    "slurm/test_ray.py",
    "slurm/test_search.py",
    "trust/test_disks.py::test_every_stage_of_a_sweep",
    "trust/test_file_system.py",
    "trust/test_many_runs.py::test_what_is_lost_or_torn_is_published_again",
    "workflow/test_bench.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks and sorts them; `--no-loadscope-reorder` in pyproject.toml keeps this order."""

    def place(item: pytest.Item) -> tuple[int, bool]:
        folder = item.path.relative_to(TESTS).parts[0]
        # Another process makes the image, while the cluster has other tests.
        return ORDER.index(folder), "workshop" in getattr(item, "fixturenames", ())

    if config.option.update_snapshots:  # `make snapshots`
        items[:] = [item for item in items if "snapshot" in item.fixturenames]
    for item in items[:]:
        name = item.nodeid.removeprefix("tests/")
        if name.startswith(REST):
            item.add_marker("rest")
        if name.startswith(TORTURE) and not os.environ.get("QDSWEEP_TORTURE"):
            items.remove(item)
            config.hook.pytest_deselected(items=[item])
    items.sort(key=place)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Says what was not run, and how it is."""
    if config.option.markexpr == "not rest":
        terminalreporter.write_line(
            "Not run: what needs a Slurm, images, a browser or many minutes (real clusters, "
            "installs, the site, long searches). `make test-all` runs that, too; `make torture` "
            "has the longest forms."
        )


def pytest_xdist_make_scheduler(config, log):
    return ByMachinery(config, log)
