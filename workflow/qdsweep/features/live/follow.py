"""A sweep that is followed: the files of its runs are read again when they change.

Of metrics.csv a few points are read, and then only appended lines.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from qdsweep.analysis.search_progress import (
    Searched,
    explained,
    has_cells,
    read_search,
    search_runs,
)
from qdsweep.errors import BadInput
from qdsweep.files import Signature, signature
from qdsweep.host.lock import DEAD_SECONDS
from qdsweep.host.owner import lives, read_owner
from qdsweep.metrics import RANK, Metric
from qdsweep.ornaments import ornament
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import PlannedRun, read_confirm, read_plan
from qdsweep.records.progress import OtherCode, Outlook, Standing, read_standing, totals
from qdsweep.text import apart, short_number

Point = tuple[int, float]  # evaluations, value as a reader sees it

SAMPLES = 64  # lines read of a long stretch of a file
MAX_POINTS = 256  # points kept
WHOLE = 65_536  # a shorter stretch is read whole [bytes]
_BLOCK = 1_024  # longer than two lines [bytes]
_BARS = "▁▂▃▄▅▆▇█"

# How long the files of a search are not read, as a multiple of the time to read them.
SEARCH_EVERY = 20


@dataclass
class LiveCurve:
    """A metric over evaluations of one run, as far as its `state/metrics.csv` goes.

    It is the one that shows the course of the given metric, if the file has that.
    """

    path: Path
    metric: Metric = RANK
    points: list[Point] = field(default_factory=list)  # in order, at most `MAX_POINTS`
    _columns: list[bytes] = field(default_factory=list)
    _seen: tuple[int, int, int] = (0, 0, 0)
    _end: int = 0

    def refresh(self) -> None:
        """Reads what was appended; a file that was cut or replaced is read from its beginning."""
        try:
            stat = self.path.stat()
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen == self._seen:
                return
            if stat.st_ino != self._seen[0] or stat.st_size < self._end:
                self.points, self._end = [], 0
            self._seen = seen
            with self.path.open("rb", buffering=0) as file:
                if not self._end:
                    self._columns = file.read(_BLOCK).partition(b"\n")[0].split(b",")
                    names = [name.decode(errors="replace") for name in self._columns]
                    self.metric = self.metric.course_in(names)
                lines, self._end = _lines(file, self._end, stat.st_size)
        except OSError:
            self.points, self._seen, self._end = [], (0, 0, 0), 0
            return
        for line in lines:
            point = self._point(line)
            if point is not None and (not self.points or point[0] > self.points[-1][0]):
                self.points.append(point)
        while len(self.points) > MAX_POINTS:
            self.points = [*self.points[:-1:2], self.points[-1]]

    def _point(self, line: bytes) -> Point | None:
        cells = line.split(b",")
        if len(cells) != len(self._columns):
            return None
        row = dict(zip(self._columns, cells, strict=True))
        try:
            value = self.metric.factor * float(row[self.metric.name.encode()])
            point = int(row[b"evaluations"]), value
        except (ValueError, KeyError):
            return None
        return point if math.isfinite(point[1]) else None


def _lines(file: IO[bytes], start: int, end: int) -> tuple[list[bytes], int]:
    """Returns whole lines of a part of a file, samples of a long one, and where the last ends."""
    if end - start <= WHOLE:
        file.seek(start)
        content = file.read(end - start)
        whole = content.rfind(b"\n") + 1
        return content[:whole].splitlines(), start + whole
    lines = []
    for sample in range(1, SAMPLES + 1):
        file.seek(start + (end - start) * sample // SAMPLES - _BLOCK)
        content = file.read(_BLOCK)
        lines += content.split(b"\n")[1:-1][-1:]  # the first and the last line may be cut
    return lines, end - len(content) + content.rfind(b"\n") + 1


def _in_place(what: str, error: Exception) -> str:
    """Returns why an ornament is left out. Its place on the screen shows the reason."""
    return f"{what}: {type(error).__name__}: {error}"


@ornament("no curve", lambda why, points, width: why[:width], _in_place)
def sparkline(points: list[Point], width: int) -> str:
    """Returns the curve in one line of bars, between its own lowest and highest value."""
    if not points:
        return ""
    evaluations = [point[0] for point in points]
    places = [evaluations[-1] * (column + 1) / width for column in range(width)]
    values = [points[max(0, bisect_right(evaluations, place) - 1)][1] for place in places]
    low, high = min(values), max(values)
    steps = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * steps)] for value in values)


@ornament("no curve", lambda why, points, width, *room: why[:width], _in_place)
def curve_plot(points: list[Point], width: int, height: int, metric: Metric = RANK) -> str:
    """Returns the curve as a text plot of these sizes [characters]; empty without room."""
    if len(points) < 2 or width < 24 or height < 5:
        return ""
    import plotext

    evaluations, values = zip(*points, strict=True)
    plotext.main()
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # the caller gives the size, whatever the terminal is
    plotext.plot_size(width, height)
    plotext.plot(evaluations, values, marker="braille")
    plotext.xticks(*_ticks(evaluations[0], evaluations[-1], 4))
    plotext.yticks(*_ticks(min(values), max(values), min(4, height // 3)))
    plotext.title(f"{metric.heading} over evaluations")
    return str(plotext.uncolorize(plotext.build()))


def _ticks(low: float, high: float, count: int) -> tuple[list[float], list[str]]:
    steps = max(1, count - 1)
    places = [low + (high - low) * step / steps for step in range(steps + 1)]
    if isinstance(low, int):
        return places, [short_number(round(place)) for place in places]
    return places, apart(places, 4, short_number)


class Followed:
    """A run that is followed; `corrected` is the file of its re-evaluation, if one is planned."""

    def __init__(
        self,
        folder: RunDir,
        run: PlannedRun,
        corrected: Path | None,
        metric: Metric,
        code: OtherCode,
    ) -> None:
        self.folder, self.run, self.corrected = folder, run, corrected
        self.code = code
        self.reevaluated = False
        self.why = ""  # the decision of a search about it
        self.measure(metric)
        self.standing = Standing(run)
        self.seen: Any = None  # what the files looked like when they were read
        self._lock, self._status = folder.state.lock, folder.state.status
        self._owner: dict[str, Any] | None = None
        self._heard = 0.0  # last heartbeat of its owner, by `time.monotonic`

    def measure(self, metric: Metric) -> None:
        """Sets the metric that is shown of it."""
        self.metric, self.curve = metric, LiveCurve(self.folder.state.metrics, metric)

    @property
    def score(self) -> float | None:
        """The metric now, as a reader sees it; None where it has no value."""
        value = self.standing.metrics.get(self.metric.name)
        return None if value is None else self.metric.factor * value

    def look(self) -> bool:
        """Reads the run's files if they have changed; returns whether its standing has."""
        if self.corrected is not None and self.standing.state == "finished":
            self.reevaluated = self.reevaluated or signature(self.corrected) is not None
        lock, status = signature(self._lock), signature(self._status)
        if self.seen is None or lock != self.seen[0]:
            self._owner = read_owner(self._lock) if lock and lock[1] else None
            # The time of the file counts only at first; later only that it has changed.
            age = max(0.0, time.time() - lock[0] / 1e9) if lock and self.seen is None else 0.0
            self._heard = time.monotonic() - age
        seen = (lock, status, self._is_alive(lock))
        if seen == self.seen:
            return False
        self.seen, before = seen, self.standing
        standing = self.code.mark(read_standing(self.folder, self.run, alive=seen[2]))
        self.standing = explained(standing, self.why)
        return self.standing != before

    def explain(self, why: str) -> None:
        """Sets the decision of a search about it; its files are read again."""
        if why != self.why:
            self.why, self.seen = why, None

    def _is_alive(self, lock: Signature) -> bool:
        """Returns whether a process computes it, without touching the lock.

        The owner writes its name into it, touches it every few seconds, and empties it at the end.
        """
        if lock is None or not self._owner:
            return False
        alive = lives(self._owner)
        return time.monotonic() - self._heard < DEAD_SECONDS if alive is None else alive


