"""Settings that differ only in late digits are different settings: no key is a rounded number."""

import ast
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_process import compute_sweep, forget_plugins, report_sweep
from looks import data_of, runs_of, texts
from plugins import CLOSE
from support import REPO, TINY

from qdsweep.analysis.figures.archive_pictures import run_pictures
from qdsweep.analysis.figures.combinations import axis_of
from qdsweep.analysis.figures.common_archive import ArchiveFamily, _title
from qdsweep.analysis.figures.heatmap import narrowed
from qdsweep.analysis.selection import score_scale_of
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import read_runs
from qdsweep.analysis.tables.search_table import _value
from qdsweep.config.model import value_text
from qdsweep.features.compare.several import compare_sweeps
from qdsweep.features.explore.packed import index
from qdsweep.features.explore.shown_runs import ShownRun
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.sweep.groups import group_labels
from qdsweep.sweep.looks import slots_of
from qdsweep.sweep.runs import table_of_runs
from qdsweep.text import apart, exact, short_number

SMALL = {
    "domain": "close:Energy",
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    **{"iterations": 5, "num_emitters": 1, "batch_size": 10, "first_batch": 10},
}
SEEDS = "::: seed 1 2 3"
SWEPT = {
    "offsets": "::: reference -2000000 -2000001",
    "times": "::: start 1700000000 1700000060",
    "years": "::: top 1000 1000.0004",
}


@st.composite
def pairs(draw):
    """Two numbers that differ only in their seventh to seventeenth digit."""
    number = draw(st.floats(1.0, 10.0)) * 10.0 ** draw(st.integers(-12, 12))
    number *= draw(st.sampled_from([1, -1]))
    other = number * (1 + draw(st.floats(1.0, 9.0)) * 10.0 ** -draw(st.integers(7, 16)))
    return number, other if other != number else float(np.nextafter(number, 2 * number))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run's folder with the part of config.yaml that a scale has."""
    folder = tmp_path_factory.mktemp("close")
    (folder / "config.yaml").write_text("domain: {name: energy}\n")
    return folder


def archive(**changes):
    about = {"type": "grid", "dims": [5, 5], "cells": 25, "qd_score_offset": 0.0}
    return {"archive": about | {"ranges": [[-1e300, 1e300], [0.0, 1.0]]} | changes}


@given(pair=pairs())
@example(pair=(-2000000.0, -2000001.0))
@example(pair=(1700000000.0, 1700000060.0))
@example(pair=(1000.0, 1000.004))
def test_numbers_that_differ_late_make_different_tasks(folder, pair):
    slots = {
        "offset": lambda value: {"qd_score_offset": value},
        "lower end": lambda value: {"ranges": [[value, 1e300], [0.0, 1.0]]},
        "upper end": lambda value: {"ranges": [[-1e300, 1e300], [-1e300, value]]},
    }
    for name, slot in slots.items():
        scales = {score_scale_of(folder, archive(**slot(value))) for value in pair}
        assert len(scales) == 2, name
        abouts = [archive(**slot(value))["archive"] for value in pair]
        titles = {
            _title(
                ArchiveFamily("d", a["qd_score_offset"], 2, None, [], []),
                ((5, 5), tuple(a["ranges"])),
            )
            for a in abouts
        }
        assert len(titles) == 2, name


@given(pair=pairs())
@example(pair=(1.0, 1.0000000000000002))
def test_numbers_that_differ_late_are_written_differently(pair):
    assert len({*map(exact, pair)}) == 2
    assert len({*apart(pair)}) == len({*apart(pair, 3)}) == 2
    assert len({*apart(pair, written=short_number)}) == 2
    assert len({_value(value).text for value in pair}) == 2
    axis = axis_of("sigma", [*map(value_text, pair)])
    assert len({*axis.texts.values()}) == 2
    assert len({*axis.places(axis.values)}) == 2
    single = narrowed(np.array(pair))
    assert single[0] != single[1]


