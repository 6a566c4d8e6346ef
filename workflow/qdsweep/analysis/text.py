"""How values and measurements are written for a human reader."""

import math
from collections.abc import Iterable, Sequence

TIMES = "\u00d7"
_MINUS = "\u2212"
_DASH = "\u2013"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, decimals: int = 0) -> str:
    """Returns a number with thousands separators, or a dash for a missing one."""
    if not math.isfinite(value):
        return _DASH
    # + 0.0: a number rounded to zero has no sign.
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", _MINUS)


def listed(words: Sequence[str], last: str = "and") -> str:
    """Returns `a`, `a and b`, or `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def short(value: float, digits: int = 6) -> str:
    """Returns a number as it comes, at most `digits` significant ones, and powers of ten.

    A missing number is a dash.
    """
    if math.isnan(value):
        return _DASH
    text, _, exponent = f"{value:.{digits}g}".partition("e")
    power = f" {TIMES} 10{str(int(exponent)).translate(_RAISED)}" if exponent else ""
    return text.replace("-", _MINUS) + power


def mean_and_error(mean: float, error: float, decimals: int = 0) -> str:
    """Returns `mean ± standard error`, or the mean alone where there is no error."""
    if not math.isfinite(error):
        return number(mean, decimals)
    return f"{number(mean, decimals)} ± {number(error, decimals)}"


def with_interval(value: float, low: float, high: float, decimals: int = 0) -> str:
    """Returns `value [low, high]`, or the value alone where there is no interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return number(value, decimals)
    return f"{number(value, decimals)} [{number(low, decimals)}, {number(high, decimals)}]"


def p_value(p: float) -> str:
    """Returns a p value with as many decimals as mean anything."""
    return "< 0.001" if p < 0.001 else number(p, 3)


def common_decimals(means: Iterable[float], errors: Iterable[float]) -> int:
    """Returns how many decimals a column of means and standard errors deserves.

    A typical standard error keeps two significant digits; without any standard error the
    means keep four.
    """
    sizes, digits = [abs(e) for e in errors if math.isfinite(e) and e != 0], 2
    if not sizes:
        sizes, digits = [abs(m) for m in means if math.isfinite(m) and m != 0], 4
    if not sizes:
        return 0
    typical = sorted(sizes)[len(sizes) // 2]
    return min(max(digits - 1 - math.floor(math.log10(typical)), 0), 6)


def cut(text: str, width: int) -> str:
    """Returns a text cut to this many characters in its middle, as its ends tell runs apart."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def plural(count: int, noun: str) -> str:
    """Returns `1 seed`, `3 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
