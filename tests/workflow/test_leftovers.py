"""Tests leave nothing, also after Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import leftovers
import psutil
import pytest
from support import REPO, shared_folder
from waiting import wait_until


def folders() -> set[Path]:
    """Those of starts of pytest by tests of this one."""
    return {*shared_folder().glob("q????????")}


def jobs(folder: Path) -> list[psutil.Process]:
    """What Snakemake has started in tests whose folder this is."""
    return [
        child
        for process in leftovers.processes(folder)
        if "snakemake" in leftovers.command_of(process)
        for child in process.children()
    ]


@pytest.mark.parametrize(("processes", "number"), [(0, signal.SIGINT), (2, signal.SIGTERM)])
def test_nothing_is_left_after_control_c(processes, number, tmp_path):
    before = folders()
    words = [sys.executable, "-m", "pytest", "tests/workflow/test_sweep.py", f"-n{processes}"]
    with (tmp_path / "printed").open("w") as printed:
        tests = subprocess.Popen(
            words, cwd=REPO, stdout=printed, stderr=printed, start_new_session=True
        )
    wait_until(lambda: folders() - before, 300, "its folder")
    (folder,) = folders() - before
    wait_until(lambda: jobs(folder), 300, "a job of a sweep")
    os.killpg(tests.pid, number)
    assert tests.wait(300) != 0
    assert not folder.exists()
    assert leftovers.processes(folder) == []
