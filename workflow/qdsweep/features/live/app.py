"""The screen of `qdsweep watch`: sums, the table of runs, and details of the selected run.

The table draws only the lines on screen. With 10,000 runs its first paint takes 0.03 s of CPU;
textual's DataTable takes 2.4 s.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from qdsweep.analysis.search_progress import STATES, Searched, levels_so_far
from qdsweep.features.live.follow import Follow, Followed, curve_plot, sparkline
from qdsweep.files import last_lines, signature
from qdsweep.metrics import RANK, Metric
from qdsweep.text import cut, duration, plural, short_number

# The widths of the bar and of the sparkline [characters].
_BAR = _SPARK = 10
# All columns except label and note: state, bar, percent, ETA, score, sparkline.
_FIXED = 8 + 1 + _BAR + 5 + 1 + 7 + 1 + 9 + 1 + _SPARK + 1
_FAR = 1_000_000  # more lines than a table has, for the keys home and end
_PLAIN = Style()
_STYLES = {
    "failed": Style(color="bright_red", bold=True),
    "running": Style(color="green"),
    **dict.fromkeys(("stopped", "extended", "replaced", "outdated"), Style(color="yellow")),
    "waiting": Style(color="bright_black"),
    "finished": Style(color="cyan"),
}
# The share of the time that reading may take; more while runs are read for the first time.
SHARE = 0.02
LOG_LINES = 4  # the height of `#log`
_SMALL = 18  # lines of a terminal that has no room for details
FILTERS: dict[str, Callable[[Followed], bool]] = {
    "all": lambda run: True,
    "unfinished": lambda run: not run.standing.is_settled,
    "failed": lambda run: run.standing.state == "failed",
}

# While runs are read for the first time: the pause after each look, and the time of a look [s].
FIRST_EVERY, FIRST_SECONDS = 0.15, 0.05


def log_tail(path: Path, count: int) -> list[str]:
    """Returns the last lines of a log, without its text plots."""
    lines, in_plot = [], False
    for line in last_lines(path):
        dated = line[:4].isdigit() and line[4:5] == "-"
        in_plot = line.endswith("over evaluations:") or (in_plot and not dated)
        if line.strip() and not in_plot:
            lines.append(printable(line))
    return lines[-count:]


def printable(text: str) -> str:
    """Returns a text without characters that move a cursor."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


