"""The figures of a search."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import names_all
from searching import computed, grid, halving, population, reached, searched, write_curves

from qdsweep.analysis.figures.combinations import axis_of, nice_numbers
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.search_curves import (
    at_the_end,
    bests,
    progress,
    random_search,
    spearman,
    steps,
    warnings,
)
from qdsweep.analysis.figures.search_figures import search_figures


def figures(search, runs_dir):
    return search_figures(SimpleNamespace(search=search, runs_dir=runs_dir))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    write_curves(runs, computed(halving(), grid())[1])
    return {part.name: part for part in figures(searched(halving(), grid()), runs)}


def test_what_their_captions_say(drawn, tmp_path, snapshot):
    """The data of successive halving and of a population."""
    settings = [{"sigma0": n / 10, "batch_size": 12.0 * n} for n in range(1, 10)]
    write_curves(tmp_path, computed(population(), settings)[1])
    others = figures(searched(population(), settings), tmp_path)
    captions = [f"{part.name}: {part.caption}" for part in [*drawn.values(), *others]]
    assert "\n".join(captions) == snapshot
    assert figures(None, tmp_path) == [], "without a search"


def test_a_curve_ends_where_its_setting_stopped(drawn):
    data = drawn["search_curves"].data
    ends = data.groupby("setting")["evaluations"].max()
    assert sorted(ends, reverse=True) == [27_000] * 3 + [9_000] * 6 + [3_000] * 17
    best = searched(halving(), grid()).finalists[0]
    last = data[data["setting"] == best.setting]["score"].iloc[-1]
    assert last == pytest.approx(best.score), "the mean over its seeds"


def test_the_ranks_of_successive_rungs(drawn):
    first, second = steps(searched(halving(), grid()))
    assert (first.budgets, len(first.scores), len(first.stopped)) == ((3_000, 9_000), 9, 17)
    assert (second.budgets, len(second.scores)) == ((9_000, 27_000), 3)
    assert len(drawn["search_ranks"].data) == 12
    falling = [(n, -n) for n in range(8)]
    assert spearman(falling) == pytest.approx(-1) and np.isnan(spearman(falling[1:]))
    titles = [ax.get_title(loc="left") for ax in drawn["search_ranks"].figure.axes]
    assert ["=" in title for title in titles] == [True, False], "of nine settings, not of three"


def test_rungs_are_doubted_where_they_say_nothing_of_each_other():
    def turned(values, seed, budget):
        score = reached(values, seed, 3_000)
        return score if score is None or budget == 3_000 else 100 - score

    (warning,) = warnings(searched(halving(), grid(), turned))
    names_all(warning, "3,000", "9,000", "halving.first")
    assert warnings(searched(halving(), grid(), lambda v, s, b: reached(v, s, 1))) == []


def test_quantiles_of_random_search_are_those_of_every_order():
    scores = np.array([1.0, 2.0, 4.0, 5.0, 9.0])
    shares = (0.1, 0.5, 0.9)
    quantiles = list(bests(scores, shares))
    for many in range(1, 6):
        every = sorted(max(some) for some in itertools.combinations(scores, many))
        exact = [every[int(np.ceil(round(share * len(every), 9))) - 1] for share in shares]
        assert quantiles[many - 1] == exact


def test_random_search_is_of_the_first_settings(drawn):
    search = searched(halving(), grid())
    scores = at_the_end(search)
    assert len(scores) == 27 and scores.count(min(scores)) == 2, "a failure counts as the worst"
    own = progress(search)
    assert own["spent"].iloc[-1] == 270_000 and own["best"].is_monotonic_increasing
    shown = drawn["search_progress"].data.query("kind == 'random'")
    assert shown["median"].notna().all()
    assert shown["low"].isna().all(), "no band, as only three settings had the whole budget"
    rival = random_search(search)
    assert list(rival["spent"]) == [27_000 * n for n in range(1, 11)]
    assert (rival["low"] <= rival["median"]).all() and (rival["median"] <= rival["high"]).all()


def test_more_seeds_may_lower_the_leader(tmp_path):
    def lucky(values, seed, budget):
        return budget / 1_000 - 20 * (seed == "2") + values["batch_size"]

    own = progress(searched(halving(), grid(), lucky))["best"]
    assert own.iloc[-1] == 27 + 108 - 10


def test_settings_that_stopped_are_pale(drawn):
    (lines,) = drawn["search_coordinates"].figure.axes[0].collections
    assert sorted(np.unique(lines.get_alpha())) == [0.18, 0.9]
    assert sum(lines.get_alpha() == 0.9) == 3
    assert list(drawn["search_coordinates"].data.columns[-2:]) == ["setting", "budget"]


def test_a_value_that_was_not_drawn_is_a_gap(tmp_path):
    settings = [v | {"ranker": ""} if v["batch_size"] == 12 else v for v in grid()]
    score = lambda values, seed, budget: budget / 1_000 + values["batch_size"]  # noqa: E731
    write_curves(tmp_path, computed(halving(), settings, score)[1], score)
    captions = {
        part.name: part.caption for part in figures(searched(halving(), settings, score), tmp_path)
    }
    assert "gap" in captions["search_coordinates"]


def test_the_tree_of_a_population(tmp_path):
    settings = [{"sigma0": 0.1 * n, "batch_size": 12.0 * n} for n in range(1, 10)]
    write_curves(tmp_path, computed(population(), settings)[1])
    first, *others = figures(searched(population(), settings), tmp_path)
    assert first.name == "search_tree"
    assert "search_ranks" not in [part.name for part in others]
    data = first.data
    assert len(data) == 81 and data["took_over"].sum() == 16
    assert sorted(data[data["best"]]["generation"]) == list(range(9)), "one ancestor each"
    assert [ax.get_ylabel() for ax in first.figure.axes[1:3]] == ["sigma0", "batch_size"]


def test_figures_that_say_nothing_are_left_out(tmp_path):
    settings = [{"sigma0": 0.5, "batch_size": 12, "ranker": r} for r in ("imp", "2rd", "2imp")]
    planned = halving(3)
    write_curves(tmp_path, computed(planned, settings)[1])
    made = figures(searched(planned, settings), tmp_path)
    omitted = [part.name for part in made if isinstance(part, Omitted)]
    assert omitted == ["search_ranks", "search_coordinates"]
    assert any(isinstance(part, Drawn) for part in made)


@pytest.mark.parametrize(("low", "high"), [(0.4, 1.6), (1.1, 1.9), (0.001, 10.0), (3.01, 3.02)])
def test_a_logarithmic_axis_has_ticks_however_short_it_is(low, high):
    values = [str(value) for value in np.geomspace(low, high, 20)]
    axis = axis_of("sigma0", values, logged=True)
    numbers = nice_numbers(axis)
    assert axis.log and len(numbers) > 1
    assert low <= numbers.min() < numbers.max() <= high
