"""Published values: the group of an entry."""

import json

import pytest
import yaml
from given import entry
from refusals import refused
from support import REPO, TINY

from qdsweep.config.files import read_yaml
from qdsweep.config.sweep import SweepFile
from qdsweep.planning.checks import check_sweep
from qdsweep.planning.request import Given, read_sweep
from qdsweep.sweep.groups import Groups
from qdsweep.sweep.runs import table_of_runs


@pytest.fixture(scope="module")
def groups():
    rows = [
        {"algorithm": a, "batch_size": b, "sigma0": s, "elitist": e, "seed": seed}
        for a, b in (("map_elites", 16), ("cma_me", 8))
        for s in (0.2, 0.5)
        for e in (True, False)
        for seed in (1, 2)
    ]
    return Groups(list(rows[0]), rows)


@pytest.mark.parametrize(
    "where",
    [
        {"algorithm": "cma_me", "sigma0": 0.5, "elitist": True},
        {"batch_size": 8, "sigma0": 0.50, "elitist": True},  # linked to the algorithm
        {"batch_size": 8.0, "sigma0": 0.5, "elitist": True},
    ],
)
def test_it_chooses_by_any_values_that_distinguish_groups(groups, where):
    assert groups.choose(1, where) == "cma_me, sigma0 0.5, elitist true"


def test_one_group_needs_no_values():
    assert Groups(["seed"], [{"seed": 1}, {"seed": 2}], "sphere").choose(1, {}) == "sphere"


def test_a_sweep_is_checked_before_any_work():
    sweep = table_of_runs({**TINY, "algorithm": "cma_me"}, "::: sigma0 0.2 0.5 ::: seed 1 2")

    def check(*published):
        file = SweepFile(name="a", experiment="arm", published=list(published))
        check_sweep(file, sweep, {(): "mine.yaml"})

    check(entry({"sigma0": 0.5}))
    check()
    with refused("mine.yaml", "published, entry 2"):
        check(entry({"sigma0": 0.5}), entry({"sigma0": 1}))


def test_another_sweep_on_the_command_line_leaves_them_out(tmp_path):
    file = {"name": "tiny", "experiment": "arm", "sweep": "::: algorithm cma_me map_elites"}
    file["published"] = [entry({"algorithm": "cma_me"}).model_dump()]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(file))
    config = file | {"sweep": "::: seed 1 2"}
    settings = read_sweep(Given(config, ["sweep=::: seed 1 2"], [tmp_path / "sweep.yaml"]))
    assert settings.published == []
    assert len(read_sweep(Given(file, [], [tmp_path / "sweep.yaml"])).published) == 1


@pytest.mark.parametrize(
    ("name", "runs", "values"),
    [("cma_mae", 90, 32), ("dqd", 105, 42), ("sphere", 108, 48)],
)
def test_a_published_sweep_has_each_value_once(name, runs, values):
    path = REPO / f"config/sweeps/published_{name}.yaml"
    file = SweepFile.model_validate_json(json.dumps(read_yaml(path)))
    sweep = table_of_runs(file.experiment, file.sweep, excluded=file.exclude)
    check_sweep(file, sweep, {(): path.name})
    assert len(sweep.runs) == runs
    asked = {(tuple(entry.where.items()), entry.metric): entry for entry in file.published}
    assert len(asked) == len(file.published) == values
    for where, metric in asked:
        if metric != "coverage":  # for objectives of at most 100 on 10,000 cells
            scale = 1 if metric == "norm_qd_score" else 10_000
            score, coverage = asked[where, metric].mean, asked[where, "coverage"].mean
            assert score / scale <= 100 * coverage + 1e-9


def test_runs_of_one_setting_are_shared_by_the_published_sweeps():
    def runs(name):
        file = read_yaml(REPO / f"config/sweeps/published_{name}.yaml")
        return set(table_of_runs(file["experiment"], file["sweep"]).runs)

    assert len(runs("sphere") & runs("cma_mae")) == 4 * 5
