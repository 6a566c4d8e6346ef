"""The figures of sweeps: archives at their budgets, profiles, common archives, the look."""

import json
import re
import shutil
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from support import TINY, compute_sweep

from qdsweep.analysis.figures.appearance import read_dressed
from qdsweep.analysis.figures.archive_figures import heatmaps, overview
from qdsweep.analysis.figures.archive_profile import (
    archive_profile,
    archive_profiles,
    mean_profiles,
)
from qdsweep.analysis.figures.common_archive import coarsest, common_archives, rebin
from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.figures.plots import plot, plot_one
from qdsweep.analysis.figures.profiles_figure import profiles_figure
from qdsweep.analysis.figures.row_archive import reported_run
from qdsweep.analysis.figures.style import line_style
from qdsweep.cli import main
from qdsweep.config.sweep import Figures, SweepFile
from qdsweep.errors import BadInput
from qdsweep.experiment.load import load
from qdsweep.planning.checks import check_sweep
from qdsweep.sweep.labels import figure_names
from qdsweep.sweep.runs import table_of_runs

SWEEP = "::: algorithm map_elites cma_me ::: seed 1 2 ::: iterations 6 12"
LOOK = {
    "labels": {"map_elites": "MAP-Elites", "cma_me": "CMA-ME"},
    "order": ["cma_me, iterations 12"],
    "colors": {"cma_me, iterations 12": "#ff0000"},
    "column_width": 85,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two algorithms, two seeds, two budgets: the runs of the smaller one went further."""
    results = tmp_path_factory.mktemp("figures") / "results"
    return compute_sweep(results, TINY, SWEEP)


@pytest.fixture
def sweep(made, tmp_path):
    shutil.copytree(made.parent.parent, tmp_path / "results")
    return tmp_path / "results" / "sweeps" / "tiny"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Two algorithms on two functions."""
    results = tmp_path_factory.mktemp("tasks") / "results"
    text = "::: domain lp_sphere lp_rastrigin ::: algorithm map_elites cma_me ::: seed 1 2 3"
    return compute_sweep(results, {**TINY, "iterations": 4}, text, name="tasks")


def set_look(sweep, **figures):
    path = sweep / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": figures}))


def runs_of(sweep):
    return sweep.parent.parent / "runs"


def names(text, **figures):
    """What figures call the groups of a sweep."""
    found = table_of_runs(TINY, text)
    rows = [{name: str(value) for name, value in row.values.items()} for row in found.rows]
    return figure_names(Figures(**figures), found.columns, rows, "tiny")


# Archives at the budget


def test_archives_are_shown_at_the_budget_of_their_row(made, tmp_path):
    _, tables, _ = read_dressed(made)
    drawn = heatmaps(tables, runs_of(made))
    assert "beyond the budget" not in drawn.caption
    short = compute_sweep(tmp_path / "results", TINY, SWEEP.replace("6 12", "6"))
    for group in ("map_elites", "cma_me"):
        shown = drawn.data[drawn.data["group"] == f"{group}, iterations 6"]
        (run,) = set(shown["run"])
        arrays = load(runs_of(short) / run).arrays  # the same run, but it ended there
        order = np.argsort(arrays["index"])
        assert len(shown) < (drawn.data["group"] == f"{group}, iterations 12").sum()
        np.testing.assert_array_equal(shown["cell"], arrays["index"][order])
        np.testing.assert_array_equal(
            shown["objective"], arrays["objective"][order].astype(np.float32)
        )


def test_an_earlier_archive_is_one_of_pyribs_with_the_row_s_score(made):
    _, tables, _ = read_dressed(made)
    for _, row in tables.with_results.iterrows():
        stats = reported_run(runs_of(made), row).archive.stats
        assert float(stats.qd_score) == pytest.approx(row["qd_score"])
        assert float(stats.coverage) == pytest.approx(row["coverage"])


def test_a_cvt_archive_is_known_earlier_too(tmp_path):
    tiny = {**TINY, "algorithm": "cvt_map_elites", "archive": {"cells": 60}}
    sweep = compute_sweep(tmp_path / "results", tiny, "::: seed 1 ::: iterations 3 9")
    _, tables, _ = read_dressed(sweep)
    (early, late) = tables.with_results.to_dict("records")
    assert early["num_elites"] < late["num_elites"]
    run = reported_run(runs_of(sweep), tables.with_results.iloc[0])
    assert len(run.archive) == early["num_elites"]
    assert float(run.archive.stats.qd_score) == pytest.approx(early["qd_score"])


def test_without_a_history_the_figure_says_so(sweep):
    for path in runs_of(sweep).glob("*/history.npz"):
        path.unlink()
    _, tables, _ = read_dressed(sweep)
    drawn = heatmaps(tables, runs_of(sweep))
    assert "2 of these runs went on beyond the budget" in drawn.caption
    notes = [text for text in texts(drawn.figure) if "not" in text]
    assert len(notes) == 2


# Profiles


def test_a_profile_counts_elites_of_at_least_an_objective():
    objectives = np.array([3.0, 1.0, 2.0, 2.0])
    counts = archive_profile(objectives, np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]))
    assert list(counts) == [4, 4, 3, 3, 1, 1, 0]
    assert list(archive_profile(np.empty(0), np.array([0.0]))) == [0]


