"""The files and commands of docs/rl.md, atari.md, learning.md, searches.md, with tiny budgets."""

import re
from pathlib import Path

import pytest
from in_process import checked_sweep, qdsweep
from pages import commands, files
from support import REPO

TORCH, ALE = ["stable_baselines3"], ["ale_py"]
# Their packages, and keys with which their runs take seconds.
PAGES = {
    "rl": (TORCH, {"iterations": 1, "evaluate_every": 1, "max_episode_steps": 40, "unroll": 16}),
    "atari": (
        TORCH + ALE,
        {"iterations": 2, "max_frames": 80, "batch_size": 6, "first_batch": None},
    ),
    "learning": ([], {"iterations": 1}),
    "searches": ([], {}),
}
BUDGET = re.compile(r"--set (env_steps|evaluations|iterations)=\d+")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_as_described(page, tmp_path):
    packages, small = PAGES[page]
    for package in packages:
        pytest.importorskip(package, reason="`make extras`, `make rl`")
    text = (REPO / f"docs/{page}.md").read_text()
    for name, content in files(text):
        Path(name).write_text(content)
    shorter = [
        word
        for key, value in small.items()
        if value is not None
        for word in ("--set", f"{key}={value}")
    ]
    looked_at = 0
    for program, *words in commands(BUDGET.sub("", text)):
        if program == "qdsweep":
            more = {"run": shorter, "scale": [*shorter, "--repeats", "1"]}.get(words[0], [])
            qdsweep(*words, *more, cwd=tmp_path)
            out = tmp_path / words[words.index("--out") + 1] if words[0] == "run" else tmp_path
            assert words[0] != "run" or (out / "summary.json").exists()
            looked_at += 1
        elif program == "snakemake":
            file = Path(words[words.index("--configfile") + 1])
            assert checked_sweep(file if file.exists() else REPO / file).rows
            looked_at += 1
    assert looked_at >= 2
