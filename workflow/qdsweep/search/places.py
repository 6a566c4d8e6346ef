"""What a search computes, as far as it is known before it starts: its settings and its levels.

The lines at every start of a search: what it will compute, what is done, what is made again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from qdsweep.config.base import value_text
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.explain import naming_file
from qdsweep.config.keys import Path
from qdsweep.config.search import EARLIEST, Search
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import Results
from qdsweep.records.search import Level, decision_path, is_whole, marker_path, read_sealed
from qdsweep.records.status import is_too_short, read_status
from qdsweep.search.draws import shuffled
from qdsweep.search.levels import (
    cost,
    levels,
    samples_of,
    search_cost,
    settings_count,
    share_of_whole,
    whole_budget,
)
from qdsweep.search.pbt import refuse_population
from qdsweep.search.tpe import count_settings, swept_sources
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.runs import Row, Sweep

SEED = "seed"


class Setting(NamedTuple):
    """All swept values but the seed.

    Attributes:
        values: Name -> value.
        runs: Swept seed -> run.
    """

    values: dict[str, Any]
    runs: dict[str, str]


@dataclass(frozen=True)
class Places:
    """What a search computes.

    Attributes:
        levels: In the order in which they can be computed.
        settings: Those that are known before it starts.
        unit: Of the budget.
        warnings: What its user should know before it starts.
    """

    levels: tuple[Level, ...]
    settings: tuple[Setting, ...]
    unit: str
    warnings: tuple[str, ...] = ()

    @property
    def plan(self) -> dict[str, Any]:
        """What plan.json says of it."""
        return {
            "unit": self.unit,
            "levels": [level._asdict() for level in self.levels],
            "candidates": [setting._asdict() for setting in self.settings],
        }


def places_of(
    settings: SweepFile, sweep: Sweep, sources: Mapping[Path, str] = MappingProxyType({})
) -> Places | None:
    """Returns what a search computes; None where all runs of the sweep are computed whole.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        sources: Where each key stands, from `settings.key_sources`.

    Raises:
        BadInput: The search cannot be done with this sweep.
    """
    search = settings.staged_search
    with naming_file(sources, "search"):
        return None if search is None else _places(settings, search, sweep)


def _places(settings: SweepFile, search: Search, sweep: Sweep) -> Places:
    _refuse(settings, search, sweep)
    unit, budget = _budget(sweep)
    if search.pbt:
        refuse_population(settings.sweep, sweep, unit)
    is_drawn = SAMPLE in sweep.columns
    found = _settings(sweep, search, is_drawn=is_drawn)
    seeds = tuple(found[0].runs)
    for setting in found:
        if tuple(setting.runs) != seeds:
            raise BadInput(
                "search: each setting needs the same seeds, in the same order: write them as a "
                "source of their own, such as ::: seed 1 2 3"
            )
    known = levels(search, len(found), seeds, budget, drawn=is_drawn)
    needed = max(level.first + level.places for level in known if level.kind == "known")
    if needed > len(found):
        raise BadInput(
            f"search: {needed} different settings are needed, and only {len(found)} of "
            f"{samples_of(search)} draws differ: draw numbers from wider ranges, or write fewer "
            "(search.samples, or halving without brackets)"
        )
    if search.sampling == "tpe":
        sources = swept_sources(settings.sweep, [one.values for one in found])
        needed = max(level.first + level.places for level in known if level.kind != "promoted")
        count = count_settings(sources, needed)
        if count < needed:
            raise BadInput(
                f"search: tpe asks for {needed} different settings, and the drawn sources have "
                f"{count}: write fewer samples or batches, or a grid"
            )
    return Places(known, tuple(found), unit, tuple(_warnings(search, found)))


def basis(settings: SweepFile, level: Level, block: int) -> str:
    """Returns what changes whenever a table of decisions must be made again.

    Args:
        settings: The sweep file.
        level: The level that it is about.
        block: The table.
    """
    found: list[object] = [*level.basis(block)]
    if level.kind in ("asked", "exploited") and settings.search is not None:
        pbt = settings.search.pbt
        keys = pbt and pbt.model_dump(mode="json", exclude={"generations"})
        found += [settings.sweep, settings.search.seed, keys]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def markers(levels: Iterable[Level], places: Iterable[int] | None = None) -> list[str]:
    """Returns the marker files of levels, or of some of their places, as outputs of a rule."""
    return [
        f"results/sweeps/{{sweep}}/search/{level.name}/{place}-s{seed}.json"
        for level in levels
        for place in (range(level.places) if places is None else places)
        for seed in level.seeds
    ]


def decision_of(level: Level, place: int) -> list[str]:
    """Returns the table of decisions that gives a place its run, if it is not known beforehand."""
    if level.kind == "known":
        return []
    block = level.block_of(place)
    return [f"results/sweeps/{{sweep}}/search/{level.name}/decided-{block}.json"]


def decided_by(levels: Mapping[str, Level], name: str, block: int) -> list[str]:
    """Returns what a table of decisions is made from: new markers, and the table before it."""
    level = levels[name]
    below = [levels[lower] for lower in level.below]
    if level.kind != "promoted":
        return markers(below)
    first, last, _ = level.sees(block, below[0].places)
    table = f"results/sweeps/{{sweep}}/search/{name}/decided-{block - 1}.json"
    return markers(below, range(first, last)) + [table] * bool(block)


def _settings(sweep: Sweep, search: Search, *, is_drawn: bool) -> list[Setting]:
    """Returns the different settings, in the order of their numbers."""
    groups: dict[str, list[Row]] = {}
    for row in sweep.rows:
        values = {name: value for name, value in row.values.items() if name != SEED}
        groups.setdefault(repr(values), []).append(row)
    rows = list(groups.values())
    if is_drawn:  # each draw with all that crosses it, so that more samples follow behind
        rows.sort(key=lambda group: group[0].values[SAMPLE])
    else:  # neighbours of a grid are alike, and would be decided about together
        rows = shuffled(rows, search.seed)
    found: dict[str, Setting] = {}
    for group in rows:
        values = {name: value for name, value in group[0].values.items() if name != SEED}
        runs = {value_text(row.values[SEED]) if SEED in row.values else "": row.id for row in group}
        found.setdefault(next(iter(runs.values())), Setting(values, runs))
    return list(found.values())


def _budget(sweep: Sweep) -> tuple[str, int]:
    """Returns the unit and the amount of the one budget that a search has."""
    budgets = {next(iter(row.experiment.budget.items())) for row in sweep.rows}
    if len(budgets) > 1:
        said = ", ".join(f"{unit} {amount}" for unit, amount in sorted(budgets))
        raise BadInput(f"search: all settings need one budget, and the sweep has {said}")
    return budgets.pop()


def _refuse(settings: SweepFile, search: Search, sweep: Sweep) -> None:
    """Refuses keys that cannot go together with a search."""
    for key in ("reevaluate", "imported", "published"):
        if getattr(settings, key):
            raise BadInput(
                f"{key}: not with search.halving, search.pbt or tpe, whose runs are not known "
                f"beforehand: remove the key {key}, or put it into a sweep of the best settings"
            )
    if settings.partial:
        raise BadInput(
            "partial: a search has its tables at its end; `qdsweep status` shows where it stands"
        )
    if search.needs_different:
        what = "pbt" if search.pbt else "tpe" if search.sampling == "tpe" else "halving.brackets"
        if SAMPLE not in sweep.columns:
            raise BadInput(
                f"search: {what} draws its settings: write `:::~` sources into the sweep, such as "
                ":::~ sigma0 log 0.05 5"
            )
        drawn = len({row.values[SAMPLE] for row in sweep.rows})
        different = len(
            {repr({k: v for k, v in r.values.items() if k != SEED}) for r in sweep.rows}
        )
        if different > drawn:
            raise BadInput(
                f"search: {what} takes drawn sources and seeds alone: write the others as "
                ":::~ NAME choice VALUE..."
            )


def _is_single(search: Search) -> bool:
    return search.halving is not None and search.halving.num_brackets == 1


def _warnings(search: Search, found: Sequence[Setting]) -> list[str]:
    said = []
    halving = search.halving
    if halving is not None and halving.shares[0] < EARLIEST:
        said.append(
            f"the first rung has {halving.shares[0]} of the budget: what leads so early often "
            f"loses in the end (measured: docs/searches.md); take {EARLIEST} or more"
        )
    if halving is not None and _is_single(search) and len(found) < halving.eta:
        count = f"{len(found)} setting{'' if len(found) == 1 else 's'}"
        said.append(f"{count} and eta = {halving.eta}: nothing is decided before the last rung")
    return said


def compose_setting(
    base: str | Mapping[str, Any], values: Mapping[str, Any], seed: str
) -> Experiment:
    """Returns the experiment of a setting that was chosen on the way.

    Args:
        base: The experiment that is swept.
        values: The setting's values, empty text where a condition does not hold.
        seed: The swept seed as text; empty where none is swept.

    Raises:
        BadInput: There is no such experiment.
    """
    keys = {name: value for name, value in values.items() if name != SAMPLE and value != ""}
    if seed:
        keys[SEED] = int(seed)
    return compose(base, keys, source="search")


_LISTED = 3  # files that are made again for one reason, before they are counted


def spoiled(name: str, places: Places, results: Results) -> dict[str, str]:
    """Returns the files of a search that are made again, and why.

    Args:
        name: The sweep's name.
        places: What the search computes.
        results: The folder results/.

    Returns:
        Path -> reason.
    """
    sweep = results.sweep(name)
    found = {}
    for level in places.levels:
        for block in range(level.blocks):
            path = decision_path(sweep, level.name, block)
            if path.exists() and not is_whole(path):
                found[str(path)] = "it was edited or torn"
        for place in range(level.places):
            for seed in level.seeds:
                path = marker_path(sweep, level.name, place, seed)
                if not path.exists():
                    continue
                try:
                    marker = read_sealed(path)
                except BadInput:
                    found[str(path)] = "it was edited or torn"
                    continue
                if level.kind == "known":
                    known = places.settings[level.first + place]
                    if (marker["values"], marker["runs"]) != (known.values, known.runs):
                        found[str(path)] = "the sweep has other values or seeds now"
                        continue
                run = results.run(str(marker["run"]))
                budget = {str(marker["unit"]): int(marker["budget"])}
                gone = not run.summary.exists() or is_too_short(run, budget)
                if marker["failed"] is None and gone:
                    found[str(path)] = f"its run {run.name} was removed or damaged"
    return found


def search_outlook(
    settings: SweepFile,
    places: Places,
    sweep: Sweep,
    again: Mapping[str, str],
    results: Results,
) -> Iterator[str]:
    """Says what a search computes, and what of it is done.

    Args:
        settings: The sweep file.
        places: What it computes.
        sweep: All runs that it may choose from.
        again: Its files that are made again, and why.
        results: The folder results/.

    Yields:
        Lines.
    """
    for line in (*sweep.unpaired, *places.warnings):
        yield f"qdsweep: warning: {settings.name}: {line}"
    for why in dict.fromkeys(again.values()):
        paths = [path for path in again if again[path] == why]
        for path in paths if len(paths) <= _LISTED else ():
            yield f"qdsweep: warning: {path} is made again: {why}"
        if len(paths) > _LISTED:
            yield f"qdsweep: warning: {paths[0]} and {len(paths) - 1} more are made again: {why}"
    yield from _changed(settings, places, results)
    yield from _table(settings, places, results)


def _table(settings: SweepFile, places: Places, results: Results) -> Iterator[str]:
    levels, most = places.levels, whole_budget(places.levels)
    count = sum(level.places * len(level.seeds) for level in levels)
    done = {level.name: _done(settings.name, level, results) for level in levels}
    yield (
        f"qdsweep: {settings.name}: {_kind(settings)}; {count:,} places, "
        f"{sum(done.values()):,} done; {most:,} {places.unit} at most in a run"
    )
    width = max(len(level.name) for level in levels)
    yield f"  {'level':{width}}  settings  seeds  {places.unit + ' each':>16}  to compute  done"
    for level in levels:
        yield (
            f"  {level.name:{width}}  {level.places:8,}  {len(level.seeds):5}  {level.budget:16,}"
            f"  {cost(levels, level):10,}  {done[level.name]:4,}"
        )
    total, different = search_cost(levels), max(len(places.settings), settings_count(levels))
    yield (
        f"  {total:,} {places.unit}, {share_of_whole(levels, different):.0%} of {different:,} "
        f"settings run whole with one seed; {_hours(places, total, results)}"
    )


def _done(name: str, level: Level, results: Results) -> int:
    """Number of its markers; those of a larger search before it stay, and do not count."""
    sweep = results.sweep(name)
    paths = (
        marker_path(sweep, level.name, place, seed)
        for place in range(level.places)
        for seed in level.seeds
    )
    return sum(path.exists() for path in paths)


def _hours(places: Places, total: int, results: Results) -> str:
    """Estimates the core-hours from runs of the search that have begun."""
    seconds = spent = 0.0
    for setting in places.settings:
        for run in setting.runs.values():
            status = read_status(results.run(run).state)
            if status.core_seconds:
                seconds += status.core_seconds
                spent += getattr(status, places.unit)
    if not spent:
        return "core-hours unknown until a run has begun"
    return f"about {seconds / spent * total / 3600:.2g} core-hours in all"


def _kind(settings: SweepFile) -> str:
    search = settings.search
    assert search is not None
    if search.pbt:
        return f"population-based training of {search.pbt.population} settings"
    how = "tpe" if search.sampling == "tpe" else ""
    if search.halving:
        band = search.halving.num_brackets > 1
        how = " and ".join(filter(None, [how, "Hyperband" if band else "halving"]))
    return how


def _changed(settings: SweepFile, places: Places, results: Results) -> Iterator[str]:
    """Says what is asked anew because the search was changed since its last start."""
    plan = results.sweep(settings.name).plan
    before = read_json_if_whole(plan).get("search")
    assert settings.search is not None
    now = settings.search.plain
    if not isinstance(before, dict) or before == now:
        return
    keys = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if keys == ["samples"]:
        yield (
            f"qdsweep: {settings.name}: search.samples {before.get('samples')} -> "
            f"{now.get('samples')}: what was computed and decided stays where its block is full"
        )
        return
    said = ", ".join(f"{key} {before.get(key)} -> {now.get(key)}" for key in keys)
    yield (
        f"qdsweep: warning: {settings.name}: search has changed ({said}): it is decided anew; runs "
        "that are there are kept and not computed again"
    )
