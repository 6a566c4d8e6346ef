"""Redraws one figure."""

import pytest
from looks import runs_of
from refusals import refused

from qdsweep.analysis.figures.plots import FIGURES, plot, plot_one
from qdsweep.cli import main as qdsweep


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


def test_the_command_draws_only_the_figure_that_was_asked_for(sweep, capsys, monkeypatch):
    def refuse(*words):
        raise AssertionError("this figure was not requested")

    for name, (folder, _) in FIGURES.items():
        if name not in ("timing", "learning_curves"):
            monkeypatch.setitem(FIGURES, name, (folder, refuse))
    for name, folder in (("timing", "plots/more"), ("learning_curves", "plots")):
        assert qdsweep(["plot", "tiny", "--only", name, "--results", str(sweep.parents[1])]) == 0
        files = [sweep / folder / f"{name}.{end}" for end in ("pdf", "png", "svg", "csv")]
        assert capsys.readouterr().out.splitlines() == list(map(str, files))
        assert all(file.exists() for file in files)


@pytest.mark.parametrize(
    ("sweep", "name", "named"),
    [
        ("main", "nosuch", ["overview", "learning_curves"]),
        ("nosuch", "overview", ["main"]),
    ],
    ids=["figure", "sweep"],
)
def test_what_cannot_be_drawn_is_named_with_what_there_is(invented, main, sweep, name, named):
    with refused(name, *named) if sweep == "main" else refused(sweep, *named):
        plot_one(main.with_name(sweep), invented.runs, name)
