"""TPE by the real Snakefile: the same batches on any number of cores, and of more."""

from pathlib import Path

import pytest
from refusals import names_all
from results import read_json, search_results
from support import REPO, command, snakemake, write_yaml

EXPERIMENT = {
    "domain": {"preset": "lp_sphere", "solution_dim": 4},
    "algorithm": "map_elites_line",
    "archive": {"dims": [10, 10]},
    "num_emitters": 1,
    "evaluations": 90,
}
SWEEP = """
:::~ iso_sigma log 0.01 2
:::~ batch_size choice 9 18
:::~ line_sigma log 0.01 1 if batch_size=18
::: algorithm map_elites_line
"""
END = "results/sweeps/mine/search.json"
MARKERS = "results/sweeps/mine/search/*/*-s.json"


def words(folder: Path, samples: int, cores: int) -> list[object]:
    halving = {"rungs": ["1/3", 1]}
    search = {"samples": samples, "batches": samples // 6, "sampling": "tpe", "halving": halving}
    data = {"name": "mine", "experiment": EXPERIMENT, "sweep": SWEEP, "search": search}
    return [END, "--cores", cores, "--configfile", write_yaml(folder / "mine.yaml", data)]


def decided(folder: Path, batch: int) -> dict:
    return read_json(folder / f"results/sweeps/mine/search/batch-{batch}-rung-0/decided-0.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    snakemake(*words(folder, 18, 1), cwd=folder)
    return folder


def test_a_batch_is_told_of_the_largest_budget_with_enough_settings(finished):
    first, second = decided(finished, 1), decided(finished, 2)
    # Of three sources, six settings are enough: so many had the whole budget after three batches.
    assert [place["setting"] for place in first["seen"]] == list(range(6))
    assert [place["setting"] for place in second["seen"]] == list(range(12))
    for reason in {place["reason"] for place in second["places"]}:
        names_all(reason, "tpe", 12)
    assert [place["setting"] for place in second["places"]] == list(range(12, 18))
    for place in first["places"]:
        values = place["values"]
        assert values["sample"] == place["setting"]
        assert values["algorithm"] == "map_elites_line"
        assert (values["line_sigma"] == "") == (values["batch_size"] == 9)
    places = [*first["places"], *second["places"]]
    assert len({run for place in places for run in place["runs"].values()}) == 12


def test_more_batches_keep_what_was_decided(finished, tmp_path):
    for samples in (12, 18):
        snakemake(*words(tmp_path, samples, 2), cwd=tmp_path)
    assert search_results(tmp_path) == search_results(finished)


def test_a_module_with_a_prefix_takes_seeds_of_a_file(tmp_path):
    """The file is where Snakemake starts, not where the prefix moves the results."""
    (tmp_path / "seeds.txt").write_text("seed\n1\n2\n")
    sweep = ":::: seeds.txt :::~ batch_size choice 9 18 :::~ iso_sigma log 0.01 2 if batch_size=18"
    search = {"samples": 6, "batches": 3, "sampling": "tpe"}
    config = {"name": "mine", "experiment": EXPERIMENT, "sweep": sweep, "search": search}
    (tmp_path / "Snakefile").write_text(
        f"module q:\n    snakefile: '{REPO}/workflow/Snakefile'\n    config: {config}\n"
        "    prefix: 'moved/here'\nuse rule * from q as q_*\n"
    )
    table = "moved/here/results/sweeps/mine/tables/importance.csv"
    command("snakemake", f"moved/here/{END}", table, "--cores", 2, cwd=tmp_path)
    runs = (tmp_path / "moved/here/results/runs").glob("*/summary.json")
    assert {path.parent.name.split("-")[-2] for path in runs} == {"s1", "s2"}
