"""Pairs of groups as rows of a table, and what so few seeds can tell at all."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdsweep.analysis.tables.pairs import Pairs, Runs
from qdsweep.analysis.tables.sheet import Cell, number_cell, text_cell
from qdsweep.analysis.tables.statistics import (
    ALPHA,
    ENOUGH_SEEDS,
    least_mann_whitney,
    mann_whitney,
    probability_of_improvement,
    seeds_to_decide,
)
from qdsweep.analysis.text import common_decimals, number, p_value, plural, with_interval

HEADINGS = (
    "Higher mean",
    "Lower mean",
    "n",
    "Difference",
    "P(higher > lower) [95 %]",
    "p (Welch)",
    "p (Holm)",
    "p (Mann-Whitney)",
)
DATA = (
    "higher", "lower", "n_higher", "n_lower", "mean_higher", "mean_lower",
    "difference", "difference_se", "improvement", "improvement_low", "improvement_high",
    "welch_p", "holm_p", "mann_whitney_p",
)  # fmt: skip

Records = list[dict[str, Any]]


def pair_records(groups: Mapping[str, Runs], pairs: Pairs, sign: int) -> Records:
    """Returns a row of the CSV file, `DATA`, for each pair; `sign`: as `compare` has it."""
    records = []
    tests = (pairs.first, pairs.second, pairs.welch, pairs.holm)
    for i, j, welch_p, holm_p in zip(*tests, strict=True):
        one, other = (pairs.groups[position] for position in (i, j)[::sign])
        higher, lower = groups[one].scores, groups[other].scores
        improvement = probability_of_improvement([higher], [lower])
        variances = [scores.var(ddof=1) / len(scores) for scores in (higher, lower)]
        values = (
            *(one, other, len(higher), len(lower)),
            *(higher.mean(), lower.mean(), higher.mean() - lower.mean(), np.sqrt(sum(variances))),
            *(improvement.value, improvement.low, improvement.high),
            *(welch_p, holm_p, mann_whitney(higher, lower)),
        )
        records.append(dict(zip(DATA, values, strict=True)))
    return records


def pair_cells(records: Records, called: Callable[[str], str]) -> list[list[Cell]]:
    """Returns a row of the table, `HEADINGS`, for each record; `called`: what a reader calls it."""
    differences, errors = ([r[name] for r in records] for name in ("difference", "difference_se"))
    decimals = common_decimals(differences, errors)
    return [_cells(record, decimals, called) for record in records]


def _cells(record: dict[str, Any], decimals: int, called: Callable[[str], str]) -> list[Cell]:
    low, value, high = (record[f"improvement{end}"] for end in ("_low", "", "_high"))
    # With fewer seeds the interval excludes too much, too often.
    if min(record["n_higher"], record["n_lower"]) < ENOUGH_SEEDS:
        low = high = math.nan
    equal = math.isclose(record["mean_higher"], record["mean_lower"], rel_tol=1e-12)
    rank_p = record["mann_whitney_p"]
    rank_text = f"{_counts(record)} cannot decide" if _is_open(record) else p_value(rank_p)
    return [
        text_cell(called(record["higher"])),
        text_cell(called(record["lower"]) + (" (equal)" if equal else "")),
        number_cell(f"{record['n_higher']}, {record['n_lower']}", record["n_higher"]),
        number_cell(number(record["difference"], decimals), record["difference"]),
        number_cell(with_interval(value, low, high, decimals=2), value),
        *(number_cell(p_value(record[name]), record[name]) for name in ("welch_p", "holm_p")),
        number_cell(rank_text, rank_p),
    ]


def _is_open(record: dict[str, Any]) -> bool:
    return least_mann_whitney(record["n_higher"], record["n_lower"]) > ALPHA


def _counts(record: dict[str, Any]) -> str:
    counts = sorted({record["n_higher"], record["n_lower"]})
    return f"n = {', '.join(map(str, counts))}"


def few_text(records: Records, tests: int) -> str:
    """Returns what too few seeds mean for these pairs; nothing where all have enough.

    Args:
        records: The pairs.
        tests: The largest number of pairs that are corrected for together.
    """
    text = ""
    if any(min(r["n_higher"], r["n_lower"]) < ENOUGH_SEEDS for r in records):
        text += f" Intervals are given from {ENOUGH_SEEDS} seeds on."
    open_ones = [record for record in records if _is_open(record)]
    if open_ones:
        most = max(open_ones, key=lambda r: r["n_higher"] * r["n_lower"])
        text += cannot_decide(most["n_higher"], most["n_lower"], tests)
        text += " Welch's p then rests on normal scores, which so few cannot show."
    return text


def cannot_decide(first: int, second: int, tests: int) -> str:
    """Returns why so few runs of two groups decide nothing, and how many it takes."""
    counts = f"n = {first}" if first == second else f"n = {first} and {second}"
    enough, corrected = seeds_to_decide(1), seeds_to_decide(tests)
    least = least_mann_whitney(first, second)
    text = (
        f" {counts} cannot decide: no Mann-Whitney p of so few is below {number(least, 3)}, however"
        f" far apart they are; it takes {enough} seeds each"
    )
    if corrected > enough:
        text += f", or {corrected} with a correction for {plural(tests, 'pair')}"
    return f"{text}."
