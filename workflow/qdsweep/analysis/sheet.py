"""Tables for a reader: one description, written as CSV, Markdown, LaTeX and for the report."""

import json
import math
import re
import textwrap
import unicodedata
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.stages import maker_of
from qdsweep.files import damaged, require, write_csv, write_text
from qdsweep.text import formula_of, plain, split_formulas, visible

if TYPE_CHECKING:
    import pandas as pd

_LETTERS = {
    **{"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"},
    **{"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ı": "i"},
}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${sign}$" for sign in "<>|"},
    "`": r"\textasciigrave{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u2013": "--",
    "\u2014": "---",
    "\u2018": "`",
    "\u2019": "'",
    "\u201c": "``",
    "\u201d": "''",
    "\u00a0": "~",
    "…": r"\dots{}",
    **{letter: rf"\{name}{{}}" for letter, name in _LETTERS.items()},
}
# Combining accents of Unicode -> those of LaTeX.
_ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0327", "`'^~\"rvc", strict=True))
# Characters with a meaning in Markdown; an underscore within a word has none.
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|~$#]|(?<![^\W_])_|_(?![^\W_])")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile("(\u2212?[0-9.]+) \u00d7 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: The text that a reader sees.
        key: The value that the column is sorted by; None for a missing value, which comes last.
        bold: Whether it is the best of its column, or tied with it.
    """

    text: str
    key: float | str | None
    bold: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table for a reader.

    Attributes:
        name: The stem of its files.
        title: Its title, a few words.
        note: Its explanation, whole sentences.
        columns: Its headings.
        text: How many of the first columns are text, which is aligned to the left.
        rows: A cell for each column.
    """

    name: str
    title: str
    note: str
    columns: list[str]
    text: int
    rows: list[list[Cell]] = field(default_factory=list)


def text_cell(value: object) -> Cell:
    """Returns a cell of text."""
    return Cell(str(value), str(value))


def number_cell(text: str, value: float, *, bold: bool = False) -> Cell:
    """Returns a cell of a number that may be missing."""
    return Cell(text, float(value) if math.isfinite(value) else None, bold)


def write_sheet(folder: Path, sheet: Sheet, data: "pd.DataFrame") -> None:
    """Writes NAME.csv (of `data`), NAME.md, NAME.tex (booktabs) and NAME.json (the page's)."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(data, folder / f"{sheet.name}.csv")
    write_text(folder / f"{sheet.name}.md", as_markdown(sheet))
    write_text(folder / f"{sheet.name}.tex", as_latex(sheet))
    write_text(folder / f"{sheet.name}.json", json.dumps(asdict(sheet), ensure_ascii=False) + "\n")


def remove_sheet(folder: Path, name: str) -> None:
    """Removes the files of a table that the sweep no longer has."""
    for suffix in (".csv", ".md", ".tex", ".json"):
        (folder / f"{name}{suffix}").unlink(missing_ok=True)


def read_sheet(path: Path) -> Sheet:
    """Reads NAME.json.

    Raises:
        BadInput: The file is missing or damaged.
    """
    require(path, maker_of(path).first)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        rows = [[Cell(**cell) for cell in row] for row in raw.pop("rows")]
        return Sheet(**raw, rows=rows)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(path, error, maker_of(path).rebuild) from error


def as_markdown(sheet: Sheet) -> str:
    """Returns the table as Markdown, the best in bold, its note below."""
    lines = [
        "| " + " | ".join(map(_escape_markdown, sheet.columns)) + " |",
        "|" + "---|" * sheet.text + "---:|" * (len(sheet.columns) - sheet.text),
    ]
    for row in sheet.rows:
        texts = [_escape_markdown(cell.text) for cell in row]
        texts = [f"**{t}**" if cell.bold else t for t, cell in zip(texts, row, strict=True)]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join([*lines, "", _escape_markdown(sheet.note)]) + "\n"


def as_latex(sheet: Sheet) -> str:
    r"""Returns the table as LaTeX, for `\input`; one wider than the text is shrunk to its width."""
    align = "l" * sheet.text + "r" * (len(sheet.columns) - sheet.text)
    title, note = escape_latex(sheet.title), escape_latex(sheet.note)
    lines = [f"% {title}. Needs \\usepackage{{booktabs,graphicx}}."]
    wrapped = textwrap.wrap(note, 96, break_long_words=False, break_on_hyphens=False)
    lines += [f"% {line}" for line in wrapped]
    lines.append(r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%")
    lines += [f"\\begin{{tabular}}{{{align}}}", "\\toprule"]
    lines += [" & ".join(map(escape_latex, sheet.columns)) + r" \\", "\\midrule"]
    for row in sheet.rows:
        texts = [escape_latex(cell.text) for cell in row]
        texts = [rf"\textbf{{{t}}}" if cell.bold else t for t, cell in zip(texts, row, strict=True)]
        # LaTeX would take a bracket or star as an option of the line break before it.
        start = "{}" if texts[0].startswith(("[", "*")) else ""
        lines.append(start + " & ".join(texts) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Returns text as LaTeX shows it; a formula of a label stays one, as in figures."""
    parts = split_formulas(visible(text))
    return "".join(_formula(part) if n % 2 else _text(part) for n, part in enumerate(parts))


def _text(text: str) -> str:
    parts, end = [], 0
    for power in _POWER.finditer(text):
        value, exponent = power[1].replace("\u2212", "-"), power[2].translate(_RAISED)
        parts.append("".join(map(_latex, text[end : power.start()])))
        parts.append(rf"${value} \times 10^{{{exponent}}}$")
        end = power.end()
    return "".join([*parts, *map(_latex, text[end:])])


def _formula(formula: str) -> str:
    return "".join(s if s.isascii() else f"{formula_of(s) or s} " for s in formula)


def _latex(sign: str) -> str:
    """Returns a character in LaTeX; one that LaTeX has no name for stays."""
    if sign in _LATEX or sign.isascii():
        return _LATEX.get(sign, sign)
    if formula := formula_of(sign):
        return f"${formula}$"
    letter, *accents = list(unicodedata.normalize("NFD", sign))
    for accent in accents:
        if accent not in _ACCENTS:
            return sign
        letter = rf"\{_ACCENTS[accent]}{{{letter}}}"
    return letter


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(plain(text).split()))
