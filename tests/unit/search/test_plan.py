"""The work of a search, its refusals, and the files that a start rebuilds."""

from dataclasses import replace

import pytest
from refusals import names_all, refused
from support import TINY

from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data, sweep_of
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_config
from qdsweep.records.search_files import Seen, marker_path, write_sealed
from qdsweep.search.decide import propose_candidates
from qdsweep.search.rebuilt import spoiled
from qdsweep.search.search_plan import SearchPlan, basis, search_plan

GRID = "::: batch_size 4 8 ::: sigma0 0.1 0.5 1 ::: seed 1 2"
DRAWN = ":::~ sigma0 log 0.05 5 :::~ batch_size logint 2 40 ::: seed 1 2"
CROSSED = "::: algorithm cma_me cma_mae " + DRAWN
BRACKETS = {"halving": {"brackets": "all"}}
TPE = {"sampling": "tpe", "samples": 8, "batches": 2}


def settings_of(search, sweep=GRID, experiment=None, **keys):
    experiment = {**TINY, "iterations": None, "evaluations": 900, **(experiment or {})}
    data = {"name": "s", "experiment": experiment, "sweep": sweep, "search": search, **keys}
    return read_sweep(Given(data))


def planned(folder, *args, **keys) -> SearchPlan | None:
    settings = settings_of(*args, **keys)
    return search_plan(settings, sweep_of(settings, Results(folder)))


def test_a_plain_sweep_has_no_search_plan(tmp_path):
    assert planned(tmp_path, {"samples": 3}, DRAWN) is None
    assert planned(tmp_path, None) is None


def test_the_settings_of_a_grid_are_mixed_and_those_of_draws_are_not(tmp_path):
    grid = planned(tmp_path, {"halving": {"rungs": ["1/3", 1]}})
    assert len(grid.candidates) == 6
    batches = [candidate.values["batch_size"] for candidate in grid.candidates]
    assert batches != sorted(batches)
    other = planned(tmp_path, {"seed": 1, "halving": {"rungs": ["1/3", 1]}})
    assert other.candidates != grid.candidates
    assert sorted(map(repr, other.candidates)) == sorted(map(repr, grid.candidates))
    assert list(grid.candidates[0].runs) == ["1", "2"]
    drawn = planned(tmp_path, {"samples": 4, "halving": {"rungs": ["1/3", 1]}}, CROSSED)
    samples = [candidate.values["sample"] for candidate in drawn.candidates]
    assert samples == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_setting_that_is_drawn_twice_is_computed_once(tmp_path):
    twice = ":::~ batch_size choice 4 8 ::: seed 1 2"
    plan = planned(tmp_path, {"samples": 9, "halving": {"rungs": ["1/3", 1]}}, twice)
    assert len(plan.candidates) == 2


