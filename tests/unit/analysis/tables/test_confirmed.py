"""Winners on held-out seeds: the one that was fixed before, and what several of them allow."""

import math
from itertools import permutations

import numpy as np
import pytest
from given import make_tables, read, write_run
from looks import data_of
from refusals import names_all
from scipy import stats

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.confirmed import CHOICE, overestimation, winners, write_confirmed
from qdsweep.analysis.tables.possible_best import beaten, one_sided_level
from qdsweep.config.sweep import Confirm
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import write_confirm

SPREAD = stats.zscore(np.random.default_rng(4).normal(size=10), ddof=1) / 10
OWN = {"first": 1.3 + SPREAD[:6], "second": 1.2 + SPREAD[:6], "third": 1.1 + SPREAD[:6]}


def confirmed(results, held_out):
    """Returns a sweep of three algorithms that these held-out scores confirm, and its table."""
    scores = {group: list(OWN[group]) for group in ("third", "first", "second")}
    sweep = make_tables(results, scores)
    rows = []
    for group in winners(read_tables(sweep), len(held_out)):
        for seed, score in enumerate(held_out[group], start=101):
            run, values = f"{group}-s{seed}", {"algorithm": group, "seed": seed}
            write_run(results / "runs" / run, score)
            row = {"id": run, "values": values, "group": group, "like": f"{group}-s1"}
            rows.append(row | {"iterations": 3, "evaluations": None})
    write_confirm(SweepDir(sweep), rows)
    return sweep, write_confirmed(sweep, results / "runs")


def around(*means, seeds=10):
    return {group: list(mean + SPREAD[:seeds]) for group, mean in zip(OWN, means, strict=False)}


def held(sweep):
    """Returns the two parts of the headline on held-out seeds: the winner, and the others."""
    text = headline(data_of(sweep))
    text = text[text.index("On the held-out") : text.index("On the sweep's own seeds, the")]
    first, _, more = text.partition(" There, ")
    return first, more


@pytest.mark.parametrize("means", list(permutations([0.8, 1.0, 1.2])))
def test_the_headline_is_the_held_out_mean_of_the_winner_that_was_fixed_before(tmp_path, means):
    sweep, sheet = confirmed(tmp_path, around(*means))
    first, more = held(sweep)
    half = 0.1 / math.sqrt(10) * stats.t.ppf(0.975, 9)
    names_all(first, "first", f"{means[0]:.3f} ± {half:.3f}", "10 seeds")
    assert "second" not in first and "third" not in first
    best = list(OWN)[means.index(1.2)]
    assert more.startswith(f"{best} is significantly better than the other winners")
    marked = [row[0].text for row in sheet.rows if row[3].text.endswith("†")]
    assert marked == [best] and sheet.rows[0][0].text == "first"


def test_several_winners_are_compared_by_the_rule_of_the_best(tmp_path):
    sweep, sheet = confirmed(tmp_path, around(1, 1.01, 0))
    names_all(held(sweep)[1], "the best of the winners is among", "first", "second")
    data = read(sweep, "tables/confirmed").set_index("group")
    assert dict(data["unseen_may_be_best"]) == {"first": True, "second": True, "third": False}
    assert CHOICE in sheet.note


def test_with_few_seeds_winners_are_not_compared(tmp_path):
    sweep, sheet = confirmed(tmp_path, around(0, 1, 2, seeds=4))
    assert held(sweep)[1] == "" and "not tested" in sheet.note
    assert not any("†" in cell.text for row in sheet.rows for cell in row)


def test_one_winner_has_no_mark(tmp_path):
    _, sheet = confirmed(tmp_path, around(1))
    assert not any("†" in text for text in (sheet.note, *(c.text for c in sheet.rows[0])))
    assert CHOICE not in sheet.note
    names_all(sheet.note, "3 groups", "101 to 110")


def test_a_winner_without_results_is_not_replaced(tmp_path):
    sweep, _ = confirmed(tmp_path, around(math.nan, 1, 1))
    names_all(held(sweep)[0], "first", "no results")


def test_the_overestimation_has_welchs_interval(tmp_path):
    own, unseen = OWN["first"], 1 + 2 * SPREAD
    sweep, sheet = confirmed(tmp_path, {"first": list(unseen)})
    (row,) = read(sweep, "tables/confirmed").to_dict("records")
    lost = overestimation(row)
    ends = stats.ttest_ind(own, unseen, equal_var=False).confidence_interval(0.95)
    assert (lost.low, lost.high) == pytest.approx((ends.low, ends.high))
    assert lost.value == pytest.approx(own.mean() - unseen.mean())
    assert f"[{lost.low:.3f}, {lost.high:.3f}]" in sheet.rows[0][-1].text


def test_a_table_of_an_earlier_release_is_read(tmp_path):
    sweep, _ = confirmed(tmp_path, around(1, 1, 1))
    data = read(sweep, "tables/confirmed").drop(columns="unseen_may_be_best")
    data.to_csv(sweep / "tables/confirmed.csv", index=False)
    assert "first, the best on the sweep's own seeds" in held(sweep)[0]


@pytest.mark.parametrize(("seeds", "stated"), [(10, 0.31), (20, 0.72)])
def test_the_note_says_how_often_a_lead_among_three_is_named(seeds, stated):
    scores = np.random.default_rng(6).normal(size=(4000, 3, seeds))
    scores[:, 0] += 1
    counts = np.full(scores.shape[:2], seeds)
    out = beaten(
        np.stack([scores.mean(-1), scores.std(-1, ddof=1), counts], -1), one_sided_level(3, 1)
    )
    assert (~out[:, 0] & out[:, 1:].all(axis=1)).mean() == pytest.approx(stated, abs=0.02)
    assert f"{100 * stated:.0f} %" in CHOICE


def test_one_winner_is_the_default():
    assert Confirm(seeds=(101, 110)).top == 1
