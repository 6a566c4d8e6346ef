"""Where evaluations depend on their seed, groups are ranked by what archives deliver, or not."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from given import changed_plan, make_sweep
from looks import data_of
from refusals import names_all

from qdsweep import load_sweep
from qdsweep.analysis.figures.heatmap import objective_label
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.noise import DELIVERED_TEXT, noise_text, reported_text
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.interactive import interactive_figures
from qdsweep.analysis.page.methods import _figures_of_merit
from qdsweep.analysis.page.report import run_sheet
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.corrected_scores import _convergence
from qdsweep.config.sweep import Reevaluate
from qdsweep.metrics import OF_REEVALUATION, RESULTS
from qdsweep.runs.load import Run

# The reported scores of two groups, and what their elites deliver: the order is reversed.
REPORTED = {"kept": [0.90, 0.91, 0.92, 0.93, 0.94], "again": [0.80, 0.81, 0.82, 0.83, 0.84]}
DELIVERED = {"kept": [0.40, 0.41, 0.42, 0.43, 0.44], "again": [0.50, 0.51, 0.52, 0.53, 0.54]}
FOUND = {"stochastic": True, "evaluation_seed": "solution"}
NOT_RANKED, NOT_TESTED = "Groups are not ranked", "so groups are not tested"


def make(results: Path, again: Reevaluate | None = None, *, files: bool = True, **keys) -> Path:
    """Returns a sweep of runs with these scores, with its tables.

    Args:
        results: The folder results/.
        again: The key `reevaluate` of the sweep.
        files: Whether its elites were evaluated again.
        keys: `stochastic` and `evaluation_seed` of each run; further ones of its plan.
    """
    stochastic, policy = (keys.pop(name, FOUND[name]) for name in ("stochastic", "evaluation_seed"))
    sweep = make_sweep(results, REPORTED)
    with changed_plan(sweep) as plan:
        plan |= keys
        if again:
            plan["reevaluate"] = again.model_dump()
    for group, scores in DELIVERED.items():
        for seed, score in enumerate(scores, start=1):
            run = results / "runs" / f"{group}-s{seed}"
            about = json.loads((run / "summary.json").read_text())
            del about["stochastic"]
            about |= {} if stochastic is None else {"stochastic": stochastic}
            (run / "summary.json").write_text(json.dumps(about))
            (run / "config.yaml").write_text(
                f"domain: {{name: sphere, type: 'a:B', evaluation_seed: {policy}}}\n"
            )
            if again and files:
                evaluated_again(run, again, score)
    aggregate(sweep, results / "runs")
    return sweep


def evaluated_again(run: Path, again: Reevaluate, score: float, iterations: int = 3) -> None:
    scores = {"qd_score": 100 * score, "norm_qd_score": score}
    about = {"iterations": iterations, "delivered": scores, "corrected": scores}
    about |= {"objective_loss": 0.1, "hit_rate": 0.5}
    (run / f"{again.stem}.json").write_text(json.dumps(about))


def bold_and_marked(sweep: Path) -> tuple[set[str], set[str]]:
    """Returns the headings of the columns of the table with a bold cell, and with a mark."""
    sheet = read_sheet(sweep / "table.json")
    cells = [(head, cell) for row in sheet.rows for head, cell in zip(sheet.columns, row)]  # noqa: B905
    return {head for head, cell in cells if cell.bold}, {head for head, c in cells if "†" in c.text}


def pairs_of(sweep: Path) -> pd.DataFrame:
    return pd.read_csv(sweep / "tables/comparisons.csv")


def test_without_re_evaluation_nothing_is_ranked_and_the_remedy_has_its_cost(tmp_path):
    sweep = make(tmp_path)
    assert bold_and_marked(sweep) == (set(), set())
    assert pairs_of(sweep).empty
    data = data_of(sweep)
    text = headline(data)
    # 10 runs of 3 elites and 30 evaluations.
    names_all(
        text, NOT_RANKED, "`reevaluate: {times: 10}`", "(300 evaluations, 100 % of the sweep)"
    )
    assert "highest" not in text and "significant" not in text
    names_all(read_sheet(sweep / "table.json").note, NOT_RANKED)
    names_all(read_sheet(sweep / "tables/comparisons.json").note, "depend on their seed")
    for columns in (read_sheet(sweep / "table.json").columns, run_sheet(data).columns):
        assert "QD score / cells, as reported" in columns
        assert not {"Best objective", "QD score / cells"} & {*columns}
    assert "obj_max" not in [metric.name for metric in data.curve_metrics]
    assert list(load_sweep("given", tmp_path)) == ["algorithm", "seed", "id", *RESULTS, "group"]


def test_with_it_the_delivered_score_ranks_is_tested_and_has_the_headline(tmp_path):
    sweep = make(tmp_path, Reevaluate(times=4))
    only = {"Delivered QD score / cells"}
    assert bold_and_marked(sweep) == (only, only)
    (pair,) = pairs_of(sweep).to_dict("records")
    assert (pair["higher"], pair["metric"]) == ("again", "norm_delivered_qd_score")
    text = headline(data_of(sweep))
    names_all(text, "highest mean delivered QD score per cell is that of again (0.52")
    names_all(text, "significantly higher than that of kept", "Welch", DELIVERED_TEXT)
    table = load_sweep("given", tmp_path)
    assert list(table) == ["algorithm", "seed", "id", *RESULTS, *OF_REEVALUATION, "group"]
    expected = [score for scores in DELIVERED.values() for score in scores]
    assert table["norm_delivered_qd_score"].tolist() == expected
    np.testing.assert_allclose(table["delivered_qd_score"], 100 * np.array(expected))
    # The objective range is 0 to 2.
    np.testing.assert_allclose(table["delivered_qd_score_fraction"], np.array(expected) / 2)
    assert (table["hit_rate"] == 0.5).all() and (table["objective_loss"] == 0.1).all()


def test_what_a_search_reports_has_a_warning_where_it_is_lucky(tmp_path):
    data = data_of(make(tmp_path, Reevaluate(times=4)))
    warning = reported_text(data.plan)
    names_all(warning, "as reported", "ranked by the delivered QD score per cell")
    with style():
        captions = [learning_curves(data).caption]
    captions.append(interactive_figures(data)[0].caption)
    assert all(warning in caption for caption in captions)
    assert "best objective" not in _figures_of_merit(data)
    certain = replace(data, plan=replace(data.plan, noise=dict.fromkeys(data.plan.noise, "no")))
    assert not reported_text(certain.plan) and "best objective" in _figures_of_merit(certain)


@pytest.mark.parametrize("own", ["no", "unknown"])
def test_imported_runs_cannot_be_evaluated_again(tmp_path, own):
    data = data_of(make(tmp_path, stochastic=None))
    rows = [replace(row, imported=row.group == "again") for row in data.plan.rows]
    plan, table = replace(data.plan, rows=rows), data.table.assign(stochastic=[own, "unknown"])
    assert list(table["group"]) == ["kept", "again"]
    text = headline(replace(data, plan=plan, table=table))
    assert ("imported runs depend on their seed is not known" in text) == (own == "no")
    assert ("`qdsweep reevaluate`" in text) == (own == "unknown")


def test_common_seeds_are_tested_by_pairs_only(tmp_path):
    text = headline(data_of(make(tmp_path, Reevaluate(times=4, common=True))))
    names_all(text, "t-tests of runs of one seed", "these seeds only")


def test_a_metric_that_the_file_asks_for_ranks_but_is_not_tested(tmp_path):
    sweep = make(tmp_path, rank="coverage")
    assert pairs_of(sweep).empty and not bold_and_marked(sweep)[1]
    text = headline(data_of(sweep))
    names_all(text, "highest mean coverage", NOT_TESTED)
    assert "significant" not in text and "may be the best" not in text


@pytest.mark.parametrize("rank", ["return", "exploring_return"])
def test_returns_of_learners_count_no_lucky_evaluation_and_are_tested(tmp_path, rank):
    sweep = make(tmp_path, rank=rank)
    for run in (tmp_path / "runs").iterdir():
        metrics = pd.read_csv(run / "metrics.csv")
        for name in ("return", "exploring_return"):
            metrics[name] = metrics["norm_qd_score"]
        metrics.to_csv(run / "metrics.csv", index=False)
    aggregate(sweep, tmp_path / "runs")
    text = headline(data_of(sweep))
    names_all(text, "is a mean of all episodes that it counts")
    assert NOT_TESTED not in text and NOT_RANKED not in text
    assert len(pairs_of(sweep)) == 1


@pytest.mark.parametrize("policy", ["fixed", 52])
def test_one_instance_per_seed_is_ranked_as_ever(tmp_path, policy):
    text = headline(data_of(make(tmp_path, evaluation_seed=policy)))
    names_all(text, "that of kept", "significantly higher", "one instance per seed")


@pytest.mark.parametrize("stochastic", [None, "unknown"])
def test_what_is_not_known_is_ranked_as_ever(tmp_path, stochastic):
    text = headline(data_of(make(tmp_path, stochastic=stochastic)))
    names_all(text, "that of kept", "significantly higher", "not known: `qdsweep reevaluate`")


def test_a_note_in_state_answers_for_a_run_of_an_earlier_release(tmp_path):
    sweep = make(tmp_path, stochastic=None)
    state = tmp_path / "runs/kept-s1/state"
    state.mkdir()
    np.savez(state / "noise.npz", stochastic=np.array(True))
    aggregate(sweep, tmp_path / "runs")
    assert NOT_RANKED in headline(data_of(sweep)), "one lucky run is enough"


def test_certain_evaluations_need_no_word(tmp_path):
    sweep = make(tmp_path, stochastic=False)
    text = headline(data_of(sweep))
    names_all(text, "that of kept", "significantly higher")
    assert "seed" not in text.replace("5 seeds", "")
    assert "QD score / cells" in bold_and_marked(sweep)[0]


def test_missing_re_evaluations_rank_nothing(tmp_path):
    sweep = make(tmp_path, Reevaluate(times=4), files=False)
    assert bold_and_marked(sweep) == (set(), set()) and pairs_of(sweep).empty
    assert "highest" not in headline(data_of(sweep))


def test_they_belong_to_the_end_of_a_run_and_are_read_again_when_they_change(tmp_path):
    again = Reevaluate(times=4)
    sweep = make(tmp_path, again)
    run = tmp_path / "runs/kept-s1"
    evaluated_again(run, again, 0.77)
    aggregate(sweep, tmp_path / "runs")
    first = load_sweep("given", tmp_path)["norm_delivered_qd_score"]
    assert first[0] == 0.77
    evaluated_again(run, again, 0.77, iterations=2)  # of the archive at another budget
    aggregate(sweep, tmp_path / "runs")
    now = load_sweep("given", tmp_path)["norm_delivered_qd_score"]
    assert np.isnan(now[0]) and now[1:].equals(first[1:])


def test_a_certain_task_is_ranked_next_to_a_lucky_one(tmp_path):
    sweep = make(tmp_path)
    for seed in range(1, 6):
        for group in REPORTED:
            run = tmp_path / "runs" / f"{group}-s{seed}"
            if group == "kept":
                continue
            about = json.loads((run / "summary.json").read_text())
            (run / "summary.json").write_text(json.dumps({**about, "stochastic": False}))
            (run / "config.yaml").write_text("domain: {name: other}\n")
    with changed_plan(sweep) as plan:
        more = [row for row in plan["rows"] if row["values"]["algorithm"] == "again"]
        for row in more:
            source = tmp_path / "runs" / row["id"]
            copy = tmp_path / "runs" / f"third-{row['id']}"
            copy.mkdir()
            for file in source.iterdir():
                (copy / file.name).write_bytes(file.read_bytes())
            values = {**row["values"], "algorithm": "third"}
            plan["rows"].append({**row, "id": copy.name, "values": values})
    aggregate(sweep, tmp_path / "runs")
    text = headline(data_of(sweep))
    names_all(text, "highest mean", NOT_RANKED)
    assert pairs_of(sweep)["scale"].str.startswith("other").all() and len(pairs_of(sweep)) == 1


@pytest.mark.parametrize(
    ("half", "within", "words"),
    [
        (0.0, 0.1, ()),
        (0.4, 0.1, ()),  # the standard error over these seeds is 0.707
        (1.0, 0.1, ("still change", "again; from 2 to 4", "times: 16")),
        (-1.0, 0.1, ("still change", "again; from 2 to 4", "times: 16")),
        (0.0, 0.9, ("delivered QD score of again", "within runs")),  # the deviation is 1.581
    ],
)
def test_a_score_that_more_evaluations_would_change_is_named(half, within, words):
    scores = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    runs = pd.DataFrame(
        {
            "group": "again",
            "corrected_qd_score": scores,
            "half": scores + half,
            "delivered_qd_score": scores,
            "delivered_error": within,
        }
    )
    text = _convergence(runs, Reevaluate(times=4), str)
    assert bool(text) is bool(words)
    names_all(text, *words)


def test_runs_without_a_delivered_score_and_groups_with_other_episodes_are_named(tmp_path):
    again = Reevaluate(times=2)
    sweep = make(tmp_path, again)
    assert "No such score" not in headline(data_of(sweep))
    run = tmp_path / "runs/kept-s1" / f"{again.stem}.json"
    evaluated_again(run.parent, again, 0.4, iterations=9)  # another sweep has extended it
    aggregate(sweep, tmp_path / "runs")
    data = data_of(sweep)
    names_all(headline(data), "No such score is known for 1 run:")
    plan = replace(data.plan, group_columns=["episodes"])
    assert "differ in episodes" not in noise_text(data.plan, data.summary)
    assert "differ in episodes" in noise_text(plan, data.summary)


@pytest.mark.parametrize(
    ("found", "policy", "label"),
    [
        (True, "solution", "Objective, as reported"),
        (True, "fixed", "Objective"),
        (False, "solution", "Objective"),
    ],
)
def test_maps_of_one_evaluation_seed_have_no_lucky_objectives(tmp_path, found, policy, label):
    make(tmp_path, stochastic=found, evaluation_seed=policy)
    assert objective_label(Run(tmp_path / "runs/kept-s1")) == label
