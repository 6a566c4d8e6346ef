"""One figure drawn again."""

import pytest
from looks import runs_of

from qdsweep.analysis.figures.plots import FIGURES, plot, plot_one
from qdsweep.cli import main
from qdsweep.errors import BadInput


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

    for name, (folder, _) in FIGURES.items():
        if name not in ("timing", "learning_curves"):
            monkeypatch.setitem(FIGURES, name, (folder, refuse))
    results = str(sweep.parent.parent)
    assert main(["plot", "tiny", "--only", "timing", "--results", results]) == 0
    printed = capsys.readouterr().out.splitlines()
    more = sweep / "plots/more"
    assert printed == [str(more / f"timing.{end}") for end in ("pdf", "png", "svg", "csv")]
    assert all((more / f"timing.{end}").exists() for end in ("pdf", "csv"))
    assert main(["plot", "tiny", "--only", "learning_curves", "--results", results]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("plots/learning_curves.pdf")
