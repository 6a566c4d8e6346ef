# ruff: noqa: E402
"""Population-based training compared with random search and halving, at equal evaluations.

    python benchmarks/population.py [searches]

For each search: the winner's score on the seed of the selection, and the mean over five others.
All three draw alike, run the code of a sweep, and spend at most what nine whole runs do. The task
is that of config/sweeps/pbt_line.yaml: MAP-Elites with line mutation on Rastrigin, 20 parameters.
"""

import io
import pickle
import sys
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")  # before numpy is imported

from walk import cost, walk

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.keys import read_schedule
from qdsweep.config.model import typed
from qdsweep.config.search import Search
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment import loop, reload
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.records.search_files import Level, Seen
from qdsweep.search.draws import drawn_by
from qdsweep.search.levels import levels, ranked
from qdsweep.search.pbt import exploit
from qdsweep.sweep.grammar import drawn_in, expand
from qdsweep.sweep.groups import CHANGES

SWEEP = ":::~ iso_sigma log 0.005 5 :::~ line_sigma log 0.01 2"
SOURCES = drawn_in(SWEEP)
BUDGET = 150  # iterations of 180 evaluations
EXPERIMENT = {
    "domain": {"preset": "lp_rastrigin", "solution_dim": 20},
    "algorithm": "map_elites_line",
    "archive": {"dims": [50, 50]},
    "num_emitters": 5,
    "batch_size": 36,
    "initial_solutions": 36,
    "iterations": BUDGET,
}
UNSEEN = range(1001, 1006)
MEMBERS = 9  # of a population; as many whole runs has random search
SETTINGS = 35  # of halving: 0.93 of nine whole runs
Values = Mapping[str, Any]


def main(searches: int) -> None:
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for number in range(1, searches + 1):
        for name, search in ways(number).items():
            own, values, share = found_by(search, str(number))
            unseen = mean(Run(member(values, str(seed))).score_at(BUDGET) for seed in UNSEEN)
            rows.setdefault(name, []).append((own, unseen, share))
            print(f"search {number}, {name}: {own:.2f} own, {unseen:.2f} unseen, {values}")
    report(rows)


def ways(seed: int) -> dict[str, Search]:
    """The three searches, with one search seed."""
    return {
        "random": Search(seed=seed, samples=MEMBERS),
        "halving": Search(seed=seed, samples=SETTINGS, halving={"first": "1/9"}),
        "pbt": Search(seed=seed, pbt={"population": MEMBERS, "generations": MEMBERS}),
    }


def found_by(search: Search, seed: str) -> tuple[float, Values, float]:
    """The winner's score on the seed that chose it, its values, and the cost in nine whole runs."""
    table = expand(SWEEP, draw=drawn_by(search))
    known = [dict(zip(table.names, map(typed, row), strict=True)) for row in table.rows]
    if not search.is_staged:
        plan: tuple[Level, ...] = (Level("whole", len(known), (seed,), BUDGET),)
    else:
        plan = levels(search, len(known), (seed,), BUDGET)
    if search.pbt:
        last = trained(search, plan, known, seed)
        spent = MEMBERS * BUDGET
    else:
        runs: dict[int, Run] = {}

        def score(setting: int, values: Values, seed: str, budget: int) -> float:
            run = runs.setdefault(setting, Run(member(values, seed)))
            return run.score_at(budget)

        seen = walk(plan, known, score)
        last, spent = seen[plan[-1].name], cost(plan, seen)
    best = ranked(last)[0]
    assert best.score is not None
    return best.score, best.values, spent / (MEMBERS * BUDGET)


def trained(
    search: Search, plan: tuple[Level, ...], known: list[dict[str, Any]], seed: str
) -> list[Seen]:
    """The last generation of a population."""
    runs = [Run(member(values, seed)) for values in known]
    seen: list[Seen] = []
    for number, level in enumerate(plan):
        values = known if not number else [each.values for each in seen]
        if number:
            decision = exploit(search, SOURCES, seen, number, plan[number - 1].budget)
            before = list(runs)
            for each in decision.chosen:
                assert each.parent is not None
                if each.parent != each.place:
                    runs[each.place] = before[each.parent].forked(member(each.values, seed))
            values = [each.values for each in decision.chosen]
        seen = [
            Seen(place, place, values[place], runs[place].score_at(level.budget), None, {"": "run"})
            for place in range(level.places)
        ]
    return seen


def member(values: Values, seed: str) -> Experiment:
    """The experiment of a setting, or of a member's whole lineage."""
    start, *changes = read_schedule(values.get(CHANGES, "")) or [
        {"at": 0, "set": {source.name: values[source.name] for source in SOURCES}}
    ]
    return compose(EXPERIMENT | {"seed": int(seed), "schedule": changes} | start["set"])


class Run:
    """A run in memory, which can be continued."""

    def __init__(self, experiment: Experiment, state: State | None = None) -> None:
        self.experiment, self.domain = experiment, make_domain(experiment.domain)
        self.state = state or State(make_algorithm(experiment, self.domain, None))

    def score_at(self, iterations: int) -> float:
        """Its normalised QD score after a number of iterations."""
        short = self.experiment.model_copy(update={"iterations": iterations})
        loop.run_loop(short, self.state, Serial(self.domain), Stop(), lambda *_: None)
        return float(self.state.algorithm.metrics()["norm_qd_score"])

    def forked(self, experiment: Experiment) -> "Run":
        """A run of another experiment that begins with the state of this run."""
        payload = io.BytesIO()
        reload.dump(self.state, payload)
        return Run(experiment, pickle.loads(payload.getbuffer()))


def report(rows: Mapping[str, list[tuple[float, float, float]]]) -> None:
    """Means over the searches ± standard errors; `gain`: over random search, on held-out seeds."""
    print("\n| search | cost | own seed | held-out seeds | loss | gain | better, equal, worse |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, scores in rows.items():
        own, unseen, share = zip(*scores, strict=True)
        more = [each - other[1] for each, other in zip(unseen, rows["random"], strict=True)]
        lost = [each - other for each, other in zip(own, unseen, strict=True)]
        better, worse = sum(gain > 0 for gain in more), sum(gain < 0 for gain in more)
        print(
            f"| {name} | {mean(share):.2f} | {spread(own)} | {spread(unseen)} | {spread(lost)} "
            f"| {spread(more)} | {better}, {len(more) - better - worse}, {worse} |"
        )


def spread(values: Sequence[float]) -> str:
    """The mean and its standard error."""
    return f"{mean(values):.1f} ± {stdev(values) / len(values) ** 0.5:.1f}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 15)
