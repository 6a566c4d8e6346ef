"""Snakemake in the job of one run, as Slurm's plugin starts it, only reads that run."""

import re
from pathlib import Path

import pytest
import yaml
from refusals import refused
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args
from support import REPO, TINY, command

from qdsweep.planning.internals import is_of_runs
from qdsweep.planning.rows import planned_budget
from qdsweep.records.paths import Results
from qdsweep.records.plan import write_plan
from qdsweep.sweep.runs import table_of_runs

PROBE = f"""
import atexit, sys
import qdsweep.sweep.runs as runs

runs.compose, original = lambda *a, **b: print("COMPOSED", file=sys.stderr) or original(*a, **b), \
    runs.compose

events = []
sys.setprofile(lambda frame, *_: "qdsweep" in frame.f_code.co_filename and events.append(0))
atexit.register(lambda: print("EVENTS", len(events)))

include: "{REPO / "Snakefile"}"
"""


def planned(folder: Path, runs: int) -> tuple[Path, str]:
    """A sweep of this many runs after its start, and one of its runs."""
    sweep = f"::: seed {' '.join(map(str, range(runs)))} ::: iterations 6 12"
    file = {"name": "tiny", "experiment": TINY, "sweep": sweep}
    (folder / "mine.yaml").write_text(yaml.safe_dump(file))
    (folder / "probe.smk").write_text(PROBE)
    # Composed once. A job only sees the rows of the other runs in the plan.
    made = table_of_runs(TINY, "::: seed 0 ::: iterations 6 12")
    (run,) = made.runs
    plan = made.plan(name="tiny", experiment="lp_sphere", sweep=sweep)
    others = [row | {"id": f"{run}-{n}"} for n in range(1, runs) for row in plan["rows"]]
    write_plan(plan | {"rows": [*others, *plan["rows"]]}, made.runs, Results(folder / "results"))
    return folder, run


def parse(folder: Path, run: str, *words: str) -> tuple[str, int]:
    """Starts Snakemake as in a run's job, and returns its output and the calls of this package."""
    (target,) = encode_target_jobs_cli_args([TargetSpec("qd_run", {"run": run})])
    words = ("--target-jobs", target, "--allowed-rules", "qd_run", "--mode", "remote", *words)
    done = command(
        *("snakemake", "-n", "-s", "probe.smk", "--configfile", "mine.yaml", "--cores", 1),
        *(*words, "--force", "--nolock", "--no-hooks"),
        cwd=folder,
    )
    (events,) = re.findall(r"EVENTS (\d+)", done.stdout)
    return done.stdout + done.stderr, int(events)


def test_a_job_composes_no_other_run_however_large_its_sweep(tmp_path):
    events = {}
    for runs in (10, 10_000):
        (tmp_path / str(runs)).mkdir()
        printed, events[runs] = parse(*planned(tmp_path / str(runs), runs))
        assert "COMPOSED" not in printed
        assert "iterations=12" in printed
    # Each value of the sweep is read. Composing one of its runs takes thousands of calls.
    assert events[10_000] - events[10] < 100 * 20_000, events


def test_the_start_itself_composes_each_setting_once(tmp_path):
    folder, _ = planned(tmp_path, 3)
    words = ("-s", "probe.smk", "--configfile", "mine.yaml", "--cores", 1)
    done = command("snakemake", "-n", *words, cwd=folder)
    assert done.stderr.count("COMPOSED") == 2  # two budgets; three seeds are copies


@pytest.mark.parametrize(
    ("words", "of_runs"),
    [
        (["--target-jobs", "qd_run:run=a", "--cores", "1"], True),
        (["--target-jobs", "qd_run:run=a", "reevaluate:run=b"], True),
        (["--target-jobs", "aggregate:sweep=a"], False),
        (["--target-jobs", "qd_run:run=a", "aggregate:sweep=a", "--cores", "1"], False),
        (["--cores", "1"], False),
    ],
)
def test_a_job_of_runs_is_known_by_its_command_line(words, of_runs):
    assert is_of_runs(["python", "-m", "snakemake", *words]) is of_runs


def test_the_budget_of_a_job_is_the_largest_of_the_plan(tmp_path):
    folder, run = planned(tmp_path, 2)
    sweep = Results(folder / "results").sweep("tiny")
    assert planned_budget(sweep, run) == {"iterations": 12}
    sweep.confirm.write_text("truncated")  # runs of the sweep do not need it
    assert planned_budget(sweep, run) == {"iterations": 12}
    sweep.plan.write_text("torn")
    with refused("plan.json", "snakemake"):
        planned_budget(sweep, run)
