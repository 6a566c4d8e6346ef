"""Published values: which group an entry is of, the verdict, the table, the ready sweep file."""

import json
import math

import pandas as pd
import pytest
import yaml
from support import REPO, TINY

from qdsweep.analysis.tables.published import compare, verdict, write_published
from qdsweep.analysis.tables.sheet import read_sheet
from qdsweep.config.files import read_yaml
from qdsweep.config.sweep import Published, SweepFile
from qdsweep.errors import BadInput
from qdsweep.planning.checks import check_sweep
from qdsweep.planning.settings import read_sweep
from qdsweep.sweep.published import Groups
from qdsweep.sweep.runs import table_of_runs

SWEEP = """
:::  algorithm  map_elites cma_me
:::+ batch_size 16 8
:::  sigma0     0.2 0.5
:::  seed       1 2
"""


def entry(where, **changes):
    keys = {"metric": "coverage", "mean": 0.5, "tolerance": 0.1, "source": "a paper, table 1"}
    return Published(where=where, **(keys | changes))


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


# Choosing a group


@pytest.mark.parametrize(
    "where",
    [
        {"algorithm": "cma_me", "sigma0": 0.5, "elitist": True},
        {"batch_size": 8, "sigma0": 0.50, "elitist": True},  # linked to the algorithm
        {"batch_size": 8.0, "sigma0": 0.5, "elitist": True},
    ],
)
def test_it_chooses_by_any_values_that_tell_groups_apart(groups, where):
    assert groups.choose(1, where) == "cma_me, sigma0 0.5, elitist true"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"algoritm": "cma_me"}, r"entry 7: where\.algoritm: did you mean 'algorithm'\?"),
        ({"seed": 1}, r"where\.seed: .*apart: algorithm, batch_size, sigma0, elitist$"),
        ({"algorithm": "cma_mae"}, r"= \"cma_mae\": did you mean 'cma_me'\? .*map_elites; cma_me$"),
        ({"sigma0": 0.3}, r"where\.sigma0 = 0\.3: .*the sweep has 0\.2; 0\.5$"),
        ({"elitist": 1}, r"where\.elitist = 1: "),  # true is no 1
        ({"algorithm": "cma_me", "batch_size": 16}, "no run of the sweep has all of these"),
        ({"algorithm": "cma_me"}, "fits 4 groups: .*say also which batch_size and sigma0"),
        ({}, "fits 8 groups: "),
    ],
)
def test_what_chooses_no_group_is_refused(groups, where, message):
    with pytest.raises(BadInput, match=message):
        groups.choose(7, where)


def test_one_group_needs_no_values():
    assert Groups(["seed"], [{"seed": 1}, {"seed": 2}], "sphere").choose(1, {}) == "sphere"


def test_a_sweep_is_checked_before_any_work():
    sweep = table_of_runs({**TINY, "algorithm": "cma_me"}, "::: sigma0 0.2 0.5 ::: seed 1 2")

    def check(*published):
        file = SweepFile(name="a", experiment="arm", published=list(published))
        check_sweep(file, sweep, {(): "mine.yaml"})

    check(entry({"sigma0": 0.5}))
    check()
    with pytest.raises(BadInput, match=r"mine\.yaml: published, entry 2"):
        check(entry({"sigma0": 0.5}), entry({"sigma0": 1}))


def test_another_sweep_on_the_command_line_leaves_them_out(tmp_path):
    file = {"name": "tiny", "experiment": "arm", "sweep": "::: algorithm cma_me map_elites"}
    file["published"] = [entry({"algorithm": "cma_me"}).model_dump()]
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(file))
    config = file | {"sweep": "::: seed 1 2"}
    settings = read_sweep(config, ["sweep=::: seed 1 2"], [tmp_path / "sweep.yaml"])
    assert settings.published == []
    assert len(read_sweep(file, [], [tmp_path / "sweep.yaml"]).published) == 1


# Comparing


def make_plan(published):
    rows = [
        {"values": {"algorithm": name, "seed": seed}, "id": f"{name}-{seed}"}
        for name in ("a", "b", "c")
        for seed in (1, 2, 3)
    ]
    return {
        "name": "n", "experiment": "sphere", "sweep": "", "columns": ["algorithm", "seed"],
        "rows": rows, "published": [one.model_dump() for one in published],
    }  # fmt: skip


