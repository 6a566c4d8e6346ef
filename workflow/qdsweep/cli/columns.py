"""Text in columns, as wide as a common terminal: a line for each row, and no line is longer."""

import textwrap
from collections.abc import Iterator, Sequence

from qdsweep.analysis.text import cut

WIDTH = 120
_LABEL = 44  # of the longest label; a longer one is cut in its middle


def lines(sides: str, rows: Sequence[Sequence[str]], label: int) -> Iterator[str]:
    """Yields a line for each row; the last column takes what is left, and is cut.

    Args:
        sides: < or > for each column but the last: to which side its texts go.
        rows: The heading and the rows, all of as many texts.
        label: Which column has labels.
    """
    texts = [list(row) for row in rows]
    for row in texts:
        row[label] = cut(row[label], _LABEL)
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)][:-1]
    pad = [str.ljust if side == "<" else str.rjust for side in sides]
    for *cells, last in texts:
        padded = (to(cell, width) for to, cell, width in zip(pad, cells, widths, strict=True))
        line = "  ".join((*padded, last.replace("\n", " "))).rstrip()
        yield line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def paragraph(text: str) -> str:
    """Returns a text of several lines, none longer; no path is broken."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
