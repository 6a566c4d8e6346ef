"""qdsweep as a module of another workflow, in an environment without a clone."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from installation import environment, host, type_in
from pages import blocks
from support import BIN, REPO, TINY, write_yaml

PAGE = (REPO / "docs/guide/module.md").read_text()
TAG = re.search(r'tag="(.*?)"', PAGE)[1]
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
    done = type_in(environment(), *words, cwd=tmp_path, **hosted)
    best = pd.read_csv("best.csv")
    rows = [pd.read_csv(f"{name}/results/sweeps/{name}/summary.csv") for name in ("sigma", "batch")]
    assert [len(table) for table in rows] == [4, 2]
    assert rows[0]["sigma"].unique().tolist() == [0.1, 0.001]
    assert best["qd_score"].tolist() == [max(table["qd_score"].max() for table in rows)]
    assert not Path("results").exists()
    assert "qdsweep: sigma: 4 runs" in done.stderr
    assert Path(".snakemake/log/qdsweep-warm.log").exists(), "of the modules' start"
    done = type_in(environment(), *words, cwd=tmp_path, **hosted)
    assert "Nothing to be done" in done.stderr


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
    assert re.search(r"qdsweep: adhoc-\w+: 3 runs, 1 finished", done.stderr)
    assert "is not of the installed package" not in done.stderr


def test_without_the_package_one_line_says_so(tmp_path, hosted):
    write(block("python").replace('configfile: "config/config.yaml"', "config = {}"))
    done = type_in(environment(package=False), "snakemake", "-n", cwd=tmp_path, check=1, **hosted)
    said = done.stdout + done.stderr
    assert f"workflow/Snakefile@{TAG}: the Python package qdsweep is not installed" in said
    assert "No module named" not in said


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


def test_where_the_results_of_modules_cannot_be(tmp_path):
    write(HEAD + module("one") + module("two"))
    said = dry_run(tmp_path, check=1)
    assert "module two: results/ is where the module one keeps its results" in said
    assert 'prefix: "two"' in said
    write(HEAD + module("one", prefix='prefix: "my study"'))
    assert "module one: its prefix makes 'my study/results'" in dry_run(tmp_path, check=1)


def test_a_module_without_config_takes_the_working_directorys(tmp_path):
    """What that names stays where it is, whatever the prefix."""
    theirs = {"algorithm": "theirs", "domain": "lp_sphere", "seeds": [1], "evaluations": 9}
    theirs |= {"objective_range": [0, 100]}
    theirs["archive"] = {"file": "theirs.npz", "dims": [12, 12], "ranges": [[-1, 1], [-1, 1]]}
    write_yaml(tmp_path / "theirs.yaml", theirs)
    (tmp_path / "theirs.npz").touch()
    (tmp_path / "config").mkdir()
    write_yaml(tmp_path / "config/config.yaml", SMALL | {"imported": ["theirs.yaml"]})
    write(HEAD + module("one", config="", prefix="prefix: 'a'"))
    said = dry_run(tmp_path)
    assert "qdsweep: small: 1 run," in said
    assert "import theirs.yaml" in said


def test_its_own_values_are_numbers_and_its_errors_name_it(tmp_path):
    """Snakemake's YAML leaves `1e-3` as text."""
    experiment = {**TINY, "algorithm": "map_elites", "sigma": "1e-3", "batch_size": "many"}
    write(HEAD + module("one", config=f"config: SMALL | {{'experiment': {experiment}}}"))
    said = dry_run(tmp_path, check=1)
    assert "the experiment: batch_size = 'many': should be" in said
    assert "sigma" not in said
    write(HEAD + module("one", config="config: SMALL | {'searh': {}}"))
    assert "config of the module one: unknown key searh; did you mean" in dry_run(tmp_path, check=1)


def test_a_search_with_a_prefix_starts_before_the_users_own_onstart(tmp_path):
    search = {"sweep": "::: algorithm map_elites ::: sigma 0.1 0.2 0.5", "search": {"halving": {}}}
    own = "onstart:\n    print('MINE', open('a/results/sweeps/small/plan.json').read()[:1])\n"
    write(HEAD + module("one", config=f"config: SMALL | {search}", prefix="prefix: 'a'") + own)
    words = ("snakemake", "--cores", 2, "a/results/sweeps/small/search.csv")
    done = type_in(environment(), *words, cwd=tmp_path)
    assert "MINE {" in done.stdout
    assert len(pd.read_csv("a/results/sweeps/small/search.csv")) > 3
    assert not Path("results").exists()


def test_rules_of_another_release_are_told_from_the_packages(tmp_path):
    code = "import shutil, qdsweep.config.files as f; shutil.copytree(f.HOME, 'other')"
    type_in(environment(), "python", "-c", code, cwd=tmp_path)
    with (tmp_path / "other/workflow/rules/common.smk").open("a") as file:
        file.write("\n# Another release.\n")
    other = module("two", prefix="prefix: 'b'").replace("HOME /", "HOME.cwd() / 'other' /")
    write(HEAD + module("one") + other)
    said = dry_run(tmp_path)
    assert said.count("is not of the installed package") == 1
    assert "other/workflow/rules/common.smk is not of" in said
