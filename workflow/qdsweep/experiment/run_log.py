"""A run's log, with a text plot, and its progress on a terminal."""

import logging
import math
import sys
from pathlib import Path
from typing import Any

from qdsweep.host.clock import AWAKE
from qdsweep.metrics import COMPILE, DRAWN, drawn_of, measures
from qdsweep.ornaments import ornament
from qdsweep.records.metrics_file import read_lines, unit_column
from qdsweep.text import duration

log = logging.getLogger("qdsweep")

FIRST_PLOT_SECONDS = 60.0
_PLOTS = 2  # the number of metrics that fit next to each other


class _LogFile(logging.FileHandler):
    """A log whose lines may be lost on a full disk, which writers of results report."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignores a line that cannot be written. It may be written with the next line."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def start_log(path: Path, *, terminal: bool) -> None:
    """Appends the log to `path`, and also shows it on the terminal if a user watches it."""
    formatter = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")
    handlers: list[logging.Handler] = [_LogFile(path, encoding="utf-8")]
    if terminal:
        handlers.append(logging.StreamHandler(sys.stderr))
    root = logging.getLogger()
    for previous in root.handlers[:]:
        root.removeHandler(previous)
        previous.close()
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    log.setLevel(logging.INFO)


class Progress:
    """Writes log lines occasionally, a text plot less often, and a bar on a terminal.

    Args:
        budget: The budget key and its amount.
        done: The finished part of the budget.
        metrics: The run's metrics file, for the plots.
        bar: Whether to draw a bar.
        best_ever: Whether the archive may lose its best elite.
    """

    def __init__(
        self,
        budget: dict[str, int],
        done: int,
        metrics: Path,
        *,
        bar: bool,
        best_ever: bool = False,
    ) -> None:
        ((unit, self.total),) = budget.items()
        self._column = unit_column(unit)
        self._metrics = metrics
        self._shown = drawn_of(measures(best_ever=best_ever))
        self._started = self._logged = self._plotted = AWAKE.now()
        self._first: int | None = None
        self._interval = 10.0
        self._plot_interval = FIRST_PLOT_SECONDS
        self._bar: Any = None
        if bar:
            self._start_bar(unit, done)

    @ornament("the progress bar")
    def _start_bar(self, unit: str, done: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        bar.add_task(unit, total=self.total, completed=done)
        bar.start()
        self._bar = bar

    @ornament("the progress bar")
    def _move_bar(self, done: int, row: dict[str, Any]) -> None:
        self._bar.update(self._bar.task_ids[0], completed=done, description=self._values(row))

    def eta(self, done: int) -> float | None:
        """Returns the time to the end at the rate since the first row [s]; None if unknown."""
        if self._first is None or done <= self._first:
            return None
        progress = done - self._first
        return (AWAKE.now() - self._started) / progress * max(0, self.total - done)

    def show(self, row: dict[str, Any]) -> None:
        """Shows a new row of metrics."""
        now = AWAKE.now()
        done = row[self._column]
        if self._first is None:  # the time of the first row includes imports and compilation
            self._first, self._started = done, now
        if self._bar is not None:
            self._move_bar(done, row)
        if now - self._logged >= self._interval:
            self._logged = now
            self._interval = min(600.0, self._interval * 1.5)
            log.info("%s", self.line(row))
        if now - self._plotted >= self._plot_interval:
            self._plotted = now
            self._plot_interval = min(3600.0, self._plot_interval * 2)
            self.plot()

    @ornament("lines on the progress in run.log", lambda why, self, row: "")
    def line(self, row: dict[str, Any]) -> str:
        """Returns a line with the progress of the run."""
        eta = self.eta(row[self._column])
        text = (
            f"iteration {row['iteration']}, evaluations {row['evaluations']}, {self._values(row)}"
        )
        return text + (f", {duration(eta)} left" if eta else "")

    @ornament("the text plots in run.log")
    def plot(self) -> None:
        """Logs a text plot of QD score, coverage and seconds per iteration."""
        text = text_plot(self._metrics)
        if text:
            log.info("the run so far, over evaluations:\n%s", text)

    @ornament("the end of the progress bar")
    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _values(self, row: dict[str, Any]) -> str:
        """Returns the metrics of a row that learning curves show."""
        values = ((metric, row.get(metric.name)) for metric in self._shown)
        return ", ".join(metric.with_value(value) for metric, value in values if value is not None)


def text_plot(metrics: Path, width: int = 100, height: int = 12) -> str:
    """Returns a text plot of QD score, coverage and seconds per iteration, over evaluations.

    Args:
        metrics: The path of a metrics.csv.
        width: Width of the plot [characters].
        height: Height of the plot [lines].

    Returns:
        The plot, or an empty text if there are fewer than two rows.
    """
    header, *rows = read_lines(metrics) or [""]
    if len(rows) < 2:
        return ""
    import plotext

    step = max(1, len(rows) // (2 * width))
    cells = [row.split(",") for row in [*rows[:-1:step], rows[-1]]]
    at = {name: index for index, name in enumerate(header.split(","))}
    evaluations = [int(row[at["evaluations"]]) for row in cells]
    curves = {
        metric.heading: [metric.factor * float(row[at[metric.name]] or "nan") for row in cells]
        for metric in DRAWN[:_PLOTS]
        if metric.name in at and cells[-1][at[metric.name]]
    }
    phases = [i for name, i in at.items() if name.startswith("seconds_") and name != COMPILE]
    curves["seconds per iteration"] = [sum(float(row[i] or 0) for i in phases) for row in cells]
    if not all(math.isfinite(value) for values in curves.values() for value in values):
        return ""
    plotext.main()  # otherwise each plot would be nested in the previous one, and take longer
    plotext.clear_figure()
    plotext.subplots(1, len(curves))
    plotext.plot_size(width, height)
    for column, (title, values) in enumerate(curves.items(), start=1):
        plot = plotext.subplot(1, column)
        plot.theme("clear")
        plot.plot(evaluations, values, marker="braille")
        plot.title(title)
        plot.xfrequency(2)
    return plotext.uncolorize(plotext.build())
