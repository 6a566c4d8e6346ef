"""The screen of `qdsweep watch`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from qdsweep.analysis.live.curve import plot
from qdsweep.analysis.live.follow import Follow, Followed
from qdsweep.analysis.live.log import log_tail, printable
from qdsweep.analysis.live.table import RunTable
from qdsweep.analysis.search import Searched
from qdsweep.analysis.search_status import levels_so_far
from qdsweep.analysis.status import STATES
from qdsweep.analysis.text import plural
from qdsweep.experiment.run_log import duration
from qdsweep.files import signature

# The share of the time that reading may take; more while runs are read for the first time.
SHARE = 0.02
FIRST_EVERY, FIRST_SECONDS = 0.15, 0.05
LOG_LINES = 4
_SMALL = 18  # lines of a terminal that has no room for details
FILTERS: dict[str, Callable[[Followed], bool]] = {
    "all": lambda run: True,
    "unfinished": lambda run: run.standing.state != "finished",
    "failed": lambda run: run.standing.state == "failed",
}


class Watch(App[None]):
    """Follows a sweep (None: the one started last) until the user leaves; looks every so often."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", show=False, priority=True),
        Binding("f", "filter", show=False),
    ]
    CSS = """
    Screen { layout: vertical; background: transparent; }
    RunTable { height: 1fr; min-height: 3; background: transparent; scrollbar-size-vertical: 1; }
    #summary { height: auto; min-height: 2; max-height: 3; }
    #heading, #keys { height: 1; color: $text-muted; }
    #details { height: 55%; max-height: 24; }
    #about { height: auto; max-height: 6; }
    #plot { height: 1fr; }
    #log { height: 4; color: $text-muted; }
    """

    def __init__(self, results: Path, name: str | None, every: float) -> None:
        super().__init__(ansi_color=True)
        self.follow = Follow(results, name)
        self.every = every
        self.filter = "all"
        self._drawn: Any = None

    def compose(self) -> ComposeResult:
        """Lays out, from top to bottom: sums, table, the selected run, keys."""
        from textual.containers import Vertical

        yield Static(id="summary")
        yield Static(id="heading")
        yield RunTable()
        with Vertical(id="details"):
            yield Static(id="about")
            yield Static(id="plot")
            yield Static(id="log")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Starts to look at the sweep."""
        self.tick()

    def tick(self) -> None:
        """Looks at the files, shows what has changed, and comes back later."""
        if not self.is_running:  # a timer that fires while the screen is taken down
            return
        first = self.follow.unread or not self.follow.runs
        seconds = FIRST_SECONDS if first else max(0.01, SHARE * self.every)
        if self.follow.look(seconds, self.table.on_screen):
            self.arrange()
        self.table.refresh()
        self.show_summary()
        self.show_details()
        self.set_timer(FIRST_EVERY if self.follow.unread else self.every, self.tick)

    @property
    def table(self) -> RunTable:
        """The table of runs."""
        return self.query_one(RunTable)

    def arrange(self) -> None:
        """Puts failures on top, then what is being computed, and leaves out what is not wanted."""
        wanted = filter(FILTERS[self.filter], self.follow.runs.values())
        self.table.show(sorted(wanted, key=lambda run: STATES.index(run.standing.state)))

    def action_filter(self) -> None:
        """Shows all runs, the unfinished ones, or the failed ones."""
        names = list(FILTERS)
        self.filter = names[(names.index(self.filter) + 1) % len(names)]
        self.arrange()
        self.show_summary()
        self.show_details()

    def on_run_table_selected(self) -> None:
        """Shows another run's details."""
        self.show_details()

    def on_resize(self) -> None:
        """Fits everything to the terminal."""
        self.query_one("#details").display = self.size.height >= _SMALL
        self._drawn = None
        self.call_after_refresh(self.show_summary)
        self.call_after_refresh(self.show_details)

    def show_summary(self) -> None:
        """Shows the sums, the column heads and the keys."""
        self._put("summary", self._summary())
        self._put("heading", Text(self.table.heading(), style="bold"))
        keys = f"↑ ↓ PgUp PgDn select   f show: {self.filter}   q quit"
        self._put("keys", Text(keys.ljust(self.size.width), style="reverse", no_wrap=True))

    def _summary(self) -> Text:
        follow = self.follow
        if not follow.runs:
            return self._hint()
        sums = follow.outlook
        text = Text(f"{follow.name}: {plural(len(follow.runs), 'run')}", style="bold")
        for state in filter(sums.counts.get, STATES):
            style = "bold red" if state == "failed" else "not bold"
            text.append(", ", "not bold").append(f"{sums.counts[state]:,} {state}", style)
        hours = "" if sums.left is None else f", {sums.left / 3600:.2f} left"
        parts = [f"core-hours: {sums.used / 3600:.2f} used{hours}"]
        parts.append(f"{plural(sums.cores, 'core')} in use")
        if sums.eta is not None:
            parts.append(f"ETA {duration(sums.eta)}")
        done, asked = follow.reevaluated
        if asked:
            parts.append(f"re-evaluated {done:,} of {asked:,}")
        if follow.unread:
            parts.append(f"{follow.unread:,} runs still to be read")
        text.append("\n" + "; ".join(parts), "not bold")
        if follow.search is not None:
            text.append("\n" + self._searched(follow.search), "not bold")
        return text

    def _searched(self, search: Searched) -> str:
        """Returns the level that a search is at, and who leads there."""
        begun = list(levels_so_far(search))
        return "; ".join(filter(None, begun[-1])) if begun else "search: nothing is computed yet"

    def _hint(self) -> Text:
        """Returns what to do while there is nothing to see."""
        which = f"the sweep {self.follow.name}" if self.follow.name else "a sweep"
        known = ", ".join(self.follow.known) or "none yet"
        return Text(
            f"waiting for {which}: start it with `snakemake --cores all`\n"
            f"known: {known}; looked for in {self.follow.results.sweeps}",
            no_wrap=True,
            overflow="ellipsis",
        )

    def show_details(self) -> None:
        """Shows the selected run: where it stands, its curve, the end of its log."""
        run = self.table.selected
        if run is None or not self.query_one("#details").display:
            for name in ("about", "plot", "log"):
                self._put(name, Text())
            self._drawn = None
            return
        run.curve.refresh()
        log = run.folder.state.log
        size = self.query_one("#plot").size
        points = run.curve.points
        drawn = (run, run.standing, points[-1:], len(points), size, signature(log))
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._put("about", _about(run))
        curve = plot(points, size.width - 1, size.height, run.metric)
        self._put("plot", Text(curve, no_wrap=True))
        lines = [line[: self.size.width] for line in log_tail(log, LOG_LINES)]
        self._put("log", Text("\n".join(lines), no_wrap=True))

    def _put(self, name: str, text: Text) -> None:
        self.query_one(f"#{name}", Static).update(text)


def _about(run: Followed) -> Text:
    now = run.standing
    failed = now.state == "failed"
    score = "" if run.score is None else f", {run.metric.heading} {run.score:,.6g}"
    done = f"{now.state}, {now.done:,} of {now.run.budget:,} {now.run.unit}{score}"
    text = Text(f"{run.folder.name}\n", style="bold")
    text.append(f"{done}, {now.core_seconds / 3600:.3f} core-hours", "not bold")
    if now.note:
        text.append("\n" if failed else "; ", "not bold")
        text.append(printable(now.note), "bold red" if failed else "not bold")
    return text
