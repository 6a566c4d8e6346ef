"""What of a search is made again at a start."""

from qdsweep.config.sweep import SweepFile
from qdsweep.planning.start import read_sweep, sweep_of
from qdsweep.records.paths import Results
from qdsweep.records.search import marker_path, write_sealed
from qdsweep.search.plan import SearchPlan, basis, search_plan, spoiled

EXPERIMENT = {"domain": "lp_sphere", "algorithm": "cma_me", "archive": {"dims": [9, 9]}}
TPE = {"sampling": "tpe", "samples": 8, "batches": 2}


def planned(folder, sigma0="choice 0.1 0.2 0.5 1 2 4", seeds="1 2", **changes):
    sweep = f":::~ sigma0 {sigma0} :::~ batch_size int 12 40 ::: seed {seeds}"
    data = {
        "name": "s",
        "experiment": EXPERIMENT | {"evaluations": 900} | changes,
        "sweep": sweep,
        "search": TPE,
    }
    settings = read_sweep(data)
    return settings, search_plan(settings, sweep_of(settings, Results(folder)))


def compute(folder, plan: SearchPlan) -> None:
    """Writes the markers of the first batch, all of which failed: no run has to be there."""
    level = plan.levels[0]
    for place, candidate in enumerate(plan.candidates):
        for seed in level.seeds:
            about = {**candidate._asdict(), "run": candidate.runs[seed]}
            about |= {"unit": plan.unit, "budget": level.budget, "failed": "it raised"}
            write_sealed(marker_path(Results(folder).sweep("s"), level.name, place, seed), about)


def test_places_of_other_settings_seeds_or_experiments_are_computed_anew(tmp_path):
    _, plan = planned(tmp_path)
    compute(tmp_path, plan)
    results = Results(tmp_path)
    assert spoiled("s", plan, results) == {}
    _, other = planned(tmp_path, "choice 0.1 0.2 0.5 1 2 8")
    values = [(one.values, other.candidates[i].values) for i, one in enumerate(plan.candidates)]
    changed = [i for i, (before, now) in enumerate(values) if before != now]
    assert 0 < len(changed) < 4
    found = spoiled("s", other, results)
    assert {path.rsplit("/", 1)[1] for path in found} == {
        f"{i}-s{seed}.json" for i in changed for seed in (1, 2)
    }
    for _, other in (planned(tmp_path, seeds="1 2 3"), planned(tmp_path, num_emitters=2)):
        assert len(spoiled("s", other, results)) == 8
        assert set(spoiled("s", other, results).values()) == {
            "the sweep has other values or seeds now"
        }


def test_proposals_are_made_again_where_other_values_can_be_drawn(tmp_path):
    def proposals(settings: SweepFile, plan: SearchPlan) -> str:
        return basis(settings, plan.levels[1], 0)

    first = proposals(*planned(tmp_path))
    assert proposals(*planned(tmp_path)) == first
    assert proposals(*planned(tmp_path, "choice 0.1 0.2 0.5 1 2 8")) != first
