"""Population-based training with the real Snakefile: forks, and one more generation."""

from pathlib import Path

import pytest
from in_process import compute_run
from results import digest, digests, read_json, summary
from starting import jobs, planned, start
from support import write_yaml

from qdsweep.config.compose import compose
from qdsweep.config.keys import read_schedule

SWEEP = ":::~ iso_sigma log 0.005 5 :::~ line_sigma log 0.01 2 ::: seed 1 2"
END = "results/sweeps/mine/search.json"
STEPS = 6  # iterations per generation


def write_config(folder: Path, generations: int = 3) -> Path:
    experiment = {
        "domain": {"preset": "lp_rastrigin", "solution_dim": 6},
        "algorithm": "map_elites_line",
        "initial_solutions": 10,
        "archive": {"dims": [10, 10]},
        "num_emitters": 1,
        "batch_size": 10,
        "iterations": STEPS * generations,
        "reload": {"min_seconds": 0.0, "max_cost": 1.0},
    }
    search = {"pbt": {"population": 4, "generations": generations}}
    data = {"name": "mine", "experiment": experiment, "sweep": SWEEP, "search": search}
    return write_yaml(folder / "mine.yaml", data)


def computed(folder: Path) -> int:
    """Returns the iterations that all attempts of all runs have computed."""
    states = (folder / "results/runs").glob("*/state/status.json")
    attempts = (attempt for path in states for attempt in read_json(path)["attempts"])
    return sum(attempt["iteration"] - attempt["from"] for attempt in attempts)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("population")
    write_config(folder)
    assert planned(folder, END)["search_place"] == 4 * 2 * 3
    start(folder, END)
    return folder


def test_exactly_what_is_planned_is_computed(finished):
    assert computed(finished) == 4 * 2 * 3 * STEPS
    assert planned(finished, END) == {}
    rows = read_json(finished / END)["rows"]
    assert len(rows) == 8
    changed = [row for row in rows if row["values"]["changes"]]
    assert changed
    for row in changed:
        first, *changes = read_schedule(row["values"]["changes"])
        assert first["at"] == 0
        assert changes[-1]["set"] == {name: row["values"][name] for name in first["set"]}
        schedule = compose(str(config_of(finished, row))).schedule
        assert [change.at for change in schedule] == [change["at"] for change in changes]


def config_of(folder: Path, row: dict) -> Path:
    return folder / f"results/runs/{row['id']}/state/config.yaml"


def test_a_member_is_the_run_that_is_computed_from_nothing(finished, tmp_path):
    rows = read_json(finished / END)["rows"]
    row = max(rows, key=lambda row: len(row["values"]["changes"]))
    run = compute_run(config_of(finished, row), tmp_path / "run")
    assert summary(run)["id"] == row["id"]
    assert digest(run) == digests(finished)[row["id"]]


def test_one_more_generation_computes_only_that_generation(copy):
    write_config(copy, generations=4)
    before = computed(copy)
    assert jobs(start(copy, END))["search_place"] == 4 * 2
    assert computed(copy) - before == 4 * 2 * STEPS
