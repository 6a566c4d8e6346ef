"""The progress of a search: the setting of each trial, and its outcome.

The state of the runs of a sweep and of its search, as text for `qdsweep status` and `watch`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import stdev
from typing import Any, NamedTuple

from qdsweep.analysis.columns import (
    SEARCH_BEFORE,
    SEARCH_BEHIND,
    dotted_arguments,
)
from qdsweep.config.model import value_text
from qdsweep.errors import BadInput
from qdsweep.files import last_line
from qdsweep.metrics import NORM_QD_SCORE, Metric
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import Plan, PlannedRun, read_confirm
from qdsweep.records.progress import (
    RAISED,
    OtherCode,
    Standing,
    read_standing,
    read_standings,
    totals,
)
from qdsweep.records.search_files import (
    Decision,
    Level,
    Seen,
    ordinal,
    read_decisions,
    read_markers,
    seen_of,
)
from qdsweep.search.levels import GO_ON, count_candidates, ranked, search_cost, whole_budget
from qdsweep.sweep.drawn import SAMPLE, DrawnSource
from qdsweep.sweep.grammar import drawn_in
from qdsweep.text import common_decimals, duration, number, plural

_NOTHING = Decision([], [])

# In the order of the table: states that need attention come first.
STATES = ("failed", "running", "stopped", "extended", "replaced", "outdated", "waiting", "finished")


class Placed(NamedTuple):
    """A trial: a setting at a place of a search.

    Attributes:
        level: The level.
        place: Its place there.
        setting: The setting's number.
        values: Its swept values, without the seed.
        runs: Seed -> the run that the trial extends.
        reason: Why the decision chose it; empty where it was known beforehand.
        parent: Its place in the level below, or its donor's.
        score: Mean over the seeds, larger is better; None where it failed or is not known yet.
        error: Its standard error; nan of one seed.
        failed: Why it failed.
        done: For how many of the seeds it is computed.
        rank: Among all settings of the level; None before all of them are computed.
        went_on: Whether it was promoted to the next level; None before the decision, or at the
            last level.
        chosen: How many settings are promoted to the next level; 0: there is none.
    """

    level: Level
    place: int
    setting: int
    values: Mapping[str, Any]
    runs: Mapping[str, str]
    reason: str = ""
    parent: int | None = None
    score: float | None = None
    error: float = math.nan
    failed: str | None = None
    done: int = 0
    rank: int | None = None
    went_on: bool | None = None
    chosen: int = 0

    @property
    def is_done(self) -> bool:
        """Whether it is computed for all its seeds."""
        return self.done == len(self.level.seeds)

    @property
    def why(self) -> str:
        """Why it stopped: `rung 0: 14th of 27, 9 promoted`; nothing if it did not."""
        where = level_text(self.level.name)
        if self.failed is not None:
            return f"{where}: failed: {self.failed}"
        if self.went_on is not False or self.rank is None:
            return ""
        return f"{where}: {ordinal(self.rank)} of {self.level.places}, {self.chosen} promoted"


@dataclass(frozen=True)
class Searched:
    """A search as its figures and its page see it.

    Attributes:
        levels: Its levels.
        placed: Its trials, level by level.
        unit: Of its budgets.
        metric: The metric that decides.
        called: Swept parameter -> its label in the report.
        drawn: Swept parameter -> its source, if it is drawn.
        columns: Swept parameter -> its column in tables, where that is another name; see
            `dotted_arguments`.
    """

    levels: tuple[Level, ...]
    placed: list[Placed]
    unit: str
    metric: Metric
    called: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, DrawnSource] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The swept parameters of its settings, without the seed and the number of a draw."""
        return [name for name in self.placed[0].values if name != SAMPLE] if self.placed else []

    @cached_property
    def last(self) -> list[Placed]:
        """The last trial of each setting; the best of the largest budget first."""
        furthest = {trial.setting: trial for trial in self.placed}
        return sorted(furthest.values(), key=_best_first)

    @property
    def count(self) -> int:
        """The number of settings: also those to which members of a population changed."""
        return max(len(self.last), count_candidates(self.levels))

    @property
    def finalists(self) -> list[Placed]:
        """The settings that had the whole budget, the best first."""
        most = whole_budget(self.levels)
        return [trial for trial in self.last if trial.level.budget == most and trial.failed is None]

    @property
    def pairs(self) -> list[tuple[Placed, Placed]]:
        """Promoted settings: each at a level and at the next one, with a score at both."""
        scored = {
            (trial.level.name, trial.setting): trial
            for trial in self.placed
            if trial.score is not None
        }
        below = {after.name: name for name, after in next_levels(self.levels).items()}
        keys = [((below.get(level, ""), setting), (level, setting)) for level, setting in scored]
        return [(scored[before], scored[key]) for before, key in keys if before in scored]

    @property
    def is_pbt(self) -> bool:
        """Whether a population took over from its best members."""
        return any(level.kind == "exploited" for level in self.levels)

    def shown(self, score: float) -> float:
        """Returns a score as a reader sees it: in the metric's own sign and unit."""
        return self.metric.sign * self.metric.factor * score

    @cached_property
    def decimals(self) -> int:
        """How many decimals its scores have: as many as the same means have in the main table."""
        known = [trial for trial in self.finalists or self.last if trial.score is not None]
        errors = [self.metric.factor * trial.error for trial in known]
        return common_decimals([self.shown(trial.score or 0.0) for trial in known], errors)

    def name(self, swept: str) -> str:
        """Returns the label of a swept parameter."""
        return self.called.get(swept, swept.split(".")[-1])

    def column(self, swept: str) -> str:
        """Returns the column of a swept parameter in tables and the data of figures."""
        taken = (*SEARCH_BEFORE, *SEARCH_BEHIND)
        return self.columns.get(swept, f"swept_{swept}" if swept in taken else swept)

    @cached_property
    def _telling(self) -> list[str]:
        """The swept parameters whose values differ."""
        seen = {name: {repr(trial.values[name]) for trial in self.placed} for name in self.names}
        return [name for name, values in seen.items() if len(values) > 1]

    def label(self, trial: Placed) -> str:
        """Returns the values that distinguish a setting from others."""
        parts = ((self.name(name), value_text(trial.values[name])) for name in self._telling)
        return ", ".join(f"{name} {text}" for name, text in parts if text) or "the only setting"


