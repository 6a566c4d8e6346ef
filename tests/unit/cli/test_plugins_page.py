"""docs/plugins.md: its files and commands, typed into an empty folder."""

import shlex
from pathlib import Path

from in_process import checked_sweep, qdsweep
from pages import blocks, commands, files
from support import REPO

PAGE = (REPO / "docs/plugins.md").read_text()


def test_its_commands_work_in_an_empty_folder(in_own_folder):
    for name, content in files(PAGE):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    (typed,) = blocks(PAGE, "console")
    for program, *words in [*commands(PAGE), shlex.split(typed.removeprefix("$ "))]:
        if program == "qdsweep":
            qdsweep(*words, cwd=in_own_folder)
    assert len(checked_sweep(Path("own.yaml")).rows) == 6
    for run in ("maze", "lake", "parts", "own"):
        assert Path(f"results/{run}/archive.npz").is_file()
    assert list(Path("results/car").rglob("*.gif"))
