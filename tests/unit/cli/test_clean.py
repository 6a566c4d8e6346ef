"""What `qdsweep clean` removes, and prints about links."""

from pathlib import Path

import pytest
from in_process import qdsweep
from refusals import names_all


@pytest.mark.parametrize("there", [True, False], ids=["target", "dangling"])
@pytest.mark.parametrize("words", [("--orphans",), ("--runs", "arm-x-s0-0", "--yes")])
def test_a_run_that_is_a_link_is_removed_without_its_target(tmp_path: Path, there: bool, words):
    link, target = tmp_path / "results/runs/arm-x-s0-0", tmp_path / "disk/arm"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    if there:
        target.mkdir(parents=True)
        (target / "archive.npz").write_bytes(b"x" * 1_000_000)
    told = qdsweep("clean", *words, "--dry-run", cwd=tmp_path)
    names_all(told, link.relative_to(tmp_path), target, "1 found, 0.000 MB")
    assert link.is_symlink()
    names_all(qdsweep("clean", *words, cwd=tmp_path), "1 found, 0.000 MB removed")
    assert not link.is_symlink()
    assert (target / "archive.npz").exists() == there
