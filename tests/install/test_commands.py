"""Every command of an installed qdsweep, in a folder with only a user's own files."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from installation import activated, environment, type_in
from refusals import names_all
from support import write_yaml
from waiting import wait_until

# A preset of the user, which precedes qdsweep's preset of the same name.
LANDER = {
    "domain": "lunar_lander",
    "algorithm": "map_elites",
    "archive": {"dims": [9, 9]},
    "num_emitters": 1,
    "batch_size": 10,
    "iterations": 9,
}
SWEEP = {
    "name": "small",
    "experiment": "lunar_lander",
    "sweep": "::: sigma 0.5 1.0 ::: seed 1",
    "reevaluate": {"times": 2},
    "confirm": {"top": 1, "seeds": [101, 102]},
    "rollouts": {"elites": ["best"]},
}
SEARCH = {
    "name": "search",
    "experiment": "lunar_lander",
    "sweep": "::: sigma 0.5 1.0 2.0 ::: seed 1",
    "search": {"halving": {}},
}
THEIRS = {
    "algorithm": "theirs",
    "domain": "lunar_lander",
    "seeds": [1],
    "objective_range": [-600, 400],
    "evaluations": 20,
    "archive": {"file": "out/archive.npz", "dims": [9, 9], "ranges": [[-1, 1], [-3, 0]]},
}
# A preset of qdsweep.
PLUGIN = "from maze import Maze\n\n\nclass Mine(Maze):\n    pass\n"
# The commands of the rules. The sweep and the search below run all of them.
OF_RULES = {
    *("launch", "place", "decide", "search", "reevaluate", "aggregate", "corrected", "winners"),
    *("confirmed", "plot", "evolution", "rollouts", "report"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with presets of the user, and two sweeps of the packaged Snakefile."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "config/experiments").mkdir(parents=True)
    (folder / "config/plugins").mkdir()
    write_yaml(folder / "config/experiments/lunar_lander.yaml", LANDER)
    write_yaml(folder / "config/config.yaml", SWEEP)
    write_yaml(folder / "search.yaml", SEARCH)
    write_yaml(folder / "theirs.yaml", THEIRS)
    (folder / "config/plugins/mine.py").write_text(PLUGIN)
    home = "from qdsweep.config.files import HOME; print(HOME)"
    home = Path(type_in(environment(), "python", "-c", home, cwd=folder).stdout.strip())
    words = ("snakemake", "-s", home / "Snakefile", "--cores", 2)
    type_in(environment(), *words, cwd=folder)
    table = "results/sweeps/search/search.csv"
    type_in(environment(), words[0], table, *words[1:], "--configfile", "search.yaml", cwd=folder)
    return folder


def test_the_packaged_workflow_computes_the_users_presets(study):
    (run, *_) = (study / "results/runs").glob("lunar_lander-*-s1-*")
    assert yaml.safe_load((run / "config.yaml").read_text())["archive"]["dims"] == [9, 9]
    sweep = study / "results/sweeps/small"
    assert (sweep / "report.html").is_file()
    assert (sweep / "tables/confirmed.csv").is_file()
    assert (study / "results/sweeps/search/search.csv").is_file()


def qdsweep(study: Path, *words: object, check: int = 0) -> str:
    done = type_in(environment(), "qdsweep", *words, cwd=study, check=check)
    return done.stdout + done.stderr


def start(study: Path, *words: str, **streams: int) -> subprocess.Popen:
    words = (environment() / "qdsweep", *words)
    return subprocess.Popen(words, cwd=study, env=activated(environment()), **streams)


def test_every_command(study):
    typed = {
        "run": ("lunar_lander", "--out", "out", "--set", "iterations=2"),
        "check": ("mine:Mine",),
        "expand": ("::: seed 1 2",),
        "status": ("small",),
        "watch": ("small",),
        "audit": ("small.csv", "--add", "small"),
        "compare": ("small", "search"),
        "tuned": ("small", "--out", "config/algorithms/tuned.yaml"),
        "export": ("small", "--out", "small.zip"),
        "reproduce": ("small.zip", "--here", "--yes"),
        "clean": ("--dry-run",),
        "plan": (),
        "import": ("theirs.yaml", "--check"),
        "scale": ("lunar_lander", "--workers", "1,2", "--repeats", 1, "--out", "scaling"),
        "importance": ("search",),
        "init": ("new",),
        "sweep": ("search.yaml", "-n"),
        "adopt": ("out",),
        "merge": ("results", "--results", "merged"),
        "rollout": ("out", "--elites", "best", "--seconds", 1),
    }
    known = re.findall(r"^  (\w+) ", qdsweep(study, "--help-all"), flags=re.M)
    assert {*known} == {*typed, *OF_RULES, "worker", "explore"}, "these two do not end"
    for command, words in typed.items():
        qdsweep(study, command, *words)


def test_an_extra_is_named_as_pip_installs_it(study):
    printed = qdsweep(study, "export", "small", "--to", "tensorboard", "tb", check=2)
    names_all(printed, "tensorboard", "pip install 'qdsweep[tensorboard]'")
    assert not (study / "tb").exists()


def test_a_worker_joins_a_run(study):
    write_yaml(study / "dask.yaml", {"engine": "dask", "workers_per_node": 1})
    words = ["run", "lunar_lander", "--cluster", "dask.yaml", "--out", "joined"]
    run = start(study, *words, "--set", "iterations=100000")
    state = study / "joined/state"
    wait_until(lambda: (state / "connection/scheduler.json").exists(), what="it can be joined")
    worker = start(study, "worker", "--join", "joined")
    log = study / "joined/state/run.log"
    workers = re.compile(r"worker \S+ \(process \d+ on")
    wait_until(lambda: len(workers.findall(log.read_text())) == 2, what="the worker has joined")
    run.terminate()
    assert run.wait(300) == 75
    assert worker.wait(300) == 0
