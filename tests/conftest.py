"""Settings for all tests."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import cluster
import images
import leftovers
import pytest
import support
from xdist.scheduler import LoadScopeScheduling

from qdsweep import ornaments
from qdsweep.config.files import read_preset
from qdsweep.host.machine import apply_baseline
from qdsweep.host.signals import SIGNALS

TESTS = Path(__file__).parent
# A shell makes background processes ignore Ctrl-C, and their child processes inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
apply_baseline("avx2")  # before numpy is imported, as in `qdsweep run`
# No Slurm cluster here: at each start, Snakemake's Slurm plugin would try for 9 s to reach it.
os.environ.setdefault("SLURM_CONF", os.devnull)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the folder that all processes of one pytest command share."""
    if not hasattr(config, "workerinput"):  # xdist's processes inherit it from this one
        leftovers.open_folder()
        if config.option.numprocesses:  # these processes receive SIGTERM on Ctrl-C
            signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = support.shared_folder()
        if any("slurmctld" in process.name() for process in leftovers.processes(folder)):
            cluster.down()  # Ctrl-C has interrupted its fixture
        images.remove_workshop()
        if left := leftovers.remove(folder):
            print("Processes that outlived the tests were ended:", *left, sep="\n")


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Starts every test in an empty folder, where it may write its own presets."""
    read_preset.cache_clear()
    if "MUJOCO_GL" not in os.environ:  # a rollout sets it, but the next test must not have it
        monkeypatch.setenv("MUJOCO_GL", "")
        monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def own_logging():
    """Closes and removes the log handlers of a test."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)


@pytest.fixture(autouse=True)
def own_signals():
    """Gives signals their handlers back: a run keeps its own to the end of its process."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def whole_ornaments():
    """Raises the error of an ornament, which a run would leave out, except where tests allow it."""

    def leave_out(what: str, error: Exception) -> str:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ornaments, "leave_out", leave_out)
        yield


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Writes modules into a working directory's config/plugins."""
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name, text):
        (folder / f"{name}.py").write_text(text)
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).parent.name == "plugins":  # an earlier test's, of this name
            monkeypatch.delitem(sys.modules, name)

    yield write
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(scope="session")
def slurm():
    """Starts a cluster of two nodes. Without root, the tests are skipped with a reason."""
    if not os.environ.get("CI"):  # CI never skips them
        if os.geteuid() != 0:
            pytest.skip("a test cluster of Slurm needs root (munge, slurmctld, slurmd)")
        if cluster.is_foreign():
            pytest.skip("this machine has its own Slurm, which tests must not use")
    no_slurm = os.environ.pop("SLURM_CONF")
    with support.alone("packages"):
        cluster.up()
    yield
    cluster.down()
    os.environ["SLURM_CONF"] = no_slurm


@pytest.fixture(scope="session")
def workshop():
    """The image, made with the commands of docs/guide. Like the cluster, it needs root."""
    if not os.environ.get("CI") and os.geteuid() != 0:
        pytest.skip("making a base image without a registry needs root (mmdebstrap, buildah)")
    return images.open_workshop()


@pytest.fixture(scope="module")
def chromium():
    """A real browser without a window. CI installs it; elsewhere it must be installed.

    Each module has its own, because nothing else may use asyncio while playwright runs.
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
    """Gives tests with a common cluster, image or sweep to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder.split("/")[1] in ("slurm", "container") else file


