"""A metric over evaluations, from metrics.csv: a few points, and then only what is appended."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from qdsweep.analysis.figures.style import short_number
from qdsweep.metrics import RANK, Metric

Point = tuple[int, float]  # evaluations, value as a reader sees it

SAMPLES = 64  # lines read of a long stretch of a file
MOST = 256  # points kept
WHOLE = 65_536  # a shorter stretch is read whole [bytes]
_BLOCK = 1_024  # longer than two lines [bytes]
_BARS = "▁▂▃▄▅▆▇█"


@dataclass
class Curve:
    """A metric over evaluations of one run, as far as its `state/metrics.csv` goes."""

    path: Path
    metric: Metric = RANK.drawn
    points: list[Point] = field(default_factory=list)  # in order, at most `MOST`
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
                lines, self._end = _lines(file, self._end, stat.st_size)
        except OSError:
            self.points, self._seen, self._end = [], (0, 0, 0), 0
            return
        for line in lines:
            point = self._point(line)
            if point is not None and (not self.points or point[0] > self.points[-1][0]):
                self.points.append(point)
        while len(self.points) > MOST:
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


def plot(points: list[Point], width: int, height: int, metric: Metric = RANK.drawn) -> str:
    """Returns the curve as a text plot of so many characters and lines; empty without room."""
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
    whole = isinstance(low, int)
    labels = [short_number(round(place) if whole else float(f"{place:.4g}")) for place in places]
    return places, labels
