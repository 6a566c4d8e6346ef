"""A group has one name and one place in every table, figure and on the page."""

import json
from pathlib import Path

import pandas as pd
from given import again
from looks import data_of

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.methods import confirmation, correction
from qdsweep.analysis.page.report import commands
from qdsweep.analysis.sheet import (
    read_sheet,
)
from qdsweep.analysis.tables.confirmed import write_confirmed
from qdsweep.analysis.tables.corrected import write_corrected
from qdsweep.analysis.tables.published import write_published
from qdsweep.analysis.tables.timing import write_timing

LABELS = {"map_elites": "MAP-Elites", "lp_sphere": "Sphere", "lp_sphere, cma_me": "Ours"}


def write_every_table(results: Path, figures: dict) -> Path:
    """All tables of a sweep with every key: the runs that confirm it are its own."""
    sweep = results / "sweeps" / "tasks"
    plan = json.loads((sweep / "plan.json").read_text())
    where = {"domain": "lp_sphere", "algorithm": "map_elites"}
    value = {"metric": "coverage", "mean": 0.5, "tolerance": 0.1, "source": "a paper"}
    plan |= {"figures": figures, "reevaluate": {"times": 2, "seed": 7}}
    plan |= {"published": [{"where": where, **value}]}
    (sweep / "plan.json").write_text(json.dumps(plan))
    rows = [{**row, "like": row["id"], "group": LABELED[0]} for row in plan["rows"][3:5]]
    rows += [{**row, "like": row["id"], "group": LABELED[1]} for row in plan["rows"][:2]]
    (sweep / "confirm.json").write_text(json.dumps({"rows": rows}))
    for row in plan["rows"]:
        folder = results / "runs" / row["id"]
        summary = json.loads((folder / "summary.json").read_text())
        about = {"id": row["id"], "seed_matters": True, "evaluation_seed": "solution"}
        about |= {"reported": summary, "corrected": summary, "elites": 10}
        (folder / "reevaluated-2-7.json").write_text(json.dumps(about))
    again(results)
    write_timing(sweep, results / "runs")
    write_published(sweep)
    write_corrected(sweep, results / "runs")
    write_confirmed(sweep, results / "runs")
    return sweep


LABELED = ["lp_sphere, cma_me", "lp_sphere, map_elites"]


def test_a_group_has_one_name_and_one_order_in_every_table(results):
    sweep = write_every_table(results, {})
    before = {path: sorted(path.read_text().splitlines()) for path in sweep.rglob("*.csv")}
    order = ["lp_rastrigin, cma_me", "lp_sphere, cma_me"]
    write_every_table(results, {"labels": LABELS, "order": order})
    assert {path: sorted(path.read_text().splitlines()) for path in before} == before
    sheets = [sweep / "table.json", *sweep.glob("tables/*.json")]
    assert len(sheets) == 8
    for path in sheets:
        for suffix in (".json", ".md", ".tex"):
            text = path.with_suffix(suffix).read_text()
            assert "map_elites" not in text and "map\\_elites" not in text, path.with_suffix(suffix)
            assert "lp_sphere" not in text and "lp\\_sphere" not in text, path.with_suffix(suffix)
    expected = ["lp_rastrigin, cma_me", "Ours", "Sphere, MAP-Elites", "lp_rastrigin, MAP-Elites"]
    for name in ("table", "tables/timing", "tables/corrected"):
        sheet = read_sheet(sweep / f"{name}.json")
        assert [row[0].text for row in sheet.rows] == expected, name
    table = read_sheet(sweep / "table.json")
    assert table.columns[:3] == ["group", "domain", "algorithm"]  # "Ours" says not which
    assert [cell.text for cell in table.rows[1][:3]] == ["Ours", "Sphere", "cma_me"]
    higher = [row[:3] for row in read_sheet(sweep / "tables/comparisons.json").rows]
    assert {cell.text for row in higher for cell in row[1:]} == set(expected)
    assert [row[0].text for row in higher] == ["lp_rastrigin", "Sphere"]
    over = read_sheet(sweep / "tables/over_tasks.json")
    assert [row[0].text for row in over.rows] == ["cma_me", "MAP-Elites"]
    (published,) = read_sheet(sweep / "tables/published.json").rows
    assert published[0].text == "Sphere, MAP-Elites"
    confirmed = read_sheet(sweep / "tables/confirmed.json")
    assert [row[0].text for row in confirmed.rows] == ["Ours", "Sphere, MAP-Elites"]
    assert confirmed.columns[-1] == "Rank"


def test_the_page_says_what_held_and_what_else_was_computed(results):
    sweep = write_every_table(results, {"labels": LABELS})
    data = data_of(sweep)
    scores = pd.read_csv(sweep / "tables/confirmed.csv").set_index("group")
    best = scores["unseen_mean"].idxmax()
    said = headline(data)
    assert (
        f" On the unseen seeds 1\u20132, {data.called.label(best)} has a mean normalised QD score"
        in said
    )
    assert f"of {scores.loc[best, 'unseen_mean']:.1f}" in said
    same = best == scores["sweep_mean"].idxmax()
    assert ("stays the best of the 2 winners" if same else "in place of") in said
    assert "map_elites" not in said and "lp_sphere" not in said
    assert said.startswith("12 runs in 4 groups, ")  # of two domains
    sentence, summaries = confirmation(data)
    assert "of each task, 2 in all, were run again with the unseen seeds 1\u20132" in sentence
    assert len(summaries) == 4
    sentence, _ = correction(data)
    assert "2 new evaluations of each (240 evaluations in all" in sentence
    assert "drawn from the seed 7)" in sentence
    assert commands(data) == [
        f"qdsweep {stage} tasks"
        for stage in ("aggregate", "corrected", "winners", "confirmed", "report")
    ]


def test_one_winner_has_no_rank(results):
    sweep = write_every_table(results, {})
    confirm = json.loads((sweep / "confirm.json").read_text())
    (sweep / "confirm.json").write_text(json.dumps({"rows": confirm["rows"][:2]}))
    sheet = write_confirmed(sweep, results / "runs")
    assert "Rank" not in sheet.columns and "Rank" not in sheet.note
    assert [len(row) for row in sheet.rows] == [len(sheet.columns)]
