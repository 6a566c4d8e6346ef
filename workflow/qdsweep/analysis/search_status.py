"""`qdsweep status` and `watch` of a search: its levels, its leader, and why each run stopped."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from qdsweep.analysis.search import Placed, Searched, leader, level_text
from qdsweep.analysis.text import number, plural
from qdsweep.records.plan import PlannedRun
from qdsweep.records.progress import RAISED, Standing
from qdsweep.records.search import ordinal
from qdsweep.strategies.costs import search_cost


def search_runs(search: Searched) -> dict[str, tuple[PlannedRun, str]]:
    """Returns run -> what the search asks of it so far, and what became of it; the best first."""
    found: dict[str, tuple[PlannedRun, str]] = {}
    for one in search.last:
        label, why = search.label(one), became(one)
        for seed, run in one.runs.items():
            found[run] = PlannedRun(run, label, search.unit, one.level.budget, seed), why
    return found


def became(one: Placed) -> str:
    """Returns what became of a setting at a place: `rung 0: 14th of 27, 9 went on`."""
    if one.why:
        return one.why
    where = level_text(one.level.name)
    if one.done < len(one.level.seeds):
        return where
    if one.chosen == 0:
        return f"{where}: {ordinal(one.rank)} of {one.level.places}" if one.rank else where
    return f"{where}: went on" if one.went_on else f"{where}: waits for the others"


def explained(standing: Standing, why: str) -> Standing:
    """Returns where a run stands with what the search did with it, unless it says more itself."""
    if why and standing.note == RAISED:  # nothing has stopped it: its turn comes
        return replace(standing, state="waiting", note=f"{why}: goes on")
    return replace(standing, note=standing.note or why)


def levels_so_far(search: Searched) -> Iterator[tuple[str, str, str]]:
    """Yields level, places done, and leader with its score, of each level that has begun."""
    for level in search.levels:
        own = [one for one in search.placed if one.level == level]
        done = sum(one.is_done for one in own)
        if not any(one.done for one in own):
            continue
        best = leader(search, level)
        yield level_text(level.name), f"{done} of {level.places} settings", led_by(search, best)


def led_by(search: Searched, best: Placed | None) -> str:
    """Returns who leads, and with what score; nothing before any has one."""
    if best is None or best.score is None:
        return ""
    return f"leader: {search.label(best)}, {search.metric.said(search.metric.sign * best.score)}"


def search_line(search: Searched, standings: Iterable[Standing]) -> str:
    """Returns where a search stands in a line: places, and an estimate of what is left."""
    done = sum(one.done for one in search.placed)
    count = sum(level.places * len(level.seeds) for level in search.levels)
    begun = {one.level.name for one in search.placed if one.done}
    to_come = len(search.levels) - len(begun)
    total, own = search_cost(search.levels), list(standings)
    spent = sum(min(now.done, now.run.budget) for now in own)
    seconds = sum(now.core_seconds for now in own)
    text = f"search: {done:,} of {plural(count, 'place')} done"
    if to_come:
        text += f", {plural(to_come, 'level')} to come"
    if done < count:
        text += f"; about {number(max(0, total - spent))} {search.unit} left"
        if spent:
            text += f", {seconds / spent * max(0, total - spent) / 3600:.3f} core-hours"
    return text
