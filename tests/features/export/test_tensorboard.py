"""`qdsweep export --to tensorboard`: TensorBoard's own reader gets the metrics of each run."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from in_process import compute_sweep, qdsweep
from refusals import names_all
from support import BIN, TINY, write_yaml
from waiting import wait_until

from qdsweep.files import write_json
from qdsweep.host.lock import Lock
from qdsweep.records.metrics_file import read_metrics
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan, write_plan
from qdsweep.sweep.runs import table_of_runs

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="`make extras`"
)
MINE = {**TINY, "algorithm": "map_elites"}
SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"
TAGS = {
    *("evaluations", "num_elites", "coverage", "qd_score", "norm_qd_score", "obj_max"),
    *("obj_mean", "restarts"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    compute_sweep(folder / "results", TINY, SWEEP)
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    subprocess.run(["cp", "-a", finished / "results", tmp_path], check=True)
    return tmp_path


def export(folder: Path, *words: object, code: int = 0) -> str:
    return qdsweep("export", *words, "--to", "tensorboard", "tb", cwd=folder, code=code)


def read(folder: Path):
    """What TensorBoard reads in the folder of a run, with all points."""
    return reader.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()


def steps(folder: Path, tag: str = "qd_score") -> list[int]:
    return [point.step for point in read(folder).Scalars(tag)]


def tree(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of each file."""
    stats = {
        path: path.stat() for path in folder.rglob("*") if path.suffix != ".lock" and path.is_file()
    }
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def event_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*tfevents*"))}


def run_of(folder: Path, label: str):
    plan = read_plan(SweepDir(folder / "results/sweeps/tiny"))
    (row,) = (row for row in plan.rows if plan.label(row) == label)
    return Results(folder / "results").run(row.run)


def test_tensorboards_reader_gets_all_metrics_of_each_run(folder):
    before = tree(folder / "results")
    names_all(export(folder), "tb/tiny", "4 runs", "tensorboard --logdir tb")
    assert tree(folder / "results") == before
    labels = [f"{name}, seed {seed}" for name in ("cma_mae", "map_elites") for seed in (1, 2)]
    assert [path.name for path in sorted((folder / "tb/tiny").glob("[!.]*"))] == labels
    for label in labels:
        there, run = read(folder / "tb/tiny" / label), run_of(folder, label)
        table = read_metrics(run.metrics)
        assert {*there.Tags()["scalars"]} == TAGS
        for tag in TAGS:
            points = there.Scalars(tag)
            assert [point.step for point in points] == list(range(1, 13))
            values = [point.value for point in points]
            np.testing.assert_array_equal(values, table[tag].astype(np.float32))
        times = [point.wall_time for point in there.Scalars("qd_score")]
        (attempt,) = json.loads(run.state.status.read_text())["attempts"]
        start = datetime.fromisoformat(attempt["started"]).timestamp()
        seconds = table.filter(like="seconds_").sum(axis=1).cumsum()
        np.testing.assert_allclose(times, start + seconds, rtol=0, atol=1e-6)
        (text,) = there.Tensors("config.yaml")
        config = run.config.read_text()
        assert config in text.tensor_proto.string_val[0].decode()
        content = there.PluginTagToContent("hparams")["_hparams_/session_start_info"]
        assert label.split(",")[0].encode() in content


def test_the_same_command_again_changes_nothing(folder):
    export(folder, "tiny")
    before = tree(folder / "tb")
    names_all(export(folder, "tiny"), "4 runs", "0 of them")
    assert tree(folder / "tb") == before
    for path in event_files(folder):  # as a copy to another machine may do
        os.utime(path)
    content = event_files(folder)
    words = [sys.executable, "-m", "qdsweep", "export", "--to", "tensorboard", "tb"]
    subprocess.run(words, cwd=folder, check=True)  # the order of sets differs from here
    assert event_files(folder) == content


@pytest.mark.parametrize("seed", range(3))
def test_cut_off_anywhere_it_is_completed(folder, seed):
    export(folder)
    whole = event_files(folder)
    rng = random.Random(seed)
    for path, content in whole.items():
        path.write_bytes(content[: rng.randrange(len(content))])
    export(folder)
    assert event_files(folder) == whole


def test_killed_it_is_completed_by_the_same_command(folder):
    export(folder)
    whole = event_files(folder)
    words = [sys.executable, "-m", "qdsweep", "export", "--to", "tensorboard", "tb"]
    for killed_at in range(1, len(whole) + 1):
        shutil.rmtree(folder / "tb")
        process = subprocess.Popen(words, cwd=folder)
        wait_until(lambda count=killed_at: len(event_files(folder)) >= count)
        process.kill()
        process.wait()
        subprocess.run(words, cwd=folder, check=True)
        assert event_files(folder) == whole


