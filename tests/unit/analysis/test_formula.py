"""Formulas where nothing can set them."""

import pytest

from qdsweep.text import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"$\sigma_0$ 0.1", "σ₀ 0.1"),
        (r"a $\lambda^{2}$, $\le 3$", "a λ², ≤3"),
        (r"$\mathrm{QD}_{\text{max}}$", "QDₘₐₓ"),
        (r"$s_{\mathrm{line}}$", "sₗᵢₙₑ"),
        (r"$x_{DQ}$", "x_DQ"),
        ("costs $5", "costs $5"),
        ("cma_me", "cma_me"),
    ],
)
def test_formulas_in_plain_letters(text, shown):
    assert plain(text) == shown
