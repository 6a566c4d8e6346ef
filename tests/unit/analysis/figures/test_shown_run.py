"""What a caption claims of the shown run is true: for each metric that ranks, and each family."""

import re

import numpy as np
import pandas as pd
import pytest
from given import changed_plan
from inventing import SEEDS, make_run, write_plan
from looks import data_of

from qdsweep.analysis.figures.archive_pictures import heatmaps, overview
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.sweep_views import sweep_views
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.interactive import interactive_figures
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.features.rollouts.animations import _read, best_groups, stills
from qdsweep.metrics import METRICS

# Family -> archive, sigma, the order of its seeds in the QD score, its mean, coverage, best
# objective and return. In a group, the medians of all metrics are other runs.
FAMILIES = {
    "map_elites": ("grid", 0.5, "123 231 312 132"),
    "other_elites": ("grid", 0.7, "231 312 123 213"),
    "novelty": ("proximity", 0.5, "312 123 231 132"),
    "ppo": ("grid", 0.5, "132 213 321 123 231"),
}
RANKS = [metric for metric in METRICS if metric.ranks]
MEDIAN = re.compile(
    r"with the median (?:of the )?([\w -]+?)"
    r"(?: \(where a group has none: the median ([\w -]+?)\))?(?: after|\.|\))"
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    rows = []
    for name, (kind, sigma, orders) in FAMILIES.items():
        for place, seed in enumerate(SEEDS):
            run, archive = make_run(results / "runs", name, seed, kind=kind, sigma=sigma)
            ranks = [int(order[place]) for order in orders.split()]
            folder = results / "runs" / run
            metrics = pd.read_csv(folder / "metrics.csv")
            metrics["qd_score"] = 100.0 * ranks[1]  # most of its mean
            metrics.loc[metrics.index[-1], "qd_score"] = 100.0 * ranks[0]
            metrics["norm_qd_score"] = metrics["qd_score"] / (np.nan if kind != "grid" else 144)
            metrics["coverage"] = np.nan if kind != "grid" else 0.1 * ranks[2]
            metrics["obj_max"], metrics["return"] = 10.0 * ranks[3], np.nan
            if name == "ppo":
                metrics["return"] = 5.0 * ranks[4]
            metrics.to_csv(folder / "metrics.csv", index=False)
            if kind == "grid":
                index, objective = (archive.data(field) for field in ("index", "objective"))
                columns = {"index": index.astype(np.int32), "objective": objective}
                at = np.ones(len(index), np.int32)
                np.savez(folder / "history.npz", iteration=at, **columns)
            rows.append(({"algorithm": name, "sigma": sigma, "seed": seed}, run, 40, None))
    write_plan(results, "families", ["algorithm", "sigma", "seed"], rows)
    return results


def ranked(results, rank, without=()):
    """The data of the sweep, ranked by a metric; without some of its families."""
    folder = results / "sweeps/families"
    if without:
        rows = [
            ({"algorithm": name, "sigma": FAMILIES[name][1], "seed": seed}, run, 40, None)
            for name in FAMILIES
            for seed in SEEDS
            if name not in without
            for run in [f"sphere-{name}-s{seed}-0123456789"]
        ]
        folder = write_plan(results, "some", ["algorithm", "sigma", "seed"], rows)
    with changed_plan(folder) as plan:
        plan["rank"] = rank.name
    aggregate(folder, results / "runs")
    return folder


def claims(caption):
    """The phrases of the metrics that a caption names."""
    found = MEDIAN.search(caption)
    assert found, caption
    return found.groups()


def check(data, caption, shown):
    """`shown`: group -> run."""
    phrase, other = claims(caption)
    named = {metric.phrase: metric for metric in METRICS if metric.label}
    for group, run in shown.items():
        own = data.summary[data.summary["group"] == group].set_index("id")
        values = own[named[phrase].name].dropna()
        if values.empty:
            assert other, f"{group} has no {phrase}, and the caption does not say so"
            values = own[named[other].name].dropna()
        assert values[run] == sorted(values)[(len(values) - 1) // 2], (caption, group)


@pytest.mark.parametrize("without", [(), ("novelty",)])
@pytest.mark.parametrize("rank", RANKS, ids=lambda metric: metric.name)
def test_the_run_of_a_map_is_the_median_that_the_caption_names(results, rank, without):
    folder = ranked(results, rank, without)
    data = data_of(folder)
    for drawn in (heatmaps(data), overview(data)):
        shown = {"heatmaps": data.series}.get(drawn.name) or data.best_of_algorithms(
            next(groups for groups in data.panels.values() if data.best([*data.series], 1)), 3
        )
        runs = {group: str(data.median_run(group)["id"]) for group in shown}
        if drawn.name == "heatmaps":
            runs = dict(drawn.data[["group", "run"]].drop_duplicates().itertuples(index=False))
        check(data, drawn.caption, runs)
    for scale, groups in best_groups(data).items():
        read = [filling for group in groups if (filling := _read(data, group))]
        if read:
            drawn = stills("evolution", scale, read, data)
            check(
                data, drawn.caption, {filling.group: filling.run.summary["id"] for filling in read}
            )


@pytest.mark.parametrize("rank", RANKS, ids=lambda metric: metric.name)
def test_no_text_counts_runs_of_a_metric_that_a_group_lacks(results, rank):
    data = data_of(ranked(results, rank))
    views = [view for view in sweep_views(data) if hasattr(view, "caption")]
    interactive = interactive_figures(data)
    texts = [
        *(figure.caption for figure in (overview(data), learning_curves(data), *views)),
        *(figure.caption for figure in interactive),
        *(methods(data, set()).text, headline(data)),
    ]
    for text in texts:
        assert not re.search(r"\b0 (to \d|seeds|runs)", text), text
    assert "each of the 4 groups had 3 runs" in methods(data, set()).text