def _best_first(trial: Placed) -> tuple[int, bool, float, int]:
    return -trial.level.budget, trial.score is None, -(trial.score or 0.0), trial.setting


def level_parts(name: str) -> dict[str, int]:
    """Returns the numbers in a level's name: `bracket-2-rung-0` -> bracket 2, rung 0."""
    return {part: int(number) for part, number in re.findall(r"([a-z]+)-(\d+)", name)}


def level_text(name: str) -> str:
    """Returns a level's name for a reader: `bracket 2, rung 0`."""
    return ", ".join(f"{part} {number}" for part, number in level_parts(name).items())


def next_levels(levels: Sequence[Level]) -> dict[str, Level]:
    """Returns level -> the level that its best settings are promoted to, where there is one."""
    return {below: level for level in levels if level.kind in GO_ON for below in level.below}


def leader(search: Searched, level: Level) -> Placed | None:
    """Returns the best setting of a level so far; None before any has a score."""
    scored = [trial for trial in search.placed if trial.level == level and trial.score is not None]
    return min(scored, key=_best_first, default=None)


def ancestors(search: Searched) -> list[Placed]:
    """Returns the best of the last generation and its ancestors, the first one first."""
    at = {(trial.level.name, trial.place): trial for trial in search.placed}
    best = leader(search, search.levels[-1])
    line: list[Placed] = []
    while best is not None:
        line.append(best)
        below = best.level.below[0] if best.level.below else ""
        best = None if best.parent is None else at.get((below, best.parent))
    return line[::-1]


def place_all(
    levels: Sequence[Level],
    known: Sequence[Mapping[str, Any]],
    markers: Iterable[Mapping[str, Any]],
    decisions: Mapping[str, Decision],
) -> list[Placed]:
    """Returns the setting at each place of a search, as far as it is known, level by level.

    Args:
        levels: Its levels.
        known: `candidates` of its plan.
        markers: The results so far.
        decisions: Level -> the decisions on it so far.
    """
    by_place: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for marker in markers:
        by_place.setdefault((marker["level"], marker["place"]), []).append(marker)
    after, placed = next_levels(levels), []
    for level in levels:
        own = list(_given(level, known, decisions.get(level.name, _NOTHING)))
        own = [_looked(trial, by_place.get((level.name, trial.place), ())) for trial in own]
        following = after.get(level.name)
        if following is not None:
            chosen = decisions.get(following.name, _NOTHING).chosen
            decided, parents = len(chosen) == following.places, {trial.parent for trial in chosen}
            count = len(parents) if decided else following.places
            others = False if decided else None
            own = [
                trial._replace(went_on=trial.place in parents or others, chosen=count)
                for trial in own
            ]
        if len(own) == level.places and all(trial.is_done for trial in own):
            seen = [Seen(trial.place, trial.setting, trial.values, trial.score) for trial in own]
            order = {trial.place: rank for rank, trial in enumerate(ranked(seen), start=1)}
            own = [trial._replace(rank=order[trial.place]) for trial in own]
        placed += own
    return placed


