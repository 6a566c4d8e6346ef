"""Pictures are kept while their inputs do not change."""

import shutil

from qdsweep.analysis.figures.figure import keep, keep_all
from qdsweep.records.paths import SweepDir


def test_only_a_picture_with_other_inputs_is_rebuilt(tmp_path):
    sweep, made = SweepDir(tmp_path), []

    def fill(**made_of):
        def make(name):
            made.append(name)
            (sweep.archives / name).write_text(made_of[name])

        shutil.rmtree(sweep.archives, ignore_errors=True)  # as after a job that failed
        keep(sweep.archives, sweep, made_of, make)
        assert {path.name: path.read_text() for path in sweep.archives.iterdir()} == made_of

    fill(a="1", b="1")
    fill(a="1", b="2")
    assert made == ["a", "b", "b"]
    fill(a="1")
    assert len(list(sweep.kept.rglob("*"))) == 2  # the folder and its file
    fill(a="1", b="2")
    assert made == ["a", "b", "b", "b"]


def test_a_folder_of_unknown_files_comes_back_as_a_whole(tmp_path):
    sweep, made = SweepDir(tmp_path), []

    def fill(made_of):
        def make():
            made.append(made_of)
            (sweep.rollouts / f"{made_of}.gif").write_text(made_of)
            return [f"{made_of}.gif"], made_of != "z"

        keep_all(sweep.rollouts, sweep, made_of, make)
        assert [path.name for path in sweep.rollouts.iterdir()] == [f"{made_of}.gif"]

    for made_of in "xxyx":
        fill(made_of)
    (sweep.kept / "rollouts/x.gif").unlink()  # incomplete, as after a kill
    for made_of in "xx":
        fill(made_of)
    for made_of in "zz":  # not all were made, so they are tried again
        fill(made_of)
    assert made == ["x", "y", "x", "x", "z", "z"]
