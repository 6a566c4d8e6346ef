"""How numbers, times, counts, lists and formulas are written for a reader.

Each worker and the Snakefile import it, so it imports little.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

TIMES = "\u00d7"
_MINUS = "\u2212"
_DASH = "\u2013"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DECIMALS = 6  # of a number, at most
_LONG = 1e15  # the smallest number of 16 digits
_LARGEST = 308  # the largest power of ten of 64 bits
_EXACT = 17  # significant digits from which a number of 64 bits is read back

# A smaller number is what rounding leaves of 0, such as the objective of a perfect solution.
_ZERO = 1e-12
_FORMULA = re.compile(r"(\$[^$]+\$)")
# Matches the formulas of all texts; None where each pair of dollar signs is one.
_known: ContextVar[re.Pattern[str] | None] = ContextVar("known", default=None)
_SIGNS = {
    "times": "\u00d7",
    "pm": "±",
    "cdot": "·",
    "infty": "∞",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "to": "→",
    "ell": "\u2113",
    "quad": " ",
}
_LOW = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
_HIGH = dict(zip("0123456789+-=()nix", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", strict=True))
# Control characters, and those that turn the direction of the text after them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Greek letters without a command of LaTeX, which look like these.
_LATIN = {
    **{"ALPHA": "A", "BETA": "B", "EPSILON": "E", "ZETA": "Z", "ETA": "H", "IOTA": "I"},
    **{"KAPPA": "K", "MU": "M", "NU": "N", "RHO": "P", "TAU": "T", "CHI": "X"},
}
_NAMES = {letter: f"\\{name}" for name, letter in _SIGNS.items() if letter != " "} | {
    **{letter: f"_{{{sign}}}" for sign, letter in _LOW.items()},
    **{letter: f"^{{{sign}}}" for sign, letter in _HIGH.items()},
    **{_MINUS: "-", "µ": "\\mu", "°": "^\\circ", "†": "^\\dagger", "ς": "\\varsigma"},
}


def number(value: float, decimals: int | None = None) -> str:
    """Returns a number with thousands separators, or a dash for a missing one.

    A number of 16 digits or more is written with a power of ten.

    Args:
        value: The number.
        decimals: How many it has, by default none. A negative one rounds only long numbers, which
            by default have six digits.
    """
    if not math.isfinite(value):
        return _DASH
    if abs(value) >= _LONG:
        digits = 6 if decimals is None else math.floor(math.log10(abs(value))) + 1 + decimals
        return short(value, min(max(digits, 1), _EXACT))
    decimals = max(decimals or 0, 0)
    # + 0.0: a number rounded to zero has no sign.
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", _MINUS)


def listed(
    words: Sequence[str], last: str = "and", *, most: int | None = None, between: str = ", "
) -> str:
    """Returns `a`, `a and b`, or `a, b and c`; of a list that may be cut, `a, b, c, ...`.

    Args:
        words: The words.
        last: The word before the last one of a whole list.
        most: How many words a cut list has at most; None for the whole list.
        between: The sign between the words of a cut list.
    """
    if most is not None:
        return between.join([*words[:most], *["..."] * (len(words) > most)])
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "did you mean ...? " for a message, or nothing if no known name is near.

    Papers write names in capitals and with hyphens (CMA-ME).
    """
    from difflib import get_close_matches

    plain = {_spelled(spelling): spelling for spelling in known}
    match = get_close_matches(_spelled(name), plain, n=1)
    return f"did you mean {plain[match[0]]!r}? " if match else ""


def _spelled(name: str) -> str:
    return name.lower().replace("-", "_")


