"""Population-based training: the next generation, and refusals."""

import pytest
from composing import BASE
from refusals import names_all, refused

from qdsweep.config.keys import read_schedule
from qdsweep.config.search import Search
from qdsweep.config.sweep import SweepFile
from qdsweep.records.search_files import Seen
from qdsweep.search.pbt import exploit, refuse_population, with_changes
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.sweep.runs import table_of_runs

SIGMA = DrawnSource("sigma", "log", ("0.01", "10"))
SIZE = DrawnSource("size", "int", ("2", "40"))
RULE = DrawnSource("rule", "choice", ("mu", "filter"))


def search(seed: int = 0, **keys: object) -> Search:
    return Search(seed=seed, pbt={"population": 8, "generations": 4, **keys})


def population(*scores: float | None, **values: object) -> list[Seen]:
    values = {"sample": 0, "size": 10, "rule": "mu", **values}
    return [
        Seen(place, place, {**values, "sigma": 1.0 + place / 10}, score, None, {"1": f"run{place}"})
        for place, score in enumerate(scores)
    ]


def test_the_worst_take_over_the_best_and_the_others_stay():
    seen = population(3, 8, 1, 5, 7, 4, 2, 6)
    decision = exploit(search(), [SIGMA, SIZE, RULE], seen, 1, 900)
    assert decision.seen == seen
    chosen = decision.chosen
    assert [member.place for member in chosen] == list(range(8))
    for place in (0, 1, 3, 4, 5, 7):
        member = chosen[place]
        assert (member.parent, member.setting, member.runs) == (place, place, seen[place].runs)
        assert member.values == seen[place].values
    for place, rank in ((2, "8th"), (6, "7th")):
        member = chosen[place]
        assert member.parent in (1, 4) and member.setting == 8 + place and not member.runs
        names_all(member.reason, rank, member.parent)
        start, change = member.values["changes"].split("; ")
        assert start == f"0 sigma={seen[member.parent].values['sigma']} size=10 rule=mu"
        values = {name: member.values[name] for name in ("sigma", "size", "rule")}
        assert read_schedule(change) == [{"at": 900, "set": values}]


def test_a_lineage_is_the_whole_history():
    seen = population(2, 1, changes="0 sigma=2.0 size=5 rule=mu; 900 sigma=1.0 size=10 rule=mu")
    (_, member) = exploit(search(), [SIGMA, SIZE, RULE], seen, 2, 1800).chosen
    *before, last = member.values["changes"].split("; ")
    assert "; ".join(before) == seen[0].values["changes"]
    assert last.startswith("1800 sigma=")


def test_values_are_scaled_or_redrawn_within_their_bounds():
    sigmas = []
    for seed in range(200):
        values = exploit(search(seed), [SIGMA, SIZE, RULE], population(2, 1), 1, 9).chosen[1].values
        assert 0.01 <= values["sigma"] <= 10 and 2 <= values["size"] <= 40
        assert isinstance(values["size"], int) and values["rule"] in ("mu", "filter")
        assert float(f"{values['sigma']:.6g}") == values["sigma"]
        sigmas.append(values["sigma"])
    assert {0.8, 1.25} < set(sigmas)
    assert 30 <= sum(sigma not in (0.8, 1.25) for sigma in sigmas) <= 70, "a quarter"
    top = [member._replace(values={**values, "sigma": 9.9}) for member in population(2, 1)]
    kept = search(3, factors=[1.25], resample=0.0)
    assert exploit(kept, [SIGMA], top, 1, 9).chosen[1].values["sigma"] == 10.0


def test_no_two_are_the_same_experiment():
    seen = [member._replace(values={"rule": "mu"}) for member in population(*range(8, 0, -1))]
    keys = search(resample=1.0, exploit=0.5)
    chosen = exploit(keys, [RULE], seen, 1, 9).chosen
    new = [(member.parent, member.values["rule"]) for member in chosen if member.setting >= 8]
    assert sorted(new) == [(place, "filter") for place in range(4)]
    chosen = exploit(keys, [DrawnSource("rule", "choice", ("mu",))], seen, 1, 9).chosen
    assert [member.setting for member in chosen] == list(range(8)), "no other values to try"


@pytest.mark.parametrize("sources", [[SIGMA, SIZE], [SIZE, SIGMA]])
def test_a_decision_depends_on_nothing_else(sources):
    """Draws do not depend on the order of sources or on places that stay."""
    seen = population(8, 7, 6, 5, 4, 3, 2, 1)
    values = exploit(search(1), sources, seen, 1, 9).chosen[7].values
    other = population(8, 7, 5, 6, 4, 3, 2, 1)
    again = exploit(search(1), [SIGMA, SIZE], other, 1, 9).chosen[7].values
    assert {**values, "changes": 0} == {**again, "changes": 0}
    assert exploit(search(1), sources, seen, 2, 9).chosen[7].values != values
    assert exploit(search(2), sources, seen, 1, 9).chosen[7].values != values


def test_what_failed_takes_over_and_where_all_failed_all_stay():
    alive = population(4, None, 3, None, 2, None, 1, 5)
    seen = [member._replace(failed=None if member.score else "it died") for member in alive]
    chosen = exploit(search(), [SIGMA], seen, 1, 9).chosen
    assert {member.place for member in chosen if member.setting >= 8} == {1, 3, 5}
    assert {member.failed for member in chosen} == {None}
    dead = [member._replace(score=None, failed="it died") for member in alive]
    chosen = exploit(search(), [SIGMA], dead, 1, 9).chosen
    assert {member.failed for member in chosen} == {"it died"}


def test_a_small_whole_number_changes():
    assert [SIZE.scaled(2, 0.8), SIZE.scaled(3, 1.25), SIZE.scaled(3, 0.8)] == ["2", "4", "2"]
    assert [SIZE.scaled(40, 1.25), SIZE.scaled(39, 1.0), RULE.scaled("mu", 2)] == ["40", "39", "mu"]
    assert DrawnSource("x", "normal", ("0", "1")).scaled(-2.0, 1.25) == "-2.5"


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
