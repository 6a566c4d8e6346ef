"""TPE in batches: golden proposals, which depend only on the records."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from refusals import refused

from qdsweep.records.search_files import Level, Seen
from qdsweep.search.draws import random_row
from qdsweep.search.tpe import Observation, asker, count_rows, for_model, propose_samples
from qdsweep.sweep.drawn import DrawnSource

SOURCES = [
    DrawnSource("algorithm", "choice", ("cma_me", "cma_mae", "map_elites")),
    DrawnSource("sigma0", "log", ("0.01", "10")),
    DrawnSource("batch_size", "logint", ("4", "256")),
    DrawnSource("emitters", "int", ("1", "5")),
    DrawnSource("mean", "normal", ("0", "2")),
    DrawnSource("learning_rate", "log", ("1e-4", "1"), (("algorithm", "cma_mae"),)),
    DrawnSource("ranker", "choice", ("imp", "2imp", "rd"), (("algorithm", "cma_me"),)),
]
GOLDEN = [
    "cma_mae 0.154743 44 4 -1.43134 0.965272 ",
    "cma_mae 0.0413022 75 2 -3.00971 0.000128229 ",
    "cma_mae 0.0313067 55 5 -0.329794 0.866159 ",
]
SMALL = [DrawnSource("a", "choice", ("1e-1", "true", "1")), DrawnSource("b", "int", ("1", "3"))]


def score(row: tuple[str, ...]) -> float | None:
    """Returns a score that is best with cma_mae, sigma0 near 1 and a high rate."""
    algorithm, sigma0, _, emitters, _, rate, ranker = row
    if ranker == "rd":
        return None
    return (algorithm == "cma_mae") + float(rate or 0) + int(emitters) / 5 - abs(float(sigma0) - 1)


def absent_of(observed: list[Observation]) -> Callable[[tuple[str, ...]], bool]:
    taken = {setting.row for setting in observed}
    return lambda row: row not in taken


def batches(number: int, size: int = 12) -> list[tuple[str, ...]]:
    """Runs a search without budgets: a random batch, then the proposals from it."""
    observed = random_batch(size)
    for batch in range(1, number):
        new = propose_samples(SOURCES, observed, 0, batch * size, size, absent_of(observed))
        observed += [Observation(row, score(row)) for row in new]
    return [setting.row for setting in observed]


def random_batch(size: int) -> list[Observation]:
    return [Observation(row := random_row(SOURCES, 0, i), score(row)) for i in range(size)]


def test_golden_batch():
    assert [" ".join(row) for row in batches(2)[12:15]] == GOLDEN


def test_a_batch_is_the_same_in_any_process():
    code = "from test_tpe import batches; print(batches(3))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    for hash_seed in "01":
        around = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        printed = subprocess.check_output([sys.executable, "-c", code], env=around, text=True)
        assert printed.strip() == str(batches(3))


def test_values_stay_in_their_ranges_and_conditions_hold():
    for algorithm, sigma0, batch_size, emitters, _, rate, ranker in batches(4):
        assert 0.01 <= float(sigma0) <= 10
        assert 4 <= int(batch_size) <= 256
        assert 1 <= int(emitters) <= 5
        assert (rate != "") == (algorithm == "cma_mae")
        assert (ranker != "") == (algorithm == "cma_me")
        assert all(
            len(text.strip("-").replace(".", "").lstrip("0")) <= 6 for text in (sigma0, rate)
        )


def test_more_settings_in_a_batch_keep_the_first_ones():
    observed = random_batch(12)
    few, many = (propose_samples(SOURCES, observed, 0, 12, n, lambda row: True) for n in (3, 5))
    assert many[:3] == few


def test_nothing_is_proposed_that_is_there_until_nothing_is_left():
    there = [("1e-1", "1"), ("true", "2"), ("1", "3"), ("1", "2")]
    observed = [Observation(row, 1.0) for row in there]
    taken = {*there, ("1", "1")}  # excluded
    proposed = propose_samples(SMALL, observed, 0, 4, 4, lambda row: row not in taken)
    assert len({*proposed, *taken}) == count_rows(SMALL, 100) == 9
    with refused("search", 8):
        propose_samples(SMALL, observed, 0, 4, 5, lambda row: row not in taken)


def test_the_model_is_of_the_largest_budget_with_enough_settings():
    def level(budget: int, count: int, failed: str | None = None) -> tuple[Level, list[Seen]]:
        score = None if failed else 1.0
        seen = [Seen(i, i, {"a": 1, "b": 1}, score, failed) for i in range(count)]
        return Level(f"rung-{budget}", count, ("",), budget), seen

    def observed(*seen: tuple[Level, list[Seen]]) -> int:
        return len(for_model([*SMALL, DrawnSource("c", "choice", ("alone",))], seen))

    assert observed(level(1, 9), level(9, 7), level(27, 4)) == 7
    assert observed(level(1, 9), level(9, 7, "it raised")) == 9
    assert observed(level(1, 4)) == 0
    # Two brackets have settings with the same budget.
    other, seen = level(9, 4)
    further = [setting._replace(setting=setting.setting + 4) for setting in seen]
    assert observed(level(1, 9), level(9, 4), (other, further)) == 8


def test_a_level_is_asked_with_the_values_of_the_markers():
    """Values are typed, and a setting may be on several rungs."""
    rows = [({"a": a, "b": b}, b + a) for a in (0.1, True, 1) for b in (1, 2)]
    low = [Seen(i, i, values, score) for i, (values, score) in enumerate(rows)]
    levels = [
        (Level("rung-0", 6, ("",), 100), low),
        (Level("rung-1", 2, ("",), 300), [low[5]._replace(place=0), low[3]._replace(place=1)]),
    ]
    asked = Level("batch-1", 3, ("",), 300, "asked", first=6)
    left = [{"a": a, "b": 3} for a in (0.1, True, 1)]
    assert sorted(map(repr, asker(SMALL, 0)(levels, asked))) == sorted(map(repr, left))
    fits = asker(SMALL, 0, lambda row: row != ("true", "3"))
    assert len(fits(levels, asked._replace(places=2))) == 2
    with refused("search", 8):
        fits(levels, asked)


def test_only_failures_give_no_model_and_random_next_settings():
    values = {"algorithm": "cma_me", "sigma0": 1.0}
    failed = [Seen(i, i, values, None, "it raised") for i in range(9)]
    asked = Level("batch-1", 2, ("",), 100, "asked", first=9)
    settings = asker(SOURCES[:2], 5)([(Level("batch-0", 9, ("",), 100), failed)], asked)
    rows = [random_row(SOURCES[:2], 5, i) for i in (9, 10)]
    assert [tuple(setting.values()) for setting in settings] == [(a, float(s)) for a, s in rows]


def test_how_many_settings_there_are():
    rank = DrawnSource("rank", "choice", ("x", "y"), (("b", "2"),))
    assert count_rows([*SMALL, rank], 100) == 3 * (1 + 2 + 1)
    assert count_rows([*SMALL, DrawnSource("c", "uniform", ("0", "1"))], 40) == 40


def test_brackets_side_by_side_share_no_setting():
    pairs = [(a, 1) for a in (0.1, True, 1)] + [(a, 2) for a in (0.1, True)]
    seen = [Seen(i, i, {"a": a, "b": b}, float(i)) for i, (a, b) in enumerate(pairs)]
    below = [(Level("batch-0", 5, ("",), 100), seen)]
    levels = [Level("a", 2, ("",), 1, "asked", 5), Level("b", 2, ("",), 1, "asked", 7)]
    settings = [repr(setting) for level in levels for setting in asker(SMALL, 0)(below, level)]
    assert len(set(settings)) == 4


def test_a_failed_setting_is_never_one_of_the_good_ones():
    sources = [DrawnSource("a", "uniform", ("0", "1"))]
    for seed in range(20):
        values = [random_row(sources, seed, number) for number in range(30)]
        fails = [float(row[0]) > 0.5 for row in values]

        def proposed(scores: list[float], seed=seed, values=values, fails=fails):
            each = zip(values, scores, fails, strict=True)
            observed = [Observation(row, None if bad else score) for row, score, bad in each]
            return propose_samples(sources, observed, seed, 30, 5, lambda row: True)

        ties, falling = [0.5] * 30, [0.5 - 1e-9 * number for number in range(30)]
        assert proposed(ties) == proposed(falling), "of equal scores, the first ones are good"


def test_few_settings_that_did_not_fail_are_the_only_good_ones():
    sources = [DrawnSource("a", "uniform", ("0", "1"))]
    for seed in range(20):
        bad = [Observation(random_row(sources, seed, number), None) for number in range(19)]
        new = [
            propose_samples(
                sources, [Observation(("0.2",), 0.0), *failed], seed, 20, 1, lambda row: True
            )
            for failed in (bad, bad[::-1])
        ]
        assert new[0] == new[1], "the order of failed ones does not matter"
