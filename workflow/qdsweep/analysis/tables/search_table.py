"""The tables of a search: search.csv has a row for each trial, the page one for each setting.

search.json lists the runs of the last levels, which are the rows of the ordinary tables.
"""

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.columns import PARTS, SEARCH_BEFORE, SEARCH_BEHIND
from qdsweep.analysis.search_progress import (
    Placed,
    Searched,
    leader,
    level_parts,
    level_text,
    read_search,
)
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.model import typed, value_text
from qdsweep.errors import BadInput
from qdsweep.files import write_csv
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.search_files import Level, marker_path, ordinal, read_sealed, write_search_rows
from qdsweep.search.levels import cost, whole_budget
from qdsweep.sweep.groups import CHANGES, MEMBER
from qdsweep.text import exact, number, plural

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("search_levels", "search_settings", "importance")


def write_rows(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes search.json: only the runs of the last levels, as others stopped earlier.

    Raises:
        BadInput: A marker is missing or damaged, or all runs of the last levels failed.
    """
    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    most = whole_budget(plan.levels)
    rows: dict[str, dict[str, Any]] = {}
    failures: dict[str, str] = {}
    for level in plan.levels:
        for place in range(level.places if level.budget == most else 0):
            for seed in level.seeds:
                marker = read_sealed(marker_path(sweep, level.name, place, seed))
                values = {**marker["values"], **({"seed": typed(seed)} if seed else {})}
                if level.kind == "exploited":
                    values = {MEMBER: marker["setting"], CHANGES: "", **values}
                budget = {unit: most if unit == plan.unit else None for unit in BUDGETS}
                rows[marker["run"]] = {"values": values, "id": marker["run"], **budget}
                if marker["failed"] is not None:
                    failures[marker["run"]] = marker["failed"]
    if len(failures) == len(rows):
        run, why = next(iter(failures.items()))
        raise BadInput(
            f"search: no run came to its end: {run}: {why} (all about it: "
            f"{sweep.results.run(run).state.failure}); fix that, then repeat the same command. If "
            f"your fix changes no code of a module:Class, first remove {sweep.search}"
        )
    write_search_rows(sweep, list(rows.values()))


def write_search(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes search.json, search.csv and the tables of a search.

    Raises:
        BadInput: A marker or a table of decisions is missing, truncated or was edited.
    """
    write_rows(sweep_dir, runs_dir)
    sweep = SweepDir(sweep_dir)
    search = read_search(sweep, read_plan(sweep))
    assert search is not None, "write_rows has its levels"
    if failed := sum(trial.failed is not None for trial in search.last):
        settings = plural(len(search.last), "setting")
        text = f"{failed:,} of {settings} failed; `qdsweep status {sweep.name}` lists them"
        print(f"qdsweep: {text}", flush=True)  # on the terminal, as the rule redirects only errors
    places = place_table(search)
    write_csv(places, sweep.search_table)
    last = [(placed.level.name, placed.place) for placed in search.last]
    furthest = places.set_index(["level", "place"]).loc[last].reset_index()
    write_sheet(sweep.tables, setting_sheet(search), furthest)
    write_sheet(sweep.tables, level_sheet(search), level_table(search))


def place_table(search: Searched) -> "pd.DataFrame":
    """Returns search.csv: a row for each trial of each level, in the order of the levels.

    Scores are in the metric's own sign and unit.
    """
    import pandas as pd

    table = pd.DataFrame([_record(placed, search) for placed in search.placed])
    whole = [*PARTS, "rank", "parent"]
    return table.astype(dict.fromkeys(whole, "Int64") | {"went_on": "boolean"})


def _record(placed: Placed, search: Searched) -> dict[str, Any]:
    level, parts, metric = placed.level, level_parts(placed.level.name), search.metric
    swept = {search.column(name): value_text(placed.values[name]) for name in search.names}
    before = (level.name, *map(parts.get, PARTS), placed.place, placed.setting)
    behind = (
        " ".join(level.seeds),
        level.budget,
        search.unit,
        metric.name,
        None if placed.score is None else metric.sign * placed.score,
        placed.rank,
        placed.went_on,
        placed.parent,
        placed.reason,
        placed.why,
        placed.failed,
        " ".join(placed.runs.values()),
    )
    return {
        **dict(zip(SEARCH_BEFORE, before, strict=True)),
        **swept,
        **dict(zip(SEARCH_BEHIND, behind, strict=True)),
    }


def setting_sheet(search: Searched) -> Sheet:
    """Returns the table of settings: the last level of each, and why it stopped there."""
    rows, names = search.last, search.names
    has_parent = any(placed.parent is not None for placed in rows)
    cells = []
    for placed in rows:
        place = Cell(level_text(placed.level.name), float(search.levels.index(placed.level)))
        line = [*(_value(placed.values[name]) for name in names), place, text_cell(_story(placed))]
        line.append(Cell(str(placed.setting), float(placed.setting)))
        if has_parent:
            line.append(Cell("", None) if placed.parent is None else _whole(placed.parent))
        line.append(_whole(placed.level.budget))
        line.append(_score(search, placed))
        cells.append(line)
    columns = [*map(search.name, names), "Last level", "Why it stopped", "Setting"]
    columns += ["Parent"] * has_parent + [search.unit.capitalize(), search.metric.heading]
    note = (
        "Each setting at its last level, the best of the whole budget first. The score is the mean"
        " over the seeds of that level, at its budget. Scores of different levels are not"
        " comparable. search.csv has every trial of every level."
    )
    scores = Counter((p.level.name, p.score) for p in search.placed if p.score is not None)
    if scores and max(scores.values()) > 1:
        note += " Equal scores of a level are ranked by the place in search.csv."
    if has_parent:
        note += " Parent: its trial in the level before, or that of its donor."
    return Sheet("search_settings", "Settings of the search", note, columns, len(names) + 2, cells)


def level_sheet(search: Searched) -> Sheet:
    """Returns the table of levels: settings, seeds, cost and leader of each."""
    rows = []
    for level in search.levels:
        best = leader(search, level)
        seeds = Cell(", ".join(level.seeds), float(len(level.seeds)))
        rows.append(
            [
                text_cell(level_text(level.name)),
                text_cell("" if best is None else search.label(best)),
                _whole(level.places),
                *([seeds] if any(level.seeds) else []),
                _whole(level.budget),
                _whole(cost(search.levels, level)),
                _whole(_failures(search, level)),
                Cell("", None) if best is None else _score(search, best),
            ]
        )
    unit, seeded = search.unit, any(search.levels[0].seeds)
    columns = [
        "Level",
        "Leader",
        "Settings",
        *(["Seeds"] if seeded else []),
        f"{unit.capitalize()} each",
    ]
    columns += [f"{unit.capitalize()} in all", "Failed", search.metric.heading]
    note = (
        f"{unit.capitalize()} in all: the cost of a level, whose runs resume from the level before."
        " The score is that of the leader."
    )
    return Sheet("search_levels", "Levels of the search", note, columns, 2, rows)


def level_table(search: Searched) -> "pd.DataFrame":
    """Returns the data of the table of levels."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "level": level.name,
                "settings": level.places,
                "seeds": " ".join(level.seeds),
                f"{search.unit}_each": level.budget,
                f"{search.unit}_in_all": cost(search.levels, level),
                "failed": _failures(search, level),
                "leader": best.setting if (best := leader(search, level)) else None,
            }
            for level in search.levels
        ]
    ).astype({"leader": "Int64"})


def _failures(search: Searched, level: Level) -> int:
    return sum(placed.failed is not None for placed in search.placed if placed.level == level)


def _story(placed: Placed) -> str:
    """Returns why a setting stopped at its last level."""
    if placed.failed is not None:
        return f"failed: {placed.failed}"
    if placed.why:
        return placed.why.partition(": ")[2]
    rank = "" if placed.rank is None else f"{ordinal(placed.rank)} of {placed.level.places}, "
    return f"{rank}the whole budget"


def _score(search: Searched, placed: Placed) -> Cell:
    score = math.nan if placed.score is None else search.shown(placed.score)
    return number_cell(number(score, search.decimals), score)


def _whole(value: int) -> Cell:
    return number_cell(number(value), float(value))


def _value(value: Any) -> Cell:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Cell(exact(value), float(value))
    return text_cell(value_text(value))
