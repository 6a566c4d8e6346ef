"""What of a search is made again at a start."""

from qdsweep.config.sweep import SweepFile
from qdsweep.planning.start import read_sweep, sweep_of
from qdsweep.records.paths import Results
from qdsweep.records.search import marker_path, write_sealed
from qdsweep.search.places import Places, basis, places_of, spoiled

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
    return settings, places_of(settings, sweep_of(settings, Results(folder)))


def compute(folder, places: Places) -> None:
    """Writes the markers of the first batch, all of which failed: no run has to be there."""
    level = places.levels[0]
    for place, setting in enumerate(places.settings):
        for seed in level.seeds:
            about = {"values": setting.values, "runs": setting.runs, "run": setting.runs[seed]}
            about |= {"unit": places.unit, "budget": level.budget, "failed": "it raised"}
            write_sealed(marker_path(Results(folder).sweep("s"), level.name, place, seed), about)


def test_places_of_other_settings_seeds_or_experiments_are_computed_anew(tmp_path):
    _, places = planned(tmp_path)
    compute(tmp_path, places)
    results = Results(tmp_path)
    assert spoiled("s", places, results) == {}
    _, other = planned(tmp_path, "choice 0.1 0.2 0.5 1 2 8")
    values = [(one.values, other.settings[i].values) for i, one in enumerate(places.settings)]
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
    def proposals(settings: SweepFile, places: Places) -> str:
        return basis(settings, places.levels[1], 0)

    first = proposals(*planned(tmp_path))
    assert proposals(*planned(tmp_path)) == first
    assert proposals(*planned(tmp_path, "choice 0.1 0.2 0.5 1 2 8")) != first
