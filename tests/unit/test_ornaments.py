"""An ornament that fails ends nothing: the run, its tables and the other ornaments are there."""

import importlib
import inspect
import logging

import pandas as pd
import pytest
from in_process import compute_sweep, forget_plugins, report_sweep
from looks import data_of, runs_of
from plugins import EXTREME
from results import summary
from support import REPO, TINY

from qdsweep import ornaments
from qdsweep.analysis.figures.figure import keep, read_index
from qdsweep.analysis.figures.plots import FIGURES, MAIN, plot_one
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.stages import STAGES
from qdsweep.errors import BadInput
from qdsweep.experiment.run_log import Progress, text_plot
from qdsweep.ornaments import Ornament, leave_out
from qdsweep.records.paths import SweepDir

PACKAGE = REPO / "workflow/qdsweep"
for file in PACKAGE.rglob("*.py"):
    if "ornament" in file.read_text():
        importlib.import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
EVERY = Ornament.every


class Argument:
    """An argument of any ornament."""

    name = section = title = "an argument"

    def __index__(self) -> int:
        return 80


@pytest.fixture
def left_out(monkeypatch, caplog):
    """The warnings so far, in a test whose ornaments may fail."""
    monkeypatch.setattr(ornaments, "leave_out", leave_out)
    return lambda: [r.getMessage() for r in caplog.records if "left out: " in r.getMessage()]


def fails(*arguments, **options):
    raise OverflowError("int too large to convert to float")


@pytest.mark.parametrize("one", EVERY, ids=[one.what for one in EVERY])
def test_an_ornament_that_fails_is_left_out(one, monkeypatch, left_out):
    taken = inspect.signature(one.__wrapped__).parameters.values()
    arguments = [Argument() for of in taken if of.kind is not of.KEYWORD_ONLY]
    options = {of.name: Argument() for of in taken if of.kind is of.KEYWORD_ONLY}
    monkeypatch.setattr(one, "make", fails)
    one(*arguments, **options)
    assert one.warn is not None or len(left_out()) == 1
    for error in (BadInput("a key"), OSError("no disk"), MemoryError(), KeyboardInterrupt()):

        def refuses(*arguments, error=error, **options):
            raise error

        monkeypatch.setattr(one, "make", refuses)
        with pytest.raises(type(error)):
            one(*arguments, **options)


def test_the_warning_is_on_the_terminal_and_the_traceback_in_the_log(monkeypatch, capsys, left_out):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    ornament = Ornament(fails, "the figure {0}", lambda why, name: why)
    EVERY.remove(ornament)
    assert ornament("overview") == "OverflowError: int too large to convert to float"
    out, log = capsys.readouterr()
    assert out.splitlines() == [
        "qdsweep: warning: left out: the figure overview: "
        "OverflowError: int too large to convert to float"
    ]
    assert "Traceback" in log and "in fails" in log


def test_an_object_warns_once(tmp_path, monkeypatch, left_out):
    of_run = [one for one in EVERY if one.make.__qualname__.startswith("Progress.")]
    of_run = [one for one in of_run if one.make.__module__.endswith("run_log")]
    assert len(of_run) > 3
    for one in of_run:
        monkeypatch.setattr(one, "make", fails)
    monkeypatch.setattr("qdsweep.experiment.run_log.FIRST_PLOT_SECONDS", 0.0)
    progress = Progress({"iterations": 9}, 0, tmp_path / "metrics.csv", bar=True)
    progress._interval = 0.0
    progress._bar = "a bar"
    for iteration in range(1, 4):
        progress._plot_interval = progress._interval = 0.0
        progress.show({"iteration": iteration, "evaluations": 8, "qd_score": 1.0})
    progress.close()
    assert len(left_out()) == len(of_run)


# In a sweep without a search, rollouts, a terminal or a cluster, these are not made.
ELSEWHERE = {
    *("_of_settings", "_episodes", "Progress._start_bar", "Progress._move_bar", "_say_where"),
    *("sparkline", "curve_plot", "_figure", "_update"),
}
# An ornament -> the one that gives its data.
OF = {"stills": "_read"}


def name_of(one):
    """Returns the name of an ornament's function."""
    return one.__qualname__


OF_SWEEP = [
    one for one in EVERY if name_of(one) not in ELSEWHERE and "planning" not in one.__module__
]


def recorded(one, made):
    """Returns the function of an ornament, which adds its name to `made`."""
    make = one.make

    def make_it(*arguments, **options):
        result = make(*arguments, **options)
        made.add(name_of(one))
        return result

    make_it.__qualname__ = make.__qualname__
    return make_it