# The longest tests come first, so that no process waits for another one at the end.
ORDER = (
    "slurm",
    "container",
    "readme",
    "workflow",
    "install",
    "faults",
    "trust",
    "report",
    "features",
    "unit",
)
# Only `make test-all` runs these tests. They start a cluster, images or a browser, install
# something, or take minutes and have a short form in `make test`.
REST = (
    *("container/", "report/", "slurm/"),
    *(f"install/test_{name}.py" for name in ("commands", "module", "release", "wheel")),
    *(f"trust/test_{name}.py" for name in ("access_lists", "bits", "disks", "file_locks")),
    *(f"trust/test_{name}.py" for name in ("file_system", "groups", "machines", "many_runs")),
    *(f"trust/test_{name}.py" for name in ("reads", "strangers")),
    "trust/test_bad_input.py::test_real_processes_say_the_same",
    *("readme/test_commands.py", "readme/test_site.py", "unit/analysis/page/test_markup.py"),
    *(f"workflow/test_{name}.py" for name in ("confirm", "population", "rollouts", "study", "tpe")),
    "workflow/test_sweep.py::test_four_starts_at_once_end_with_one_page",
    *(
        f"workflow/test_sweep.py::test_workers_receive_the_values_of_the_sweep[{engine}]"
        for engine in ("processes", "dask", "ray", "mpi")
    ),
    *(f"faults/test_{name}.py" for name in ("mpi", "ray", "warm")),
    "faults/test_failures.py::test_a_full_disk_leaves_the_last_reload_file_whole",  # needs root
    "faults/test_shortages.py::test_a_full_disk_is_waited_for",  # needs root
    *(
        f"faults/test_shortages.py::test_memory_that_was_lacking_once_changes_no_result[{engine}"
        for engine in ("mpi", "ray")
    ),
    "faults/test_workers.py::test_a_worker_with_other_versions_is_rejected",
    "faults/test_workers.py::test_a_plain_dask_worker_joins_and_leaves",
    "faults/test_workers.py::test_two_runs_share_a_cluster_that_is_there",
    "faults/test_workers.py::test_nobody_without_the_credentials_gets_in",
    "unit/sweep/test_grammar.py::test_rows_are_those_of_gnu_parallel",  # installed in few places
)
# Only `make torture` runs these tests. Most of them test for a minute a property that a test of
# another layer also has. Goodput, odd file systems and disk errors in every stage take too long.
TORTURE = (
    "container/test_image.py::test_an_image_of_a_url_is_pulled_once",
    "container/test_image.py::test_a_signal_saves_the_run_in_the_image",
    "container/test_image.py::test_a_run_resumes_in_another_image_unless_versions_differ",
    "faults/test_ray.py::test_runs_in_a_cluster_that_is_there",
    # Once in some runs of CI, memory never lacks in Ray's workers: the cause is not known.
    "faults/test_shortages.py::test_memory_that_was_lacking_once_changes_no_result[ray",
    "faults/test_warm.py::test_torch_has_the_settings_of_a_process_of_its_own",
    "faults/test_warm.py::test_some_runs_start_without_the_warm_process[::: seed 1-",
    "install/test_commands.py::test_every_command",
    "install/test_module.py::test_what_snakedeploy_makes",
    "slurm/test_goodput.py",
    "slurm/test_image.py::test_two_nodes_in_the_image_equal_one_machine",
    "slurm/test_kills.py",
    "slurm/test_learning.py",
    "slurm/test_mpi.py::test_ranks_over_two_nodes_stopped_in_an_evaluation_and_again",
    "slurm/test_pilot.py::test_two_time_limits_and_a_lost_node_cost_only_runs_under_way",
    "slurm/test_ray.py",
    "slurm/test_search.py",
    "slurm/test_slurm.py::test_the_first_node_lost_then_preempted_then_cancelled",
    "slurm/test_study.py",
    "trust/test_disks.py::test_every_job_of_a_search",
    "trust/test_disks.py::test_every_stage_of_a_sweep",
    "trust/test_file_system.py",
    "trust/test_many_runs.py::test_what_is_lost_or_torn_is_published_again",
    "unit/runs/test_merge.py::test_fifty_merges_killed_at_random_renames_lose_nothing",
    "workflow/test_bench.py",
    *(
        f"workflow/test_features.py::test_without_a_feature_the_rest_works[{path.parent.name}]"
        for path in TESTS.parent.glob("workflow/qdsweep/features/*/__init__.py")
    ),
    "workflow/test_environment.py::test_figures_are_the_same_bytes_in_a_terminal_of_a_notebook",
    "workflow/test_rollouts.py",
    "workflow/test_snakemake.py::test_a_sweep_is_computed_repeated_extended_and_fails",
    "workflow/test_snakemake.py::test_each_name_is_noticed_by_a_real_start",
    "workflow/test_shards.py::test_shards_of_two_clusters_make_the_tables_of_one",
    "workflow/test_tpe.py::test_more_batches_keep_what_was_decided",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Omits files without a test to run: each process of xdist would spend seconds on them."""
    if collection_path.suffix != ".py":
        return None
    name, wanted = str(collection_path.relative_to(TESTS)), config.option.markexpr
    if wanted == "rest" and not name.startswith(REST):
        has_some = any(entry.startswith(f"{name}::") for entry in REST)
        return not (has_some or "pytest.mark.rest" in collection_path.read_text()) or None
    is_long = name.startswith(TORTURE) and not os.environ.get("QDSWEEP_TORTURE")
    return is_long or (wanted == "not rest" and name.startswith(REST)) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks and sorts the tests. `--no-loadscope-reorder` in pyproject.toml keeps this order."""

    def place(item: pytest.Item) -> tuple[int, bool]:
        folder = item.path.relative_to(TESTS).parts[0]
        # Another process makes the image while the cluster runs other tests.
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
    """Prints which tests were not run, and how to run them. It lists those that were skipped."""
    if config.option.markexpr == "not rest":
        skipped = {report.nodeid: None for report in terminalreporter.stats.get("skipped", ())}
        build = TESTS.parent / "build"
        build.mkdir(exist_ok=True)
        (build / "skipped.txt").write_text("\n".join([*skipped, ""]))
        terminalreporter.write_line(
            "Not run: tests that need Slurm, images, a browser or many minutes (real clusters, "
            "installs, the site, long searches). `make test-all` runs them too; `make torture` "
            "has the longest forms."
        )


def pytest_xdist_make_scheduler(config, log):
    return ByMachinery(config, log)
