"""Searches with invented scores, which are faster than real searches."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from qdsweep.analysis.search_progress import Searched, place_all
from qdsweep.config.search import Search
from qdsweep.metrics import RANK
from qdsweep.records.metrics_file import COLUMNS
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.search_files import (
    Chosen,
    Decision,
    Level,
    Seen,
    marker_path,
    seen_of,
    write_decision,
    write_sealed,
)
from qdsweep.search.levels import levels, promote, ranked

SEEDS = ("1", "2", "3")
STEP = 100  # evaluations per iteration


def grid() -> list[dict]:
    """Returns the 27 settings of a grid, the last of which fails."""
    return [
        {"sigma0": sigma, "batch_size": batch, "ranker": ranker}
        for sigma in (0.05, 0.5, 5.0)
        for batch in (12, 36, 108)
        for ranker in ("imp", "2imp", "2rd")
    ]


def reached(values: Mapping, seed: str, budget: int) -> float | None:
    """Returns the score of a setting. Some are the best early, but not at the end."""
    sigma, batch = values["sigma0"], values["batch_size"]
    if (sigma, batch, values.get("ranker")) == (5.0, 108, "2rd"):
        return None
    height = 36 - 6 * abs(math.log10(sigma / 0.6)) + 2 * math.log2(batch / 12)
    height += {"imp": 0.0, "2imp": 1.2, "2rd": -2.0}[values.get("ranker", "imp")]
    luck = np.random.default_rng([int(seed or 0), round(100 * sigma), round(batch)]).normal(0, 0.5)
    return float((height + luck) * (1 - math.exp(-budget / (70 * batch + 800))))


def population(places=9, generations=9, budget=9_000) -> list[Level]:
    search = Search(pbt={"population": places, "generations": generations})
    return list(levels(search, places, ("1",), budget))


def halving(settings=27, **keys) -> list[Level]:
    search = Search(halving={"seeds": [1, 1, 2], **keys})
    return list(levels(search, settings, SEEDS, 27_000, drawn=False))


def computed(
    planned: Sequence[Level],
    settings: Sequence[Mapping],
    score: Callable[[Mapping, str, int], float | None] = reached,
) -> tuple[list, list[dict], dict[str, Decision]]:
    """The known candidates, the markers and the decisions of a search."""
    known = [{"values": values, "runs": runs_of(number)} for number, values in enumerate(settings)]
    markers, decisions, seen = [], {}, {}
    for level in planned:
        rows = []
        for place, number, values in _chosen(level, known, seen, decisions):
            own = [_marker(level, place, number, values, seed, score) for seed in level.seeds]
            markers += own
            rows.append(seen_of(own))
        seen[level.name] = rows
    return known, markers, decisions


def searched(planned, settings, score=reached, markers=None) -> Searched:
    """Returns the data of its figures; with only some markers, the search is half done."""
    known, written, decisions = computed(planned, settings, score)
    if markers is not None:
        written, decisions = written[:markers], {}
    placed = place_all(planned, known, written, decisions)
    return Searched(tuple(planned), placed, "evaluations", RANK)


def write_search(results: Path, planned, settings, score=reached, **keys) -> Path:
    """Writes a plan with these keys, markers and decisions of a search; returns its folder."""
    known, markers, decisions = computed(planned, settings, score)
    sweep = SweepDir(results / "sweeps/tuned")
    sweep.path.mkdir(parents=True)
    plan = {
        "name": "tuned",
        "experiment": "lp_sphere",
        "sweep": "",
        "columns": [*settings[0], "seed"],
        "rows": [],
        "search": {"seed": 0, "sampling": "random", "halving": {"seeds": [1, 1, 2]}},
        "unit": "evaluations",
        "levels": [level._asdict() for level in planned],
        "candidates": known,
    }
    sweep.plan.write_text(json.dumps(plan | keys))
    for marker in markers:
        path = marker_path(sweep, marker["level"], marker["place"], marker["seed"])
        write_sealed(path, marker)
    for level in planned:
        for block in range(level.blocks):
            write_decision(sweep, level, block, decisions[level.name])
    write_curves(results / "runs", markers, score)
    return sweep.path


def _marker(level, place, number, values, seed, score) -> dict:
    reached_score = score(values, seed, level.budget)
    return {
        "level": level.name,
        "place": place,
        "setting": number,
        "values": values,
        "seed": seed,
        "run": run_of(number, seed),
        "runs": runs_of(number),
        "unit": "evaluations",
        "budget": level.budget,
        "metric": "norm_qd_score",
        "score": reached_score,
        "failed": "ValueError: the ranker broke" if reached_score is None else None,
    }


def _chosen(level, known, seen, decisions):
    if level.kind not in ("exploited", "promoted"):
        numbers = range(level.first, level.first + level.places)
        return [(place, number, known[number]["values"]) for place, number in enumerate(numbers)]
    below = seen[level.below[0]]
    if level.kind == "exploited":
        decision = _exploited(below, level)
    else:
        decision = Decision([], [])
        for block in range(level.blocks):
            first, last, upto = level.sees(block, len(below))
            decision = promote(below[first:last], decision, upto)
    decisions[level.name] = decision
    return [(chosen.place, chosen.setting, chosen.values) for chosen in decision.chosen]


def _exploited(below: Sequence[Seen], level: Level) -> Decision:
    """The worst quarter takes over from the best quarter, with other values."""
    order, chosen = ranked(below), []
    count = len(order) // 4
    donors = {bad.place: good for bad, good in zip(order[-count:], order, strict=False)}
    for member in below:
        place, number, values = member.place, member.setting, member.values
        donor = donors.get(place)
        if donor is not None:
            factor, number = (0.8, 1.25)[place % 2], 1000 * level.budget + place
            values = {name: float(f"{value * factor:.6g}") for name, value in donor.values.items()}
        reason, parent = ("stays", place) if donor is None else ("takes over", donor.place)
        chosen.append(Chosen(place, number, values, reason, parent, runs=runs_of(number)))
    return Decision(list(below), chosen)


def runs_of(number: int) -> dict[str, str]:
    return {seed: run_of(number, seed) for seed in SEEDS}


def run_of(number: int, seed: str) -> str:
    return f"invented-cma_me-s{seed}-{number:010x}"


def write_curves(runs: Path, markers: Sequence[Mapping], score=reached) -> None:
    """Writes `state/metrics.csv` of each run, up to its last marker.

    A failed run has no rows.
    """
    furthest = {marker["run"]: marker for marker in markers}
    for run, marker in furthest.items():
        spent = np.arange(STEP, marker["budget"] + STEP, STEP)
        curve = [score(marker["values"], marker["seed"], int(budget)) or 0.0 for budget in spent]
        rows = pd.DataFrame(dict.fromkeys(COLUMNS, 0.0), index=range(len(spent)))
        rows["iteration"], rows["evaluations"] = np.arange(1, len(spent) + 1), spent
        rows["norm_qd_score"] = rows["qd_score"] = curve
        state = RunDir(runs / run).state
        state.path.mkdir(parents=True, exist_ok=True)
        rows = rows[:0] if marker["failed"] else rows
        rows.to_csv(state.metrics, index=False)
