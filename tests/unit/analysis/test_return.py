"""Learning curves of learners show their returns over their budget of steps."""

import re

import numpy as np
import pandas as pd
import pytest
from given import changed_plan
from inventing import BATCH, ITERATIONS, SEEDS, make_run, read_captions, write_plan
from looks import data_of
from refusals import names_all

from qdsweep.analysis.curves import View, curve_lines, is_defined, page_views
from qdsweep.analysis.figures.archive_pictures import overview
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.interactive import _learning_curves
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.page.report import run_sheet
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.metrics import CORE_SECONDS, EXPLORING_RETURN, RETURN, RETURNS, STEPS, WALL_TIME

# Environment steps per iteration. Learners' episodes become longer, differently for each seed.
STEPS_OF_PPO = {seed: 10 * np.arange(1, ITERATIONS + 1) ** 2 + 50 * seed for seed in SEEDS}
BUDGET = 3000
OVER = STEPS, WALL_TIME, CORE_SECONDS
# Learner -> the rows of metrics.csv that have an exploring return, for each seed. None: the file
# of an earlier release, without that column.
WHOLE = dict.fromkeys(SEEDS, slice(None))
EARLIER = dict.fromkeys(SEEDS)
RESUMED = {**WHOLE, 1: slice(9, None)}
MIXED = {**WHOLE, 1: None}


def write_sweep(results, learners, band="interval"):
    """Learners have a greedy return of a hundredth of their steps, and half of it exploring.

    The group `elites` has none.
    """
    rows = []
    for name in (*learners, "elites"):
        for seed in SEEDS:
            run, _ = make_run(results / "runs", name, seed)
            path = results / "runs" / run / "metrics.csv"
            metrics = pd.read_csv(path)
            metrics["steps"], metrics["return"] = 100 * metrics["iteration"], np.nan
            if name in learners:
                metrics["steps"] = STEPS_OF_PPO[seed]
                metrics["return"] = metrics["steps"] / 100
                if known := learners[name][seed]:
                    metrics["exploring_return"] = (metrics["return"] / 2)[known]
            metrics.to_csv(path, index=False)
            rows.append(({"algorithm": name, "seed": seed}, run, None, None))
    folder = write_plan(results, "rl", ["algorithm", "seed"], rows)
    with changed_plan(folder) as plan:
        plan["figures"] = {"band": band}
        for row in plan["rows"]:
            row["steps"] = BUDGET
    return ranked(folder, RETURN.name)


def ranked(folder, rank):
    with changed_plan(folder) as plan:
        plan["rank"] = rank
    aggregate(folder, folder.parents[1] / "runs")
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return write_sweep(tmp_path_factory.mktemp("results"), {"ppo": WHOLE})


@pytest.fixture
def sweep(results):
    return ranked(results, "norm_qd_score")


