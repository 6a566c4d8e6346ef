"""Numbers, names and formulas as text, and tables as Markdown and LaTeX."""

import html
import math
import re

import numpy as np
import pytest

from qdsweep.analysis.sheet import (
    Sheet,
    as_latex,
    as_markdown,
    escape_latex,
    number_cell,
    read_sheet,
    text_cell,
)
from qdsweep.analysis.statistics import band_text, mean_error_count
from qdsweep.analysis.tables.over_tasks import write_over_tasks
from qdsweep.config.model import value_text
from qdsweep.text import TIMES, common_decimals, mean_and_error, plain, short, significant


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], (math.nan, math.nan, 0)), ([5.0], (5.0, math.nan, 1)), ([1.0, math.nan, 3.0], (2, 1, 2))],
)
def test_mean_error_count(values, expected):
    assert mean_error_count(np.array(values)) == pytest.approx(expected, nan_ok=True)


def test_numbers_and_formulas_as_text():
    assert [value_text(v) for v in (1e-3, True, None, [2, 3], "x")] == [
        "0.001", "true", "null", "[2, 3]", "x",
    ]  # fmt: skip
    assert common_decimals([100.0], [0.123]) == 2
    assert mean_and_error(1234.5, 6.7, 1) == "1,234.5 ± 6.7"
    assert mean_and_error(1234.5, math.nan, 1) == "1,234.5"
    assert [short(v, 3) for v in (7.312e-5, -2e7, 0.25, -3)] == [
        f"7.31 {TIMES} 10⁻⁵", f"\u22122 {TIMES} 10⁷", "0.25", "\u22123",
    ]  # fmt: skip
    assert escape_latex(f"50 %, {short(7.312e-5, 3)} s and {short(-2e7)}") == (
        r"50 \%, $7.31 \times 10^{-5}$ s and $-2 \times 10^{7}$"
    )
    assert escape_latex(r"$\sigma_0$ of 5 %") == r"$\sigma_0$ of 5 \%"
    assert escape_latex("a_1 for 5 $") == r"a\_1 for 5 \$"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (321.4, "321"), (5.309, "5.31"), (-0.02134, "\u22120.0213"), (12_345.6, "12,346"),
        (2.34e-7, f"2.34 {TIMES} 10⁻⁷"), (-1e-15, "0"), (0.0, "0"), (math.nan, "\u2013"),
    ],
)  # fmt: skip
def test_three_significant_digits(value, text):
    assert significant(value) == text


def test_what_rounding_leaves_of_zero_gets_no_decimals():
    decimals = common_decimals([-1e-15, 2e-16], [1e-15, 1e-16])
    assert mean_and_error(-1e-15, 1e-16, decimals) == "0 ± 0"
    assert common_decimals([-1e-15, 3.1], [1e-16, 0.1]) == 2


def test_what_a_band_is_called(snapshot):
    assert [band_text([3, 3]), band_text([1, 1]), band_text([1])] == snapshot


def test_formulas_in_plain_letters():
    shown = {
        r"$\sigma_0$ 0.1": "σ₀ 0.1",
        r"a $\lambda^{2}$, $\le 3$": "a λ², ≤3",
        r"$\mathrm{QD}_{\text{max}}$": "QDₘₐₓ",
        r"$s_{\mathrm{line}}$": "sₗᵢₙₑ",
        r"$x_{DQ}$": "x_DQ",
        "costs $5": "costs $5",
        "cma_me": "cma_me",
    }
    assert {text: plain(text) for text in shown} == shown


NASTY = ["a*b*", "_x_", "__y", "`z`", "<html>&amp;", "[l](u)", "~~s~~", "$m | n", "a\\b", "#1", "w"]
FORMULA = r"$\sigma_0$"  # in a label, which Markdown shows in plain letters


def test_names_come_out_literally_in_markdown():
    from markdown_it import MarkdownIt

    rows = [[text_cell(name), number_cell("1", 1.0, bold=True)] for name in (*NASTY, FORMULA)]
    sheet = Sheet("t", "T", " ".join(NASTY), ["_Name_", "n"], 1, rows)
    page = MarkdownIt("gfm-like", {"linkify": False}).render(as_markdown(sheet))
    shown = [html.unescape(text) for text in re.findall("<t[dh][^>]*>(.*?)</t[dh]>", page)]
    assert shown[::2] == ["_Name_", *NASTY, "σ₀"]
    assert set(shown[3::2]) == {"<strong>1</strong>"}
    assert html.unescape(re.search("<p>(.*)</p>", page)[1]) == " ".join(NASTY)


def test_names_come_out_literally_in_latex():
    rows = [[text_cell(name)] for name in (r"\{}$&#^_~%|<`", "[1]", "*")]
    lines = as_latex(Sheet("t", "T", "", ["x"], 1, rows)).splitlines()
    signs = r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\textasciitilde{}\%$|$$<$"
    signs += r"\textasciigrave{} \\"
    assert lines[-5:-2] == [signs, r"{}[1] \\", r"{}* \\"]  # else they belong to the line break


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("σ₀ ≥ 0.5 ± 0.1", r"$\sigma$$_{0}$ $\geq$ 0.5 $\pm$ 0.1"),
        ("\u22123 \u2013 5 \u00d7 5 µm² → ∞", r"$-$3 -- 5 $\times$ 5 $\mu$m$^{2}$ $\to$ $\infty$"),
        ("Δ \u03a1 \u03bf ς λ", r"$\Delta$ $P$ $o$ $\varsigma$ $\lambda$"),
        ("Müller, Łoś, Ångström, ß", r"M\"{u}ller, \L{}o\'{s}, \r{A}ngstr\"{o}m, \ss{}"),
        ("“a” \u2018b\u2019 … \u2014 †", r"``a'' `b' \dots{} --- $^\dagger$"),
        ("$Δ_0$ of 5 %", r"$\Delta _0$ of 5 \%"),
    ],
)
def test_latex_has_no_letter_of_unicode_that_it_can_write(text, latex):
    assert escape_latex(text) == latex and latex.isascii()
    sheet = Sheet("t", text.replace("$", ""), text, [text], 1, [[text_cell(text)]])
    assert as_latex(sheet).isascii()


def test_every_table_of_a_sweep_is_latex_without_unicode(main):
    tables = [main / "table.tex", *main.glob("tables/*.tex")]
    assert len(tables) >= 2
    for path in tables:
        assert path.read_text().isascii(), path
    assert not (main / "table.md").read_text().isascii()


def test_ties_over_tasks_are_all_bold(tmp_path):
    scores = {"a": [np.array([1e-5, 2e-5, 3e-5])] * 2, "b": [np.array([3e-5, 2e-5, 1e-5])] * 2}
    write_over_tasks(tmp_path, scores | {"c": [np.array([0.5e-5, 1e-5, 1e-5])] * 2})
    sheet = read_sheet(tmp_path / "tables" / "over_tasks.json")
    assert [row[-1].bold for row in sheet.rows] == [True, True, False]
    assert sheet.rows[0][3].text == "0.000020"  # as many decimals as needed
