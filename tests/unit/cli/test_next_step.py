"""`qdsweep` without a command: the next step in this folder."""

import os
from pathlib import Path

from in_process import compute_sweep, qdsweep, report_sweep
from refusals import names_all
from support import TINY, write_yaml

from qdsweep.host.lock import Lock
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan
from qdsweep.records.status import write_status

SWEEP = "::: seed 1 2"
REPORT = "results/sweeps/tiny/report.html"


def next_step(folder: Path) -> str:
    return qdsweep(cwd=folder)


def write_config(folder: Path, **changes: object) -> None:
    (folder / "config").mkdir(exist_ok=True)
    text = {"name": "tiny", "experiment": TINY, "sweep": SWEEP, **changes}
    write_yaml(folder / "config/config.yaml", text)


def test_an_empty_folder_needs_a_study(tmp_path):
    names_all(next_step(tmp_path), "config/config.yaml", "qdsweep init")
    assert not [*tmp_path.iterdir()]


def test_a_sweep_that_was_not_started(tmp_path):
    write_config(tmp_path)
    text = next_step(tmp_path)
    names_all(text, "tiny", "2 of 2 runs", "qdsweep plan", "qdsweep sweep", "qdsweep watch")
    (tmp_path / "Snakefile").touch()
    names_all(next_step(tmp_path), "snakemake --cores all")


def test_a_search_counts_its_places(tmp_path):
    write_config(tmp_path, sweep="::: step 0.5 1.0 2.0 ::: seed 1", search={"halving": {}})
    names_all(next_step(tmp_path), "5 of 5 places", "qdsweep plan")


def test_a_sweep_in_part_and_as_a_whole(tmp_path):
    sweep = compute_sweep(tmp_path / "results", TINY, SWEEP)
    names_all(next_step(tmp_path), "tiny", REPORT, "qdsweep status tiny", "qdsweep watch")
    report_sweep(sweep)
    for write in (lambda: None, lambda: write_config(tmp_path)):
        write()
        text = next_step(tmp_path)
        names_all(text, "tiny", REPORT, "qdsweep status tiny")
        assert "plan" not in text
    write_config(tmp_path, sweep="::: seed 1 2 3")
    names_all(next_step(tmp_path), "1 of 3 runs", "qdsweep plan")


def test_the_running_and_the_failed_runs_are_named(tmp_path):
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    results = Results(tmp_path / "results")
    running, failed = (results.run(run.id).state for run in read_plan(results.sweep("tiny")).runs())
    write_status(failed, {"id": failed.path.parent.name, "status": "failed", "iteration": 1})
    for write in (lambda: None, lambda: write_config(tmp_path)):
        write()
        text = next_step(tmp_path)
        names_all(text, "1 failed: tiny, seed 2\n", "qdsweep status tiny")
        assert "running" not in text
        with Lock(running.lock):
            text = next_step(tmp_path)
        names_all(
            text, "1 running: tiny, seed 1\n", "1 failed: tiny, seed 2\n", "qdsweep watch tiny"
        )


def test_status_before_the_first_start_names_the_command(tmp_path):
    names_all(qdsweep("status", cwd=tmp_path, code=2), "qdsweep init")
    write_config(tmp_path)
    text = qdsweep("status", cwd=tmp_path, code=2)
    names_all(text, "config/config.yaml", "qdsweep sweep")
    assert "--results" not in text
    names_all(qdsweep("status", "--results", "other", cwd=tmp_path, code=2), "--results", "other")


def test_status_names_a_config_that_was_edited_after_the_start(tmp_path):
    write_config(tmp_path)
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    config, plan = tmp_path / "config/config.yaml", tmp_path / "results/sweeps/tiny/plan.json"
    for seconds, name, is_named in ((-9, "tiny", False), (9, "tiny", True), (9, "mine", False)):
        write_config(tmp_path, name=name)
        os.utime(config, (plan.stat().st_mtime + seconds,) * 2)
        last = qdsweep("status", "tiny", cwd=tmp_path).splitlines()[-1]
        assert ("config/config.yaml" in last and "qdsweep plan" in last) == is_named
    config.write_text("name: [")
    qdsweep("status", "tiny", cwd=tmp_path)


def test_a_sweep_of_another_file_that_was_started_last_is_named(tmp_path):
    """Such as one that `--config sweep=...` has given."""
    write_config(tmp_path, name="mine", sweep="::: seed 7")
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    first, *others = next_step(tmp_path).splitlines()
    names_all(first, "tiny")
    names_all("\n".join(others), "qdsweep status tiny", "mine", "1 of 1 run ", "qdsweep sweep")


def test_a_wrong_config_is_named(tmp_path):
    write_config(tmp_path, experiment="lunar_landr")
    text = qdsweep(cwd=tmp_path, code=2)
    names_all(text, "config/config.yaml", "lunar_landr", "lunar_lander")


def test_a_status_that_cannot_be_read_is_named(tmp_path):
    compute_sweep(tmp_path / "results", TINY, SWEEP)
    write_config(tmp_path)
    assert "status.json" not in next_step(tmp_path)
    file = next(tmp_path.glob("results/runs/*/state/status.json"))
    file.unlink()
    file.mkdir()
    names_all(next_step(tmp_path), file.relative_to(tmp_path), "1 of 2 runs")
    names_all(qdsweep("plan", cwd=tmp_path), file.relative_to(tmp_path))


def test_a_file_that_hides_the_package_is_named(tmp_path):
    (tmp_path / "qdsweep.py").touch()
    names_all(next_step(tmp_path), "qdsweep.py", "qdsweep init")
