"""Lines and bands of curves over seeds, as `figures.band` of the sweep file asks for."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.tables.statistics import ALPHA, standard_error
from qdsweep.analysis.text import plural

# What needs each seed's curve, which only then is kept in curves_by_seed.csv.
OF_SEEDS = ("quartiles", "seeds")
_WORDS = {
    "error": "mean ± standard error over {}",
    "interval": "mean and its 95 % interval (Student's t) over {}",
    "quartiles": "median and quartiles over {}",
    "seeds": "mean over {}, thin: each of them",
}


class Band(NamedTuple):
    """A line and the ends of its band (nan: unknown), ``(k,)`` each."""

    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def around(mean: NDArray[np.float64], error: NDArray[np.float64], n: int, band: str) -> Band:
    """Returns the band of means with standard errors over `n` runs; not for `OF_SEEDS`."""
    if band == "interval" and n > 1:
        from scipy.special import stdtrit

        error = error * stdtrit(n - 1, 1 - ALPHA / 2)
    return Band(mean, mean - error, mean + error)


def spread(values: NDArray[np.float64], band: str) -> Band:
    """Returns the band of ``(n, k)`` values of n runs."""
    unknown = np.full(values.shape[1], np.nan)
    if band == "seeds":
        return Band(values.mean(axis=0), unknown, unknown)
    if band == "quartiles":
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        return Band(middle, low, high) if len(values) > 1 else Band(middle, unknown, unknown)
    return around(values.mean(axis=0), standard_error(values), len(values), band)


def band_text(counts: list[int], band: str = "error") -> str:
    """Returns what a figure's lines and bands are, from the number of seeds of each group."""
    if max(counts) == 1:
        return "one seed each, no band"
    if min(counts) == max(counts):
        return _WORDS[band].format(plural(counts[0], "seed"))
    alone = ", no band for one" if min(counts) == 1 and band != "seeds" else ""
    return _WORDS[band].format(f"{min(counts)} to {max(counts)} seeds") + alone
