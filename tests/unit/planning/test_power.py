"""Which lead a sweep can see, and which sweeps may be compared as they ask."""

import math

import numpy as np
import pytest
from refusals import refused
from scipy import optimize, stats
from support import TINY

from qdsweep.analysis.tables.possible_best import beaten, one_sided_level
from qdsweep.config.sweep import SweepFile
from qdsweep.planning.checks import check_sweep
from qdsweep.planning.power import POWER, least_lead, power_lines
from qdsweep.sweep.runs import table_of_runs


@pytest.mark.parametrize("seeds", [5, 6, 8, 10, 20, 50])
@pytest.mark.parametrize("paired", [False, True])
def test_the_lead_is_that_of_the_noncentral_t(seeds, paired):
    freedom = seeds - 1 if paired else 2 * seeds - 2
    error = math.sqrt((1 if paired else 2) / seeds)
    for groups in (2, 3, 8, 100):
        for tasks in (1, 4):
            limit = stats.t.isf(0.05 / groups / tasks, freedom)
            exact = optimize.brentq(
                lambda lead, limit=limit: stats.nct.sf(limit, freedom, lead / error) - POWER, 0, 300
            )
            lead = least_lead(seeds, groups, tasks, paired=paired)
            assert lead == pytest.approx(exact, rel=0.02)


def test_the_rule_finds_this_lead_as_often_as_it_is_stated():
    rng = np.random.default_rng(1)
    for seeds, groups in ((5, 2), (10, 4)):
        scores = rng.normal(size=(4000, 2, seeds))
        scores[:, 0] += least_lead(seeds, groups, 1)
        counts = np.full((4000, 2), seeds)
        summaries = np.stack([scores.mean(-1), scores.std(-1, ddof=1), counts], axis=-1)
        found = beaten(summaries, one_sided_level(groups, 1))[:, 1].mean()
        assert POWER - 0.05 <= found <= POWER + 0.02  # Welch's degrees of freedom are fewer


def sweep_of(text, **keys):
    settings = SweepFile(name="tiny", experiment=TINY, sweep=text, **keys)
    return settings, table_of_runs(settings.experiment, settings.sweep)


def test_a_plan_names_the_lead_that_the_page_can_show(snapshot):
    texts = {
        text: list(power_lines(*sweep_of(text)))
        for text in (
            "::: batch_size 4 8 ::: seed 1 2 3 4 5",
            "::: batch_size 4 8 16 ::: seed 1 2 3 4 5 6 7 8 9 10",
            "::: batch_size 4 8 ::: seed 1 2 3",
            "::: seed 1 2 3 4 5",
            "::: domain lp_sphere lp_rastrigin ::: batch_size 4 8 ::: seed 1 2 3 4 5",
        )
    }
    paired = sweep_of("::: batch_size 4 8 ::: seed 1 2 3 4 5", tests="paired")
    assert texts | {"paired": list(power_lines(*paired))} == snapshot


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        ("::: batch_size 4 8 ::: seed 1 2", {}, ["evaluation_seed = solution", "fixed", "welch"]),
        (
            "::: domain.evaluation_seed fixed iteration ::: seed 1 2",
            {},
            ["evaluation_seed = iteration"],
        ),
        (
            "::: domain.evaluation_seed fixed ::: batch_size 4 4 8 :::+ seed 1 2 1",
            {},
            ["the same seeds", "1\u20132"],
        ),
        (
            "::: domain.evaluation_seed 7 ::: batch_size 4 8 ::: seed 1 2",
            {"imported": ["theirs.yaml"]},
            ["imported"],
        ),
    ],
)
def test_runs_of_one_seed_must_be_one_instance(text, keys, words):
    settings, sweep = sweep_of(text, tests="paired", **keys)
    with refused("tests = paired", *words):
        check_sweep(settings, sweep, {})
    welch, _ = sweep_of(text, **keys)
    check_sweep(welch, sweep, {})


def test_a_domain_without_steps_is_not_compared_at_equal_steps():
    settings, sweep = sweep_of("::: batch_size 4 8", compare_at="steps")
    with refused("compare_at = steps", "evaluations"):
        check_sweep(settings, sweep, {})
    check_sweep(settings.model_copy(update={"compare_at": "evaluations"}), sweep, {})


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        ("::: evaluations 200 400", {}, ("evaluations",)),
        ("::: batch_size 4 8", {"reevaluate": {"times": 2}}, ("reevaluate",)),
    ],
)
def test_an_equal_budget_contradicts_swept_budgets_and_final_archives(text, keys, words):
    settings, sweep = sweep_of(text, compare_at="evaluations", **keys)
    with refused("compare_at = evaluations", *words):
        check_sweep(settings, sweep, {})


@pytest.mark.parametrize("policy", ["fixed", "7"])
def test_a_sweep_of_instances_may_be_paired(policy):
    text = f"::: domain.evaluation_seed {policy} ::: batch_size 4 8 ::: seed 1 2"
    settings, sweep = sweep_of(text, tests="paired")
    check_sweep(settings, sweep, {})
    assert settings.reporting["tests"] == "paired"
    assert "tests" not in sweep_of(text)[0].reporting
