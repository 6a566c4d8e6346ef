"""The lines at every start of a search: what it will compute, what is done, what is made again."""

from collections.abc import Iterator, Mapping

from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole
from qdsweep.planning.lengthening import is_too_short
from qdsweep.planning.places import Places
from qdsweep.records.search import Level, decision_path, is_whole, marker_path, read_sealed
from qdsweep.records.status import read_status
from qdsweep.records.sweep_dir import Results
from qdsweep.strategies.costs import (
    cost,
    search_cost,
    settings_count,
    share_of_whole,
    whole_budget,
)
from qdsweep.sweep.runs import Sweep

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
