"""qdsweep as a module of another workflow, in an environment without a clone."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from installation import environment, host, type_in
from pages import blocks
from refusals import names_all
from support import BIN, REPO, TINY, write_yaml

PAGE = (REPO / "docs/guide/module.md").read_text()
TAG = re.search(r'tag="(.*?)"', PAGE)[1]
OTHERS = "workflow/rules/common.smk"
SMALL = {"name": "small", "experiment": TINY, "sweep": "::: algorithm map_elites ::: seed 1"}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory) -> dict[str, str]:
    return host(tmp_path_factory.mktemp("github"), TAG)


def write(snakefile: str) -> None:
    Path("Snakefile").write_text(snakefile)


def block(language: str, number: int = 0) -> str:
    return blocks(PAGE, language)[number]


def test_the_pages_workflow(tmp_path, hosted):
    """From a repository: two sweeps with prefixes, and a rule that reads their tables."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(block("yaml"))
    write(block("python"))
    (tmp_path / "best.py").write_text(block("python", 1))
    words = block("console").removeprefix("$ ").split()
    type_in(environment(), *words, cwd=tmp_path, **hosted)
    best = pd.read_csv("best.csv")
    rows = [pd.read_csv(f"{name}/results/sweeps/{name}/summary.csv") for name in ("sigma", "batch")]
    assert [len(table) for table in rows] == [4, 2]
    assert rows[0]["sigma"].unique().tolist() == [0.1, 0.001]
    assert best["qd_score"].tolist() == [max(table["qd_score"].max() for table in rows)]
    assert not Path("results").exists()
    assert Path(".snakemake/log/qdsweep-warm.log").exists(), "by the start of the modules"
    made = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/results/**/*.csv")}
    type_in(environment(), *words, cwd=tmp_path, **hosted)
    assert made == {path: path.stat().st_mtime_ns for path in made}, "computed again"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="snakedeploy needs an older Python")
def test_what_snakedeploy_makes(tmp_path, hosted):
    (line,) = re.findall(r"`(snakedeploy .*?)`", PAGE)
    program, *words = line.replace("FOLDER", str(tmp_path / "mine")).split()
    type_in(BIN, program, *words, cwd=tmp_path, **hosted)
    write_yaml(tmp_path / "mine/config/config.yaml", SMALL)
    type_in(environment(), "snakemake", "--cores", 2, cwd=tmp_path / "mine", **hosted)
    assert (tmp_path / "mine/results/sweeps/small/report.html").is_file()
    words = ("-n", "--config", "sweep=::: algorithm map_elites ::: seed 1 2 3")
    done = type_in(environment(), "snakemake", *words, cwd=tmp_path / "mine", **hosted)
    names_all(done.stderr, "adhoc-", "3 runs", "1 finished")
    assert OTHERS not in done.stderr


def test_without_the_package_one_line_names_it(tmp_path, hosted):
    write(block("python").replace('configfile: "config/config.yaml"', "config = {}"))
    done = type_in(environment(package=False), "snakemake", "-n", cwd=tmp_path, check=1, **hosted)
    message = done.stdout + done.stderr
    names_all(message, f"workflow/Snakefile@{TAG}", "qdsweep")
    assert "ModuleNotFoundError" not in message


HEAD = f"""
from qdsweep.config.files import HOME
SMALL = {SMALL}
"""
MODULE = """
module {name}:
    snakefile: HOME / "workflow/Snakefile"
    {config}
    {prefix}
use rule * from {name} as {name}_*
"""


def module(name: str, config: str = "config: SMALL", prefix: str = "") -> str:
    return MODULE.format(name=name, config=config, prefix=prefix)


def dry_run(tmp_path: Path, check: int = 0) -> str:
    done = type_in(environment(), "snakemake", "-n", cwd=tmp_path, check=check)
    return done.stderr + done.stdout


# Snakemake's YAML reads `1e-3` as text, but qdsweep reads it as a number.
WRONG = {**TINY, "algorithm": "map_elites", "sigma": "1e-3", "batch_size": "many"}


@pytest.mark.parametrize(
    ("modules", "named"),
    [
        (module("one") + module("two"), ("module two", "module one", "results/", 'prefix: "two"')),
        (module("one", prefix='prefix: "my study"'), ("module one", "my study/results")),
        (
            module("one", config=f"config: SMALL | {{'experiment': {WRONG}}}"),
            ("module one", "batch_size", "many"),
        ),
        (
            module("one", config="config: SMALL | {'searh': {}}"),
            ("module one", "searh", "search"),
        ),
    ],
    ids=["one place for two", "prefix", "value", "key"],
)
def test_what_is_wrong_is_named_with_its_module(tmp_path, modules, named):
    write(HEAD + modules)
    message = dry_run(tmp_path, check=1)
    names_all(message, *named)
    assert "sigma" not in message


def test_a_module_without_config_takes_the_working_directorys(tmp_path):
    """Files in its names stay in their folder with any prefix."""
    theirs = {"algorithm": "theirs", "domain": "lp_sphere", "seeds": [1], "evaluations": 9}
    theirs |= {"objective_range": [0, 100]}
    theirs["archive"] = {"file": "theirs.npz", "dims": [12, 12], "ranges": [[-1, 1], [-1, 1]]}
    write_yaml(tmp_path / "theirs.yaml", theirs)
    np.savez(tmp_path / "theirs.npz", objective=[1.0], measures=[[0.0, 0.0]], solution=[[0.0]])
    (tmp_path / "config").mkdir()
    write_yaml(tmp_path / "config/config.yaml", SMALL | {"imported": ["theirs.yaml"]})
    write(HEAD + module("one", config="", prefix="prefix: 'a'"))
    names_all(dry_run(tmp_path), "small", "theirs.yaml")


def test_a_search_with_a_prefix_starts_before_the_users_own_onstart(tmp_path):
    search = {"sweep": "::: algorithm map_elites ::: sigma 0.1 0.2 0.5", "search": {"halving": {}}}
    own = "onstart:\n    print('MINE', open('a/results/sweeps/small/plan.json').read()[:1])\n"
    write(HEAD + module("one", config=f"config: SMALL | {search}", prefix="prefix: 'a'") + own)
    words = ("snakemake", "--cores", 2, "a/results/sweeps/small/search.csv")
    done = type_in(environment(), *words, cwd=tmp_path)
    assert "MINE {" in done.stdout
    assert len(pd.read_csv("a/results/sweeps/small/search.csv")) > 3
    assert not Path("results").exists()


def test_a_rule_of_another_release_is_named(tmp_path):
    code = "import shutil, qdsweep.config.files as f; shutil.copytree(f.HOME, 'other')"
    type_in(environment(), "python", "-c", code, cwd=tmp_path)
    with (tmp_path / "other" / OTHERS).open("a") as file:
        file.write("\n# Another release.\n")
    other = module("two", prefix="prefix: 'b'").replace("HOME /", "HOME.cwd() / 'other' /")
    write(HEAD + module("one") + other)
    assert dry_run(tmp_path).count(OTHERS) == 1
