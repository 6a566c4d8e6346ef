"""Runs that are not finished: each answer has new insertions, and together they are the run."""

import json
import shutil

import numpy as np
import pytest
from exploring import notes, served, unpack
from in_process import compute_run, compute_sweep
from refusals import names_all, refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.experiment import run as running
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.features.explore.live import LIVE, open_run, open_saved
from qdsweep.features.explore.packed import index, pack
from qdsweep.features.explore.shown_runs import ShownRun, choose_runs
from qdsweep.records.paths import Results, RunDir
from qdsweep.runs.load import load

CHANGES = {
    "grid": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
}


class Killed(BaseException):
    """The end of a run without any record of it."""


@pytest.fixture(params=CHANGES)
def snapshots(request, tmp_path, monkeypatch):
    """Returns a finished run, and its folder as it was after iterations 1, 4 and 5."""
    experiment, out, kept = {**TINY, **CHANGES[request.param]}, tmp_path / "runs/run", []
    before = running.Recorder.after_iteration

    def after_iteration(recorder, state, seconds):
        before(recorder, state, seconds)
        if state.iterations in (1, 4, 5):
            recorder.write_status(state, "running")
            kept.append(shutil.copytree(out, tmp_path / f"at{state.iterations}"))
        if state.iterations == 4:
            recorder.saver.save(state)
            kept[-1] = shutil.copytree(out, kept[-1], dirs_exist_ok=True)

    monkeypatch.setattr(running.Recorder, "after_iteration", after_iteration)
    return load(compute_run(experiment, out)), kept


def test_the_answers_together_are_the_finished_run(snapshots):
    run, kept = snapshots
    whole, known, parts = unpack(pack(run)), 0, []
    for folder in [*kept, run.path]:
        parts.append(unpack(pack(open_run(folder), known)))
        assert (parts[-1].evaluations > known).all()
        known = int(parts[-1].evaluations[-1])
    for column in ("evaluations", "cell", "objective"):
        joined = np.concatenate([getattr(part, column) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, column))
    assert [len(part.evaluations) for part in parts[:3]] == [1, 3, 1]
    assert [len(part.final) for part in parts] == [0, 0, 0, len(run.cells)]
    assert not len(unpack(pack(run, known)).evaluations)


def test_a_run_has_the_space_of_its_end(snapshots):
    run, kept = snapshots
    about = index([ShownRun(path, "run", "#000000") for path in (*kept, run.path)])
    (space,) = about["spaces"]
    assert [entry["live"] for entry in about["runs"]] == [True, True, True, False]
    assert {entry["digest"] for entry in about["runs"][:3]} == {LIVE}
    (at_end,) = index([ShownRun(run.path, "run", "#000000")])["spaces"]
    changing = {"low": 0, "high": 0}
    assert space | changing == at_end | changing


def test_an_elite_of_the_last_reload_file_is_played(snapshots):
    _, (_, at4, _) = snapshots
    saved = open_saved(str(at4))
    cells, objective = open_run(at4).history.at(4)
    order = np.argsort(saved.cells)
    np.testing.assert_array_equal(saved.cells[order], cells)
    np.testing.assert_array_equal(saved.arrays["objective"][order], objective)
    with served(at4, cwd=at4.parent) as page:
        film = page.get(f"/film/0/{LIVE}/{cells[0]}")
        assert notes(film)["objective"] == objective[0] and notes(film)["same"]
        assert page.ask(f"/elite/0/{LIVE}/{cells[0]}")[0] == 404
    assert not (at4.parent / "results/explore").exists()


def test_a_run_without_a_reload_file_is_not_played(snapshots):
    _, (at1, _, _) = snapshots
    with refused("reload file"):
        open_saved(str(at1))


def no_status(state):
    (state / "status.json").write_text("")


def earlier_release(state):
    about = json.loads((state / "status.json").read_text())
    del about["archive"]
    (state / "status.json").write_text(json.dumps(about))


def moving_cells(state):
    about = json.loads((state / "status.json").read_text())
    about["archive"]["type"] = "sliding_boundaries"
    (state / "status.json").write_text(json.dumps(about))


def no_history(state):
    (state / "history.bin").unlink()


def no_metrics(state):
    (state / "metrics.csv").write_text("")


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (no_status, "not finished"),
        (earlier_release, "not finished"),
        (moving_cells, "not finished"),
        (no_history, "history"),
        (no_metrics, "metrics.csv"),
    ],
)
def test_a_run_that_cannot_be_followed_is_stated(snapshots, damage, name):
    run, (_, at4, _) = snapshots
    damage(at4 / "state")
    about = index([ShownRun(at4, "a", "#000000"), ShownRun(run.path, "b", "#000000")])
    names_all(about["runs"][0]["problem"], name)
    assert about["runs"][1]["space"] == 0


def test_a_kill_and_a_resume_change_no_insertion(tmp_path, monkeypatch):
    run, killed = compute_run(TINY, tmp_path / "runs/whole"), RunDir(tmp_path / "runs/killed")
    before = running.Recorder.after_iteration

    def after_iteration(recorder, state, seconds):
        before(recorder, state, seconds)
        if state.iterations == 3:
            recorder.saver.save(state)
        if state.iterations == 5:
            recorder.write_status(state, "running")
            raise Killed

    killed.state.path.mkdir(parents=True)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(running.Recorder, "after_iteration", after_iteration)
        running.compute(Attempt.of(compose(TINY), killed), Stop())
    first = unpack(pack(open_run(killed.path)))
    compute_run(TINY, killed.path)
    rest = unpack(pack(open_run(killed.path), int(first.evaluations[-1])))
    whole = unpack(pack(load(run)))
    assert 3 <= len(first.evaluations) <= 5
    for column in ("evaluations", "cell", "objective"):
        joined = np.concatenate([getattr(first, column), getattr(rest, column)])
        np.testing.assert_array_equal(joined, getattr(whole, column))


def test_a_run_whose_budget_was_raised_is_not_finished(tmp_path, monkeypatch):
    results = Results(tmp_path / "results")
    compute_sweep(results.path, {**TINY, "iterations": 5}, "")
    (shown,) = choose_runs(results, ["tiny"]).runs
    plan = results.sweep("tiny").plan
    about = json.loads(plan.read_text())
    about["rows"][0]["iterations"] = 9
    plan.write_text(json.dumps(about))
    chosen = choose_runs(results, ["tiny"])
    assert chosen.is_open and "0 of 1" in chosen.notes[0]
    before = running.Recorder.after_iteration

    def after_iteration(recorder, state, seconds):
        before(recorder, state, seconds)
        if state.iterations == 7:
            raise Interrupted("Ctrl-C")

    run, known = RunDir(shown.path), unpack(pack(open_run(shown.path)))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(running.Recorder, "after_iteration", after_iteration)
        running.compute(Attempt.of(compose({**TINY, "iterations": 9}), run), Stop())
    run.publish()
    assert run.summary.exists(), "that of the first results"
    stopped = open_run(shown.path)
    assert index([shown])["runs"][0]["live"]
    new = unpack(pack(stopped, int(known.evaluations[-1])))
    assert len(known.evaluations) == 5 and len(new.evaluations) == 2


def test_a_run_by_its_folder_is_followed(snapshots):
    run, (at1, *_) = snapshots
    assert choose_runs(Results(run.path.parents[1]), [str(at1)]).is_open
    assert not choose_runs(Results(run.path.parents[1]), [str(run.path)]).is_open
