"""Figures, tables and page show the characters that a user wrote, also those with a meaning."""

import io
import re
import shlex
from html import unescape
from xml.etree import ElementTree

import pytest
from in_process import compute_sweep, report_sweep
from looks import data_of

from qdsweep.analysis.figures.archive_pictures import heatmaps, run_figure
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.sheet import escape_latex
from qdsweep.text import formulas, plain

LAB = """
import numpy as np
from qdsweep.domains.base import Evaluation
class Lab:
    measures = dict.fromkeys({names!r}, (-3.0, 3.0))
    objective_range, fields, solution_dim = (-10.0, 0.0), {{}}, 3
    def __init__(self, unit="", other=""):
        pass
    def evaluate(self, solutions, seeds):
        angles = np.cumsum(solutions, axis=1)
        measures = np.stack([np.cos(angles).sum(1), np.sin(angles).sum(1)], 1)
        return Evaluation(-np.var(solutions, axis=1), measures)
"""
KEYS = {
    **{"algorithm": "map_elites", "archive": {"dims": [4, 4]}},
    **{"num_emitters": 1, "batch_size": 10, "iterations": 3},
}
# Pairs of names of measures.
NAMES = [
    ("price_$ (US_$)", r"\frac{1}$ of $x^2"),
    ("cost [US$] of x_ [US$]", '<img src=x onerror=alert(1)> & "y"'),
    ("$x_1$", r"50 % \$ #1 {a}^b ~c"),
    ("two\nlines of US$, A$", "größe λ → ∞ é"),
]
VALUES = ["US$", "a_b^c", r"\x{y} <b>&amp; #1 %"]


def shown(figure) -> set[str]:
    """The lines of text that a figure shows, formulas in pieces."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    file.seek(0)
    elements = ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")
    return {element.text for element in elements if element.text}


def words(page: str) -> str:
    """The text of a page, without its own commands and data."""
    body = re.sub(r"<(script|style|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("names", NAMES, ids=["dollars", "html", "formula", "unicode"])
def test_names_of_measures_are_literal(tmp_path, plugins, names):
    plugins("lab", LAB.format(names=names))
    sweep = compute_sweep(tmp_path / "results", {"domain": "lab:Lab", **KEYS}, "::: seed 1")
    data = data_of(sweep)
    with formulas([]), style():
        figures = [heatmaps(data).figure]
        figures += [run_figure(run, (0.0, 1.0)) for run in data.median_runs.values()]
        texts = [shown(figure) for figure in figures]
        page = methods(data, set()).text
    if names is NAMES[0]:
        page = words((report_sweep(sweep) / "report.html").read_text())
    for name in names:
        assert " ".join(name.split()) in " ".join(page.split())
        assert all(set(name.splitlines()) <= lines for lines in texts)


def test_swept_values_are_literal_and_labels_have_formulas(tmp_path, plugins):
    plugins("lab", LAB.format(names=["x", "y"]))
    swept = " ".join(map(shlex.quote, VALUES))
    text = f"::: unit {swept} ::: other {shlex.quote('US$')} {shlex.quote('A$')} ::: seed 1"
    figures = {"labels": {"a_b^c": r"$\sigma_0$"}, "names": {"other": "in $"}}
    sweep = compute_sweep(
        tmp_path / "results", {"domain": "lab:Lab", **KEYS}, text, figures=figures
    )
    page = words((report_sweep(sweep) / "report.html").read_text())
    data = data_of(sweep)
    with formulas([*figures["labels"].values(), *figures["names"].values()]), style():
        views = [view for view in sweep_views(data) if hasattr(view, "figure")]
        lines = shown(learning_curves(data).figure).union(*(shown(v.figure) for v in views))
    for value in VALUES:
        if value in figures["labels"]:
            assert "σ₀" in page and value not in lines and not any("sigma" in t for t in lines)
        else:
            assert value in page and value in lines, value
    assert "in $ US$" in page


def test_only_the_formulas_of_labels_are_formulas():
    with formulas([r"$\sigma_0$ in US", "costs $5"]):
        assert plain(r"$\sigma_0$ 5 US$, A$ and $\tau$") == r"σ₀ 5 US$, A$ and $\tau$"
        assert escape_latex(r"$\sigma_0$ of x_$ (US_$)") == r"$\sigma_0$ of x\_\$ (US\_\$)"
    with formulas([]):
        assert plain("$x$") == "$x$"
        assert escape_latex(r"$x$ 5 %") == r"\$x\$ 5 \%"
    assert plain(r"$\sigma_0$") == "σ₀", "without any labels"