@pytest.fixture
def by_return(results):
    return ranked(results, RETURN.name)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Of `older`, no run has an exploring return; of `both`, two of three have one."""
    learners = {"ppo": WHOLE, "older": EARLIER, "both": MIXED, "resumed": RESUMED}
    return write_sweep(tmp_path_factory.mktemp("mixed"), learners, "seeds")


def test_runs_are_compared_at_equal_steps_where_these_are_the_budget(sweep):
    curves = pd.read_csv(sweep / "curves.csv")
    ppo = curves[curves["algorithm"] == "ppo"]
    grid = ppo["steps_mean"].to_numpy()
    runs = STEPS_OF_PPO.values()
    assert grid[-1] == min(steps[np.searchsorted(steps, BUDGET)] for steps in runs)
    at = [np.searchsorted(steps, grid, side="right") - 1 for steps in runs]
    returns = [steps[rows] / 100 for steps, rows in zip(runs, at, strict=True)]
    np.testing.assert_allclose(ppo["return_mean"], np.mean(returns, axis=0))
    np.testing.assert_allclose(ppo["exploring_return_mean"], np.mean(returns, axis=0) / 2)
    np.testing.assert_allclose(ppo["evaluations"], BATCH * (1 + np.mean(at, axis=0)))
    for metric in RETURNS:
        assert curves.loc[curves["algorithm"] == "elites", f"{metric.name}_mean"].isna().all()


def test_the_returns_are_drawn_over_steps_wall_time_and_core_seconds(sweep, snapshot):
    tables = read_tables(sweep)
    for wanted in (View(metric, over) for metric in RETURNS for over in OVER):
        (view,) = [view for view in page_views(tables) if view == wanted]
        ppo, elites = curve_lines(tables, ["ppo", "elites"], view)
        assert is_defined([ppo]) and not is_defined([elites])
    curves = pd.read_csv(sweep / "curves.csv")
    np.testing.assert_allclose(curves["core_seconds_mean"], 2 * curves["seconds_mean"])  # 2 workers
    views, caption = _learning_curves(tables, ["ppo", "elites"])
    assert "\n".join([learning_curves(tables).caption, *views, caption]) == snapshot


@pytest.mark.parametrize("rank", RETURNS, ids=lambda metric: metric.name)
def test_where_a_return_ranks_the_exploring_one_is_drawn_first(results, rank):
    """Greedy returns may fall to 0 by a policy that never starts."""
    data = data_of(ranked(results, rank.name))
    assert data.rank is data.ranked is rank and data.drawn is EXPLORING_RETURN
    assert page_views(data)[0] == View(EXPLORING_RETURN, STEPS)
    views, _ = _learning_curves(data, ["ppo", "elites"])
    assert next(iter(views)) == "Exploring return over environment steps"
    printed = [ax.get_ylabel() for ax in learning_curves(data).figure.axes]
    assert printed[-3:] == [metric.heading for metric in (*RETURNS, EXPLORING_RETURN)]
    first = overview(data)
    assert first.figure.axes[-1].get_ylabel() == EXPLORING_RETURN.heading
    assert f"median {rank.phrase}" in first.caption


def test_every_text_says_which_return_it_means(by_return):
    data = data_of(by_return)
    page, method = _learning_curves(data, ["ppo", "elites"])[1], methods(data, set()).text
    texts = [learning_curves(data).caption, page, method, read_sheet(by_return / "table.json").note]
    for text in texts:
        names_all(text, *(metric.about for metric in RETURNS))
    assert f"ranked by the {RETURN.phrase}." in method
    assert EXPLORING_RETURN.about in overview(data).caption
    for text in (*texts, headline(data), overview(data).caption):
        assert not re.search(r"(?<!greedy )(?<!exploring )return\b", text, re.IGNORECASE), text
    assert {metric.heading for metric in RETURNS} <= {*run_sheet(data).columns}


def test_the_greedy_return_stays_until_the_next_measurement(sweep):
    tables = read_tables(sweep)
    styles: dict[bool, set[str]] = {True: set(), False: set()}
    for ax in learning_curves(tables).figure.axes:
        styles[ax.get_ylabel() == "Greedy return"] |= {line.get_drawstyle() for line in ax.lines}
    assert styles == {True: {"steps-post"}, False: {"default"}}
    views, _ = _learning_curves(tables, ["ppo", "elites"])
    stairs = {name.partition(" over ")[0] for name, drawn in views.items() if '"hv"' in drawn}
    assert stairs == {"Greedy return"}


def test_tables_have_the_returns_of_those_that_have_some(sweep):
    table = pd.read_csv(sweep / "table.csv", index_col="algorithm")
    last = [steps[np.searchsorted(steps, BUDGET)] / 100 for steps in STEPS_OF_PPO.values()]
    assert table.loc["ppo", "return_mean"] == pytest.approx(np.mean(last))
    assert table.loc["ppo", "exploring_return_mean"] == pytest.approx(np.mean(last) / 2)
    sheet = read_sheet(sweep / "table.json")
    for metric in RETURNS:
        assert table.loc["elites", f"{metric.name}_n"] == 0
        place = sheet.columns.index(metric.heading)
        assert not any(letter.isdigit() for letter in sheet.rows[1][place].text)
    names_all(sheet.note, "3,000", "3,223")


def test_runs_of_earlier_releases_have_no_exploring_return(mixed):
    """Their groups keep the greedy one, which is then drawn where it ranks."""
    data = data_of(ranked(mixed, RETURN.name))
    table = data.table.set_index("group")
    assert table["return_n"].to_dict() == {name: 3 * (name != "elites") for name in table.index}
    known = {"ppo": 3, "older": 0, "both": 2, "resumed": 3, "elites": 0}
    assert table["exploring_return_n"].to_dict() == known
    assert "8 of 12 runs" in read_sheet(mixed / "table.json").note
    assert data.drawn is RETURN
    exploring, greedy = (
        {line.group: line for line in curve_lines(data, list(known), View(metric, STEPS))}
        for metric in RETURNS
    )
    drawn = {name: np.isfinite(line.band.middle) for name, line in exploring.items()}
    assert drawn["ppo"].all() and not any(drawn[name].any() for name in ("older", "both"))
    assert not drawn["resumed"][0] and drawn["resumed"][-1], "from its resumption on"
    assert all(np.isfinite(line.band.middle).all() for name, line in greedy.items() if known[name])
    summary = data.summary.set_index("id")["exploring_return"]
    assert summary.isna().sum() == 3 + 1 + 3
    names_all(learning_curves(data).caption, *(metric.about for metric in RETURNS))
    assert f"mean {RETURN.phrase}" in headline(data)


def test_groups_without_an_exploring_return_rank_last_by_it(mixed):
    data = data_of(ranked(mixed, EXPLORING_RETURN.name))
    assert data.best([*data.series], 3) == ["ppo", "both", "resumed"]
    assert data.drawn is EXPLORING_RETURN
    overview(data), learning_curves(data), methods(data, set())
    assert f"mean {EXPLORING_RETURN.phrase}" in headline(data)


def test_tables_of_an_earlier_release_are_drawn_as_they_are(mixed):
    """Each table lacks the column, also the one of single seeds."""
    ranked(mixed, RETURN.name)
    for path in mixed.glob("*.csv"):
        table = pd.read_csv(path)
        table.drop(columns=[*table.filter(like="exploring")]).to_csv(path, index=False)
    data = data_of(mixed)
    assert data.seed_curves is not None and data.drawn is RETURN
    views, caption = _learning_curves(data, [*data.series])
    for text in (*views, caption, learning_curves(data).caption, overview(data).caption):
        assert EXPLORING_RETURN.phrase not in text.lower()


def test_a_sweep_without_learners_has_no_returns(main):
    for metric in RETURNS:
        assert metric.heading not in read_sheet(main / "table.json").columns
    assert "return over" not in read_captions(main)["learning_curves"]
    assert not re.search(r"return over|>\w+ return<", (main / "report.html").read_text())
