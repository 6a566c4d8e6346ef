"""Learning curves of learners show their return over their budget of steps."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from given import changed_plan
from inventing import BATCH, ITERATIONS, SEEDS, make_run, read_captions, write_plan
from refusals import names_all

from qdsweep.analysis.curves import View, curve_lines, is_defined, page_views
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.page.interactive import _learning_curves
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.metrics import CORE_SECONDS, RETURN, STEPS, WALL_TIME

# Environment steps per iteration. Learners' episodes become longer, differently for each seed.
STEPS_OF_PPO = {seed: 10 * np.arange(1, ITERATIONS + 1) ** 2 + 50 * seed for seed in SEEDS}
BUDGET = 3000


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """`ppo` has a return, which is a hundredth of its steps, and `elites` has none."""
    results = tmp_path_factory.mktemp("results")
    rows = []
    for name in ("ppo", "elites"):
        for seed in SEEDS:
            run, _ = make_run(results / "runs", name, seed)
            path = results / "runs" / run / "metrics.csv"
            metrics = pd.read_csv(path)
            metrics["steps"], metrics["return"] = 100 * metrics["iteration"], np.nan
            if name == "ppo":
                metrics["steps"] = STEPS_OF_PPO[seed]
                metrics["return"] = metrics["steps"] / 100
            metrics.to_csv(path, index=False)
            rows.append(({"algorithm": name, "seed": seed}, run, None, None))
    folder = write_plan(results, "rl", ["algorithm", "seed"], rows)
    with changed_plan(folder) as plan:
        for row in plan["rows"]:
            row["steps"] = BUDGET
    aggregate(folder, results / "runs")
    return folder


def test_runs_are_compared_at_equal_steps_where_these_are_the_budget(sweep):
    curves = pd.read_csv(sweep / "curves.csv")
    ppo = curves[curves["algorithm"] == "ppo"]
    grid = ppo["steps_mean"].to_numpy()
    runs = STEPS_OF_PPO.values()
    assert grid[-1] == min(steps[np.searchsorted(steps, BUDGET)] for steps in runs)
    at = [np.searchsorted(steps, grid, side="right") - 1 for steps in runs]
    returns = [steps[rows] / 100 for steps, rows in zip(runs, at, strict=True)]
    np.testing.assert_allclose(ppo["return_mean"], np.mean(returns, axis=0))
    np.testing.assert_allclose(ppo["evaluations"], BATCH * (1 + np.mean(at, axis=0)))
    assert curves.loc[curves["algorithm"] == "elites", "return_mean"].isna().all()


def test_the_return_is_drawn_over_steps_wall_time_and_core_seconds(sweep, snapshot):
    tables = read_tables(sweep)
    for over in (STEPS, WALL_TIME, CORE_SECONDS):
        (view,) = [
            view for view in page_views(tables) if (view.metric, view.over) == (RETURN, over)
        ]
        ppo, elites = curve_lines(tables, ["ppo", "elites"], view)
        assert is_defined([ppo]) and not is_defined([elites])
    curves = pd.read_csv(sweep / "curves.csv")
    np.testing.assert_allclose(curves["core_seconds_mean"], 2 * curves["seconds_mean"])  # 2 workers
    views, _ = _learning_curves(tables, ["ppo", "elites"])
    assert "\n".join([learning_curves(tables).caption, *views]) == snapshot


def test_the_page_opens_on_the_return_over_steps_if_it_ranks(sweep):
    tables = read_tables(sweep)
    tables = dataclasses.replace(tables, plan=dataclasses.replace(tables.plan, rank=RETURN))
    assert page_views(tables)[0] == View(RETURN, STEPS)
    views, _ = _learning_curves(tables, ["ppo", "elites"])
    assert next(iter(views)) == "Return over environment steps"


def test_the_return_stays_until_the_next_measurement(sweep):
    tables = read_tables(sweep)
    styles: dict[bool, set[str]] = {True: set(), False: set()}
    for ax in learning_curves(tables).figure.axes:
        styles[ax.get_ylabel() == "Return"] |= {line.get_drawstyle() for line in ax.lines}
    assert styles == {True: {"steps-post"}, False: {"default"}}
    views, _ = _learning_curves(tables, ["ppo", "elites"])
    stairs = {name.partition(" over ")[0] for name, drawn in views.items() if '"hv"' in drawn}
    assert stairs == {"Return"}


def test_tables_have_the_return_of_those_that_have_one(sweep):
    table = pd.read_csv(sweep / "table.csv", index_col="algorithm")
    last = [steps[np.searchsorted(steps, BUDGET)] / 100 for steps in STEPS_OF_PPO.values()]
    assert table.loc["ppo", "return_mean"] == pytest.approx(np.mean(last))
    assert table.loc["elites", "return_n"] == 0
    sheet = read_sheet(sweep / "table.json")
    place = sheet.columns.index("Return")
    assert not any(letter.isdigit() for letter in sheet.rows[1][place].text)
    names_all(sheet.note, "3,000", "3,223")


def test_a_sweep_without_learners_has_no_returns(main):
    assert "Return" not in read_sheet(main / "table.json").columns
    assert "return over" not in read_captions(main)["learning_curves"]
    assert not re.search(r"Return over|>Return<", (main / "report.html").read_text())
