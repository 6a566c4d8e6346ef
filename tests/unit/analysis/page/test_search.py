"""The page's section on a search."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from refusals import names_all
from searching import SEEDS, grid, halving, population, reached, searched, write_search

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.legend import Called
from qdsweep.analysis.page.descriptions import bibtex, cited, plain_citations
from qdsweep.analysis.page.interactive import _of_settings
from qdsweep.analysis.page.report import sections, sheets
from qdsweep.analysis.page.search_section import how_searched, overestimation_text, search_section
from qdsweep.analysis.selection import arrange
from qdsweep.analysis.tables.search_table import write_search as write_tables
from qdsweep.config.references import bibliography
from qdsweep.config.search import Search
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan
from qdsweep.search.levels import levels
from qdsweep.sweep.drawn import DrawnSource

KEYS = Search(halving={"seeds": [1, 1, 2]})
POPULATION = Search(pbt={"population": 9, "generations": 9}, sampling="sobol")


@pytest.fixture(scope="module")
def search():
    return searched(halving(), grid())


def data_of(search, keys: Search | None = KEYS, folder: Path = Path()) -> SweepData:
    """The data of a page for a sweep with invented scores."""
    plan = Plan("tuned", "lp_sphere", "", [], [], [], search=keys)
    empty = arrange(
        plan, *(pd.DataFrame(columns=["group", "status", "scale", "evaluations"]) for _ in range(3))
    )
    data = SweepData(
        **vars(empty), sweep=SweepDir(folder), runs_dir=folder, called=Called({}, {}, {})
    )
    vars(data)["search"] = search
    return data


def texts(search, keys: Search) -> str:
    """All sentences on a search, in its section of the page and in the methods paragraph."""
    data = data_of(search, keys)
    section = search_section(data)
    return "\n".join([*section.text, *section.warnings, how_searched(data)])


def test_what_was_searched_who_won_and_what_to_doubt(snapshot):
    def turned(values, seed, budget):
        score = reached(values, seed, 3_000)
        return score if score is None or budget == 3_000 else 100 - score

    doubtful = searched(halving(), grid(), turned)
    assert texts(doubtful, Search(halving={"first": "1/27"})) == snapshot


def test_a_population_and_the_schedule_of_its_best(snapshot):
    settings = [{"sigma0": n / 10, "batch_size": 12, "sample": n} for n in range(1, 10)]
    assert texts(searched(population(), settings), POPULATION) == snapshot


@pytest.mark.parametrize(
    ("source", "best", "end"),
    [
        ((), 5.0, "5"),
        ((), 0.05, "0.05"),
        ((), 0.5, None),
        (("log", "0.04", "6"), 5.0, "6"),
        (("log", "0.001", "50"), 5.0, None),
        (("uniform", "-1", "500"), 5.0, "\u22121"),
        (("normal", "0", "1"), 5.0, None),
        (("choice", "0.05", "0.5", "5"), 5.0, "5"),
    ],
)
def test_a_winner_at_the_end_of_the_swept_values_is_named(source, best, end):
    def near(values, seed, budget):
        return 50 - abs(math.log(values["sigma0"] / best)) + budget / 1e6

    kind, *arguments = source or [""]
    drawn = {"sigma0": DrawnSource("sigma0", kind, tuple(arguments))} if source else {}
    search = replace(searched(halving(), grid(), near), drawn=drawn)
    warnings = [text for text in search_section(data_of(search)).warnings if "sigma0" in text]
    assert len(warnings) == (end is not None)
    for text in warnings:
        names_all(text, f"sigma0 {best:g}", end)


def test_a_parameter_with_two_values_has_no_warning_of_its_own():
    def score(best):
        return lambda values, seed, budget: 50 - abs(math.log(values["sigma0"] / best))

    settings = [{"sigma0": s, "batch_size": b} for s in (0.05, 0.5, 5.0) for b in (12, 36)]
    levels = halving(settings=6)
    within, at_end = (
        search_section(data_of(searched(levels, settings, score(best)))).warnings
        for best in (0.5, 5.0)
    )
    assert not any("batch_size" in text for text in within)
    assert sum("widen sigma0" in text for text in at_end) == 1
    assert sum("Of batch_size, only two values" in text for text in at_end) == 1


def test_where_evaluations_depend_on_their_seed_it_decided_by_luck(search):
    data = data_of(search)
    lucky = replace(data, plan=replace(data.plan, noise={"a scale": "yes"}))
    vars(lucky)["search"] = search
    first, *others = search_section(lucky).warnings
    names_all(first, "decided by its own scores", "lucky")
    assert others == search_section(data).warnings


def test_without_a_search_nothing_is_reported():
    assert search_section(data_of(None, None)) is None
    assert how_searched(data_of(None, KEYS)) == ""


def test_the_winner_has_its_held_out_mean_and_the_difference_with_an_interval(search, tmp_path):
    def text() -> str:
        return overestimation_text(data_of(search, folder=tmp_path), search)

    names_all(text(), "confirm", "seeds")
    own = {"group": "a", "scale": "s", "sweep_mean": 40.0, "sweep_se": 0.4, "sweep_n": 3}
    row = {**own, "unseen_mean": 38.0, "unseen_se": 0.5, "unseen_n": 10}
    better = {**row, "group": "b", "sweep_mean": 39.9, "unseen_mean": 45.0}
    (tmp_path / "tables").mkdir()
    path = tmp_path / "tables/confirmed.csv"
    pd.DataFrame([row, better]).to_csv(path, index=False)
    confirming = {"id": "a", "values": {"seed": 101}, "like": "a", "group": "a"}
    (tmp_path / "confirm.json").write_text(json.dumps({"rows": [confirming]}))
    names_all(text(), "101", "38.00 ± 1.13", "40.00", "2.00 [0.54, 3.46]")
    pd.DataFrame([{**row, "sweep_n": 1, "sweep_se": math.nan}]).to_csv(path, index=False)
    names_all(text(), "a difference of 2.00.")


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
    sentence = how_searched(data_of(search, Search(**keys)))
    assert cited(sentence) == papers and set(papers) <= set(bibliography())
    assert "[@" not in plain_citations(sentence) and bibtex(sentence).count("@") == len(papers)


def test_blocks_are_described_as_those_of_asha():
    planned = list(levels(Search(samples=27, halving={"block": 3}), 27, SEEDS, 27_000))
    assert cited(how_searched(data_of(searched(planned, grid()))))[-1] == "li2020system"


def test_the_page_can_be_asked_about_every_setting(search):
    (figure,) = _of_settings(search)
    assert figure.views[""].count('"mode":"lines"') == 26, "all with a score"
    assert figure.views[""].count("0.3)") == 23, "those that stopped are pale"


def test_a_page_has_the_tables_of_a_search_in_their_order(tmp_path):
    sweep = write_search(tmp_path / "results", halving(), grid())
    write_tables(sweep, tmp_path / "results/runs")
    (sweep / "table.json").write_text((sweep / "tables/search_levels.json").read_text())
    for end in (".csv", ".tex", ".md"):
        (sweep / f"table{end}").write_text("")
    shown = sections(sheets(SweepDir(sweep)), [], {}, is_search=True)
    names = [sheet.name for sheet, _ in shown["search"].tables]
    assert names[1:] == ["search_levels", "search_settings"], "after the one in place of the main"