@pytest.mark.parametrize(
    ("search", "sweep", "names"),
    [
        (BRACKETS, GRID, ["samples", ":::~"]),
        (BRACKETS, ":::~ batch_size choice 4 8", [17, "batch_size (2 values)", "search.samples"]),
        (BRACKETS, CROSSED, ["halving.brackets", ":::~", "choice"]),
        ({"halving": {"brackets": 4}, "samples": 9}, DRAWN, ["brackets"]),
        ({"halving": {"first": "1/9"}}, GRID + " ::: evaluations 100 900", [100, 900]),
        ({"halving": {"first": 2}}, GRID, ["first", "1/9"]),
        ({"halving": {"first": "1/0"}}, GRID, ["1/0", "1/9"]),
        ({"halving": {"rungs": [1, "1/3"]}}, GRID, ["halving.rungs", "1/3"]),
        ({"halving": {"eta": 1}}, GRID, ["search.halving.eta", 1]),
        ({"halving": {"seeds": [1, 2]}}, GRID, ["halving.seeds", "[1, 2]", 3]),
        ({"halving": {}}, DRAWN, ["search", "samples: N"]),
        ({"halving": {}}, "::: sigma0 1 2 3 :::+ seed 1 2 1", ["search", "::: seed 1 2"]),
        ({"halving": {}, "pbt": {"population": 4, "generations": 2}}, DRAWN, ["search.pbt"]),
        ({"sampling": "tpe", "samples": 9}, DRAWN, ["search.sampling", "batches: 2"]),
        ({"sampling": "tpe", "samples": 9, "batches": 2}, DRAWN, ["search.samples", 9, 10]),
        (
            {"sampling": "tpe", "samples": 12, "batches": 2},
            ":::~ batch_size int 4 6 :::~ sigma0 choice 1 2 3",
            ["tpe", 12, 9],
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, search, sweep, names):
    with refused("search", *names):
        planned(tmp_path, search, sweep)


@pytest.mark.parametrize(("key", "value"), [("reevaluate", {"times": 2}), ("partial", True)])
def test_what_does_not_go_with_a_search_is_refused(tmp_path, key, value):
    with refused(f"{key}:"):
        planned(tmp_path, {"halving": {}}, **{key: value})


def test_early_rungs_and_few_settings_are_warned_of(tmp_path):
    (early,) = planned(tmp_path, {"halving": {"first": "1/27", "eta": 3}}).warnings
    names_all(early, "1/27", "1/9", "docs/searches.md")
    (few,) = planned(tmp_path, {"halving": {}}, "::: sigma0 0.1 0.5 ::: seed 1").warnings
    names_all(few, 2, "eta = 3")
    assert not planned(tmp_path, {"halving": {}}).warnings


def test_values_that_do_not_go_together_are_not_proposed(tmp_path, monkeypatch):
    monkeypatch.setattr("qdsweep.search.decide.apply_baseline", lambda baseline: None)
    sweep = ":::~ archive.dims choice [9,9] [5,5] :::~ batch_size int 2 40 ::: seed 1 2"
    settings = settings_of({"sampling": "tpe", "samples": 24, "batches": 2}, sweep)
    table = sweep_of(settings, Results(tmp_path))
    search = search_plan(settings, table)
    plan = Plan.of(plan_data(settings, table, search))
    plan = replace(plan, sweep=sweep.replace("[5,5]", "[5,5] [5,5,5]"))  # for two measures
    first, asked = search.levels
    seen = [
        Seen(number, number, candidate.values, float(candidate.values["batch_size"]))
        for number, candidate in enumerate(search.candidates)
    ]
    decision = propose_candidates(plan, asked, [(first, seen)], Results(tmp_path))
    assert decision.seen == seen
    for number, chosen in enumerate(decision.chosen, start=12):
        names_all(chosen.reason, "tpe", 12)
        assert chosen.setting == chosen.values["sample"] == number
        assert chosen.values["archive.dims"] != [5, 5, 5]
        assert set(chosen.runs) == {"1", "2"}
        for seed, run in chosen.runs.items():
            config = read_config(Results(tmp_path).run(run).state.config)
            assert config["seed"] == int(seed)
            assert config["batch_size"] == chosen.values["batch_size"]


def asked(folder, sigma0="choice 0.1 0.2 0.5 1 2 4", seeds="1 2", **experiment):
    """A search in two batches: its settings and its plan."""
    sweep = f":::~ sigma0 {sigma0} :::~ batch_size int 12 40 ::: seed {seeds}"
    settings = settings_of(TPE, sweep, experiment)
    return settings, search_plan(settings, sweep_of(settings, Results(folder)))


OTHER_VALUES = "choice 0.1 0.2 0.5 1 2 8"


def test_places_of_other_settings_seeds_or_experiments_are_computed_again(tmp_path):
    _, plan = asked(tmp_path)
    results, level = Results(tmp_path), plan.levels[0]
    for place, candidate in enumerate(plan.candidates):
        for seed in level.seeds:  # all have failed, so no run needs to exist
            marker = {**candidate._asdict(), "run": candidate.runs[seed]}
            marker |= {"unit": plan.unit, "budget": level.budget, "failed": "it raised"}
            write_sealed(marker_path(results.sweep("s"), level.name, place, seed), marker)
    assert spoiled("s", plan, results) == {}
    _, other = asked(tmp_path, OTHER_VALUES)
    pairs = zip(plan.candidates, other.candidates, strict=True)
    changed = [i for i, (before, now) in enumerate(pairs) if before.values != now.values]
    assert 0 < len(changed) < 4
    assert {path.rsplit("/", 1)[1] for path in spoiled("s", other, results)} == {
        f"{i}-s{seed}.json" for i in changed for seed in (1, 2)
    }
    for _, other in (asked(tmp_path, seeds="1 2 3"), asked(tmp_path, num_emitters=3)):
        assert len(spoiled("s", other, results)) == 8


def test_proposals_are_repeated_where_other_values_can_be_drawn(tmp_path):
    def proposals(*sigma0: str) -> str:
        settings, plan = asked(tmp_path, *sigma0)
        return basis(settings, plan.levels[1], 0)

    assert proposals() == proposals() != proposals(OTHER_VALUES)
