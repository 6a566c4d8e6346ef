"""The first sentences of the page answer whether the best group differs from the others."""

from dataclasses import replace

from given import make_tables, without_decimals
from looks import data_of
from refusals import names_all
from searching import grid, halving, population, searched

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.tables.confirmed import write_confirmed
from qdsweep.analysis.tables.search_table import place_table
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import write_confirm
from qdsweep.text import plural

HIGH, NEAR = [3.0, 3.1, 3.2, 3.3, 3.1], [3.0, 3.05, 3.2, 3.25, 3.1]
LOW, LOWEST = [1.0, 1.1, 1.2, 1.3, 1.1], [0.1, 0.2, 0.3, 0.1, 0.4]
SWEEPS = {
    "apart from one": {"a": HIGH, "b": LOW},
    "apart from all": {"a": LOW, "b": HIGH, "c": LOWEST},
    "close to one of two": {"a": HIGH, "b": NEAR, "c": LOW},
    "close to many": {name: [*HIGH[place:], *HIGH[:place]] for place, name in enumerate("abcde")},
    "three seeds": {"a": HIGH[:3], "b": LOW[:3]},
    "two seeds": {"a": HIGH[:2], "b": LOW[:2]},
    "one of two seeds": {"a": HIGH, "b": LOW[:2], "c": LOWEST},
    "one group": {"a": HIGH},
    "the best mean is not tested": {"a": [9.0, 9.1], "b": HIGH, "c": LOW},
    "one run of the best fails": {"a": [*HIGH, 3.2, 3.1, 3.0, -5.0], "b": LOW},
}


def test_the_first_sentences_state_the_test_and_its_result(tmp_path, snapshot):
    texts = {
        name: without_decimals(headline(data_of(make_tables(tmp_path / name, scores))))
        for name, scores in SWEEPS.items()
    }
    assert texts == snapshot


def test_the_settings_of_a_search_are_those_of_its_table(tmp_path):
    data = data_of(make_tables(tmp_path, {"a": HIGH, "b": LOW}))
    members = [{"sigma0": 0.1 * (n + 1), "batch_size": 36} for n in range(9)]
    for search in (searched(halving(), grid()), searched(population(), members)):
        vars(data)["search"] = search
        count = place_table(search)["setting"].nunique()
        assert f" {plural(count, 'setting')}, " in headline(data)
    assert count > len(members), "the population tried others on the way"


def test_the_lowest_mean_is_the_best_where_smaller_is_better(tmp_path):
    data = data_of(make_tables(tmp_path, {"a": HIGH, "b": LOW, "c": LOWEST}))
    vars(data)["plan"] = replace(data.plan, rank=replace(data.rank, smaller=True))
    text = headline(data)
    assert " The lowest mean " in text and " is that of c (" in text
    assert " It is significantly lower than that of b and a (" in text


def test_the_one_finalist_of_a_search_is_the_best_on_no_seed_of_its_own(tmp_path):
    sweep = make_tables(tmp_path, {"a": HIGH})
    like = {"id": "a-s1", "like": "a-s1", "group": "a", "iterations": 3, "evaluations": None}
    write_confirm(SweepDir(sweep), [{**like, "values": {"algorithm": "a", "seed": 101}}])
    sheet = write_confirmed(sweep, tmp_path / "runs")
    names_all(sheet.note, "Report this group", "Selected from 1 group.")
    data = data_of(sweep)
    assert "a, the best on the sweep's own seeds, has" in headline(data)
    data = replace(data, plan=replace(data.plan, levels=halving()))
    vars(data)["search"] = searched(halving(), grid())
    text = headline(data)
    names_all(text, "They are the runs of the 1 finalist of a search among 27 settings, which used")
    names_all(text, "270,000 iterations in all, and the held-out runs 27,000.")
    names_all(text, "a, the setting that the search kept, has", "on the sweep's own seeds)")