def make_summary():
    coverage = {"a": [0.40, 0.50, 0.60], "b": [0.10, 0.20, math.nan], "c": [math.nan] * 3}
    status = {"a": ["finished"] * 3, "b": ["finished", "partial", "missing"], "c": ["missing"] * 3}
    return pd.DataFrame(
        [
            {
                "group": name, "id": f"{name}-{i + 1}", "status": status[name][i],
                "coverage": coverage[name][i], "norm_qd_score": 100 * coverage[name][i],
            }
            for name in "abc"
            for i in range(3)
        ]
    )  # fmt: skip


def test_the_mean_of_finished_runs_is_compared():
    published = [
        entry({"algorithm": "a"}, mean=0.55, tolerance=0.05),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=60.0, tolerance=9.9),
        entry({"algorithm": "b"}, mean=0.15),
        entry({"algorithm": "c"}),
    ]
    table = compare(make_plan(published), make_summary())
    assert list(table["verdict"]) == ["agrees", "differs", "agrees", "no results"]
    assert list(table["n"]) == [3, 3, 1, 0]  # an unfinished run is none
    first = table.iloc[0]
    assert (first["mean"], first["difference"]) == (pytest.approx(0.5), pytest.approx(-0.05))
    assert first["se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc[2, "mean"] == 0.10 and math.isnan(table.loc[2, "se"])


def test_a_run_that_stands_twice_counts_once():
    summary = make_summary()
    plan = make_plan([entry({"algorithm": "a"})])
    assert compare(plan, pd.concat([summary, summary]))["n"][0] == 3


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (0.3 - 0.2, "agrees"),  # 0.09999999999999998
        (0.8 - 0.7, "agrees"),  # 0.10000000000000009
        (-0.1001, "differs"),
        (math.nan, "no results"),
    ],
)
def test_the_tolerance_is_inclusive(difference, expected):
    assert verdict(difference, 0.1) == expected


@pytest.fixture
def sweep(tmp_path):
    """A sweep's folder with tables, as `aggregate` leaves them."""
    make_summary().assign(qd_score=1.0, scale="one").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_the_table_is_for_readers(sweep):
    published = [
        entry({"algorithm": "a"}, mean=0.508, tolerance=0.006),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=41.64, source="another, table 2"),
        entry({"algorithm": "c"}),
    ]
    (sweep / "plan.json").write_text(json.dumps(make_plan(published)))
    write_published(sweep)
    sheet = read_sheet(sweep / "tables/published.json")
    texts = [[cell.text for cell in row] for row in sheet.rows]
    assert texts[0] == [
        "a", "Coverage (%)", "differs", "[1]", "50.0 ± 5.8", "3", "50.8", "0.6", "\u22120.8",
    ]  # fmt: skip
    assert texts[1][1:5] == ["Normalised QD score", "differs", "[2]", "50.00 ± 5.77"]
    assert texts[2][2:6] == ["no results", "[1]", "\u2013", "0"]
    assert sheet.note.startswith("Differs: 2, no results: 1.")
    assert sheet.note.endswith("Sources: [1] a paper, table 1. [2] another, table 2.")
    data = pd.read_csv(sweep / "tables/published.csv")
    assert data["published"][0] == 0.508  # a fraction, with all its digits
    assert r"$\pm$" in (sweep / "tables/published.tex").read_text()


def test_without_published_values_there_is_no_table(sweep):
    (sweep / "plan.json").write_text(json.dumps(make_plan([entry({"algorithm": "a"})])))
    write_published(sweep)
    assert len(list((sweep / "tables").glob("published.*"))) == 4
    (sweep / "plan.json").write_text(json.dumps(make_plan([])))
    write_published(sweep)
    assert not list((sweep / "tables").glob("published.*"))


# The ready sweep


def test_the_published_sweep_fits_its_groups():
    file = SweepFile.model_validate_json(
        json.dumps(read_yaml(REPO / "config/sweeps/published_lp.yaml"))
    )
    sweep = table_of_runs(file.experiment, file.sweep)
    check_sweep(file, sweep, {(): "published_lp.yaml"})
    asked = [tuple(one.where.values()) for one in file.published if "cma_mae (" in one.source]
    assert len(asked) == 32 and len(set(asked)) == 16  # each group, in both metrics
    values = {
        (*one.where.values(), one.metric): one.mean
        for one in file.published
        if "cma_mae (" in one.source
    }
    for where in set(asked):  # of objectives of at most 100
        assert values[(*where, "norm_qd_score")] <= 100 * values[(*where, "coverage")] + 1e-9
