"""What a user's environment may hold: settings of libraries, a Slurm that does not answer."""

import os
import re
import shutil
from pathlib import Path

import pytest
from refusals import names_all
from support import REPO, command, snakemake, write_yaml

# Matplotlib reads the file of the working folder first, then that of MATPLOTLIBRC.
RC = """
backend: module://matplotlib_inline.backend_inline
figure.dpi: 40
savefig.dpi: 50
savefig.bbox: tight
savefig.transparent: True
font.family: monospace
font.size: 20
text.usetex: True
axes.prop_cycle: cycler("color", ["red"])
lines.linewidth: 9
image.cmap: gray
"""
# What the file of a user's domain may do at its import.
DOMAIN = """
import os
import re
from qdsweep.domains.base import Evaluation

if os.environ.get("LOUD"):
    import matplotlib.style, numpy, pandas, plotly.io

    matplotlib.style.use("dark_background")
    numpy.set_printoptions(precision=1, suppress=True)
    pandas.set_option("display.precision", 1, "display.max_colwidth", 3)
    plotly.io.renderers.default = "browser"
    plotly.io.templates.default = "plotly_dark"


class Plane:
    def __init__(self):
        self.solution_dim, self.objective_range = 4, (-10, 0)
        self.measures = {"x": (-2, 2), "y": (-2, 2)}
        self.fields, self.step = {}, 0.5

    def evaluate(self, solutions, seeds):
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2])
"""


def write_sweep(folder: Path) -> tuple:
    """Writes a small sweep with many kinds of figures; returns the options that start it."""
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/loud.py").write_text(DOMAIN)
    experiment = {"domain": "loud:Plane", "iterations": 8, "archive": {"dims": [9, 9]}}
    swept = "::: algorithm map_elites cma_me ::: batch_size 4 8 ::: seed 1 2 3"
    write_yaml(folder / "sweep.yaml", {"name": "s", "experiment": experiment, "sweep": swept})
    return ("--cores", 2, "--configfile", "sweep.yaml")


def files(folder: Path) -> dict[str, bytes]:
    """Figures and tables, but for what names seconds."""
    made = folder / "results/sweeps/s"
    paths = [
        *made.glob("plots/**/*.p[dn][fg]"),
        *made.glob("plots/**/*.gif"),
        *made.glob("**/*.csv"),
    ]
    return {
        str(path.relative_to(made)): path.read_bytes()
        for path in paths
        if "timing" not in path.name
    }


def test_figures_are_the_same_bytes_in_a_terminal_of_a_notebook(tmp_path):
    usual, noisy = tmp_path / "usual", tmp_path / "noisy"
    snakemake(*write_sweep(usual), cwd=usual)
    words = write_sweep(noisy)
    shutil.copytree(usual / "results/runs", noisy / "results/runs")
    for folder in (noisy, noisy / "rc"):
        folder.mkdir(exist_ok=True)
        (folder / "matplotlibrc").write_text(RC)
    backend = "module://matplotlib_inline.backend_inline"
    snakemake(*words, cwd=noisy, MPLBACKEND=backend, MATPLOTLIBRC=str(noisy / "rc"), LOUD="1")
    assert len(files(usual)) > 20
    assert files(noisy) == files(usual)
    assert (noisy / "results/sweeps/s/report.html").exists()


def test_a_slurm_that_does_not_answer_is_named_with_its_remedy(tmp_path):
    """The Slurm plugin asks it for ten seconds, at each start."""
    words = write_sweep(tmp_path)
    (tmp_path / "bin").mkdir()
    for program in ("scontrol", "sinfo", "squeue", "sacct"):
        (tmp_path / "bin" / program).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / "bin" / program).chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    waited = snakemake("-n", *words, cwd=tmp_path, PATH=path)
    names_all(waited.stderr, "scontrol ping", "SLURM_CONF=/dev/null")
    usual = snakemake("-n", *words, cwd=tmp_path)
    assert "SLURM_CONF" not in usual.stderr


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("", ["True False squeue 15"]),
        # What is typed counts, also where it equals a default of the plugin.
        ("--slurm-no-requeue --slurm-status-command=sacct", ["False True sacct 15"]),
        ("--slurm-init-seconds-before-status-checks 40", ["True False squeue 40"]),
    ],
)
def test_slurm_jobs_are_requeued_and_asked_for_by_squeue(tmp_path, typed, options):
    """The options that Snakemake's real Slurm plugin has when it starts its jobs."""
    names = ("requeue", "no_requeue", "status_command", "init_seconds_before_status_checks")
    values = ", ".join(f"workflow.executor_settings.{name}" for name in names)
    (tmp_path / "Snakefile").write_text(
        f'include: "{REPO}/Snakefile"\n'
        f'import atexit\natexit.register(lambda: print("options:", {values}))\n'
    )
    words = write_sweep(tmp_path)[2:]
    start = ("--executor", "slurm", "--jobs", 4, *typed.split())
    done = command("snakemake", *start, *words, cwd=tmp_path)
    assert re.findall("options: (.*)", done.stdout) == options
