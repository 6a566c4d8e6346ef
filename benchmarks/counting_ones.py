"""Searches on counting-ones, the problem on which BOHB was published.

    python benchmarks/counting_ones.py [--repeats 50] [--rounds 2 4 8]

Falkner, Klein & Hutter (2018), section 5.1: four categorical parameters of {0, 1} and four
continuous parameters of [0, 1]. The score is the sum of the former and of the mean of coin flips
with each of the latter. There are 9 to 729 flips, and 8 is the best score. All searches have the
budget of the same number of Hyperband rounds. The regret is of the winner's true score.
"""

import argparse
import hashlib
import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from walk import cost, walk

from qdsweep.config.model import typed
from qdsweep.config.search import Search
from qdsweep.search.draws import drawn_by
from qdsweep.search.levels import levels, ranked
from qdsweep.search.tpe import asker
from qdsweep.sweep.drawn import DrawnSource

FLIPS = 729
COINS = [DrawnSource(f"coin{i}", "uniform", ("0", "1")) for i in range(4)]
SPACE = [*(DrawnSource(f"bit{i}", "choice", ("0", "1")) for i in range(4)), *COINS]


def truth(values: Mapping[str, Any]) -> float:
    """The score without noise."""
    return sum(float(value) for value in values.values())


def score(setting: int, values: Mapping[str, Any], seed: str, budget: int) -> float:
    """The score after a number of flips; more flips continue from the previous ones."""
    total = 0.0
    for name, value in values.items():
        if name.startswith("coin"):
            digest = hashlib.sha256(f"{seed} {setting} {name}".encode()).digest()
            flips = np.random.default_rng(int.from_bytes(digest[:8], "big")).random(FLIPS)
            total += float(np.mean(flips[:budget] < float(value)))
        else:
            total += float(value)
    return total


class Result(NamedTuple):
    """What a search has found, and what it cost."""

    regret: float
    wholes: float


def run(search: Search) -> Result:
    """One search."""
    known = [
        {source.name: typed(value) for source, value in zip(SPACE, row, strict=True)}
        for row in drawn_by(search)(SPACE)
    ]
    rungs = levels(search, len(known), (str(search.seed),), FLIPS)
    seen = walk(rungs, known, score, asker(SPACE, search.seed))
    whole = [trial for rung in rungs if rung.budget == FLIPS for trial in seen[rung.name]]
    return Result(8 - truth(ranked(whole)[0].values), cost(rungs, seen) / FLIPS)


def searches(seed: int, rounds: int) -> dict[str, Result]:
    """The three searches, at equal cost."""
    band = {"seed": seed, "batches": rounds, "halving": {"first": "1/81", "brackets": "all"}}
    hyperband = run(Search(**band))
    return {
        "random search": run(Search(samples=round(hyperband.wholes), seed=seed)),
        "Hyperband": hyperband,
        "TPE + Hyperband": run(Search(**band, sampling="tpe")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--rounds", type=int, nargs="+", default=[2, 4, 8])
    arguments = parser.parse_args()
    print("| rounds | whole evaluations | search | mean regret | standard error |")
    print("|---:|---:|---|---:|---:|")
    for rounds in arguments.rounds:
        searched = [searches(seed, rounds) for seed in range(arguments.repeats)]
        for name in searched[0]:
            regrets = [trial[name].regret for trial in searched]
            error = statistics.stdev(regrets) / len(regrets) ** 0.5
            wholes = searched[0][name].wholes
            mean = statistics.fmean(regrets)
            print(f"| {rounds} | {wholes:.1f} | {name} | {mean:.3f} | {error:.3f} |", flush=True)


if __name__ == "__main__":
    main()
