"""Lists of numbers, and times, as a sentence has them; and text for plotly."""

import html
from collections.abc import Iterable

from qdsweep.analysis.formula import plain


def for_plotly(text: str) -> str:
    """Returns text that plotly shows as it is: it reads `<b>`, `&lt;` and `%{x}` as its own.

    Formulas are set in plain letters.
    """
    return html.escape(plain(text), quote=False).replace("%{", "&#37;{")


def spans(numbers: list[int]) -> str:
    """Returns sorted numbers with spans: 1 to 5, 101 to 110, joined by dashes."""
    found: list[list[int]] = []
    for value in numbers:
        if found and value == found[-1][-1] + 1:
            found[-1][1:] = [value]
        else:
            found.append([value])
    return ", ".join("–".join(map(str, span)) for span in found)


def seeds_text(seeds: Iterable[int | str]) -> str:
    """Returns `seed 1`, or `seeds 1-5, 7` with dashes."""
    numbers = sorted(set(map(int, seeds)))
    return f"{'seed' if len(numbers) == 1 else 'seeds'} {spans(numbers)}"


def core_time(seconds: float) -> str:
    """Returns core-seconds in the unit that suits them."""
    for size, unit in ((3600, "core-hours"), (60, "core-minutes")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} core-seconds"