def _given(
    level: Level, known: Sequence[Mapping[str, Any]], decision: Decision
) -> Iterable[Placed]:
    """Yields the settings of a level's places, as far as they are decided."""
    if level.kind == "known":
        for place in range(level.places):
            number = level.first + place
            runs = known[number]["runs"]
            own = {seed: runs[seed] for seed in level.seeds}
            yield Placed(level, place, number, known[number]["values"], own)
    for trial in decision.chosen:
        own = {seed: trial.runs[seed] for seed in level.seeds}
        stays = level.kind == "exploited" and trial.parent is None
        parent = trial.place if stays else trial.parent
        yield Placed(level, trial.place, trial.setting, trial.values, own, trial.reason, parent)


def _looked(trial: Placed, markers: Sequence[Mapping[str, Any]]) -> Placed:
    """Returns a setting with the results in its markers."""
    done = len(markers)
    if done < len(trial.level.seeds):
        return trial._replace(done=done)
    seen = seen_of(markers)
    trial = trial._replace(done=done, score=seen.score, failed=seen.failed)
    if done < 2 or seen.score is None:
        return trial
    error = stdev(marker["score"] for marker in markers) / math.sqrt(done)
    return trial._replace(error=error)


def read_search(sweep: SweepDir, plan: Plan) -> Searched | None:
    """Reads the search of a sweep so far; None where it has none.

    Raises:
        BadInput: A marker or a table of decisions is truncated or was edited.
    """
    if not plan.levels:
        return None
    levels = plan.levels
    decisions = {level.name: read_decisions(sweep, level) for level in levels}
    placed = place_all(levels, plan.candidates, read_markers(sweep, levels), decisions)
    try:
        drawn = drawn_in(plan.sweep)
    except BadInput:  # the file of a `::::` source is gone
        drawn = []
    sources = {source.name: source for source in drawn}
    columns, own = dotted_arguments(plan, sweep.results), plan.figures.names
    dotted = {name: own.get(name, own.get(path, path)) for name, path in columns.items()}
    return Searched(levels, placed, plan.unit, plan.decider, plan.names | dotted, sources, columns)


def search_runs(search: Searched) -> dict[str, tuple[PlannedRun, str]]:
    """Returns run -> the budget that the search asks for so far, and its outcome; best first."""
    asked: dict[str, tuple[PlannedRun, str]] = {}
    for trial in search.last:
        label, why = search.label(trial), became(trial)
        for seed, run in trial.runs.items():
            asked[run] = PlannedRun(run, label, search.unit, trial.level.budget, seed), why
    return asked


def became(trial: Placed) -> str:
    """Returns the outcome of a trial: `rung 0: 14th of 27, 9 promoted`."""
    if trial.why:
        return trial.why
    where = level_text(trial.level.name)
    if trial.done < len(trial.level.seeds):
        return where
    if trial.chosen == 0:
        return f"{where}: {ordinal(trial.rank)} of {trial.level.places}" if trial.rank else where
    return f"{where}: promoted" if trial.went_on else f"{where}: waits for the others"


def explained(standing: Standing, why: str) -> Standing:
    """Returns the state of a run, with its outcome in the search as its note if it has none."""
    if why and standing.note == RAISED:  # it waits for its turn
        return replace(standing, state="waiting", note=f"{why}: will resume")
    return replace(standing, note=standing.note or why)


def levels_so_far(search: Searched) -> Iterator[tuple[str, str, str]]:
    """Yields level, trials done, and leader with its score, of each level that has started."""
    for level in search.levels:
        own = [trial for trial in search.placed if trial.level == level]
        done = sum(trial.is_done for trial in own)
        if not any(trial.done for trial in own):
            continue
        best = leader(search, level)
        yield level_text(level.name), f"{done} of {level.places} settings", led_by(search, best)


def led_by(search: Searched, best: Placed | None) -> str:
    """Returns the leader and its score; nothing before any trial has one."""
    if best is None or best.score is None:
        return ""
    return (
        f"leader: {search.label(best)}, {search.metric.with_value(search.metric.sign * best.score)}"
    )