@pytest.mark.parametrize("part", [0, 1])
def test_the_run_its_tables_and_the_other_ornaments_are_there(
    part, tmp_path, monkeypatch, left_out
):
    failing, made = OF_SWEEP[part::2], set[str]()
    lost, others = ({name_of(one) for one in of} for of in (failing, OF_SWEEP[1 - part :: 2]))
    for one in OF_SWEEP:
        monkeypatch.setattr(one, "make", fails if one in failing else recorded(one, made))
    experiment = {**TINY, "algorithm": "map_elites", "iterations": 3}
    sweep = report_sweep(compute_sweep(tmp_path / "results", experiment, "::: seed 1 2"))
    assert all(summary(run)["status"] == "finished" for run in runs_of(sweep).iterdir())
    assert made == {name for name in others if OF.get(name) not in lost}
    beginnings = {f"left out: {one.what.split('{')[0]}" for one in failing}
    assert not [text for text in left_out() if not text.startswith(tuple(beginnings))]
    for beginning in beginnings:
        assert any(text.startswith(beginning) for text in left_out()), beginning
    assert len({*left_out()}) * 2 >= len(left_out()), "one in each of two runs"
    for stage in STAGES:  # Snakemake awaits all declared files
        needed = stage.name in ("aggregate", "plot", "evolution", "report")
        assert stage.is_done(sweep) or not needed, stage.name
    assert read_sheet(sweep / "table.json").rows
    drawn = {entry["name"]: entry["why"] for entry in read_index(sweep / "plots/figures.json")}
    assert {name for name in drawn if drawn[name]} <= lost | {
        name for name in drawn if "_save" in lost
    }
    assert set(drawn) == {name for name, (place, _) in FIGURES.items() if place == MAIN}


def test_the_other_pictures_of_a_folder_are_there(tmp_path, left_out):
    sweep, folder = SweepDir(tmp_path / "sweeps/s"), tmp_path / "pictures"
    broken = {"b.png", "d.png"}

    def make(name: str) -> None:
        (folder / name).write_text("whole")
        if name in broken:
            fails()

    made_of = dict.fromkeys(("a.png", "b.png", "c.png", "d.png"), "it")
    for kept in ({"a.png", "c.png"}, {*made_of}):
        keep(folder, sweep, made_of, make)
        assert {path.name for path in folder.iterdir()} == kept
        broken.clear()  # what failed is tried again
    (warning,) = left_out()
    assert "b.png" in warning and "1 more" in warning


def test_a_single_figure_that_fails_is_refused(tmp_path, monkeypatch, left_out):
    experiment = {**TINY, "algorithm": "map_elites", "iterations": 2}
    sweep = compute_sweep(tmp_path / "results", experiment, "::: seed 1 2")
    for name in ("heatmaps", "_save"):
        (one,) = (one for one in OF_SWEEP if name_of(one) == name)
        with monkeypatch.context() as patch:
            patch.setattr(one, "make", fails)
            with pytest.raises(BadInput, match=r"heatmaps.*OverflowError"):
                plot_one(sweep, runs_of(sweep), "heatmaps")


overflows = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")


@pytest.fixture(scope="module")
def extreme(tmp_path_factory):
    """Returns sweeps whose objectives are near the ends of 64 bits."""
    folder = tmp_path_factory.mktemp("extreme")
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/extreme.py").write_text(EXTREME)
    forget_plugins()
    small = {"archive": {"dims": [5, 5]}, "iterations": 3, "num_emitters": 1, "batch_size": 4}
    sweeps = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(ornaments, "leave_out", leave_out)
        for name in ("Huge", "Big", "Tiny"):
            experiment = {**small, "first_batch": 4, "domain": f"extreme:{name}"}
            text = "::: algorithm map_elites cma_me ::: seed 1 2 3"
            sweeps[name] = compute_sweep(folder / "results", experiment, text, name=name)
    return sweeps


@overflows
@pytest.mark.parametrize("name", ["Huge", "Big", "Tiny"])
def test_tables_of_extreme_objectives_are_numbers(extreme, name):
    sweep = extreme[name]
    for path in [sweep / "table.json", *(sweep / "tables").glob("*.json")]:
        for row in read_sheet(path).rows:
            for cell in row:
                assert len(cell.text) < 80, "powers of ten"
                assert not (cell.bold and cell.key is None), "a dash is not the best"
    table = pd.read_csv(sweep / "table.csv")
    for metric in ("obj_max", *([] if name == "Huge" else ["qd_score", "norm_qd_score"])):
        assert (table[f"{metric}_n"] == 3).all()
        assert (table[f"{metric}_se"] > 0).all() and table[f"{metric}_se"].lt(float("inf")).all()


@overflows
def test_a_sweep_of_extreme_objectives_has_its_page(extreme, left_out):
    sweep = report_sweep(extreme["Huge"])
    assert "Not drawn: " in (sweep / "report.html").read_text()
    assert len(data_of(sweep).series) == 2
    assert any("the figure overview" in text for text in left_out())


def test_a_text_plot_of_the_smallest_numbers_ends_no_run(tmp_path, left_out):
    lines = ["iteration,evaluations,qd_score,coverage,seconds_ask"]
    lines += [f"{i},{8 * i},{i}e-310,0.5,0.1" for i in (1, 2, 3)]
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("\n".join(lines) + "\n")
    with pytest.raises(OverflowError):
        text_plot(metrics)
    Progress({"iterations": 3}, 0, metrics, bar=False).plot()
    assert len(left_out()) == 1
