"""The look of groups is equal everywhere, stable, and explained by one legend."""

import json
import shutil
from base64 import b64decode

import numpy as np
import pytest
from in_process import compute_sweep
from looks import data_of, runs_of, set_look, texts
from support import TINY

from qdsweep.analysis.figures.learning_curves import learning_curves
from qdsweep.analysis.legend import COLORS, NEUTRAL, Mark, group_names, sweep_marks
from qdsweep.analysis.page.interactive import interactive_figures
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import Plan, read_plan, write_plan
from qdsweep.sweep.runs import table_of_runs

FACTORS = (
    "::: algorithm map_elites map_elites_line ::: domain.step 0.1 0.5 ::: seed 1 2 ::: iterations 3"
)
THREE = FACTORS.replace("map_elites_line", "map_elites_line cma_me")
BLUE, RED, GREEN = COLORS[:3]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return compute_sweep(tmp_path_factory.mktemp("factors") / "results", TINY, FACTORS)


@pytest.fixture
def sweep(made):
    set_look(made)
    return made


def looks(sweep):
    data = data_of(sweep)
    return {group: data.marks[group] for group in data.series}


def test_colour_is_the_algorithm_and_dashes_the_step_in_print_and_page(sweep):
    data = data_of(sweep)
    assert looks(sweep) == {
        "MAP-Elites, step 0.1": Mark(BLUE, 0), "MAP-Elites, step 0.5": Mark(BLUE, 1),
        "MAP-Elites (line), step 0.1": Mark(RED, 0), "MAP-Elites (line), step 0.5": Mark(RED, 1),
    }  # fmt: skip
    lines = learning_curves(data).figure.axes[0].lines
    printed = {line.get_label(): line.get_color() for line in lines}
    curves = json.loads(next(iter(interactive_figures(data)[0].views.values())))["data"]
    shown = {trace["name"]: trace["line"]["color"] for trace in curves if "name" in trace}
    assert shown == {group: color.lower() for group, color in printed.items()}
    dashes = [trace["line"]["dash"] for trace in curves if "name" in trace]
    assert dashes == ["solid", "dash"] * 2


def test_a_negative_qd_score_is_drawn_with_its_band(sweep):
    """Objectives below the objective range make it negative."""
    set_look(sweep, band="error")
    data = data_of(sweep)
    means = [name for name in data.curves if name.endswith("qd_score_mean")]
    data.curves[means] *= -1
    axes = learning_curves(data).figure.axes[0]
    assert axes.get_ylim()[0] < data.curves["norm_qd_score_mean"].min()
    curves = json.loads(next(iter(interactive_figures(data)[0].views.values())))["data"]
    bands = [trace for trace in curves if "fill" in trace]
    ends = data.curves.groupby("group").last()
    assert len(bands) == len(ends)
    for trace in bands:
        end, y = ends.loc[trace["legendgroup"]], trace["y"]
        lowest = np.frombuffer(b64decode(y["bdata"]), np.dtype(y["dtype"])).min()
        assert lowest < end["norm_qd_score_mean"] - 0.9 * end["norm_qd_score_se"]


def test_the_legend_has_a_block_for_each_name(sweep):
    sigma = r"$\sigma_0$"
    set_look(sweep, names={"domain.step": sigma}, labels={"map_elites_line": "Line"})
    data = data_of(sweep)
    colors, dashes = data.marks.legend(list(data.series))
    assert colors == ("algorithm", [("MAP-Elites", Mark(BLUE)), ("Line", Mark(RED))], False)
    assert dashes == (sigma, [("0.1", Mark(NEUTRAL)), ("0.5", Mark(NEUTRAL, 1))], False)
    assert {"algorithm", r"$\sigma_0$", "Line", "0.5"} <= set(texts(learning_curves(data).figure))
    (plain,) = data.marks.legend(list(data.series)[:1])
    assert plain.entries == [(r"MAP-Elites, $\sigma_0$ 0.1", Mark(BLUE))], "no longer than lines"
    set_look(sweep, labels={"map_elites_line, step 0.5": "mine"})
    data = data_of(sweep)
    (whole,) = data.marks.legend(list(data.series))
    assert whole.entries[-1][0] == "mine", "a label of a whole group is in no block"


def test_values_keep_their_colours_when_others_come_and_go(sweep, tmp_path):
    copy = tmp_path / "results/sweeps/tiny"
    shutil.copytree(sweep.parents[1], tmp_path / "results")

    def colors(text=None):
        if text is not None:
            table = table_of_runs(TINY, text)
            plan = table.plan(name="tiny", experiment="tiny", sweep=text)
            write_plan(plan, table.runs, Results(tmp_path / "results"))
        plan = read_plan(SweepDir(copy))
        marks = sweep_marks(plan, group_names(plan).names)
        return {group.split(",")[0]: marks[group].color for group in marks.values}

    assert colors(THREE) == {
        "MAP-Elites": BLUE, "MAP-Elites (line)": RED, "CMA-ME": GREEN,
    }  # fmt: skip
    fewer = THREE.replace("map_elites map_elites_line", "map_elites_line")
    assert colors(fewer) == {"MAP-Elites (line)": RED, "CMA-ME": GREEN}
    more = fewer.replace("algorithm", "algorithm cma_mae")
    assert colors(more).keys() == {"CMA-MAE", "MAP-Elites (line)", "CMA-ME"}
    assert colors(THREE)["MAP-Elites"] == BLUE
    set_look(copy, colors={"map_elites_line": "black"})
    assert set(colors().values()) == {BLUE, GREEN, "black"}


def test_bands_are_what_is_asked_for(sweep, snapshot):
    axes, captions = {}, []
    for band in ("error", "interval", "quartiles", "seeds"):
        set_look(sweep, band=band)
        aggregate(sweep, runs_of(sweep))
        assert (sweep / "curves_by_seed.csv").exists() == (band in ("quartiles", "seeds"))
        drawn = learning_curves(data_of(sweep))
        axes[band] = drawn.figure.axes[0]
        captions.append(drawn.caption)
    assert "\n".join(captions) == snapshot
    lines = axes["seeds"].lines
    assert len(lines) == 4 + 4 * 2
    seeds = [line.get_ydata() for line in lines[1:3]]
    np.testing.assert_allclose(np.mean(seeds, axis=0), lines[0].get_ydata())
    paths = {band: axes[band].collections[0].get_paths() for band in ("error", "interval")}
    assert paths["error"] and not paths["interval"], "two seeds have no interval"


def test_where_no_name_has_a_trait_each_line_has_a_look_of_its_own():
    seven = " ".join(map(str, range(2, 9)))
    text = f"::: step {seven} ::: batch_size {seven}"
    table = table_of_runs(TINY, f"::: domain lp_sphere arm {text}")
    plan = Plan.of(table.plan(name="tiny", experiment="tiny", sweep=text))
    marks = sweep_marks(plan, group_names(plan).names)
    looks = [marks[group] for group in marks.values]
    assert len(set(looks)) == 49 and looks[:49] == looks[49:], "the same in both tasks"
    (legend,) = marks.legend(list(marks.values)[:2])
    assert legend.entries[1] == ("step 2, batch_size 3", looks[1])
