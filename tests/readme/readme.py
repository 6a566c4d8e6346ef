"""The commands of the README and of docs/guide, typed into a fresh clone."""

import os
import re
import subprocess
from pathlib import Path

import pages
from support import BIN, REPO, copy_project, write_yaml

# In the order of reading, in which commands use the results of earlier commands.
GUIDE = (
    *("examples", "report", "explore", "resume", "results", "clusters"),
    *("module", "study", "speed"),
)
PAGES = {
    path: path.read_text()
    for path in (REPO / "README.md", *(REPO / f"docs/guide/{name}.md" for name in GUIDE))
}
# Run elsewhere: `make test-all` runs this test; tests/slurm, tests/container, tests/faults,
# tests/unit, tests/install and tests/workflow run the others; no test machine has uvx and pixi.
ELSEWHERE = (
    "make test",
    "make venv",
    "make image",
    "containers/build.sh",
    "apptainer build",
    "qdsweep --image",
    "snakemake --executor slurm",
    "snakemake --profile profiles/slurm",
    "sbatch",
    "qdsweep worker",
    "qdsweep explore",
    "qdsweep export demo --to tensorboard",
    "qdsweep merge",
    "rsync",
    "pip ",
    "qdsweep init",
    "uvx",
    "pixi",
)


def blocks(language: str, page: str = "*") -> list[str]:
    """The code of this language in all pages, or in one."""
    texts = [text for path, text in PAGES.items() if path.match(page)]
    return [code for text in texts for code in pages.blocks(text, language)]


def lines(start: str) -> list[str]:
    """The commands that start so, each once, without their comments."""
    typed = [line for block in blocks("sh") for line in block.splitlines()]
    starting = [line.split("  #")[0].strip() for line in typed if line.startswith(start)]
    return list(dict.fromkeys(starting))


def commands() -> list[str]:
    """The commands that need neither a cluster nor an image, in their order."""
    typed = [line.strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in typed if line and not line.startswith(ELSEWHERE)]


def needs_the_demo(line: str) -> bool:
    """Whether a command makes or takes results of the demo, or of the run in results/mine.

    The others can be typed in another clone at the same time.
    """
    if line.startswith("snakemake"):
        return " -n" not in line
    return any(word in line for word in ("demo", "results/mine", "clean"))


class Clone:
    """A fresh clone with this venv."""

    def __init__(self, folder: Path) -> None:
        self.folder = copy_project(folder)
        sweep = {"name": "mine", "experiment": "arm", "sweep": "::: seed 1 2"}
        write_yaml(self.folder / "my_sweep.yaml", sweep)

    def run(self, words: list[object]) -> str:
        """Runs a program there; returns what it printed."""
        env = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "workflow"),
        }
        done = subprocess.run(
            words, cwd=self.folder, env=env, capture_output=True, text=True, timeout=1500
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def type(self, line: str) -> None:
        """Runs a command; `make` uses this venv without changes."""
        self.run(["bash", "-c", re.sub(r"^make ", "make -o .venv/installed ", line)])
