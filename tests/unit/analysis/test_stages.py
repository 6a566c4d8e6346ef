"""Each stage is complete, is a command, and names missing or damaged files."""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from in_process import qdsweep
from refusals import names_all, refused
from support import REPO

from qdsweep.analysis import turns
from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.page.report import report
from qdsweep.analysis.stage import Stage
from qdsweep.analysis.stages import STAGES, damaged_stages, forget, maker_of
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.turns import run_stage
from qdsweep.config.compose import compose
from qdsweep.config.sweep import Reevaluate, SweepFile
from qdsweep.host import lock
from qdsweep.host.lock import Lock
from qdsweep.records.paths import SweepDir

NAMES = [stage.name for stage in STAGES]
FILE = SweepFile(name="tiny", experiment="arm")


@pytest.mark.parametrize("stage", STAGES, ids=NAMES)
def test_a_stage_is_whole(stage: Stage):
    module, _, function = stage.function.partition(":")
    assert callable(getattr(import_module(f"qdsweep.{module}"), function))
    assert set(stage.reads) <= set(NAMES[: NAMES.index(stage.name)]), "in the order of the data"
    assert not stage.key or hasattr(FILE, stage.key)
    for shown in filter(None, stage.outputs.values()):
        assert (REPO / f"workflow/report/{shown.caption}.rst").exists()


def test_no_file_has_two_makers():
    outputs = [path for stage in STAGES for path in stage.outputs]
    assert len(set(outputs)) == len(outputs)


def test_every_stage_is_a_command(tmp_path):
    for name in NAMES:
        names_all(qdsweep(name, "--help", cwd=tmp_path), "results/sweeps/")


def test_what_is_asked_for_depends_on_key_runs_and_what_is_there():
    def asked(file: SweepFile, **experiment: str) -> list[str]:
        runs = [compose("arm", experiment)]
        return [stage.name for stage in STAGES if stage.is_asked_for(file, runs)]

    assert asked(FILE) == ["aggregate", "plot", "evolution", "report"]
    assert asked(FILE, algorithm="novelty_search") == ["aggregate", "plot", "evolution", "report"]
    corrected = FILE.model_copy(update={"reevaluate": Reevaluate()})
    assert "corrected" in asked(corrected)
    assert "corrected" not in asked(corrected.model_copy(update={"partial": True}))


def test_a_file_has_its_maker():
    makers = {
        "aggregate": ["table.json", "tables/over_tasks.json"],
        "corrected": ["tables/corrected.json"],
        "plot": ["plots/figures.json", "plots/more/figures.json"],
        "evolution": ["plots/evolution/figures.json"],
    }
    for name, paths in makers.items():
        for path in paths:
            maker = maker_of(Path("results/sweeps/a") / path)
            assert maker.name == name
            names_all(maker.rebuild, f"`qdsweep {name}`")


def test_a_key_that_is_gone_leaves_no_table_but_its_animations(tmp_path):
    for name in ("table.csv", "confirm.json", "tables/corrected.csv", "plots/rollouts/a.gif"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    forget(FILE.model_copy(update={"reevaluate": Reevaluate()}), tmp_path)
    assert not (tmp_path / "confirm.json").exists()
    assert (tmp_path / "tables/corrected.csv").exists()
    forget(FILE, tmp_path)
    assert not (tmp_path / "tables/corrected.csv").exists()
    assert (tmp_path / "table.csv").exists() and (tmp_path / "plots/rollouts/a.gif").exists()


def test_each_stage_names_the_one_before_it(invented, tmp_path):
    with refused("qdsweep aggregate"):
        plot(tmp_path, invented.runs)


@pytest.mark.parametrize(
    ("damaged", "stage", "remedy"),
    [
        ("runs/ID/summary.json", aggregate, "snakemake"),
        ("runs/ID/metrics.csv", aggregate, "snakemake"),
        ("runs/ID/config.yaml", aggregate, "snakemake"),
        ("runs/ID/archive.npz", plot, "snakemake"),
        ("sweeps/main/summary.csv", plot, "snakemake"),
        ("sweeps/main/plots/figures.json", report, "qdsweep plot"),
        ("sweeps/main/table.json", report, "qdsweep aggregate"),
        ("sweeps/main/tables/comparisons.json", report, "qdsweep aggregate"),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(invented, main, tmp_path, damaged, stage, remedy):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results, copy_function=os.link)
    shutil.rmtree(results / "sweeps/main/plots/archives")  # otherwise they are not redrawn
    (results / "sweeps/main/.aggregated.npz").unlink()
    file = results / damaged.replace("ID", invented.ids["wide", 1])
    for content in (b"", b"torn", b"[1]\n", b'{"rows": [1]}\n', b"PK\x03\x04"):
        file.unlink()
        file.write_bytes(content)
        with refused(file, remedy):
            stage(results / "sweeps/main", results / "runs")


@pytest.mark.parametrize(
    ("running", "stage"),
    [("aggregate", "report"), ("report", "aggregate"), ("report", "report")],
    ids=["a reader", "a writer", "the same"],
)
def test_a_stage_waits_for_another_start(invented, main, tmp_path, running, stage):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results, copy_function=os.link)
    sweep = SweepDir(results / "sweeps/main")
    with Lock(sweep.lock(running)):
        before = sweep.report.stat().st_mtime_ns, sweep.summary.stat().st_mtime_ns
        words = [sys.executable, "-P", "-m", "qdsweep", stage, "main", "--results", results]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        names_all(process.stdout.readline(), os.getpid(), "main")
        assert before == (sweep.report.stat().st_mtime_ns, sweep.summary.stat().st_mtime_ns)
    process.communicate()
    assert process.returncode == 0
    assert before != (sweep.report.stat().st_mtime_ns, sweep.summary.stat().st_mtime_ns)


def test_the_lock_of_a_dead_start_on_another_node_is_waited_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "DEAD_SECONDS", 2.0)
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.0)
    sweep = SweepDir(tmp_path / "results/sweeps/main")
    stage = next(stage for stage in STAGES if stage.name == "aggregate")
    path = sweep.lock(stage.name)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"host": "node2", "boot": "another", "pids": "pid:[1]", "pid": 1}))
    begun = time.monotonic()
    with turns._turn(stage, sweep):
        assert 1.9 < time.monotonic() - begun < 3.9


def test_a_stage_that_was_killed_is_made_again(invented, main, tmp_path, monkeypatch):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results, copy_function=os.link)
    sweep = results / "sweeps/main"
    stages = {"plot": STAGES[NAMES.index("plot")]}
    assert damaged_stages(stages, sweep) == {}, "results of an earlier release are trusted"

    def stop(*folders: Path) -> None:
        picture = sweep / "plots/overview.pdf"
        picture.unlink()  # a hard link
        picture.write_text("the first of many")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "load", lambda stage: stop)
        with pytest.raises(KeyboardInterrupt):
            run_stage(stages["plot"], sweep, results / "runs")
    assert damaged_stages(stages, sweep) == {"plot": []}
    run_stage(stages["plot"], sweep, results / "runs")
    assert damaged_stages(stages, sweep) == {}


def test_importing_the_stages_is_cheap():
    code = (
        "import sys, qdsweep.runs.load\n"
        "import qdsweep.analysis.tables.aggregate, qdsweep.analysis.figures.plots\n"
        "print(sorted({'ribs', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
