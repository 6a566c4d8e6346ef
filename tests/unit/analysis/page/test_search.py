"""What the page says of a search."""

from pathlib import Path

import pandas as pd
import pytest
from searching import SEEDS, grid, halving, population, reached, searched, write_search

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.legend import Called
from qdsweep.analysis.page.descriptions import bibtex, cited, plain
from qdsweep.analysis.page.interactive import _of_settings
from qdsweep.analysis.page.search import (
    how_searched,
    luck_text,
    plan_text,
    search_section,
    winner_text,
)
from qdsweep.analysis.selection import arrange
from qdsweep.config.requirements import bibliography
from qdsweep.config.search import Search
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan
from qdsweep.search.levels import levels

KEYS = Search(halving={"seeds": [1, 1, 2]})


@pytest.fixture(scope="module")
def search():
    return searched(halving(), grid())


def data_of(search, keys: Search | None = KEYS, folder: Path = Path()) -> SweepData:
    """What a page reads of a sweep of invented scores."""
    plan = Plan("tuned", "lp_sphere", "", [], [], [], search=keys)
    empty = arrange(plan, *(pd.DataFrame(columns=["group", "status", "scale"]) for _ in range(3)))
    data = SweepData(
        **vars(empty), sweep=SweepDir(folder), runs_dir=folder, called=Called({}, {}, {})
    )
    vars(data)["search"] = search
    return data


def test_what_was_searched_and_who_won(search):
    assert plan_text(search, KEYS) == (
        "Successive halving of 27 settings: 27 at 3,000 evaluations each, 9 at 9,000 evaluations"
        " each and 3 at 27,000 evaluations each. 270,000 evaluations in all, 37 % of running every"
        " setting whole with one seed."
    )
    assert winner_text(search).startswith(
        "The best at the end is sigma0 0.5, batch_size 36, ranker 2imp, with a normalised QD score"
        " of 39.44, the mean over seeds 1–2; the next one, "  # noqa: RUF001
    )


def test_how_much_of_the_winner_is_luck(search, tmp_path):
    assert "so a part of it is luck. The key confirm" in luck_text(
        data_of(search, folder=tmp_path), search
    )
    row = {"group": "a", "scale": "s", "sweep_mean": 40.0, "unseen_mean": 38.0, "unseen_se": 0.5}
    (tmp_path / "tables").mkdir()
    path = tmp_path / "tables/confirmed.csv"
    pd.DataFrame([row]).to_csv(path, index=False)
    (tmp_path / "confirm.json").write_text(
        '{"rows": [{"id": "a", "values": {"seed": 101}, "like": "a", "group": "a"}]}'
    )
    assert luck_text(data_of(search, folder=tmp_path), search) == (
        "On the unseen seed 101 it has 38.00 ± 0.50, where the seeds that chose it gave 40.00: 2.00"
        " of it, 5 %, was luck of the choice."
    )
    pd.DataFrame([{**row, "unseen_mean": 41.0}]).to_csv(path, index=False)
    assert luck_text(data_of(search, folder=tmp_path), search).endswith(
        ": no luck of the choice is seen in its score."
    )


def test_what_to_doubt(tmp_path):
    def turned(values, seed, budget):
        found = reached(values, seed, 3_000)
        return found if found is None or budget == 3_000 else 100 - found

    early = Search(halving={"first": "1/27"})
    data = data_of(searched(halving(), grid(), turned), early, tmp_path)
    section = search_section(data, [], {})
    first, ranks, failed = section.warnings
    assert first.startswith("The first rung had 1/27 of the budget.")
    assert ranks.startswith("What leads at 3,000 evaluations says little")
    assert failed == (
        "1 setting failed, and ranks last: sigma0 5.0, batch_size 108, ranker 2rd at rung 0:"
        " ValueError: the ranker broke."
    )
    assert search_section(data_of(None, None), [], {}) is None


@pytest.mark.parametrize(
    ("keys", "papers"),
    [
        ({"halving": {}}, ["karnin2013almost", "jamieson2016nonstochastic"]),
        ({"halving": {"brackets": "all"}}, ["li2018hyperband"]),
        (
            {"halving": {"brackets": "all"}, "sampling": "tpe", "batches": 2},
            ["li2018hyperband", "falkner2018bohb", "bergstra2011algorithms"],
        ),
        (
            {"sampling": "tpe", "batches": 3, "samples": 27},
            ["bergstra2011algorithms"],
        ),
    ],
)
def test_methods_cite_what_was_searched_by(search, keys, papers):
    said = how_searched(data_of(search, Search(**keys)))
    assert cited(said) == papers and set(papers) <= set(bibliography())
    assert "; that took 270,000 evaluations in all." in said
    assert "[@" not in plain(said) and bibtex(said).count("@") == len(papers)


def test_methods_of_a_population_and_of_none(search):
    settings = [{"sigma0": 0.1 * n, "batch_size": 12, "sample": n} for n in range(1, 10)]
    found = searched(population(), settings)
    keys = Search(pbt={"population": 9, "generations": 9}, sampling="sobol")
    said = how_searched(data_of(found, keys))
    assert cited(said) == ["jaderberg2017population", "sobol1967distribution"]
    assert "9 generations of 1,000 evaluations" in said
    said = winner_text(found)
    assert said.startswith("The best at the end has a normalised QD score of ")
    assert " Its schedule: sigma0 " in said
    assert plan_text(found, keys).startswith("Population-based training of 9 places over 9 gener")
    assert how_searched(data_of(None, keys)) == ""


def test_blocks_are_said_to_be_those_of_asha():
    planned = list(levels(Search(samples=27, halving={"block": 3}), 27, SEEDS, 27_000))
    said = how_searched(data_of(searched(planned, grid())))
    assert cited(said)[-1] == "li2020system"


def test_the_page_can_be_asked_about_every_setting(search):
    (figure,) = _of_settings(search)
    assert figure.views[""].count('"mode":"lines"') == 26, "all that have a score"
    assert figure.views[""].count("0.3)") == 23, "those that stopped are pale"
    assert "of 27, 9 went on" in figure.views[""]


def test_a_page_has_the_section(tmp_path):
    """The figures and tables of a search, in their order."""
    from qdsweep.analysis.tables.search import write_search as write_tables

    sweep = write_search(tmp_path / "results", halving(), grid())
    write_tables(sweep, tmp_path / "results/runs")
    from qdsweep.analysis.page.report import sheets

    data = data_of(searched(halving(), grid()), folder=sweep)
    (sweep / "table.json").write_text((sweep / "tables/search_levels.json").read_text())
    for end in (".csv", ".tex", ".md"):
        (sweep / f"table{end}").write_text("")
    section = search_section(data, sheets(data.sweep), {})
    assert [sheet.name for sheet, _ in section.sheets] == ["search_levels", "search_settings"]