class RunTable(ScrollView, can_focus=True):
    """A line for each run; the selected run stays selected when its line moves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", f"move(-{_FAR})", show=False),
        Binding("end,G", f"move({_FAR})", show=False),
    ]

    class Selected(Message):
        """Another run was selected."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Followed] = []
        self.place = 0
        self._label = 0

    @property
    def selected(self) -> Followed | None:
        """The selected run."""
        return self.runs[self.place] if self.runs else None

    @property
    def on_screen(self) -> list[Followed]:
        """The runs whose lines can be seen, and the selected one."""
        top = int(self.scroll_offset.y)
        return [*self.runs[top : top + self.size.height], *self.runs[self.place : self.place + 1]]

    def show(self, runs: list[Followed]) -> None:
        """Shows these runs, in this order."""
        chosen, self.runs = self.selected, runs
        self._label = max((len(run.run.label) for run in runs), default=0)
        at_top = self.place == 0
        self.place = max(0, min(self.place, len(runs) - 1))
        if not at_top:  # at the top the cursor stays there, to show a new failure
            self.place = next((i for i, run in enumerate(runs) if run is chosen), self.place)
        self.virtual_size = Size(self.size.width, len(runs))
        self._follow_selection()
        self.refresh()
        if self.selected is not chosen:
            self.post_message(self.Selected())

    def action_move(self, by: int) -> None:
        """Selects another run."""
        place = max(0, min(self.place + by, len(self.runs) - 1))
        if place == self.place:
            return
        self.place = place
        self._follow_selection()
        self.refresh()
        self.post_message(self.Selected())

    def action_page(self, pages: int) -> None:
        """Selects the run a page further down or up."""
        self.action_move(pages * max(1, self.size.height - 1))

    def on_resize(self) -> None:
        """Keeps the selected run in sight."""
        self.virtual_size = Size(self.size.width, len(self.runs))
        self._follow_selection()

    def _follow_selection(self) -> None:
        line = Region(0, self.place, max(1, self.size.width), 1)
        self.scroll_to_region(line, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """Draws one line of the screen."""
        place = y + int(self.scroll_offset.y)
        width = self.size.width
        if place >= len(self.runs):
            return Strip.blank(width, self.rich_style)
        pieces = run_line(self.runs[place], label_width(self._label, width), width)
        if place != self.place:
            strip = Strip([Segment(text, style) for text, style in pieces])
            return strip.adjust_cell_length(width).apply_style(self.rich_style)
        failed = self.runs[place].standing.state == "failed"
        selected = (_STYLES["failed"] if failed else _PLAIN) + Style(reverse=True)
        strip = Strip([Segment(text, selected) for text, _ in pieces])
        return strip.adjust_cell_length(width, selected).apply_style(self.rich_style)

    def heading(self) -> str:
        """Returns the names of the columns, at the table's present width."""
        label = label_width(self._label, self.size.width)
        metric = self.runs[0].metric if self.runs else RANK
        drawn = self.runs[0].curve.metric if self.runs else RANK
        score, so_far = score_heading(metric), "SO FAR"
        if drawn is not metric:
            so_far = score_heading(drawn)
        return (
            f"{'STATE':8} {'RUN':{label}} {'DONE':{_BAR + 5}} {'ETA':>7} {score:>9} "
            f"{so_far:{_SPARK}} NOTE"
        )[: self.size.width]


def score_heading(metric: Metric) -> str:
    """Returns the heading of the scores, such as OBJECTIVE, in the width of its column."""
    text = metric.label.upper().replace("QD SCORE / ", "QD/").replace("OBJECTIVE EVER", "EVER")
    return text.removesuffix(" RETURN")[-9:]


def label_width(longest: int, width: int) -> int:
    """Returns the width of the labels in a table of this width."""
    return max(12, min(longest, width - _FIXED - 1))


def run_line(run: Followed, label: int, width: int) -> list[tuple[str, Style]]:
    """Returns the parts of a run's line and their styles; for a failed run mainly the cause."""
    now = run.standing
    style = _STYLES[now.state]
    share = min(1.0, now.done / now.run.budget) if now.run.budget else 0.0
    # Rounded down: 100 % is only a run at its end.
    percent = f"{int(100 * share):3d}%"
    state, name = f"{now.state:8} ", set_cell_size(cut(run.run.label, label), label) + " "
    if now.state == "failed":
        # The full cause is below the table.
        cause = printable(now.cause)
        return [(text, style) for text in (state, name, f"{percent} ", cause)]
    run.curve.refresh()
    full = round(_BAR * share)
    score = "" if run.score is None else short_number(run.score)
    return [
        (state, style),
        (name, _PLAIN),
        ("━" * full, style),
        ("─" * (_BAR - full), _STYLES["waiting"]),
        (f" {percent} ", _PLAIN),
        (f"{'' if now.eta is None else duration(now.eta):>7} ", _PLAIN),
        (f"{score:>9} ", _PLAIN),
        (f"{sparkline(run.curve.points, _SPARK):{_SPARK}} ", Style(color="blue")),
        (printable(now.note)[: max(0, width - label - _FIXED)], _STYLES["waiting"]),
    ]


class WatchApp(App[None]):
    """Follows a sweep (None: the one started last) until the user quits."""

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
        left = "" if sums.left is None else f", {duration(sums.left)} left"
        parts = [f"core time: {duration(sums.used)} used{left}"]
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
        """Returns the current level of a search, and its best configuration."""
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
        """Shows the selected run: its state, its curve and the end of its log."""
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
        curve = curve_plot(points, size.width - 1, size.height, run.curve.metric)
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
    text.append(f"{done}, {duration(now.core_seconds)} of core time", "not bold")
    if now.note:
        text.append("\n" if failed else "; ", "not bold")
        text.append(printable(now.note), "bold red" if failed else "not bold")
    return text
