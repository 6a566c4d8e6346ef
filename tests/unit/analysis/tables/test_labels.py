"""A group has the same name and position in every table and figure and on the page."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from given import again, changed_plan, without_decimals
from looks import data_of
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from refusals import names_all

from qdsweep.analysis.figures.corrected import _scores as draw_scores
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.methods import confirmation, correction
from qdsweep.analysis.page.report import commands
from qdsweep.analysis.selection import cells_of, corrected_per_cell
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.statistics import MEAN_TEXT, half_width
from qdsweep.analysis.tables.confirmed import write_confirmed
from qdsweep.analysis.tables.corrected_scores import write_corrected
from qdsweep.analysis.tables.timing_table import write_timing
from qdsweep.config.sweep import Figures
from qdsweep.features.published.tables import write_tables
from qdsweep.metrics import RANK
from qdsweep.sweep.looks import labels_of

LABELS = {"map_elites": "MAP-Elites", "lp_sphere": "Sphere", "lp_sphere, cma_me": "Ours"}
LABELED = ["lp_sphere, cma_me", "lp_sphere, map_elites"]


def write_every_table(results: Path, figures: dict) -> Path:
    """All tables of a sweep with every key, which is confirmed by its own runs."""
    sweep = results / "sweeps" / "tasks"
    where = {"domain": "lp_sphere", "algorithm": "map_elites"}
    value = {"metric": "coverage", "mean": 0.5, "margin": 0.1, "source": "a paper"}
    with changed_plan(sweep) as plan:
        plan |= {"figures": figures, "reevaluate": {"times": 2, "seed": 7}}
        plan |= {"published": [{"where": where, **value}]}
    rows = [{**row, "like": row["id"], "group": LABELED[0]} for row in plan["rows"][3:5]]
    rows += [{**row, "like": row["id"], "group": LABELED[1]} for row in plan["rows"][:2]]
    (sweep / "confirm.json").write_text(json.dumps({"rows": rows}))
    for row in plan["rows"]:
        folder = results / "runs" / row["id"]
        summary = json.loads((folder / "summary.json").read_text())
        about = {"id": row["id"], "seed_matters": True, "evaluation_seed": "solution"}
        about |= {"reported": summary, "corrected": summary, "elites": 10}
        about["iterations"] = summary["iterations"]
        (folder / "reevaluated-2-7.json").write_text(json.dumps(about))
    again(results)
    write_timing(sweep, results / "runs")
    write_tables(sweep)
    write_corrected(sweep, results / "runs")
    write_confirmed(sweep, results / "runs")
    return sweep


def test_a_group_has_one_name_and_one_order_in_every_table(results, snapshot):
    sweep = write_every_table(results, {})
    before = {path: sorted(path.read_text().splitlines()) for path in sweep.rglob("*.csv")}
    order = ["lp_rastrigin, cma_me", "lp_sphere, cma_me"]
    write_every_table(results, {"labels": LABELS, "order": order})
    assert {path: sorted(path.read_text().splitlines()) for path in before} == before
    lines = []
    for path in [sweep / "table.json", *sorted(sweep.glob("tables/*.json"))]:
        for suffix in (".json", ".md", ".tex"):
            text = path.with_suffix(suffix).read_text().replace("\\_", "_")
            assert "map_elites" not in text and "lp_sphere" not in text, path.with_suffix(suffix)
        lines += ["", path.stem]
        for row in read_sheet(path).rows:
            texts = [cell.text for cell in row[:3]]
            lines.append(" | ".join(text for text in texts if not re.search(r"\d", text)))
    assert "\n".join(lines) == snapshot
    columns = read_sheet(sweep / "table.json").columns
    assert columns[:3] == ["Group", "Domain", "Algorithm"]  # "Ours" does not name them


def test_the_page_says_what_held_and_what_else_was_computed(results, snapshot):
    sweep = write_every_table(results, {"labels": LABELS})
    data = data_of(sweep)
    (score, *_) = pd.read_csv(sweep / "tables/confirmed.csv")["unseen_mean"]
    first, (confirmed, summaries), (corrected, _) = (
        headline(data), confirmation(data), correction(data),
    )  # fmt: skip
    names_all(first, f"{score:.2f}")
    assert without_decimals("\n".join([first, confirmed, corrected])) == snapshot
    assert len(summaries) == 4
    assert commands(data) == [
        f"qdsweep {stage} tasks"
        for stage in ("aggregate", "corrected", "winners", "confirmed", "report")
    ]


def test_corrected_scores_are_divided_alike_in_table_and_figure(results):
    """One group has no cells, and no corrected archives."""
    sweep = write_every_table(results, {})
    plan = json.loads((sweep / "plan.json").read_text())
    for row in plan["rows"]:
        if row["values"] == plan["rows"][0]["values"] | {"seed": row["values"]["seed"]}:
            folder = results / "runs" / row["id"]
            (folder / "reevaluated-2-7.json").unlink()
            path = folder / "metrics.csv"
            metrics = pd.read_csv(path).assign(norm_qd_score=np.nan, coverage=np.nan)
            path.unlink()  # another name of the file in state/
            metrics.to_csv(path, index=False)
    again(results)
    write_corrected(sweep, results / "runs")
    data = data_of(sweep)
    scores = data.stage_table("corrected")
    scores = scores.assign(group=scores["group"].map(data.called.label)).set_index(
        "group", drop=False
    )
    with style():
        figure = draw_scores(data, scores, data.plan.reevaluate).figure
    labels = {ax.get_xlabel() for ax in figure.findobj(Axes)} - {""}
    assert labels == {RANK.label} <= set(read_sheet(sweep / "tables/corrected.json").columns)


def test_corrected_scores_have_the_interval_of_other_tables(results):
    """In the table and as whiskers of the figure."""
    sweep = write_every_table(results, {})
    data = data_of(sweep)
    scores = data.stage_table("corrected")
    shown, _ = corrected_per_cell(scores, cells_of(data.table.assign(group=scores["group"])))
    halves = half_width(shown["qd_score_se"], 3)
    sheet = read_sheet(sweep / "tables/corrected.json")
    cells = [row[sheet.columns.index(RANK.label)].text for row in sheet.rows]
    decimals = len(cells[0].split(".")[-1])
    texts = [float(cell.split(" ± ")[1]) for cell in cells]
    assert texts == pytest.approx(list(halves), abs=0.51 * 10**-decimals)
    assert MEAN_TEXT[1:] in sheet.note
    scores = scores.assign(group=scores["group"].map(data.called.label)).set_index(
        "group", drop=False
    )
    with style():
        figure = draw_scores(data, scores, data.plan.reevaluate).figure
    whiskers = [
        abs(end[0] - start[0]) / 2
        for lines in figure.findobj(LineCollection)
        for start, end in lines.get_segments()
    ]
    assert sorted(whiskers) == pytest.approx(sorted([*halves, *halves]))  # reported and corrected


TITLES = {"map_elites": "MAP-Elites", "cma_me": "CMA-ME"}


def test_an_algorithm_has_the_title_of_its_preset_unless_the_sweep_file_names_it(results):
    sweep = results / "sweeps" / "tasks"
    with changed_plan(sweep) as plan:
        plan |= {"titles": TITLES}
    again(results)
    column = read_sheet(sweep / "table.json").columns.index("Algorithm")
    assert {row[column].text for row in read_sheet(sweep / "table.json").rows} == {*TITLES.values()}
    assert "lp_sphere, CMA-ME" in data_of(sweep).marks.series
    assert set(pd.read_csv(sweep / "table.csv")["algorithm"]) == {*TITLES}
    with changed_plan(sweep) as plan:
        plan |= {"figures": {"labels": {"cma_me": "Ours"}}}
    again(results)
    shown = {row[column].text for row in read_sheet(sweep / "table.json").rows}
    assert shown == {"MAP-Elites", "Ours"}


@pytest.mark.parametrize("title", ["$x_1$", "line\nbreak", "_hidden", "Taken", "b"])
def test_a_title_that_cannot_be_a_label_is_left_out(title):
    labels = {"c": "Taken"}
    assert labels_of(Figures(labels=labels), {"a": title, "b": "B"}) == {"b": "B", **labels}
