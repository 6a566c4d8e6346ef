"""Tables as Markdown and LaTeX: names come out literally."""

import html
import re

import numpy as np

from qdsweep.analysis.sheet import (
    Sheet,
    as_latex,
    as_markdown,
    number_cell,
    read_sheet,
    text_cell,
)  # fmt: skip
from qdsweep.analysis.tables.over_tasks import write_over_tasks

NASTY = ["a*b*", "_x_", "__y", "`z`", "<html>&amp;", "[l](u)", "~~s~~", "$m | n", "a\\b", "#1", "w"]
FORMULA = r"$\sigma_0$"  # a label's, which Markdown sets in plain letters


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
    sheet = Sheet(
        "t", "T", "", ["x"], 1, [[text_cell(name)] for name in (r"\{}$&#^_~%|<`", "[1]", "*")]
    )
    lines = as_latex(sheet).splitlines()
    signs = r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\textasciitilde{}\%$|$$<$"
    signs += r"\textasciigrave{} \\"
    assert lines[-5:-2] == [signs, r"{}[1] \\", r"{}* \\"]  # else they belong to the break


def test_ties_over_tasks_are_all_bold(tmp_path):
    scores = {"a": [np.array([1e-5, 2e-5, 3e-5])] * 2, "b": [np.array([3e-5, 2e-5, 1e-5])] * 2}
    write_over_tasks(tmp_path, scores | {"c": [np.array([0.5e-5, 1e-5, 1e-5])] * 2})
    sheet = read_sheet(tmp_path / "tables" / "over_tasks.json")
    assert [row[-1].bold for row in sheet.rows] == [True, True, False]
    assert sheet.rows[0][3].text == "0.000020"  # as many decimals as it takes
