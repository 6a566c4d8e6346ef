"""Which finished runs of a large sweep need no job of Snakemake's."""

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.settings.types import RerunTrigger

from qdsweep.planning import settled as module
from qdsweep.planning.internals import may_leave_out
from qdsweep.planning.settled import settled
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.status import Status

RESULTS = ("config.yaml", "metrics.csv", "archive.npz", "summary.json", "reload-000000005.pkl")
PUBLISHED = (*RESULTS[:-1], "reload.pkl")
WHOLE, STALE, UNSURE = ({"a"}, set()), (set(), {"a"}), (set(), set())


@pytest.fixture
def run(tmp_path) -> RunDir:
    run = Results(tmp_path).run("a")
    run.state.path.mkdir(parents=True)
    Results(tmp_path).sweep("s").path.mkdir(parents=True)
    for name in RESULTS:
        (run.state.path / name).write_text(name)
    run.publish()
    return run


def look(run: RunDir, budget: int = 100) -> tuple[set[str], set[str]]:
    known = {"a": Status("a", "finished", evaluations=100)}
    experiment = SimpleNamespace(budget={"evaluations": budget})
    sweep = Results(run.path.parent.parent).sweep("s")
    runs = settled({"a": experiment, "b": experiment}, known, sweep)
    assert all(time == run.summary.stat().st_mtime for time in runs.whole.values())
    return set(runs.whole), set(runs.stale)


def copied(run: RunDir) -> RunDir:
    """A file system without hard links."""
    for name in PUBLISHED:
        shutil.copyfile(run.path / name, run.path / "copy")
        (run.path / "copy").replace(run.path / name)
    return run


def test_a_finished_run_is_settled_up_to_its_budget(run):
    assert look(run) == look(run, 99) == look(copied(run)) == WHOLE
    assert look(run, 101) == UNSURE
    for file in (run.summary, run.state.summary):
        os.utime(file, (0, 0))  # as in a reproducible archive
    assert look(run) == WHOLE


@pytest.mark.parametrize("name", sorted({*PUBLISHED, *RESULTS}))
def test_one_that_lacks_a_file_has_a_job(run, name):
    folders = [run.path] * (name in PUBLISHED) + [run.state.path] * (name in RESULTS)
    for folder in folders:
        (folder / name).rename("away")
        assert look(run) == UNSURE
        Path("away").rename(folder / name)
    assert look(run) == WHOLE


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_truncated_file_is_published_again(run, name):
    assert look(copied(run)) == WHOLE
    (run.path / name).write_text("")
    assert look(run) == STALE
    run.publish()
    assert look(run) == WHOLE


def test_a_file_that_is_older_than_what_it_is_of_is_left_to_snakemake(run):
    copied(run)
    os.utime(run.metrics, (1, 1))
    assert look(run) == UNSURE


def test_a_config_that_was_written_again_changes_nothing(run):
    run.state.config.unlink()
    run.state.config.write_text("with another list of metrics")
    assert look(run) == WHOLE


@pytest.mark.parametrize("name", PUBLISHED)
def test_hard_links_are_compared_again_only_if_their_folder_has_changed(run, monkeypatch, name):
    monkeypatch.setattr(module, "_TICK", 0)
    time.sleep(0.02)
    assert look(run) == WHOLE
    with monkeypatch.context() as patch:
        patch.setattr(module, "_published", None)
        assert look(run) == WHOLE
    time.sleep(0.02)  # a folder has the time of the kernel's last tick
    (run.path / "torn").write_text("")
    (run.path / "torn").replace(run.path / name)
    assert look(run) == STALE


def test_hard_links_in_a_folder_that_has_just_changed_are_compared_again(run, monkeypatch):
    assert look(run) == WHOLE
    monkeypatch.setattr(module, "_published", lambda path: (None, False))
    assert look(run) == UNSURE


def asked(**changed: object) -> SimpleNamespace:
    settings = {
        **dict.fromkeys(("forceall", "forcetargets"), False),
        **dict.fromkeys(("forcerun", "until", "omit_from", "target_jobs"), ()),
        **{"allowed_rules": (), "targets": (), "batch": None},
        "rerun_triggers": {RerunTrigger.MTIME, RerunTrigger.PARAMS, RerunTrigger.INPUT},
    }
    return SimpleNamespace(
        dag_settings=SimpleNamespace(**settings | changed), executor_plugin="any", touch=False
    )


@pytest.mark.parametrize(
    ("changed", "may"),
    [
        ({}, True),
        ({"targets": {"results/sweeps/a/summary.csv"}}, True),
        ({"targets": {"results/runs/a/summary.json"}}, False),
        ({"forceall": True}, False),
        ({"forcerun": {"aggregate"}}, False),
        ({"until": {"qd_run"}}, False),
        ({"rerun_triggers": {RerunTrigger.CODE}}, False),
    ],
)
def test_runs_are_left_out_unless_jobs_are_named_or_forced(changed, may):
    assert may_leave_out(asked(**changed), "results/runs") is may


def test_what_only_looks_at_jobs_or_touches_their_files_has_all_of_them(tmp_path):
    workflow = asked()
    workflow.executor_plugin = None
    assert not may_leave_out(workflow, str(tmp_path))
    workflow.executor_plugin, workflow.touch = "touch", True
    assert not may_leave_out(workflow, str(tmp_path))