@settings(deadline=None, max_examples=20)
@given(pair=pairs().map(lambda pair: [*map(abs, pair)]), name=st.sampled_from(["sigma0", "x0"]))
@example(pair=[0.1, 0.10000000000000002], name="sigma0")
def test_values_that_differ_late_are_groups_with_own_runs_and_looks(pair, name):
    written = [str([value] * 10) for value in pair] if name == "x0" else [*map(repr, pair)]
    made = table_of_runs(TINY, f"::: {name} '{written[0]}' '{written[1]}' ::: seed 1 2")
    plan = made.plan(name="close", experiment="tiny", sweep="")
    assert len(made.runs) == 4
    rows = [{name: value_text(row["values"][name]), "seed": ""} for row in plan["rows"]]
    assert len({*group_labels([name, "seed"], rows, "all")}) == 2
    assert len(slots_of([name, "seed"], rows)[name]) == 2, "colours and dashes"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of each kind of setting: equal digests in both of its groups."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/close.py").write_text(CLOSE)
    forget_plugins()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in SWEPT.items():
            compute_sweep(folder / "results", SMALL, f"{text} {SEEDS}", name=name)
        for name, text in (("o1", "-2000000"), ("o2", "-2000001")):
            compute_sweep(folder / "results", SMALL, f"::: reference {text} {SEEDS}", name=name)
    return folder / "results"


@pytest.mark.parametrize("name", SWEPT)
def test_groups_that_differ_late_are_never_compared(swept, name):
    sweep = swept / "sweeps" / name
    assert read_sheet(sweep / "tables/comparisons.json").rows == []
    assert not any(cell.bold for row in read_sheet(sweep / "table.json").rows for cell in row)
    data = data_of(sweep)
    assert [len(groups) for groups in data.score_scales.values()] == [1, 1]
    assert len(data.panels) == 2
    run_pictures(data)
    assert set(json.loads(data.sweep.color_limits.read_text())) == set(data.score_scales)
    plan = read_plan(SweepDir(sweep))
    cached = read_runs(plan, SweepDir(sweep), runs_of(sweep))
    assert {result.record["scale"] for result in cached} == set(data.score_scales)
    known = index([ShownRun(runs_of(sweep) / run, run, "k") for run in data.summary["id"]])
    assert len(known["spaces"]) == 2
    assert {run["space"] for run in known["runs"]} == {0, 1}


def test_sweeps_that_differ_late_do_not_compare(swept):
    compared = compare_sweeps(Results(swept), ["o1", "o2"])
    assert compared.comparisons.rows == []
    assert any("o1 and o2" in note for note in compared.notes)


def test_a_page_tells_settings_apart_that_differ_late(swept):
    sweep = report_sweep(swept / "sweeps/offsets")
    page = (sweep / "report.html").read_text()
    assert "\u22122 \u00d7 10\u2076" in page and "\u22122000001" in page.replace(",", "")
    assert len(list((sweep / "plots/archives").glob("*.png"))) == 6


def test_ticks_of_a_narrow_axis_differ():
    from matplotlib.figure import Figure

    from qdsweep.analysis.figures.style import short_numbers, style

    with style():
        figure = Figure()
        ax = figure.subplots()
        ax.set_xlim(1_700_000_000, 1_700_000_100)
        short_numbers(ax.xaxis)
        figure.draw_without_rendering()
        shown = [text for text in texts(figure) if text.endswith("G")]
    assert len(shown) > 2
    assert all(first != second for first, second in pairwise(shown))


