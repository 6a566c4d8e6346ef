"""The best objective is called the best ever where an archive may lose its best elite."""

import json

import numpy as np
import pytest
from in_process import compute_sweep
from looks import data_of
from results import read_json
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.sheet import read_sheet
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.experiment.run_log import Progress
from qdsweep.features.live.app import score_heading
from qdsweep.features.live.follow import Follow
from qdsweep.records.plan import Plan
from qdsweep.sweep.runs import table_of_runs

RATES = [{}, {"learning_rate": 1.0}, {"learning_rate": 0.1}, {"learning_rate": 0.0}]
KINDS = {
    f"{kind} {' '.join(map(str, more.values()))}".strip(): {"type": kind, **more}
    for kind, model in ARCHIVES.items()
    for more in (RATES if "learning_rate" in model.model_fields else [{}])
}
KINDS["proximity with competition"] = {"type": "proximity", "local_competition": True}
EMITTERS = [{"type": "gaussian"}]


def composed(archive, **changes):
    """Returns an experiment whose results are those of an archive."""
    algorithm = {"archive": archive, "emitters": EMITTERS, "result_archive": False}
    size = {"cells": 30} if archive["type"] in ("cvt", "dns") else {"dims": [5, 5]}
    return compose({**TINY, "algorithm": algorithm, "archive": size, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_keeps_its_best_elite_exactly_where_its_model_says_so(kind, tmp_path):
    experiment = composed(KINDS[kind])
    archive = make_algorithm(experiment, make_domain(experiment.domain), tmp_path).archive
    rng, has_lost = np.random.default_rng(0), False
    span = np.array(list(make_domain(experiment.domain).measures.values())).T
    for _ in range(40):
        solutions, measures = rng.normal(size=(10, 10)), rng.uniform(*span, (10, 2))
        fields = {"evaluation_seed": np.zeros(10, np.uint32)}
        own = archive.ribs_archive
        own.add(solutions, rng.normal(size=10), measures, **fields)
        has_lost |= archive.metrics()["obj_max"] > archive.rows()["objective"].max()
    assert has_lost is not experiment.keeps_best


def test_a_result_archive_keeps_it_and_a_schedule_may_not():
    mae = compose(TINY)
    assert mae.algorithm.archive.learning_rate < 1 and mae.keeps_best
    elitist = {"type": "grid", "learning_rate": 1.0}
    assert composed(elitist).keeps_best
    later = [{"at": 3, "set": {"algorithm.archive.learning_rate": 0.5}}]
    assert not composed(elitist, schedule=later).keeps_best


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """CMA-MAE with and without its result archive."""
    folder = tmp_path_factory.mktemp("best") / "results"
    short = {**TINY, "iterations": 4}
    return {
        ever: compute_sweep(
            folder,
            short | {"algorithm": {"preset": "cma_mae", "result_archive": not ever}},
            "::: sigma0 0.2 0.5 ::: seed 1 2",
            name="ever" if ever else "plain",
            rank="obj_max",
        )
        for ever in (True, False)
    }


@pytest.mark.parametrize("ever", [True, False])
def test_every_heading_says_so(swept, ever):
    sweep = swept[ever]
    heading = "Best objective ever" if ever else "Best objective"
    assert heading in read_sheet(sweep / "table.json").columns
    assert ("best_ever" in read_json(sweep / "plan.json")) is ever, "other plans stay as they are"
    data = data_of(sweep)
    texts = headline(data), methods(data, set()).text
    assert f"mean {heading.lower()}" in texts[0], "it ranks"
    assert f"and the {heading.lower()}" in texts[1]
    with style():
        figure = learning_curves(data).figure
    assert heading in [ax.get_ylabel() for ax in figure.axes]
    follow = Follow(sweep.parent.parent, sweep.name)
    follow.look(1.0)
    (shown,) = {run.metric.label for run in follow.runs.values()}
    assert shown == heading
    assert score_heading(data.rank) == ("BEST EVER" if ever else "OBJECTIVE")


def test_the_log_of_a_run_says_so(tmp_path):
    row = {"iteration": 1, "evaluations": 8, "obj_max": 2.5}
    for ever, text in ((True, "best objective ever 2.5"), (False, "best objective 2.5")):
        progress = Progress({"iterations": 9}, 0, tmp_path, bar=False, best_ever=ever)
        assert text in progress.line(row)


def test_sweeps_as_one_say_so():
    made = table_of_runs({**TINY, "algorithm": "map_elites"}, "::: seed 1")
    plan = made.plan(name="s", experiment="tiny", sweep="")
    assert "best_ever" not in plan
    labels = {
        ever: {
            m.name: m.label
            for m in Plan.of(json.loads(json.dumps(plan | {"best_ever": ever}))).metrics
        }
        for ever in (True, False)
    }
    assert labels[True]["obj_max"] != labels[False]["obj_max"]
    assert labels[True].keys() == labels[False].keys()
