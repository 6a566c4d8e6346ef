"""The packed data of the page give the archive of every iteration."""

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from exploring import unpack
from in_process import compute_run, forget_plugins
from inventing import make_run
from own_parts import LOSING
from refusals import names_all
from results import forget_sums
from support import TINY

from qdsweep.features.explore.packed import index, pack
from qdsweep.features.explore.shown_runs import ShownRun
from qdsweep.records.history import read_history
from qdsweep.runs.load import Run, load

CHANGES = {
    "grid": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
    "elites leave their cells": {"algorithm": {"type": "losing:Again"}},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/losing.py").write_text(LOSING)
    with contextlib.chdir(folder):
        yield _computed(folder)
    forget_plugins()


def _computed(folder):
    return {
        name: load(compute_run({**TINY, **change}, folder / f"run{place}"))
        for place, (name, change) in enumerate(CHANGES.items())
    }


def archive_at(run, iteration):
    """Returns cell -> objective, as single numbers."""
    cells, objective = read_history(run.files).at(iteration)
    return dict(zip(cells.tolist(), objective.astype(np.float32).tolist(), strict=True))


@pytest.mark.parametrize("name", CHANGES)
def test_the_packed_run_has_the_archive_of_every_iteration(runs, name):
    run = runs[name]
    packed = unpack(pack(run))
    assert packed.exact and not packed.is_approximate
    assert packed.evaluations.tolist() == run.metrics["evaluations"].tolist()
    for iteration in range(len(packed.evaluations) + 1):
        assert packed.at(iteration) == archive_at(run, iteration)
    order = np.argsort(run.arrays["index"])
    np.testing.assert_array_equal(packed.final, run.arrays["index"][order])
    np.testing.assert_array_equal(packed.measures, run.arrays["measures"][order].astype("<f4"))


def test_the_history_of_an_earlier_release_may_be_approximate(runs, tmp_path):
    """Where elites may leave their cells, if the file does not say that it has removals."""
    for name, run in runs.items():
        copied = Run(Path(shutil.copytree(run.path, tmp_path / run.path.name)))
        forget_sums(copied.path)
        with np.load(copied.files.history) as arrays:
            former = {key: arrays[key] for key in arrays if key != "removals"}
        np.savez(copied.files.history, **former)
        assert unpack(pack(copied)).is_approximate == (name == "elites leave their cells")


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """A run of 3,000 iterations whose insertions are invented."""
    folder = forget_sums(compute_run(TINY, tmp_path_factory.mktemp("long") / "run"))
    rng, iterations = np.random.default_rng(1), 3000
    count = rng.poisson(5, iterations)
    iteration = np.repeat(np.arange(1, iterations + 1, dtype=np.int32), count)
    cells, objective = rng.integers(144, size=count.sum()), rng.normal(size=count.sum())
    np.savez(
        folder / "h.npz", iteration=iteration, index=cells.astype(np.int32), objective=objective
    )
    (folder / "h.npz").replace(folder / "history.npz")
    header, *rows = (folder / "metrics.csv").read_text().splitlines()
    after_first = rows[0].split(",", 2)[2]
    lines = [f"{n},{16 * n},{after_first}" for n in range(1, iterations + 1)]
    (folder / "m.csv").write_text("\n".join([header, *lines, ""]))
    (folder / "m.csv").replace(folder / "metrics.csv")
    return Run(folder)


@pytest.mark.parametrize("budget", [50_000, 30_000, 20_000])
def test_a_long_history_is_thinned_into_the_budget(long_run, budget):
    exact = pack(long_run)
    assert unpack(exact).exact and len(exact) > 50_000
    content = pack(long_run, budget=budget)
    packed = unpack(content)
    assert len(content) <= budget and not packed.exact
    assert 32 <= len(packed.evaluations) < 3000
    assert packed.evaluations[-1] == 16 * 3000
    for frame, evaluations in enumerate(packed.evaluations.tolist(), start=1):
        assert packed.at(frame) == archive_at(long_run, evaluations // 16)


KINDS = {
    "line": ("grid", 1, {"dims", "ranges"}),
    "map": ("grid", 2, {"dims", "ranges"}),
    "cube": ("grid", 3, {"dims", "ranges"}),
    "cvt": ("cvt", 2, {"points", "filled", "ranges"}),
    "sliding": ("sliding_boundaries", 2, {"points", "filled", "ranges"}),
    "proximity": ("proximity", 2, {"points", "filled", "ranges"}),
    "alone": ("proximity", 1, {"points", "filled", "ranges"}),
}


def invented(folder, name, kind, measure_dim):
    run_id, _ = make_run(folder, name, 1, kind=kind, measure_dim=measure_dim)
    path = folder / run_id / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"archive_digest": "0" * 64}))
    return folder / run_id


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_archive_kind_has_places_for_its_elites(tmp_path, kind):
    type_, measure_dim, keys = kind
    path = invented(tmp_path, "run", type_, measure_dim)
    about = index([ShownRun(path, "run", "#000000")])
    (space,), (entry,) = about["spaces"], about["runs"]
    json.dumps(about, allow_nan=False)
    assert "problem" not in entry and keys <= set(space)
    assert space["low"] < space["high"] and len(space["measures"]) == measure_dim
    packed = unpack(pack(load(path)))
    assert len(packed.final) == len(load(path).arrays["objective"])
    assert max(packed.final) < space["cells"]
    assert packed.at(len(packed.ends)).keys() == set(packed.final.tolist())
    if type_ in ("grid", "cvt"):  # the archive has no other cells
        assert set(packed.final.tolist()) == set(load(path).arrays["index"].tolist())


def test_runs_that_compare_share_a_space(tmp_path):
    paths = [invented(tmp_path, name, "grid", 2) for name in ("one", "two")]
    paths.append(invented(tmp_path, "three", "cvt", 2))
    about = index([ShownRun(path, path.name, "#000000") for path in paths])
    assert [run["space"] for run in about["runs"]] == [0, 0, 1]
    objective = np.concatenate([load(path).arrays["objective"] for path in paths[:2]])
    assert about["spaces"][0]["low"] == objective.min()


def no_archive(run):
    (run / "archive.npz").unlink()


def truncated(run):
    (run / "archive.npz").write_bytes((run / "archive.npz").read_bytes()[:500])


def other_version(run):
    about = json.loads((run / "summary.json").read_text())
    del about["archive"]["qd_score_offset"]
    (run / "summary.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("damage", "name"),
    [(no_archive, "archive.npz"), (truncated, "archive.npz"), (other_version, "qd_score_offset")],
)
def test_a_damaged_run_is_stated_and_the_others_are_shown(tmp_path, damage, name):
    good, bad = (invented(tmp_path, word, "grid", 2) for word in ("good", "bad"))
    damage(bad)
    about = index([ShownRun(bad, "a", "#000000"), ShownRun(good, "b", "#000000")])
    names_all(about["runs"][0]["problem"], bad, name)
    assert about["runs"][1]["space"] == 0
