"""What a population cannot train on is refused before anything starts."""

import pytest
from composing import BASE
from refusals import refused

from qdsweep.config.sweep import SweepFile
from qdsweep.search.pbt import refuse_population, with_changes
from qdsweep.sweep.runs import table_of_runs

LINE = {**BASE, "algorithm": "map_elites_line", "iterations": 30}
SIGMAS = ":::~ iso_sigma log 0.01 5 :::~ line_sigma log 0.01 2"


def check(text: str, unit: str = "iterations", **keys: object) -> None:
    sweep = table_of_runs({**LINE, **keys}, text, draw=first_draw)
    refuse_population(text, sweep, unit)


def first_draw(sources):
    return [tuple(source.value(0.3) for source in sources)]


def test_step_sizes_can_be_trained():
    check(f"{SIGMAS} ::: seed 1 2")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (":::~ initial_solutions int 1 9", ["initial_solutions"]),
        (":::~ num_emitters int 1 3", ["num_emitters", "iso_sigma"]),
        (":::~ algorithm choice cma_me map_elites", ["algorithm"]),
        (":::~ batch_size int 5 9", ["batch_size"]),
        (
            ":::~ iso_sigma log 0.01 5 ::: seed 1 2 :::~ line_sigma log 0.01 2 if seed=2",
            ["line_sigma", "if"],
        ),
    ],
)
def test_what_cannot_change_is_refused(text, names):
    with refused("search.pbt", *names):
        check(text)


def test_the_budget_is_in_iterations_and_the_schedule_its_own():
    with refused("search.pbt", "iterations: N"):
        check(SIGMAS, "evaluations")
    with refused("search.pbt", "schedule"):
        check(SIGMAS, schedule="3 iso_sigma=0.1")


def test_parts_of_the_user_are_tried_with_a_change():
    text = f"{SIGMAS} ::: seed 1 2"
    data = {"name": "mine", "experiment": "arm", "sweep": text}
    runs = list(table_of_runs(LINE, text, draw=first_draw).runs.values())
    assert with_changes(SweepFile(**data), runs) == runs
    trained = SweepFile(**data, search={"pbt": {"population": 2, "generations": 2}})
    (first, _) = with_changes(trained, runs)
    values = {f"algorithm.emitters.0.{name}": getattr(first.algorithm.emitters[0], name)
              for name in ("iso_sigma", "line_sigma")}  # fmt: skip
    assert [(change.at, change.set) for change in first.schedule] == [(1, values)]
