"""docs/own_algorithms.md: its files and commands, typed into an empty folder."""

import re
import shlex
from pathlib import Path

import numpy as np
from pages import files
from support import REPO

from qdsweep.cli import main
from qdsweep.planning.start import read_sweep
from qdsweep.sweep.runs import table_of_runs

PAGE = (REPO / "docs/own_algorithms.md").read_text()


def test_the_page_takes_a_script_to_a_sweep(plugins, in_own_folder, monkeypatch):
    for name, content in files(PAGE):
        Path(name).write_text(content)
    plugins("script", Path("script.py").read_text())
    commands = re.findall(r"^(?:qdsweep|snakemake) .*", PAGE, flags=re.M)
    for command in commands:
        program, *words = shlex.split(command)
        if program == "qdsweep":
            assert main(words) == 0, command
    sweep = read_sweep({}, files=["study.yaml"])
    rows = table_of_runs(sweep.experiment, sweep.sweep).rows
    assert len({row.id for row in rows}) == 12
    assert {row.experiment.algorithm.arguments["sigma"] for row in rows} == {0.1, 0.3}

    scope: dict[str, object] = {"__name__": "__main__"}
    exec(Path("script.py").read_text(), scope)
    data = scope["scheduler"].archive.data()
    with np.load("results/function/archive.npz") as archive:
        order = np.argsort(data["index"])
        assert np.array_equal(archive["solution"], data["solution"][order])