def test_mean_profiles_are_those_of_pyribs(made):
    from matplotlib.figure import Figure
    from ribs.visualize import aggregate_cdf

    _, tables, _ = read_dressed(made)
    rows = tables.with_results
    rows = rows[rows["group"] == "cma_me, iterations 12"]
    runs = [reported_run(runs_of(made), row) for _, row in rows.iterrows()]
    ours = mean_profiles({"cma_me": runs})
    limits = ours["objective"].iloc[[0, -1]]
    line, band = aggregate_cdf(
        [run.archive for run in runs],
        Figure().subplots(),
        cumulative=-1,
        bins=200,
        vmin=limits.iloc[0],
        vmax=limits.iloc[1],
        errorbar="se",
    )
    np.testing.assert_allclose(ours["elites_mean"][:-1], line.get_data().values)
    np.testing.assert_allclose(
        (ours["elites_mean"] + ours["elites_se"])[:-1], band.get_data().values
    )


def test_a_profile_starts_at_the_filled_cells_of_its_budget(made):
    _, tables, _ = read_dressed(made)
    data = archive_profiles(tables, runs_of(made)).data
    for group, part in data.groupby("group"):
        rows = tables.with_results[tables.with_results["group"] == group]
        above = rows["num_elites"].mean()  # thresholds begin at the lowest objective of all
        assert part["elites_mean"].iloc[0] == above
        assert set(part["n"]) == {2}


