"""The lines that every start of a search prints: its work, its progress, and rebuilt files."""

from collections.abc import Iterator, Mapping

from qdsweep.config.sweep import SweepFile
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import Results
from qdsweep.records.search_files import markers_in
from qdsweep.records.status import read_status
from qdsweep.search.levels import cost, count_candidates, search_cost, share_of_whole, whole_budget
from qdsweep.search.search_plan import SearchPlan
from qdsweep.sweep.runs import Sweep
from qdsweep.text import duration

_LISTED = 3  # up to this number, rebuilt files are listed; more are counted


def search_outlook(
    settings: SweepFile,
    plan: SearchPlan,
    sweep: Sweep,
    reasons: Mapping[str, str],
    results: Results,
) -> Iterator[str]:
    """Yields lines on the work of a search and its progress.

    Args:
        settings: The sweep file.
        plan: The plan of the search.
        sweep: All runs that it may choose from.
        reasons: Its files that must be rebuilt, and the reasons.
        results: The folder results/.

    Yields:
        Lines.
    """
    for line in (*sweep.unpaired, *plan.warnings):
        yield f"qdsweep: warning: {settings.name}: {line}"
    for reason in dict.fromkeys(reasons.values()):
        paths = [path for path in reasons if reasons[path] == reason]
        for path in paths if len(paths) <= _LISTED else ():
            yield f"qdsweep: warning: {path} is rebuilt: {reason}"
        if len(paths) > _LISTED:
            yield f"qdsweep: warning: {paths[0]} and {len(paths) - 1} more are rebuilt: {reason}"
    yield from _changed(settings, results)
    yield from _table(settings, plan, results)


def _table(settings: SweepFile, plan: SearchPlan, results: Results) -> Iterator[str]:
    levels, most = plan.levels, whole_budget(plan.levels)
    count = sum(level.places * len(level.seeds) for level in levels)
    # The markers of a larger, earlier search remain, but do not count.
    sweep = results.sweep(settings.name)
    done = {level.name: len([*markers_in(sweep, level)]) for level in levels}
    yield (
        f"qdsweep: {settings.name}: {_kind(settings)}; {count:,} places, "
        f"{sum(done.values()):,} done; at most {most:,} {plan.unit} per run"
    )
    width = max(len(level.name) for level in levels)
    yield f"  {'level':{width}}  settings  seeds  {plan.unit + ' each':>16}  to compute  done"
    for level in levels:
        yield (
            f"  {level.name:{width}}  {level.places:8,}  {len(level.seeds):5}  {level.budget:16,}"
            f"  {cost(levels, level):10,}  {done[level.name]:4,}"
        )
    total, different = search_cost(levels), max(len(plan.candidates), count_candidates(levels))
    yield (
        f"  {total:,} {plan.unit}, {share_of_whole(levels, different):.0%} of {different:,} "
        f"full runs with one seed; {_core_time(plan, total, results)}"
    )


def _core_time(plan: SearchPlan, total: int, results: Results) -> str:
    """Estimates the core time from runs of the search that have started."""
    seconds = spent = 0.0
    for candidate in plan.candidates:
        for run in candidate.runs.values():
            status = read_status(results.run(run).state)
            if status.core_seconds:
                seconds += status.core_seconds
                spent += getattr(status, plan.unit)
    if not spent:
        return "core time unknown until a run has started"
    return f"about {duration(seconds / spent * total)} of core time in total"


def _kind(settings: SweepFile) -> str:
    search = settings.search
    assert search is not None
    if search.pbt:
        return f"population-based training of {search.pbt.population} configurations"
    kind = "tpe" if search.sampling == "tpe" else ""
    if search.halving:
        halving = "Hyperband" if search.has_brackets else "halving"
        kind = " and ".join(filter(None, [kind, halving]))
    return kind


def _changed(settings: SweepFile, results: Results) -> Iterator[str]:
    """Yields a line on the changes of the search since its last start."""
    before = read_json_if_whole(results.sweep(settings.name).plan).get("search")
    assert settings.search is not None
    new = settings.search.plain
    if not isinstance(before, dict) or before == new:
        return
    keys = sorted(key for key in before.keys() | new.keys() if before.get(key) != new.get(key))
    if keys == ["samples"]:
        yield (
            f"qdsweep: {settings.name}: search.samples {before.get('samples')} -> "
            f"{new.get('samples')}: results and decisions of full blocks are kept"
        )
        return
    texts = ", ".join(f"{key} {before.get(key)} -> {new.get(key)}" for key in keys)
    yield (
        f"qdsweep: warning: {settings.name}: search has changed ({texts}): its decisions are "
        "recomputed; existing runs are kept"
    )
