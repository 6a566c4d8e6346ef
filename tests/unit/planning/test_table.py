"""The rules for a sweep of drawn values, and its form on the command line."""

from refusals import refused

from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data, sweep_of
from qdsweep.records.paths import Results
from qdsweep.records.plan import write_plan
from qdsweep.sweep.runs import Sweep

SMALL = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [20, 20]}}
BUDGET = {"evaluations": 600}


def start(results: Results, text: str, budget: dict = BUDGET, **search: object) -> Sweep:
    """Does the steps of a start of Snakemake with a drawn sweep."""
    data = {"name": "mine", "experiment": SMALL | budget, "sweep": text, "search": search}
    settings = read_sweep(Given(data))
    sweep = sweep_of(settings, results)
    write_plan(plan_data(settings, sweep), sweep.runs, results)
    return sweep


def test_more_samples_are_refused_where_they_would_replace_the_others(tmp_path):
    text, results = ":::~ sigma0 log 0.05 5", Results(tmp_path)
    start(results, text, samples=3, sampling="lhs")
    start(results, text, samples=3, sampling="lhs")
    with refused("samples = 4"):
        start(results, text, samples=4, sampling="lhs")
    few = start(results, text, samples=3, sampling="halton")
    more = start(results, text, samples=4, sampling="halton")
    assert [*more.runs][:3] == [*few.runs]


def test_drawn_batches_need_a_budget_in_evaluations(tmp_path):
    results = Results(tmp_path)
    with refused("batch_size", "iterations", "evaluations"):
        start(results, ":::~ batch_size int 12 20", {"iterations": 5}, samples=2)
    start(results, ":::~ batch_size int 12 20", samples=2)
    start(results, "::: batch_size 12 20 :::~ sigma0 log 0.1 1", {"iterations": 5}, samples=2)


def test_the_command_line_gives_samples_as_text():
    typed = ["sweep=:::~ sigma0 log 0.05 5", "search={samples: 4, sampling: sobol}"]
    data = {"experiment": SMALL | BUDGET, "sweep": ":::~ sigma0 log 0.05 5"}

    def read(**search: str):
        return read_sweep(Given({**data, "search": search}, typed))

    four, five = read(samples="4", sampling="sobol"), read(samples="5", sampling="sobol")
    assert four.search is not None
    assert four.search.samples == 4
    assert four.name == five.name != read(samples="4", sampling="halton").name
