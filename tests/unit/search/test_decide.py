"""Tables of decisions and markers of places, computed in this process from invented scores."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from refusals import refused

from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import write_json
from qdsweep.host.machine import has_avx2
from qdsweep.metrics import BY_NAME
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data, sweep_of
from qdsweep.records.last_stop import LastStop, write_failure
from qdsweep.records.metrics_file import Metrics
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, read_plan, write_plan
from qdsweep.records.results import read_config
from qdsweep.records.search_files import marker_path, read_decision, read_sealed, seen_in
from qdsweep.search.decide import decide, propose_candidates
from qdsweep.search.places import chosen_at, level_of, run_of_place, score_at, take_place
from qdsweep.search.search_plan import search_plan

EXPERIMENT = {
    "domain": "lp_sphere",
    "algorithm": "map_elites_line",
    "archive": {"dims": [9, 9]},
    "iterations": 90,
}
GRID = "::: batch_size 4 8 16 ::: seed 1 2"
SIGMAS = ":::~ iso_sigma log 0.01 5 ::: seed 1 2"
TPE = {"sampling": "tpe", "samples": 24, "batches": 2}
HALVING = {"halving": {"rungs": ["1/3", 1], "seeds": [1, 2]}}


@pytest.fixture
def sweep(tmp_path) -> SweepDir:
    (tmp_path / "elsewhere").mkdir()
    return Results(tmp_path / "elsewhere/results").sweep("s")


def planned(sweep: SweepDir, search: dict = HALVING, text: str = GRID) -> Plan:
    settings = read_sweep(
        Given({"name": "s", "experiment": EXPERIMENT, "sweep": text, "search": search})
    )
    table = sweep_of(settings, sweep.results)
    write_plan(plan_data(settings, table, search_plan(settings, table)), table.runs, sweep.results)
    return read_plan(sweep)


def reaches(score: float | None, iterations: int = 90) -> Callable[[RunDir], int]:
    """Returns a start of a run whose metric has this value after each iteration."""

    def start(run: RunDir) -> int:
        metrics = Metrics(run.state.metrics, 0)
        for iteration in range(1, iterations + 1):
            metrics.add({"iteration": iteration, "norm_qd_score": score})
        metrics.close()
        return 0

    return start


def fails(*iterations: int, kind: type[Exception] = QdsweepError, traceback: str | None = None):
    """Returns a start of a run that fails after these iterations, one per start."""
    left = list(iterations)

    def start(run: RunDir) -> int:
        about = {"exception": "ValueError", "traceback": traceback}
        write_failure(run.state, LastStop("failure", iteration=left.pop(0)), about)
        raise kind("the run failed")

    return start


def test_the_best_candidates_are_promoted_and_their_runs_continued(sweep):
    plan = planned(sweep)
    first, second = plan.levels
    for place, score in enumerate((0.2, 0.7, 0.5)):
        run = sweep.results.run(plan.candidates[place]["runs"]["1"])
        assert run_of_place(sweep, plan.candidates, first, place, "1") == run
        assert run_of_place(sweep, plan.candidates, second, 0, "1") is None
        assert take_place(sweep, plan, first, place, "1", reaches(score, 30)) == 0
    decide(sweep, second.name, 0)
    decision = read_decision(sweep, second, 0)
    assert [seen.score for seen in decision.seen] == [0.2, 0.7, 0.5]
    (best,) = decision.chosen
    assert (best.place, best.setting, best.parent) == (0, 1, 1)
    assert best.runs == plan.candidates[1]["runs"]
    for seed in ("1", "2"):
        run = run_of_place(sweep, plan.candidates, second, 0, seed)
        assert run == sweep.results.run(plan.candidates[1]["runs"][seed])
        assert take_place(sweep, plan, second, 0, seed, reaches(0.75)) == 0
        assert read_sealed(marker_path(sweep, second.name, 0, seed)) == {
            "level": "rung-1",
            "place": 0,
            "setting": 1,
            "values": plan.candidates[1]["values"],
            "seed": seed,
            "run": run.name,
            "runs": plan.candidates[1]["runs"],
            "unit": "iterations",
            "budget": 90,
            "metric": "norm_qd_score",
            "score": 0.75,
            "failed": None,
        }


def test_decisions_of_a_block_begin_where_the_last_one_ended(sweep):
    halving = {"rungs": ["1/3", 1], "seeds": [1, 1], "block": 1}
    plan = planned(sweep, {"halving": halving, "samples": 6}, SIGMAS)
    first, second = plan.levels
    for place, score in enumerate((0.3, 0.1, 0.2, 0.6, 0.4, 0.5)):
        take_place(sweep, plan, first, place, "1", reaches(score, 30))
        if place == 2:
            decide(sweep, second.name, 0)
    decide(sweep, second.name, 1)
    blocks = [read_decision(sweep, second, block) for block in (0, 1)]
    assert [[chosen.setting for chosen in block.chosen] for block in blocks] == [[0], [0, 3]]
    assert [len(block.seen) for block in blocks] == [3, 6]
    chosen = chosen_at(sweep, plan.candidates, second, 1)
    assert (chosen.place, chosen.setting) == (1, 3)


def test_candidates_of_a_batch_are_those_of_the_plan(sweep):
    plan = planned(sweep, {"halving": {"rungs": ["1/3", 1], "brackets": "all"}}, SIGMAS)
    level = next(level for level in plan.levels if level.kind == "known" and level.first)
    chosen = chosen_at(sweep, plan.candidates, level, 1)
    number = level.first + 1
    assert (chosen.place, chosen.setting, chosen.reason) == (1, number, "")
    candidate = plan.candidates[number]
    assert (chosen.values, chosen.runs) == (candidate["values"], candidate["runs"])


def test_proposals_follow_the_levels_below_them(sweep, monkeypatch):
    folder = sweep.results.path.parent
    (folder / "seeds.txt").write_text("seed\n1\n2\n")
    with monkeypatch.context() as at_the_start:
        at_the_start.chdir(folder)
        plan = planned(sweep, TPE, ":::~ iso_sigma log 0.01 5 :::: seeds.txt")
    known, asked = plan.levels
    for place in range(known.places):
        for seed in known.seeds:
            start = reaches(place / 100) if place else fails(3, 3)
            assert take_place(sweep, plan, known, place, seed, start) == 0
    decide(sweep, asked.name, 0)
    decision = read_decision(sweep, asked, 0)
    decide(sweep, asked.name, 0)
    assert read_decision(sweep, asked, 0) == decision
    assert [seen.score for seen in decision.seen] == [None, *(i / 100 for i in range(1, 12))]
    assert [chosen.place for chosen in decision.chosen] == list(range(12))
    assert [chosen.setting for chosen in decision.chosen] == list(range(12, 24))
    for chosen in decision.chosen:
        assert chosen.values.keys() == {"sample", "iso_sigma"}
        assert chosen.values["sample"] == chosen.setting
        assert chosen.reason.startswith("tpe") and "12" in chosen.reason
        for seed, run in chosen.runs.items():
            config = read_config(sweep.results.run(run).state.config)
            assert config["seed"] == int(seed)
    assert len({chosen.values["iso_sigma"] for chosen in decision.chosen}) == 12


def test_proposals_are_random_where_no_candidate_has_a_score(sweep):
    plan = planned(sweep, TPE, SIGMAS)
    known, asked = plan.levels
    for place in range(known.places):
        for seed in known.seeds:
            take_place(sweep, plan, known, place, seed, fails(3, 3))
    decide(sweep, asked.name, 0)
    decision = read_decision(sweep, asked, 0)
    assert decision.seen == []
    assert {chosen.reason.startswith("random") for chosen in decision.chosen} == {True}
    other = replace(plan, search=plan.search.model_copy(update={"seed": 1}))
    seen = [(known, seen_in(sweep, known, range(known.places)))]
    assert propose_candidates(plan, asked, seen, sweep.results) == decision
    assert propose_candidates(other, asked, seen, sweep.results) != decision


@pytest.mark.skipif(not has_avx2(), reason="the settings of a CPU without AVX2 are another's")
def test_proposals_are_computed_with_the_settings_of_runs(sweep, monkeypatch):
    planned(sweep, TPE, SIGMAS)
    monkeypatch.delenv("NPY_DISABLE_CPU_FEATURES")
    with refused("NPY_DISABLE_CPU_FEATURES", kind=RuntimeError):  # numpy is already imported
        propose_candidates(read_plan(sweep), read_plan(sweep).levels[1], [], sweep.results)


def test_a_generation_is_decided_from_the_one_before(sweep):
    plan = planned(sweep, {"pbt": {"population": 4, "generations": 2}}, SIGMAS)
    first, second = plan.levels
    for place in range(4):
        for seed in first.seeds:
            take_place(sweep, plan, first, place, seed, fails(3, 3))
    decide(sweep, second.name, 0)
    decision = read_decision(sweep, second, 0)
    assert [chosen.setting for chosen in decision.chosen] == [0, 1, 2, 3]
    assert take_place(sweep, plan, second, 2, "1", reaches(0.5)) == 0  # it is not restarted
    marker = read_sealed(marker_path(sweep, second.name, 2, "1"))
    assert (marker["score"], marker["failed"]) == (None, decision.chosen[2].failed)
    assert not sweep.results.run(marker["run"]).state.metrics.exists()


@pytest.mark.parametrize(
    ("iterations", "traceback", "failed"),
    [
        ((6, 6), None, "ValueError in iteration 7"),
        ((2, 6, 6), None, "ValueError in iteration 7"),
        ((6, 6), "File ...\n  line\nKeyError: 'a'\n", "KeyError in iteration 7"),
    ],
)
def test_a_run_that_fails_twice_in_the_same_way_has_no_score(sweep, iterations, traceback, failed):
    plan = planned(sweep)
    start = fails(*iterations, traceback=traceback)
    assert take_place(sweep, plan, plan.levels[0], 0, "1", start) == 0
    marker = read_sealed(marker_path(sweep, "rung-0", 0, "1"))
    assert (marker["score"], marker["failed"]) == (None, failed)
    take_place(sweep, plan, plan.levels[0], 1, "1", reaches(None))
    marker = read_sealed(marker_path(sweep, "rung-0", 1, "1"))
    assert marker["score"] is None and plan.decider.name in marker["failed"]


def test_a_failure_that_another_start_may_fix_leaves_no_marker(sweep):
    plan = planned(sweep)

    def lost(run: RunDir) -> int:
        raise QdsweepError("no worker is left")

    for start, error in ((lost, QdsweepError), (fails(6, kind=BadInput), BadInput)):
        with pytest.raises(error):
            take_place(sweep, plan, plan.levels[0], 0, "1", start)
    assert take_place(sweep, plan, plan.levels[0], 1, "1", lambda run: 75) == 75
    assert not list(sweep.path.rglob("*-s1.json"))


def metrics_csv(run: RunDir, **columns: list) -> None:
    metrics = Metrics(run.state.metrics, 0)
    for iteration, values in enumerate(zip(*columns.values(), strict=True), start=1):
        metrics.add({"iteration": iteration, **dict(zip(columns, values, strict=True))})
    metrics.close()


def test_a_score_is_the_metric_at_the_first_row_with_the_budget(tmp_path):
    run = Results(tmp_path).run("r")
    run.state.path.mkdir(parents=True)
    scores = [0.25, None, 0.75, math.inf]
    metrics_csv(run, evaluations=[10, 20, 30, 40], norm_qd_score=scores, qd_score=[1, 2, 3, 4])
    score = BY_NAME["norm_qd_score"]
    smaller = replace(BY_NAME["evaluations"], smaller=True)
    at = [score_at(run, score, "iterations", budget) for budget in (1, 2, 3, 4)]
    assert at == [0.25, None, 0.75, None]
    at = [score_at(run, score, "evaluations", budget) for budget in (1, 10, 21, 30)]
    assert at == [0.25, 0.25, 0.75, 0.75]
    assert score_at(run, smaller, "iterations", 2) == -20
    with refused(run.state.metrics, 5, "iterations", run.path):
        score_at(run, score, "iterations", 5)
    write_json(run.state.summary, {"archive": {"cells": 81}})
    assert score_at(run, score, "iterations", 3) == 0.75
    write_json(run.state.summary, {"archive": {"cells": None}})
    assert score_at(run, score, "iterations", 3) == 3
    assert score_at(run, BY_NAME["qd_score"], "iterations", 4) == 4


def test_an_unknown_level_is_refused_with_the_known_ones(sweep):
    plan = planned(sweep)
    assert level_of(plan, "rung-1") is plan.levels[1]
    with refused("s", "'rung-2'", "rung-0, rung-1"):
        level_of(plan, "rung-2")
