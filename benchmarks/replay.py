"""Replays searches on the learning curves of search_table.npz, and prints what they find.

    python benchmarks/replay.py [--draws 300]

A draw takes other tuning seeds and another order of the settings. The winner's score is the mean
over the seeds that did not choose it, beside that of the setting that is best on those seeds; the
cost is beside a grid with one seed.
"""

import argparse
import random
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from walk import cost, walk

from qdsweep.config.search import Search
from qdsweep.search.levels import levels, ranked, samples_of

TABLE = Path(__file__).with_name("search_table.npz")
Curves = np.ndarray[Any, np.dtype[np.float32]]
CMA_ME = "CMA-ME on Rastrigin"
EXAMPLE = f"{CMA_ME}, the 27 settings of tune_cma_me"


class Strategy(NamedTuple):
    """A search, its number of tuning seeds, and one of how many settings it takes."""

    search: Mapping[str, Any]
    seeds: int
    of: int = 1


def halving(*seeds: int, batches: int = 1, **keys: Any) -> Strategy:
    return Strategy({"batches": batches, "halving": {"seeds": list(seeds), **keys}}, seeds[-1])


STRATEGIES = {
    "grid, 1 seed": Strategy({}, 1),
    "grid, 3 seeds": Strategy({}, 3),
    "random, a third of the settings, 1 seed": Strategy({}, 1, 3),
    "random, a ninth of the settings, 3 seeds": Strategy({}, 3, 9),
    "halving from 1/27, seeds 1-1-1-1": halving(1, 1, 1, 1, first="1/27"),
    "halving from 1/9, seeds 1-1-1": halving(1, 1, 1),
    "halving from 1/9, seeds 1-1-2": halving(1, 1, 2),
    "rungs 1/6, 1/2, 1, seeds 1-1-1": halving(1, 1, 1, rungs=["1/6", "1/2", 1]),
    "rungs 1/3, 2/3, 1, seeds 1-2-3": halving(1, 2, 3, rungs=["1/3", "2/3", 1]),
    "Hyperband from 1/9, four rounds: 68 settings, 1 seed": halving(
        1, 1, 1, brackets="all", batches=4
    ),
}


class Found(NamedTuple):
    """What a search finds: score beside the best setting's, cost beside a one-seed grid's."""

    score: float
    cost: float


def tables() -> dict[str, Curves]:
    """The curves of each task: ``(settings, seeds, points)``.

    Of CMA-ME also the two thirds of config/sweeps/tune_cma_me.yaml and of other rankers.
    """
    with np.load(TABLE) as file:
        whole = {task: file[task] for task in file.files}
    number = np.arange(81)
    return whole | {
        EXAMPLE: whole[CMA_ME][number // 3 % 3 == 1],
        f"{CMA_ME}, 27 settings with the basic restart": whole[CMA_ME][number % 3 == 0],
    }


def replay(curves: Curves, strategy: Strategy, draw: int) -> Found:
    """One search with the seeds and the order of a draw."""
    count, seeds, points = curves.shape
    number = random.Random(draw)
    tuning = number.sample(range(seeds), strategy.seeds)
    held_out = curves[:, [seed for seed in range(seeds) if seed not in tuning], -1].mean(axis=1)
    search = Search(**strategy.search)
    taken = samples_of(search) or count // strategy.of
    known = [{"row": row} for row in number.sample(range(count), taken)]

    def score(setting: int, values: Mapping[str, Any], seed: str, budget: int) -> float:
        return float(curves[values["row"], int(seed), budget - 1])

    rungs = levels(search, taken, list(map(str, tuning)), points, drawn=False)
    seen = walk(rungs, known, score)
    whole = [each for rung in rungs if rung.budget == points for each in seen[rung.name]]
    winner = ranked(whole)[0].values["row"]
    return Found(float(held_out[winner] / held_out.max()), cost(rungs, seen) / (count * points))


def many(curves: Curves, strategy: Strategy, draws: int) -> tuple[Found, list[float]]:
    """The means of so many draws, and the scores."""
    replayed = [replay(curves, strategy, draw) for draw in range(draws)]
    mean = Found(*(statistics.fmean(column) for column in zip(*replayed, strict=True)))
    return mean, [each.score for each in replayed]


def cell(curves: Curves, strategy: Strategy, draws: int) -> str:
    """The score, and how often the winner is within 2 % of the best."""
    if samples_of(Search(**strategy.search)) > len(curves):
        return ""
    mean, scores = many(curves, strategy, draws)
    close = statistics.fmean(score > 0.98 for score in scores)
    return f"{mean.score:.3f} ({100 * close:.0f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=300)
    draws = parser.parse_args().draws
    curves = tables()
    print(f"| search | cost | {' | '.join(curves)} |")
    print("|---|---:|" + "---:|" * len(curves))
    for name, strategy in STRATEGIES.items():
        cost_of_one = replay(curves[CMA_ME], strategy, draw=0).cost
        cells = [cell(each, strategy, draws) for each in curves.values()]
        print(f"| {name} | {cost_of_one:.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
