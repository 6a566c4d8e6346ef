"""A sweep of invented runs with its tables, figures and page."""

from types import SimpleNamespace

import pytest
from inventing import SEEDS, make_run, write_plan

from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.page.report import report
from qdsweep.analysis.tables.aggregate import aggregate


@pytest.fixture(scope="session")
def invented(tmp_path_factory):
    """Two algorithms with three seeds, and one run of each other type of archive."""
    results = tmp_path_factory.mktemp("results")
    runs = results / "runs"
    ids, archives = {}, {}
    for name, sigma in (("wide", 1.0), ("narrow", 0.3)):
        for seed in SEEDS:
            ids[name, seed], archives[name, seed] = make_run(runs, name, seed, sigma=sigma)
    kinds = {
        "cvt": ("cvt", 2),
        "sliding": ("sliding_boundaries", 2),
        "proximity": ("proximity", 2),
        "line": ("grid", 1),
        "cube": ("grid", 3),
    }
    for name, (kind, measure_dim) in kinds.items():
        run_id, archive = make_run(runs, name, 1, kind=kind, measure_dim=measure_dim)
        ids[name, 1], archives[name, 1] = run_id, archive
    return SimpleNamespace(results=results, runs=runs, ids=ids, archives=archives)


@pytest.fixture(scope="session")
def main(invented):
    """The finished tables, figures and page of the two algorithms with three seeds."""
    rows = [
        ({"algorithm": name, "seed": seed}, invented.ids[name, seed], 30, None)
        for name in ("wide", "narrow")
        for seed in SEEDS
    ]
    sweep = write_plan(invented.results, "main", ["algorithm", "seed"], rows)
    aggregate(sweep, invented.runs)
    plot(sweep, invented.runs)
    report(sweep, invented.runs)
    return sweep