def quoted(value: object) -> str:
    """Returns a value for a message, cut where it is very long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:160]}... ({len(text):,} characters)"


def short(value: float, digits: int = 6) -> str:
    """Returns a number with at most `digits` significant digits, and powers of ten.

    A missing number is a dash. Only a reader may see the text: unequal numbers may share it.
    """
    if not math.isfinite(value):
        return _DASH
    text, _, exponent = f"{value + 0.0:.{digits}g}".partition("e")  # zero has no sign
    power = f" {TIMES} 10{str(int(exponent)).translate(_RAISED)}" if exponent else ""
    return text.replace("-", _MINUS) + power


def exact(value: float, digits: int = 6) -> str:
    """Returns a number in at least `digits` significant digits, from which it is read back."""
    while digits < _EXACT and float(f"{value:.{digits}g}") != value:
        digits += 1
    return short(value, digits)


def apart(
    values: Iterable[float], digits: int = 6, written: Callable[[float, int], str] = short
) -> list[str]:
    """Returns numbers in the fewest digits, `digits` or more, that keep unequal ones apart.

    Args:
        values: The numbers.
        digits: How many significant digits are enough where they keep them apart.
        written: Writes a number in a number of digits.
    """
    every = list(values)
    count = len({value for value in every if math.isfinite(value)})
    for used in range(digits, _EXACT + 1):
        texts = [written(value, used) for value in every]
        if len(set(texts) - {_DASH}) >= count:
            break
    return texts


def significant(value: float) -> str:
    """Returns a number with at least three significant digits, or a dash for a missing one."""
    if abs(value) < _ZERO:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(value))) if math.isfinite(value) else 0
    return number(value, decimals) if decimals <= _DECIMALS else short(value, 3)


def mean_and_error(mean: float, error: float, decimals: int = 0) -> str:
    """Returns `mean ± error`, or only the mean where there is no error."""
    if not math.isfinite(error):
        return number(mean, decimals)
    return f"{number(mean, decimals)} ± {number(error, decimals)}"


def with_interval(value: float, low: float, high: float, decimals: int = 0) -> str:
    """Returns `value [low, high]`, or only the value where there is no interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return number(value, decimals)
    return f"{number(value, decimals)} [{number(low, decimals)}, {number(high, decimals)}]"


def p_value(p: float) -> str:
    """Returns a p value with its meaningful decimals."""
    return "< 0.001" if p < 0.001 else number(p, 3)


