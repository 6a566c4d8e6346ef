"""The table of runs on a terminal: only lines on screen are made, even with 10,000 runs."""

from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from qdsweep.analysis.figures.style import short_number
from qdsweep.analysis.live.curve import sparkline
from qdsweep.analysis.live.follow import Followed
from qdsweep.analysis.live.log import printable
from qdsweep.analysis.text import cut
from qdsweep.experiment.run_log import duration
from qdsweep.metrics import RANK

_BAR = _SPARK = 10
# All columns except label and note: state, bar, percent, ETA, score, sparkline.
_FIXED = 8 + 1 + _BAR + 5 + 1 + 7 + 1 + 9 + 1 + _SPARK + 1
_FAR = 1_000_000
_PLAIN = Style()
_STYLES = {
    "failed": Style(color="bright_red", bold=True),
    "running": Style(color="green"),
    "stopped": Style(color="yellow"),
    "waiting": Style(color="bright_black"),
    "finished": Style(color="cyan"),
}


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
        metric = self.runs[0].metric if self.runs else RANK.drawn
        score = metric.label.upper()[-9:]  # BEST OBJECTIVE, to the width of its column
        return (
            f"{'STATE':8} {'RUN':{label}} {'DONE':{_BAR + 5}} {'ETA':>7} {score:>9} "
            f"{'SO FAR':{_SPARK}} NOTE"
        )[: self.size.width]


def label_width(longest: int, width: int) -> int:
    """Returns the width of the labels in a table of this width."""
    return max(12, min(longest, width - _FIXED - 1))


def run_line(run: Followed, label: int, width: int) -> list[tuple[str, Style]]:
    """Returns the parts of a run's line and their styles; of a failed run mostly the cause."""
    now = run.standing
    style = _STYLES[now.state]
    share = min(1.0, now.done / now.run.budget) if now.run.budget else 0.0
    # Rounded down: 100 % is only a run at its end.
    percent = f"{int(100 * share):3d}%"
    state, name = f"{now.state:8} ", set_cell_size(cut(run.run.label, label), label) + " "
    if now.state == "failed":
        # The full cause stands below the table.
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
