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
from qdsweep.planning.start import read_sweep
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
    settings = read_sweep(config, ["sweep=::: seed 1 2"], [tmp_path / "sweep.yaml"])
    assert settings.published == []
    assert len(read_sweep(file, [], [tmp_path / "sweep.yaml"]).published) == 1


def test_the_published_sweep_fits_its_groups():
    file = SweepFile.model_validate_json(
        json.dumps(read_yaml(REPO / "config/sweeps/published_lp.yaml"))
    )
    sweep = table_of_runs(file.experiment, file.sweep)
    check_sweep(file, sweep, {(): "published_lp.yaml"})
    asked = [tuple(value.where.values()) for value in file.published if "cma_mae (" in value.source]
    assert len(asked) == 32 and len(set(asked)) == 16  # each group, in both metrics
    values = {
        (*value.where.values(), value.metric): value.mean
        for value in file.published
        if "cma_mae (" in value.source
    }
    for where in set(asked):  # for objectives of at most 100
        assert values[(*where, "norm_qd_score")] <= 100 * values[(*where, "coverage")] + 1e-9