def test_performance_profiles_are_drawn_for_several_tasks(made, tasks):
    _, tables, look = read_dressed(made)
    assert profiles_figure(made, tables, look) == []
    _, tables, look = read_dressed(tasks)
    (drawn,) = profiles_figure(tasks, tables, look)
    assert list(drawn.data["algorithm"].unique()) == ["map_elites", "cma_me"]
    assert "Agarwal" in drawn.caption
    lines = drawn.figure.subfigs[0].subfigs[0].axes[0].lines
    assert [line.get_label() for line in lines] == ["map_elites", "cma_me"]
    np.testing.assert_array_equal(
        lines[0].get_ydata(), drawn.data["fraction"][: len(drawn.data) // 2]
    )


# Archives of different cells


def test_rebinning_keeps_the_best_of_each_coarse_cell(made):
    run = load(next(path.parent for path in runs_of(made).glob("*/archive.npz")))
    about = run.summary["archive"]
    own = (tuple(about["dims"]), tuple(map(tuple, about["ranges"])))
    assert rebin(run, own) == pytest.approx((run.summary["qd_score"], run.summary["coverage"]))
    best = defaultdict(lambda: -np.inf)
    for index, objective in zip(run.arrays["index"], run.arrays["objective"], strict=True):
        row, column = divmod(index, 12)
        best[row // 4, column // 4] = max(best[row // 4, column // 4], objective)
    score = sum(best.values()) - len(best) * about["qd_score_offset"]
    assert rebin(run, ((3, 3), own[1])) == pytest.approx((score, len(best) / 9))


def test_the_common_archive_has_the_coarsest_cells_over_all_ranges():
    grid = {"cells": 200, "dims": [10, 20], "ranges": [[-1, 1], [0, 3]]}
    fine = {"cells": 300, "dims": [30, 10], "ranges": [[-2, 0], [0, 1]]}
    cvt = {"cells": 64, "dims": None, "ranges": [[-1, 1], [0, 1]]}
    none = {"cells": None, "dims": None, "ranges": [[-9, 9], [-9, 9]]}
    assert coarsest([grid, fine, none]) == ((10, 10), ((-2.0, 1.0), (0.0, 3.0)))
    assert coarsest([grid, fine, cvt])[0] == (8, 8)


def test_archives_of_other_cells_share_a_figure_only_after_rebinning(tmp_path, tasks):
    text = "::: archive.dims '[12, 12]' '[4, 6]' ::: seed 1 2"
    sweep = compute_sweep(tmp_path / "results", {**TINY, "iterations": 4}, text)
    _, tables, _ = read_dressed(sweep)
    assert len(tables.score_scales) == 2
    (drawn,) = common_archives(tables, runs_of(sweep))
    assert "4 \u00d7 6 cells" in drawn.caption
    coarse = drawn.data.set_index("group").loc["dims [4, 6]"]
    table = tables.table.set_index("group").loc["dims [4, 6]"]  # its own cells already
    assert coarse["qd_score_mean"] == pytest.approx(table["qd_score_mean"])
    assert coarse["qd_score_se"] == pytest.approx(table["qd_score_se"])
    _, other, _ = read_dressed(tasks)
    assert common_archives(other, runs_of(tasks)) == []  # two domains


# The look


def test_labels_name_groups_series_and_values():
    text = "::: algorithm map_elites cma_me ::: batch_size 8 16 ::: seed 1 2"
    found = names(text, labels={"cma_me": "CMA-ME", "map_elites, batch_size 8": "Base"})
    assert [name.label for name in found.values()] == [
        "Base", "map_elites, batch_size 16", "CMA-ME, batch_size 8", "CMA-ME, batch_size 16",
    ]  # fmt: skip
    facets = names(
        text, facets="batch_size", order=["cma_me"], colors={"cma_me": "red"}, labels={"8": "few"}
    )
    assert list(facets)[:2] == ["cma_me, batch_size 8", "cma_me, batch_size 16"]
    assert [name.series for name in facets.values()] == ["cma_me"] * 2 + ["map_elites"] * 2
    assert [name.facet for name in facets.values()] == ["batch_size few", "batch_size 16"] * 2
    assert [name.color for name in facets.values()] == ["red"] * 2 + [None] * 2
    alone = names("::: algorithm map_elites cma_me ::: seed 1 2", facets="algorithm")
    assert [name.series for name in alone.values()] == ["map_elites", "cma_me"]


def test_what_an_algorithm_or_a_task_fixes_is_in_no_label():
    text = "::: domain lp_sphere arm :::+ iterations 60 5 ::: algorithm map_elites cma_me"
    text += " :::+ num_emitters 1 15 ::: seed 1 2"
    assert list(names(text)) == [
        "lp_sphere, map_elites", "lp_sphere, cma_me", "arm, map_elites", "arm, cma_me"
    ]  # fmt: skip
    facets = names(text, facets="domain", order=["cma_me"], colors={"cma_me": "red"})
    assert [(name.series, name.color) for name in facets.values()] == [
        ("cma_me", "red"), ("cma_me", "red"), ("map_elites", None), ("map_elites", None)
    ]  # fmt: skip
    linked = names("::: sigma0 0.1 0.2 :::+ batch_size 8 16 ::: seed 1 2")
    assert list(linked) == ["sigma0 0.1, batch_size 8", "sigma0 0.2, batch_size 16"]


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"labels": {"cma_mee": "x"}}, "labels: 'cma_mee' is unknown; did you mean 'cma_me'"),
        ({"order": ["nobody"]}, "order: 'nobody' is unknown; known: map_elites; cma_me"),
        ({"colors": {"nobody": "red"}}, "colors: 'nobody' is unknown; known: map_elites; cma_me"),
        ({"facets": "seed"}, "facets: 'seed' is unknown; known: algorithm"),
        ({"labels": {"cma_me": "A", "map_elites": "A"}}, "would both be called 'A'"),
        ({"labels": {"cma_me": " "}}, "labels: cma_me: ' ': it would not be shown"),
        ({"labels": {"cma_me": "_x"}}, "labels: cma_me: '_x': it would not be shown"),
        ({"labels": {"cma_me": r"$\frac$"}}, "it is no formula of matplotlib"),
        ({"labels": {"cma_me": "A\nB"}}, "it has a line break"),
        ({"colors": {"cma_me": "blurple"}}, "'blurple' is no colour"),
        ({"colors": {"cma_me": "none"}}, "'none' is no colour"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(figures, message):
    found = table_of_runs(TINY, "::: algorithm map_elites cma_me ::: seed 1 2")
    file = SweepFile(name="tiny", experiment="tiny", figures=Figures(**figures))
    with pytest.raises(BadInput, match=f"^mine.yaml: figures: .*{re.escape(message)}"):
        check_sweep(file, found, {(): "mine.yaml"})


def test_the_look_is_that_of_every_figure(sweep):
    set_look(sweep, **LOOK)
    plot(sweep, runs_of(sweep))
    plots = sweep / "plots"
    pictures = [*plots.glob("*.pdf"), *plots.glob("more/*.pdf")]
    assert len(pictures) >= 4 + 4
    for path in pictures:
        pdf = path.read_bytes()
        assert b"/FontFile2" in pdf and b"/Type3" not in pdf, path  # TrueType, embedded
        ((width,),) = [re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", pdf)]
        assert float(width) == pytest.approx(85 / 25.4 * 72, abs=0.1), path
        svg = path.with_suffix(".svg").read_text()
        assert "map_elites" not in svg, path  # a comment names every text
        assert pd.read_csv(path.with_suffix(".csv")).shape[0] > 0
    for name in ("learning_curves", "archive_profiles", "overview"):
        svg = (plots / f"{name}.svg").read_text()
        assert "CMA-ME, iterations 12" in svg and "#ff0000" in svg
    assert list(dict.fromkeys(pd.read_csv(plots / "heatmaps.csv")["group"])) == [
        "CMA-ME, iterations 12",
        "MAP-Elites, iterations 6",
        "MAP-Elites, iterations 12",
        "CMA-ME, iterations 6",
    ]


def texts(figure):
    return [text.get_text() for text in seen(figure)]


def seen(figure):
    """Every text of a figure that a reader sees: no ticks beyond their axis, no hidden axes."""
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    hidden = []
    for ax in figure.findobj(Axes):
        if not ax.get_visible():
            hidden += ax.findobj(Text)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    hidden += tick.findobj(Text)
    hidden = set(map(id, hidden))
    found = [text for text in figure.findobj(Text) if id(text) not in hidden]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("width", [None, 85, 180])
@pytest.mark.parametrize("facets", [None, "iterations"])
def test_letters_are_readable_and_nothing_overlaps(sweep, width, facets):
    set_look(sweep, column_width=width, facets=facets)
    _, tables, look = read_dressed(sweep)
    with look.style(tables):
        drawn = [
            overview(tables, runs_of(sweep)),
            learning_curves(tables),
            heatmaps(tables, runs_of(sweep)),
            archive_profiles(tables, runs_of(sweep)),
        ]
        for one in drawn:
            one.figure.draw_without_rendering()
            inside = one.figure.bbox
            boxes = []
            for text in seen(one.figure):
                box = text.get_window_extent()
                assert 7 <= text.get_fontsize() <= 10, (one.name, text)
                assert inside.x0 - 1 <= box.x0 and box.x1 <= inside.x1 + 1, (one.name, text)
                assert inside.y0 - 1 <= box.y0 and box.y1 <= inside.y1 + 1, (one.name, text)
                boxes.append((text, box.padded(-1)))
            for position, (text, box) in enumerate(boxes):
                for other, another in boxes[position + 1 :]:
                    both = f"{one.name}: {text.get_text()!r}, {other.get_text()!r}"
                    assert not box.overlaps(another), both


def test_learning_curves_have_a_panel_for_each_facet(sweep):
    set_look(sweep, facets="iterations")
    _, tables, _ = read_dressed(sweep)
    assert {key: len(groups) for key, groups in tables.panels.items()} == {
        "iterations 6": 2,
        "iterations 12": 2,
    }
    figure = learning_curves(tables).figure
    axes = [ax for ax in figure.axes if ax.get_visible()]
    assert len(axes) == 2 * 4
    for ax in axes:
        assert [line.get_label() for line in ax.lines] == ["map_elites", "cma_me"]
    colors = {tuple(line.get_color() for line in ax.lines) for ax in axes}
    assert len(colors) == 1  # a series has its colour in every facet
    for first, second in zip(axes[:4], axes[4:], strict=True):
        assert first.get_ylim() == second.get_ylim()


def test_only_draws_one_figure_again(sweep):
    plot(sweep, runs_of(sweep))
    plots = sweep / "plots"
    files = [path for path in plots.rglob("*") if path.is_file()]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
    for name, folder in (("archive_profiles", plots), ("timing", plots / "more")):
        written = plot_one(sweep, runs_of(sweep), name)
        changed = {path for path in files if path.stat().st_mtime_ns != before[path][0]}
        drawn = {folder / f"{name}{end}" for end in (".pdf", ".png", ".svg", ".csv")}
        assert set(written) == drawn
        assert changed >= drawn | {folder / "figures.json"}
        assert len(changed) == (5 if folder == plots else 10)
    assert all(path.read_bytes() == before[path][1] for path in files)  # nothing else has changed
    with pytest.raises(BadInput, match="no such figure; it has overview, learning_curves"):
        plot_one(sweep, runs_of(sweep), "nothing")


def test_the_command_draws_only_the_figure_that_was_asked_for(sweep, capsys, monkeypatch):
    def refuse(*words):
        raise AssertionError("nobody asked for archives")

    for other in ("overview", "heatmaps", "common_archives", "sweep_views", "archive_profiles"):
        monkeypatch.setattr(f"qdsweep.analysis.figures.plots.{other}", refuse)
    results = str(sweep.parent.parent)
    assert main(["plot", "tiny", "--only", "timing", "--results", results]) == 0
    printed = capsys.readouterr().out.splitlines()
    more = sweep / "plots/more"
    assert printed == [str(more / f"timing.{end}") for end in ("pdf", "png", "svg", "csv")]
    assert all((more / f"timing.{end}").exists() for end in ("pdf", "csv"))
    assert main(["plot", "tiny", "--only", "learning_curves", "--results", results]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("plots/learning_curves.pdf")


def test_the_overview_shows_the_best_facet_and_names_it(sweep):
    set_look(sweep, facets="iterations")
    _, tables, look = read_dressed(sweep)
    scores = tables.table.set_index("group")["qd_score_mean"]
    best = tables.facets[scores.idxmax()]
    assert best == "iterations 12", "the other one comes first"
    with look.style(tables):
        drawn = overview(tables, runs_of(sweep))
    assert set(drawn.data["group"]) == set(tables.panels[best])
    assert drawn.caption.startswith(f"{best}, the facet with the highest mean QD sc")
    assert "Not shown: 2 groups of another facet" in drawn.caption
    assert drawn.figure.get_suptitle() == best


def test_no_two_lines_of_a_hundred_groups_look_the_same():
    looks = [line_style(position) for position in range(100)]
    assert len({(look["color"], str(look["linestyle"]), look["marker"]) for look in looks}) == 100
    assert all(look["marker"] == "" for look in looks[:28]), "marks only where they are needed"
