"""Pictures that stay as long as they are made of the same."""

import shutil

from qdsweep.analysis.figures.figure import keep, keep_all
from qdsweep.records.paths import SweepDir


def test_only_what_is_made_of_something_else_is_made_again(tmp_path):
    sweep, made = SweepDir(tmp_path), []

    def fill(**made_of):
        shutil.rmtree(sweep.archives, ignore_errors=True)  # as Snakemake does

        def make(name):
            made.append(name)
            (sweep.archives / name).write_text(made_of[name])

        keep(sweep.archives, sweep, made_of, make)
        return {path.name: path.read_text() for path in sweep.archives.iterdir()}

    assert fill(a="1", b="1") == {"a": "1", "b": "1"}
    assert fill(a="1", b="2") == {"a": "1", "b": "2"}
    assert made == ["a", "b", "b"]
    assert fill(a="1") == {"a": "1"}
    assert len(list(sweep.kept.rglob("*"))) == 2  # the folder and its file
    assert fill(a="1", b="2") and made == ["a", "b", "b", "b"]


def test_a_folder_of_unknown_files_comes_back_as_a_whole(tmp_path):
    sweep, made = SweepDir(tmp_path), []

    def fill(made_of):
        shutil.rmtree(sweep.rollouts, ignore_errors=True)

        def make():
            made.append(made_of)
            (sweep.rollouts / f"{made_of}.gif").write_text(made_of)
            return [f"{made_of}.gif"]

        keep_all(sweep.rollouts, sweep, made_of, make)
        return [path.name for path in sweep.rollouts.iterdir()]

    assert fill("x") == fill("x") == ["x.gif"]
    assert fill("y") == ["y.gif"]
    assert fill("x") == ["x.gif"]
    assert made == ["x", "y", "x"]
    (sweep.kept / "rollouts/x.gif").unlink()  # torn, as two starts at a time leave it
    assert fill("x") == fill("x") == ["x.gif"]
    assert made == ["x", "y", "x", "x"]