def search_line(search: Searched, standings: Iterable[Standing]) -> str:
    """Returns the state of a search in one line: trials, and an estimate of the rest."""
    done = sum(trial.done for trial in search.placed)
    count = sum(level.places * len(level.seeds) for level in search.levels)
    started = {trial.level.name for trial in search.placed if trial.done}
    to_come = len(search.levels) - len(started)
    total, own = search_cost(search.levels), list(standings)
    spent = sum(min(now.done, now.run.budget) for now in own)
    seconds = sum(now.core_seconds for now in own)
    text = f"search: {done:,} of {plural(count, 'trial')} done"
    if to_come:
        text += f", {plural(to_come, 'level')} to come"
    if done < count:
        text += f"; about {number(max(0, total - spent))} {search.unit} left"
        if spent:
            text += f", {duration(seconds / spent * max(0, total - spent))} of core time"
    return text


def table(standings: Iterable[Standing], metric: Metric) -> Iterator[tuple[str, ...]]:
    """Yields the rows of `qdsweep status`, labels first as `qdsweep watch` has them.

    Args:
        standings: The state of the runs.
        metric: The metric whose value is shown.
    """
    for now in standings:
        score = now.metrics.get(metric.name)
        left = now.core_seconds_left
        yield (
            now.run.label,
            now.state,
            f"{now.done:,}/{now.run.budget:,}",
            "" if score is None else f"{metric.factor * score:,.6g}",
            "" if now.eta is None else duration(now.eta),
            duration(now.core_seconds),
            duration(left) if left else "",
            now.cause,
        )


def has_cells(standings: Iterable[Standing]) -> bool:
    """Returns whether the archives of all runs that have measured anything have cells."""
    return all(NORM_QD_SCORE in now.metrics for now in standings if now.metrics)


def failures(standings: Iterable[Standing], results: Results) -> Iterator[str]:
    """Yields a line for each failed run, with its log and the full cause."""
    for now in standings:
        if now.state == "failed":
            yield f"failed: {now.run.label}: {results.run(now.run.id).log}: {now.note}"


def read_states(sweep: SweepDir, plan: Plan, search: Searched | None) -> list[Standing]:
    """Returns the state of all runs of a sweep, for `qdsweep` and `qdsweep status`.

    Args:
        sweep: The sweep.
        plan: Its plan.
        search: Its search so far, if it has one.

    Raises:
        BadInput: confirm.json is damaged.
    """
    standings = read_standings(sweep, plan)
    if search is not None:
        standings = search_standings(sweep, search, standings)
    return [*map(OtherCode(sweep.results).mark, standings)]


def search_standings(
    sweep: SweepDir, search: Searched, standings: Iterable[Standing]
) -> list[Standing]:
    """Returns the state of all runs of a search, also of those that stopped early.

    Args:
        sweep: The sweep.
        search: Its search so far.
        standings: The state of its finalists, and of the runs that confirm it.
    """
    asked = search_runs(search)
    others = [now for now in standings if now.run.id not in asked]
    own = [
        explained(read_standing(sweep.results.run(run), planned), why)
        for run, (planned, why) in asked.items()
    ]
    return [*own, *others]


def summary_line(standings: list[Standing]) -> str:
    """Returns the sum of a sweep in one line."""
    sums = totals(standings)
    counts = ", ".join(
        f"{sums.counts[state]:,} {state}" for state in reversed(STATES) if sums.counts[state]
    )
    left = "unknown" if sums.left is None else duration(sums.left)
    runs = plural(len(standings), "run")
    return f"{runs}: {counts}; core time: {duration(sums.used)} used, {left} left"


def reevaluations(sweep: SweepDir, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields a line for each re-evaluation that has `failed`, and one for how many are `done`."""
    if plan.reevaluate is None:
        return
    runs = [sweep.results.run(run.id) for run in plan.runs(read_confirm(sweep))]
    stem = plan.reevaluate.stem
    missing = [run for run in runs if not run.corrected(stem).exists()]
    for run in missing:
        why = last_line(run.corrected(stem).with_suffix(".log"))
        if why.startswith("qdsweep: "):
            yield "failed", f"re-evaluation of {run.name}: {why.removeprefix('qdsweep: ')}"
    yield "done", f"re-evaluated: {len(runs) - len(missing)} of {len(runs)} runs"
