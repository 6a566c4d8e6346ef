"""Texts in figures."""

from qdsweep.analysis.figures.style import wrap


def test_a_name_stays_next_to_its_value_and_a_formula_has_its_drawn_width():
    assert wrap("CMA-ME, step 0.1", 1.0, 9) == "CMA-ME,\nstep 0.1"
    assert wrap(r"CMA-ME, $\sigma_0$ 0.1", 1.2, 9) == r"CMA-ME, $\sigma_0$ 0.1"
    assert wrap("$s$ess, $s$ 1, $s$ 2", 0.8, 9) == "$s$ess, $s$ 1,\n$s$ 2"
