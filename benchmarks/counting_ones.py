"""Searches on counting-ones, the problem on which BOHB was published.

    python benchmarks/counting_ones.py [--repeats 100] [--rounds 4]

Falkner, Klein & Hutter (2018), section 5.1: four categorical parameters of {0, 1} and four
continuous ones of [0, 1]; the score is the sum of the former and of the mean of so many coin
flips with each of the latter; 9 to 729 flips, and 8 is the best. All have the same budget: that
of so many rounds of Hyperband. The regret is of the winner's true score.
"""

import argparse
import hashlib
import math
import random
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from qdsweep.config.search import Search
from qdsweep.records.search import Level, Seen
from qdsweep.strategies.draws import drawn_by
from qdsweep.strategies.halving import ranked
from qdsweep.strategies.levels import levels, samples_of
from qdsweep.strategies.walk import cost, walk
from qdsweep.sweep.drawn import Drawn

FLIPS = 729
COINS = [Drawn(f"coin{i}", "uniform", ("0", "1")) for i in range(4)]
SPACE = [*(Drawn(f"bit{i}", "choice", ("0", "1")) for i in range(4)), *COINS]
HYPERBAND = {"first": "1/81", "brackets": "all"}


def truth(values: Mapping[str, Any]) -> float:
    """The score without noise."""
    return sum(float(value) for value in values.values())


def score(setting: int, values: Mapping[str, Any], seed: str, budget: int) -> float:
    """The score after so many flips; more flips go on from the ones before."""
    total = 0.0
    for name, value in values.items():
        if name.startswith("coin"):
            digest = hashlib.sha256(f"{seed} {setting} {name}".encode()).digest()
            flips = np.random.default_rng(int.from_bytes(digest[:8], "big")).random(FLIPS)
            total += float(np.mean(flips[:budget] < float(value)))
        else:
            total += float(value)
    return total
