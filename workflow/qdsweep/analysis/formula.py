"""Formulas of labels where nothing can set them: in the page, in Markdown, on a terminal."""

import re
import unicodedata

_FORMULA = re.compile(r"\$([^$]+)\$")
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
    "ell": "ℓ",
    "quad": " ",
}
_LOW = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
_HIGH = dict(zip("0123456789+-=()nix", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", strict=True))


def plain(text: str) -> str:
    r"""Returns text with its formulas in plain letters: `$\sigma_0$` is σ₀.

    What Unicode has no letter for stays as it was written, without backslashes and braces.
    """
    return _FORMULA.sub(lambda found: _set(found[1]), text) if text.count("$") > 1 else text


def _set(formula: str) -> str:
    # \mathrm{max}, \text{max}: the letters alone.
    formula = re.sub(r"\\(?:math[a-z]+|text[a-z]*|operatorname)\s*\{([^{}]*)\}", r"{\1}", formula)
    formula = formula.replace("{{", "{").replace("}}", "}")
    formula = re.sub(r"\\[,;:! ]", " ", formula)
    formula = re.sub(r"\\([A-Za-z]+)\s*", lambda found: _sign(found[1]), formula)
    formula = re.sub(r"([_^])(?:\{([^{}]*)\}|(\S))", _shifted, formula)
    return formula.replace("{", "").replace("}", "").replace("\\", "").replace("-", "\u2212")


def _sign(name: str) -> str:
    if name in _SIGNS:
        return _SIGNS[name]
    case = "CAPITAL" if name[:1].isupper() else "SMALL"
    letter = name.removeprefix("var").upper().replace("LAMBDA", "LAMDA")
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {letter}")
    except KeyError:
        return name


def _shifted(found: re.Match[str]) -> str:
    letters = found[2] if found[2] is not None else found[3]
    table = _LOW if found[1] == "_" else _HIGH
    if all(letter in table for letter in letters):
        return "".join(table[letter] for letter in letters)
    return f"{found[1]}{letters}"