class Follow:
    """A sweep that is followed; without a name the one started last, once there is any."""

    def __init__(self, results: Path, name: str | None) -> None:
        self.results, self.name = Results(results), name
        self.runs: dict[str, Followed] = {}
        self.search: Searched | None = None
        self._rank = self._metric = RANK
        self._plan: Any = None
        self._next_search = 0.0  # when the files of a search may be read again
        self._turns = {"live": 0, "all": 0}

    @property
    def known(self) -> list[str]:
        """Returns the names of all sweeps, the one started last first."""
        try:
            return [sweep.name for sweep in self.results.known_sweeps()]
        except OSError:  # a sweep was removed just now
            return []

    @property
    def outlook(self) -> Outlook:
        """Progress and cost of the sweep."""
        return totals([run.standing for run in self.runs.values()])

    @property
    def reevaluated(self) -> tuple[int, int]:
        """How many runs have re-evaluated elites, and how many shall have them."""
        asked = [run for run in self.runs.values() if run.corrected is not None]
        return sum(run.reevaluated for run in asked), len(asked)

    @property
    def unread(self) -> int:
        """How many runs were not read yet."""
        return sum(run.seen is None for run in self.runs.values())

    def look(self, seconds: float, first: Iterable[Followed] = ()) -> bool:
        """Looks at runs in turn, and at some in any case; returns whether anything has changed.

        Half of the seconds is for the runs that are being computed.
        """
        changed = self._look_at_plan()
        start = time.perf_counter()
        for run in first:
            changed |= self._look_at(run)
        runs = list(self.runs.values())
        live = [run for run in runs if run.standing.state == "running"]
        changed |= self._take_turns("live", live, start + seconds / 2)
        changed |= self._take_turns("all", runs, start + seconds)
        return changed

    def _take_turns(self, key: str, runs: list[Followed], deadline: float) -> bool:
        changed = False
        for _ in runs:
            if time.perf_counter() >= deadline:
                break
            self._turns[key] = (self._turns[key] + 1) % len(runs)
            changed |= self._look_at(runs[self._turns[key]])
        return changed

    def _look_at(self, run: Followed) -> bool:
        """Looks at a run; without cells in its archive, all runs are shown by another metric."""
        changed = run.look()
        if not has_cells([run.standing]):
            self._measure(self._rank.drawn(has_cells=False))
        return changed

    def _measure(self, metric: Metric) -> None:
        if metric is not self._metric:
            self._metric = metric
            for run in self.runs.values():
                run.measure(metric)

    def _look_at_plan(self) -> bool:
        """Reads the plan again if it has changed; a truncated plan changes nothing."""
        if self.name is None:
            self.name = next(iter(self.known), None)
        if self.name is None:
            return False
        sweep = self.results.sweep(self.name)
        levels = self.search.levels if self.search else ()
        folders = [signature(sweep.search / level.name) for level in levels]
        seen = [signature(sweep.plan), signature(sweep.confirm), *folders]
        if seen == self._plan or time.monotonic() < self._next_search:
            return False
        start = time.monotonic()
        try:
            plan, confirming = read_plan(sweep), read_confirm(sweep)
            self.search = read_search(sweep, plan)
        except (BadInput, OSError):
            return False
        if self.search is not None:  # many files: they take a small share of the time
            self._next_search = start + SEARCH_EVERY * (time.monotonic() - start)
        asked = search_runs(self.search) if self.search else {}
        stem = plan.reevaluate.stem if plan.reevaluate else None
        before, self.runs, self._plan = self.runs, {}, seen
        code = OtherCode(self.results)
        others = [run for run in plan.runs(confirming) if run.id not in asked]
        for run in (*(run for run, _ in asked.values()), *others):
            folder = self.results.run(run.id)
            corrected = folder.corrected(stem) if stem else None
            known = before.get(run.id)
            if known is None or (known.run, known.corrected) != (run, corrected):
                known = Followed(folder, run, corrected, self._metric, code)
            known.explain(asked[run.id][1] if run.id in asked else "")
            self.runs[run.id] = known
        self._rank = plan.rank
        standings = (run.standing for run in self.runs.values())
        self._measure(plan.rank.drawn(has_cells=has_cells(standings)))
        return True
