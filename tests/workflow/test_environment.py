"""What a user's environment may hold: settings of libraries, a Slurm that does not answer."""

import os
import re
import shutil
from pathlib import Path

import pytest
from refusals import names_all
from support import REPO, TINY, command, snakemake, write_yaml

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


def test_a_run_log_is_utf_8_whatever_the_locale_is(tmp_path):
    """Its plot has characters that neither ASCII nor Latin-1 has."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    write_yaml(tmp_path / "tiny.yaml", TINY)
    words = ("qdsweep", "run", "tiny.yaml", "--out", "out")
    done = command(*words, cwd=tmp_path, **ascii_only)
    assert "Traceback" not in done.stderr
    assert "┤" in (tmp_path / "out/run.log").read_text(encoding="utf-8")


def test_a_sweep_needs_no_home(tmp_path):
    """Snakemake has a cache in it, and qdsweep the user's key."""
    words = write_sweep(tmp_path)
    started = snakemake(*words, "--until", "qd_run", cwd=tmp_path, HOME="/dev/null/none")
    assert "Traceback" not in started.stderr
    assert len(list(tmp_path.glob("results/runs/*/summary.json"))) == 12


@pytest.mark.parametrize("engine", ["serial", "dask"])
def test_files_of_the_working_folder_replace_no_module(tmp_path, engine):
    """`python -m` would look there first; the own domain may import what is there."""
    words = write_sweep(tmp_path)
    for name in ("types", "random", "queue", "token", "numpy", "yaml", "ribs", "qdsweep"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not this one')\n")
    (tmp_path / "mine.py").write_text("")
    domain = tmp_path / "config/plugins/loud.py"
    domain.write_text(f"import mine\n{domain.read_text()}")
    workers = 1 if engine == "serial" else 2
    write_yaml(tmp_path / "cluster.yaml", {"engine": engine, "workers_per_node": workers})
    few = ("sweep=::: algorithm map_elites ::: seed 1 ::: batch_size 4", "cluster=cluster.yaml")
    snakemake(*words, "--until", "qd_run", "--config", *few, cwd=tmp_path)
    assert list(tmp_path.glob("results/runs/*/summary.json"))
    command("qdsweep", "check", "loud:Plane", cwd=tmp_path)


def test_variables_of_a_slurm_job_that_has_ended_stop_no_run(tmp_path):
    """A tmux session keeps those of the interactive job in which it was started."""
    ended = {"SLURM_JOB_ID": "33522533", "SLURM_JOB_END_TIME": "1733275777"}
    write_yaml(tmp_path / "tiny.yaml", TINY)
    words = ("qdsweep", "run", "tiny.yaml", "--out", "out")
    command(*words, cwd=tmp_path, **ended, SLURM_CONF=os.devnull)
    assert (tmp_path / "out/summary.json").exists()


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
