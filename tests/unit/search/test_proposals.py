"""New settings of a search: only such as can be computed."""

from dataclasses import replace

from qdsweep.planning.start import plan_data, read_sweep, sweep_of
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_config
from qdsweep.records.search import Seen
from qdsweep.search.decide import propose_candidates
from qdsweep.search.plan import search_plan

EXPERIMENT = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [9, 9]}}


def test_values_that_do_not_go_together_are_not_proposed(tmp_path, monkeypatch):
    monkeypatch.setattr("qdsweep.search.decide.apply_baseline", lambda baseline: None)
    sweep = ":::~ archive.dims choice [9,9] [5,5] :::~ batch_size int 2 40 ::: seed 1 2"
    drawn = {"sampling": "tpe", "samples": 24, "batches": 2}
    data = {"name": "s", "experiment": EXPERIMENT | {"evaluations": 900}, "sweep": sweep}
    settings = read_sweep({**data, "search": drawn})
    table = sweep_of(settings, Results(tmp_path))
    search = search_plan(settings, table)
    plan = Plan.of(plan_data(settings, table, search))
    plan = replace(plan, sweep=sweep.replace("[5,5]", "[5,5] [5,5,5]"))  # of two measures
    first, asked = search.levels
    seen = [
        Seen(i, i, one.values, float(one.values["batch_size"]))
        for i, one in enumerate(search.candidates)
    ]
    found = propose_candidates(plan, asked, [(first, seen)], Results(tmp_path))
    assert found.seen == seen
    assert {one.reason for one in found.chosen} == {"tpe, from 12 settings"}
    for number, one in enumerate(found.chosen, start=12):
        assert one.setting == one.values["sample"] == number
        assert one.values["archive.dims"] != [5, 5, 5]
        assert set(one.runs) == {"1", "2"}
        for seed, run in one.runs.items():
            config = read_config(Results(tmp_path).run(run).state.config)
            assert config["seed"] == int(seed)
            assert config["batch_size"] == one.values["batch_size"]