# Where a number is rounded, and only a reader sees the text, or only a picture the place. The
# others need the rounded number itself: a count, a drawn value, a time, or a colour of 8 bits.
# Equal labels of two measures of a domain (config/episodes) are refused.
ROUNDED: dict[str, set[str]] = {
    "features/learning/pga_me": {"PGAMapElites.ask"},
    "features/noise/settings": {"evaluated_again"},
    "features/learning/td3_search": {"TD3Search.meanwhile"},
    "analysis/curves": {"telling"},
    "analysis/noise": {"_remedy"},
    "experiment/fresh_seeds": {"find_noise"},
    "features/explore/packed": {"index"},
    "features/explore/studio": {"Studio"},
    "analysis/figures/archive_pictures": {"score_text"},
    "analysis/figures/common_archive": {"coarsest"},
    "analysis/figures/search_figures": {"_draw_trace"},
    "analysis/figures/search_curves": {"_draw_ranks", "setting_curve"},
    "analysis/figures/style": {"short_numbers"},
    "analysis/figures/sweep_views": {"_draw_pair"},
    "features/live/app": {"_about", "run_line"},
    "features/live/follow": {"_ticks", "sparkline"},
    "analysis/page/gallery": {"_svg_size", "figure_picture"},
    "analysis/page/interactive": {"_color", "_pale", "_thin"},
    "analysis/search_progress": {"table"},
    "analysis/tables/comparisons": {"pair_cells"},
    "features/published/tables": {"_RULE", "_decimals", "_row"},
    "analysis/tables/run_table": {"thin_curve"},
    "features/audit/audit": {"audit"},
    "features/audit/judgement": {"_choose"},
    "cli/run_commands": {"_check_run"},
    "features/live/commands": {"_watch"},
    "features/rollouts/commands": {"_rollout"},
    "config/domain_keys": {"_LABELS"},
    "features/rl/settings": {"ApexDQN.idle"},
    "domains/experience": {"_check_actions", "read_record"},
    "domains/plugin": {"Findings.lines", "_check_jacobian", "_seen"},
    "domains/proposal": {"_range", "_text", "propose"},
    "features/atari/screens": {"Screens._shrink", "Screens.keep"},
    "features/rollouts/film": {"Shot._space", "_encoded", "_scaled"},
    "elites/reevaluation": {"result_line"},
    "features/rollouts/rollout": {"_score"},
    "engines/pool": {"Parts._size"},
    "runs/elite": {"describe_nearest", "said"},
    "features/imported/foreign_results": {"Foreign.__str__", "_compare", "_metrics"},
    "runs/load": {"Run.at"},
    "experiment/run": {"Recorder._note_start", "_require_time"},
    "experiment/saver": {"Saver.save"},
    "experiment/stop": {"Stop.interruptible"},
    "host/machine": {"Load.look"},
    "metrics": {"Metric.with_value"},
    "planning/console": {"ProgressLines._summary"},
    "planning/slurm_jobs": {"memory_mb"},
    "planning/outlook": {"_first_batch"},
    "features/scale/study": {"_figure", "advise"},
    "search/levels": {"_rungs"},
    "search/search_outlook": {"_table"},
    "sweep/drawn": {"DrawnSource.scaled", "_rounded"},
}


def _rounds(node):
    """Returns whether a part of code rounds a number."""
    if isinstance(node, ast.Call):
        called = node.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        return name in ("short", "short_number", "significant", "round", "rint")
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        return ast.unparse(node.format_spec).rstrip("'\"")[-1:] in tuple("gGeE%")
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and bool(re.search(r"%[.\d]*[gG]|\{[^{}]*:[,.\d]*[gG]\}", text))


def _places(node, path):
    """Yields the functions, or the constants of the module, that round."""
    for child in ast.iter_child_nodes(node):
        within = path
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            within = f"{path}.{child.name}"
        elif isinstance(child, ast.Assign) and not path and isinstance(child.targets[0], ast.Name):
            within = f".{child.targets[0].id}"
        if _rounds(child):
            yield path
        yield from _places(child, within)


def test_every_place_that_rounds_a_number_is_known():
    """A new place is listed above if no key, group, cache, scale or file name is made from it."""
    package, found = REPO / "workflow/qdsweep", {}
    for file in sorted(package.rglob("*.py")):
        name = str(file.relative_to(package).with_suffix(""))
        places = {place[1:] for place in _places(ast.parse(file.read_text()), "")}
        if places and name != "text":
            found[name] = places
    assert found == ROUNDED
