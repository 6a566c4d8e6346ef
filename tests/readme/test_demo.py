"""The README's demo and what the pages do with its results, in their order."""

import shutil

import pandas as pd
import pytest
from readme import Clone, blocks, commands, needs_the_demo
from support import BIN, REPO


@pytest.mark.skipif(
    not (REPO / "results/sweeps/demo/report.html").exists(),
    reason="`make demo` first: its results are what the commands take",
)
@pytest.mark.timeout(1800)
def test_the_demo_and_what_is_done_with_it(tmp_path):
    clone = Clone(tmp_path / "qdsweep")
    for folder in ("results", ".snakemake"):
        shutil.copytree(REPO / folder, clone.folder / folder, symlinks=True)
    lines = [line for line in commands() if needs_the_demo(line)]
    assert len(lines) > 10
    for line in lines:
        clone.type(line)
    lengths = {}
    for page, printed in (("results.md", "len(run.metrics)"), ("README.md", "len(table)")):
        (python,) = blocks("python", page=page)
        code = f"{python}\nprint(run.archive.stats, {printed})"
        lengths[page] = int(clone.run([BIN / "python", "-c", code]).split()[-1])
    assert lengths == {"results.md": 150, "README.md": 6}, "a later command has extended the run"
    table = pd.read_csv(clone.folder / "results/sweeps/demo/summary.csv")
    assert len(table) == 6
    assert table["algorithm"].nunique() == 3
    assert table["obj_max"].max() > 200, "the demo lands"
    assert (clone.folder / "results/sweeps/demo/report.html").stat().st_size > 10_000
