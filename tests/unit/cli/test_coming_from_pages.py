"""docs/coming_from: records of other tools are up to date, and qdsweep computes their scores."""

import re
import runpy
import shutil

import numpy as np
import pytest
from in_process import compute_sweep
from support import REPO

from qdsweep import load_sweep

PAGES = REPO / "docs/coming_from"
PEERS = runpy.run_path(str(PAGES / "theirs/record.py"))["PEERS"]


def recorded(name: str) -> str:
    return (PAGES / f"theirs/records/{name}.txt").read_text()


@pytest.mark.parametrize("name", PEERS)
def test_the_record_was_made_from_what_the_page_shows(name):
    again = f"docs/coming_from/theirs/record.py {name}"
    assert recorded(name).endswith(f"# recorded from {PEERS[name].fingerprint()}\n"), again
    page = (PAGES / f"{name}.md").read_text()
    assert f"{{literalinclude}} theirs/records/{name}.txt" in page


def test_every_page_and_record_has_its_peer():
    assert {path.stem for path in PAGES.glob("*.md")} - {"index"} == set(PEERS)
    assert {path.stem for path in (PAGES / "theirs/records").iterdir()} == set(PEERS)


def test_qdsweep_computes_the_scores_of_the_other_tools(plugins, in_own_folder):
    shutil.copytree(PAGES / "ours/config", "config", dirs_exist_ok=True)
    shutil.copy(PAGES / "theirs/bowl.py", "config/plugins")
    sweeps = {
        sweep
        for page in PAGES.glob("*.md")
        for sweep in re.findall(r'^experiment: bowl\nsweep: "(::: .*)"$', page.read_text(), re.M)
    }
    (sweep,) = sweeps  # one small experiment on all pages
    compute_sweep(in_own_folder / "results", "bowl", sweep)
    table = load_sweep("tiny")
    ours = [f"{score:.3f}" for score in table["qd_score"]]
    assert len(ours) == 6
    for name in PEERS:
        theirs = re.findall(r"^.+\t(\d)\t(\d+\.\d{3})$", recorded(name), re.M)
        assert [score for _, score in theirs] == ours, name

    script = runpy.run_path("config/plugins/bowl.py")
    scheduler = script["make"](sigma=0.5, seed=1)
    for _ in range(30):
        scheduler.tell(*script["evaluate"](scheduler.ask()))
    data = scheduler.archive.data()
    with np.load(f"results/runs/{table['id'][3]}/archive.npz") as archive:
        assert np.array_equal(archive["solution"], data["solution"][np.argsort(data["index"])])
