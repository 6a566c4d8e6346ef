"""What a population cannot train on is refused before anything starts."""

import pytest
from composing import BASE

from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.search.pbt import refuse_population, with_changes
from qdsweep.sweep.runs import table_of_runs

LINE = {**BASE, "algorithm": "map_elites_line", "iterations": 30}
SIGMAS = ":::~ iso_sigma log 0.01 5 :::~ line_sigma log 0.01 2"


def refused(text: str, unit: str = "iterations", **keys: object) -> None:
    sweep = table_of_runs({**LINE, **keys}, text, draw=one_draw)
    refuse_population(text, sweep, unit)


def one_draw(sources):
    return [tuple(source.value(0.3) for source in sources)]


def test_step_sizes_can_be_trained():
    refused(f"{SIGMAS} ::: seed 1 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ":::~ initial_solutions int 1 9",
            r"search.pbt: .* cannot .*: the emitter is made with it",
        ),
        (
            ":::~ num_emitters int 1 3",
            r"num_emitters cannot .* These keys can: .*iso_sigma \(now\)",
        ),
        (":::~ algorithm choice cma_me map_elites", "algorithm cannot be changed in mid-run"),
        (":::~ batch_size int 5 9", "batch_size cannot be drawn: .* other numbers of evaluations"),
        (
            ":::~ iso_sigma log 0.01 5 ::: seed 1 2 :::~ line_sigma log 0.01 2 if seed=2",
            "line_sigma is drawn under a condition",
        ),
    ],
)
def test_what_cannot_change_is_refused_with_the_reason(text, message):
    with pytest.raises(BadInput, match=message):
        refused(text)


def test_parts_of_the_user_are_tried_with_a_change():
    text = f"{SIGMAS} ::: seed 1 2"
    data = {"name": "mine", "experiment": "arm", "sweep": text}
    runs = list(table_of_runs(LINE, text, draw=one_draw).runs.values())
    assert with_changes(SweepFile(**data), runs) == runs
    trained = SweepFile(**data, search={"pbt": {"population": 2, "generations": 2}})
    (one, _) = with_changes(trained, runs)
    values = {f"algorithm.emitters.0.{name}": getattr(one.algorithm.emitters[0], name)
              for name in ("iso_sigma", "line_sigma")}  # fmt: skip
    assert [(change.at, change.set) for change in one.schedule] == [(1, values)]


def test_the_budget_is_in_iterations_and_the_schedule_its_own():
    with pytest.raises(BadInput, match="write the budget in iterations"):
        refused(SIGMAS, "evaluations")
    with pytest.raises(BadInput, match="makes the schedule itself"):
        refused(SIGMAS, schedule="3 iso_sigma=0.1")
