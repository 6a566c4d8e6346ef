"""Texts in figures."""

import re
import zlib
from io import BytesIO

from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

from qdsweep.analysis.figures.style import save, style, wrap


def test_a_name_stays_beside_its_value_and_a_formula_is_as_wide_as_it_is_drawn():
    assert wrap("CMA-ME, step 0.1", 1.0, 9) == "CMA-ME,\nstep 0.1"
    assert wrap(r"CMA-ME, $\sigma_0$ 0.1", 1.2, 9) == r"CMA-ME, $\sigma_0$ 0.1"
    assert wrap("$s$ess, $s$ 1, $s$ 2", 0.8, 9) == "$s$ess, $s$ 1,\n$s$ 2"


def test_fonts_in_a_pdf_are_truetype_without_tables_that_no_viewer_reads(tmp_path):
    with style():
        figure = Figure()
        figure.suptitle("office")
        save(figure, tmp_path / "words", (".pdf",))
    pdf = (tmp_path / "words.pdf").read_bytes()
    streams = map(zlib.decompress, re.findall(rb"stream\r?\n(x.*?)\r?\nendstream", pdf, re.DOTALL))
    fonts = [TTFont(BytesIO(text)) for text in streams if text.startswith(b"\0\1\0\0")]
    assert fonts and all("glyf" in font for font in fonts)
    assert not any({"GSUB", "GPOS", "kern"} & {*font.keys()} for font in fonts)