def test_a_run_is_followed_while_it_is_computed_and_after_it_was_killed(tmp_path):
    experiment = {**MINE, "iterations": 8000, "reload": {"min_seconds": 0.0, "max_cost": 0.5}}
    made = table_of_runs(experiment, "::: seed 5")
    results = Results(tmp_path / "results")
    write_plan(made.plan(name="tiny", experiment="tiny", sweep="::: seed 5"), made.runs, results)
    (run_id,) = made.runs
    out = results.run(run_id)
    file = write_yaml(tmp_path / "mine.yaml", experiment)
    words = [BIN / "qdsweep", "run", file, "--out", out.path]
    assert "1 run" in export(tmp_path)
    assert event_files(tmp_path) == {}, "it has not started"
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    counts = [0]

    def has_grown() -> bool:
        export(tmp_path)
        places = {path.parent for path in event_files(tmp_path)}
        seen = [step for place in places for step in steps(place)]
        assert seen == list(range(1, len(seen) + 1))
        if len(seen) > counts[-1]:
            counts.append(len(seen))
        return len(counts) > 3

    wait_until(has_grown, what="more points")
    assert process.poll() is None, "it is still being computed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    export(tmp_path)
    subprocess.run(words, cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    export(tmp_path)
    (place,) = {path.parent for path in event_files(tmp_path)}
    assert steps(place) == list(range(1, 8001))
    values = [point.value for point in read(place).Scalars("qd_score")]
    np.testing.assert_array_equal(values, read_metrics(out.metrics)["qd_score"].astype(np.float32))
    times = [point.wall_time for point in read(place).Scalars("qd_score")]
    assert times == sorted(times)


def test_rows_that_were_computed_once_more_replace_the_old_ones(folder):
    """Their times differ. A reader that has the old file open continues with the new one."""
    export(folder)
    label = "cma_mae, seed 1"
    place, state = folder / "tb/tiny" / label, run_of(folder, label).state
    opened = read(place)
    header, *rows = state.metrics.read_text().splitlines()
    column = header.split(",").index("seconds_evaluate")
    for number in range(5, 12):
        cells = rows[number].split(",")
        cells[column] = "7.0"
        rows[number] = ",".join(cells)
    state.metrics.write_text("\n".join([header, *rows]) + "\n")
    names_all(export(folder), "1 of them")
    old, new = event_files(place).items()
    assert old[1] == b"" and len(new[1]) > 1000
    for there in (opened.Reload(), read(place)):
        points = there.Scalars("qd_score")
        assert [point.step for point in points] == list(range(1, 13))
        assert points[-1].wall_time - points[0].wall_time > 7 * 7
    old[0].write_bytes(new[1][:100])  # as a kill leaves both
    new[0].write_bytes(new[1][:500])
    export(folder)
    assert event_files(place) == dict([old, new])


def test_other_files_are_left_alone_and_former_names_go(folder):
    out = folder / "tb/tiny"
    others = (
        folder / "tb/notes.txt",
        folder / "tb/mine/events.out.tfevents.1.host",
        out / "notes.txt",
        out / "cma_mae, seed 1/events.out.tfevents.00000.other",
        out / "former/events.out.tfevents.1.host",
        out / "elsewhere/model.pt",
    )
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"precious")
    for name in ("former", "gone"):
        (out / name).mkdir(exist_ok=True)
        (out / name / "events.out.tfevents.00000.qdsweep").touch()
    export(folder)
    assert all(path.read_bytes() == b"precious" for path in others)
    assert not (out / "gone").exists()
    assert not [*(out / "former").glob("*.qdsweep")]
    assert len([*out.glob("*/*.qdsweep")]) == 4


def test_names_that_no_folder_can_have_are_replaced(folder):
    plan = json.loads((folder / "results/sweeps/tiny/plan.json").read_text())
    plan["figures"] = {"labels": {"map_elites": "a/b", "cma_mae": "a_b"}}
    write_json(folder / "results/sweeps/tiny/plan.json", plan)
    export(folder)
    names = [path.parent.name for path in event_files(folder)]
    assert len({*names}) == 4
    assert sorted(name[:12] for name in names) == ["a_b, seed 1 "] * 2 + ["a_b, seed 2 "] * 2


def test_two_exports_into_one_folder_are_refused(folder):
    with Lock(folder / "tb/tiny/.export.lock"):
        names_all(export(folder, code=75), "tb/tiny", str(os.getpid()))
    assert event_files(folder) == {}


def test_a_damaged_file_is_named(folder):
    run = run_of(folder, "cma_mae, seed 1")
    run.state.seal()
    run.state.metrics.write_bytes(run.state.metrics.read_bytes().replace(b"1", b"2", 1))
    names_all(export(folder, code=2), f"{run.name}/state/metrics.csv")


def test_without_the_extra_the_remedy_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # as if it were not installed
    names_all(export(folder, code=2), "export --to tensorboard", "`make extras`")
    assert not (folder / "tb").exists()