def common_decimals(means: Iterable[float], errors: Iterable[float]) -> int:
    """Returns how many decimals a column of means and standard errors deserves.

    A typical standard error keeps two significant digits; without any standard error the
    means keep four. Numbers that are 0 with the most decimals do not count. The result is negative
    where long numbers lose digits before the decimal point; see `number`.
    """
    means = list(means)
    fewest = -_LARGEST if any(abs(mean) >= _LONG for mean in means) else 0
    for numbers, digits in ((errors, 2), (means, 4)):
        sizes = [abs(n) for n in map(float, numbers) if math.isfinite(n) and round(n, _DECIMALS)]
        if sizes:
            typical = sorted(sizes)[len(sizes) // 2]
            return min(max(digits - 1 - math.floor(math.log10(typical)), fewest), _DECIMALS)
    return 0


def cut(text: str, width: int) -> str:
    """Returns a text cut in its middle to this many characters, as its ends distinguish runs."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def plural(count: int, noun: str) -> str:
    """Returns `1 seed`, `3 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@contextmanager
def formulas(labels: Iterable[str]) -> Iterator[None]:
    """Takes only the formulas of some labels as formulas: any other dollar sign is one.

    Args:
        labels: The labels and names that the user has given to groups, values and parameters.
    """
    found = {part for label in labels for part in _pairs(label)[1::2]}
    longest_first = sorted(map(re.escape, found), key=len, reverse=True)
    token = _known.set(re.compile(f"({'|'.join(longest_first) or '(?!)'})"))
    try:
        yield
    finally:
        _known.reset(token)


def split_formulas(text: str) -> list[str]:
    """Returns the parts of a text: plain text and formulas take turns, plain text comes first."""
    known = _known.get()
    return _pairs(text) if known is None else known.split(text)


def _pairs(text: str) -> list[str]:
    return _FORMULA.split(text) if text.count("$") % 2 == 0 else [text]


def visible(text: str) -> str:
    r"""Returns text in which control characters are written out: `\x07`, `\u202e`."""
    return _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], text)


def plain(text: str) -> str:
    r"""Returns text with its formulas in plain letters: `$\sigma_0$` is σ₀.

    What Unicode has no letter for stays as it was written, without backslashes and braces. Control
    characters are written out.
    """
    text = visible(text)
    if "$" not in text:
        return text
    parts = split_formulas(text)
    return "".join(_set(part[1:-1]) if n % 2 else part for n, part in enumerate(parts))


def _set(formula: str) -> str:
    # \mathrm{max}, \text{max}: only the letters.
    formula = re.sub(r"\\(?:math[a-z]+|text[a-z]*|operatorname)\s*\{([^{}]*)\}", r"{\1}", formula)
    formula = formula.replace("{{", "{").replace("}}", "}")
    formula = re.sub(r"\\[,;:! ]", " ", formula)
    formula = re.sub(r"\\([A-Za-z]+)\s*", lambda match: _sign(match[1]), formula)
    formula = re.sub(r"([_^])(?:\{([^{}]*)\}|(\S))", _shifted, formula)
    return formula.replace("{", "").replace("}", "").replace("\\", "").replace("-", "\u2212")


def _sign(name: str) -> str:
    if name in _SIGNS:
        return _SIGNS[name]
    import unicodedata

    case = "CAPITAL" if name[:1].isupper() else "SMALL"
    letter = name.removeprefix("var").upper().replace("LAMBDA", "LAMDA")
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {letter}")
    except KeyError:
        return name


def _shifted(match: re.Match[str]) -> str:
    letters = match[2] if match[2] is not None else match[3]
    table = _LOW if match[1] == "_" else _HIGH
    if all(letter in table for letter in letters):
        return "".join(table[letter] for letter in letters)
    return f"{match[1]}{letters}"


def formula_of(letter: str) -> str:
    r"""Returns a letter as a part of a formula, the reverse of `plain`: Δ is `\Delta`.

    It is empty for a letter without a name in LaTeX.
    """
    if letter in _NAMES:
        return _NAMES[letter]
    import unicodedata

    name = re.fullmatch("GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", unicodedata.name(letter, ""))
    if name is None:
        return ""
    case, word = name.groups()
    if word == "OMICRON":
        return "O" if case == "CAPITAL" else "o"
    if case == "CAPITAL" and word in _LATIN:
        return _LATIN[word]
    word = word.replace("LAMDA", "LAMBDA")
    return f"\\{word.capitalize() if case == 'CAPITAL' else word.lower()}"


def for_plotly(text: str) -> str:
    """Returns text that plotly shows literally, without reading `<b>`, `&lt;` or `%{x}` as markup.

    Formulas are set in plain letters.
    """
    import html

    return html.escape(plain(text), quote=False).replace("%{", "&#37;{")


def spans(numbers: list[int]) -> str:
    """Returns sorted numbers with spans: 1 to 5, 101 to 110, joined by dashes."""
    parts: list[list[int]] = []
    for value in numbers:
        if parts and value == parts[-1][-1] + 1:
            parts[-1][1:] = [value]
        else:
            parts.append([value])
    return ", ".join(_DASH.join(map(str, span)) for span in parts)


def seeds_text(seeds: Iterable[int | str]) -> str:
    """Returns `seed 1`, or `seeds 1-5, 7` with dashes."""
    numbers = sorted(set(map(int, seeds)))
    return f"{'seed' if len(numbers) == 1 else 'seeds'} {spans(numbers)}"


def short_number(value: float, digits: int = 6) -> str:
    """Returns a number as 950, 2.5k, 100k or 1.5M, with a true minus."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if _LONG > abs(value) >= size:
            return short(value / size, digits) + unit
    return short(value, digits)


def duration(seconds: float) -> str:
    """Returns a time in words: 0.42 s, 42 s, 3 min, 2.5 h."""
    if seconds < 10:
        return f"{round(seconds, 3):.2g} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def core_time(seconds: float) -> str:
    """Returns core-seconds in the unit that suits them."""
    for size, unit in ((3600, "core-hour"), (60, "core-minute")):
        if seconds >= size:
            return _in_units(seconds / size, unit)
    return _in_units(seconds, "core-second")


def _in_units(value: float, unit: str) -> str:
    text = f"{value:,.1f}"
    return f"{text} {unit}{'' if text == '1.0' else 's'}"
