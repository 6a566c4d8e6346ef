"""Swept arguments may have any name, also that of a column of a table or a figure."""

import csv
import keyword
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import compute_sweep, forget_plugins, qdsweep
from refusals import names_all
from results import read_json
from searching import halving, population, run_of, write_search

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.combinations import combinations
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.figures.search_figures import (
    lineage,
    search_combinations,
    search_coordinates,
    search_tree,
)
from qdsweep.analysis.page.report import report
from qdsweep.analysis.search_progress import Searched, read_search
from qdsweep.analysis.tables.importance import write_importance
from qdsweep.analysis.tables.search_table import place_table, setting_sheet
from qdsweep.analysis.tables.search_table import write_search as write_tables
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.keys import PRESETS, key_paths
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import sweep_of
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.groups import CHANGES, MEMBER

DOMAIN = """
import numpy as np
from qdsweep.domains.base import Evaluation

class Joint:
    solution_dim = 3
    measures = {{"a": (-3.0, 3.0), "b": (-3.0, 3.0)}}
    objective_range = (-1000.0, 1000.0)
    fields = {{}}

    def __init__(self, {arguments}):
        self.sum = {sum}

    def evaluate(self, solutions, seeds):
        return Evaluation(0.1 * self.sum - (solutions**2).sum(axis=1), solutions[:, :2])
"""
EXPERIMENT = {
    "algorithm": "map_elites",
    "archive": {"dims": [6, 6]},
    "num_emitters": 1,
    "batch_size": 10,
    "initial_solutions": 10,
    "iterations": 3,
}
# Of a computed run, which differ from one time to the next, and names of groups and runs.
VOLATILE = ("seconds", "id", "group", "load")
# The names of the report and of ../faults that no file of the fixtures has.
REPORTED = ("n", "k", "mean", "se", "group", "id", "metric", "runs", "budget", "why", "status")
PSEUDO = (SAMPLE, MEMBER, CHANGES, "sweep")


@pytest.fixture(scope="module")
def names(main, tmp_path_factory) -> list[str]:
    """Returns the columns of all tables and of the data of all figures."""
    results = tmp_path_factory.mktemp("searches")
    tables = [main, write_search(results, halving(6), settings(["p", "q"]), score)]
    write_tables(tables[1], results / "runs")
    files = [file for folder in tables for file in folder.rglob("*.csv")] + [main / "runs.tsv"]
    headers = [line for file in files for line in header(file)]
    for figure in searched(results, population(4, 3), ["p", "q"])[1]:
        headers += list(figure.data)
    assert {"plots", "tables", "tuned"} < {file.parent.name for file in files}
    return takeable([*headers, *REPORTED, *PSEUDO])


def takeable(names: list[str]) -> list[str]:
    """Returns the names that an argument can have, and that are no keys of an experiment."""
    paths = [*key_paths(Experiment, compose("lp_sphere").model_dump())]
    keys = {path[-1] for path, _ in paths} | {*PRESETS, "seed", "iterations", "evaluations"}
    names = [name for name in dict.fromkeys(names) if name.isidentifier() and name not in keys]
    return [name for name in names if not keyword.iskeyword(name)]


def header(file: Path) -> list[str]:
    with file.open() as opened:
        return next(csv.reader(opened, delimiter="\t" if file.suffix == ".tsv" else ","))


def settings(names: list[str], count: int = 6) -> list[dict[str, float]]:
    """Returns settings with another value of each name."""
    return [{name: 10 * i + k for i, name in enumerate(names)} for k in range(count)]


def score(values, seed: str, budget: int) -> float:
    numbers = [value for value in values.values() if isinstance(value, int | float)]
    return sum(numbers) / 10 + budget / 1000 + int(seed or 0) / 7


def experiment(names: list[str], module: str) -> dict:
    """Writes a domain with these arguments, and returns its experiment.

    Each test has its own module, because a process composes a part only once.
    """
    folder = Path("config/plugins")
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ", ".join(f"{name}=0" for name in names)
    terms = " + ".join(f"(len({n}) if isinstance({n}, str) else {n})" for n in names)
    (folder / f"{module}.py").write_text(DOMAIN.format(arguments=arguments, sum=terms))
    forget_plugins()
    return {**EXPERIMENT, "domain": f"{module}:Joint"}


def columns(sweep: Path, names: list[str]) -> dict[str, str]:
    """Returns name -> its column in summary.csv, its dotted path where the name is taken."""
    there = header(sweep / "summary.csv")
    assert len(there) == len(set(there))
    dotted = {name: f"domain.arguments.{name}" for name in names}
    return {name: path if path in there else name for name, path in dotted.items()}


def innocent(table: pd.DataFrame, columns: dict[str, str]) -> pd.DataFrame:
    """Returns a table with q0, q1, ... as the names of its swept arguments."""
    assert table.columns.is_unique
    assert {*columns.values()} <= {*table}
    table = table.rename(columns={column: f"q{i}" for i, column in enumerate(columns.values())})
    kept = [name for name in table if not any(word in name for word in VOLATILE)]
    return table[kept].reindex(columns=sorted(kept))


def swept(names: list[str], name: str) -> Path:
    """Computes a sweep of arguments, which have other values in each of its two groups."""
    values = " :::+ ".join(f"{each} {10 * i + 1} {10 * i + 2}" for i, each in enumerate(names))
    swept = experiment(names, name)
    return compute_sweep(Path("results"), swept, f"::: {values} ::: seed 1 2", name)


def test_tables_hold_the_values_of_arguments_of_any_name(names):
    assert len(names) > 120
    taken, plain = swept(names, "taken"), swept([f"q{i}" for i in range(len(names))], "plain")
    of = columns(taken, names)
    assert of["n"] == "domain.arguments.n" and of["k"] == "k" and "sample" not in of.values()
    nothing = {f"q{i}": f"q{i}" for i in range(len(names))}
    for file in ("summary.csv", "table.csv", "curves.csv"):
        ours, theirs = (pd.read_csv(sweep / file) for sweep in (taken, plain))
        pd.testing.assert_frame_equal(innocent(ours, of), innocent(theirs, nothing))
    runs = pd.read_csv(taken / "runs.tsv", sep="\t")
    assert list(runs[of["id"]].unique()) == [10 * names.index("id") + k for k in (1, 2)]
    assert runs["id"].str.startswith("Joint").all() and runs.columns.is_unique
    (ours,), (theirs,) = (
        combinations(SweepData.read(sweep, Path("results/runs"))) for sweep in (taken, plain)
    )
    pd.testing.assert_frame_equal(innocent(ours.table, of), innocent(theirs.table, nothing))
    of |= {name: name for name in PSEUDO}  # dotted in the sweep itself, so their label is short
    assert [axis.label for axis in ours.axes] == [of[name] for name in names]


def test_figures_and_page_show_the_reported_names():
    """Each value differs from the number of runs, their mean, and their group."""
    names = ["n", "k", "mean", "group"]
    linked = "mean 0 1 :::+ group a b :::+ k 8 9"
    keys = {"names": {"k": "gain"}}
    text = f"::: n 3 5 7 ::: {linked} ::: seed 1 2"
    sweep = compute_sweep(Path("results"), experiment(names, "shown"), text, "all", figures=keys)
    for stage in (plot, report):
        stage(sweep, Path("results/runs"))
    assert (sweep / "report.html").exists()
    drawn = {file.stem: pd.read_csv(file) for file in (sweep / "plots").rglob("*.csv")}
    for name in ("slice_domain.arguments.n", "slice_domain.arguments.mean", "parallel_coordinates"):
        data = drawn[name]
        assert {*data["domain.arguments.n"]} == {3, 5, 7} and (data["n"] == 2).all()
        assert {*data["domain.arguments.group"]} == {"a", "b"} and {*data["k"]} == {8, 9}
    table = pd.read_csv(sweep / "table.csv")
    assert list(table["domain.arguments.n"].unique()) == [3, 5, 7] and (table["runs"] == 2).all()
    shown = read_json(sweep / "table.json")
    assert {"gain", "domain.arguments.n", "domain.arguments.mean"} < {*shown["columns"]}


def searched(results: Path, levels, names: list[str]) -> tuple[Searched, list[Drawn]]:
    """Returns a search of arguments, and those of its figures that show values."""
    swept = settings(names, levels[0].places)
    folder = write_search(results / str(len(names)), levels, swept, score)
    run = SweepDir(folder).results.run(run_of(0, "1"))
    run.state.path.mkdir(parents=True, exist_ok=True)
    arguments = dict.fromkeys(names, 0)
    run.state.config.write_text(yaml.safe_dump({"domain": {"arguments": arguments}}))
    search = read_search(SweepDir(folder), read_plan(SweepDir(folder)))
    assert search is not None
    return search, [search_coordinates(search), *([search_tree(search)] if search.is_pbt else [])]


@pytest.mark.parametrize("levels", [halving(6), population(4, 3)], ids=["halving", "pbt"])
def test_searches_hold_the_values_of_arguments_of_any_name(levels, names, tmp_path):
    names = [name for name in names if name not in PSEUDO]  # refused, or of a population
    ours, drawn = searched(tmp_path / "ours", levels, names)
    plain = [f"q{i}" for i in range(len(names))]
    theirs, also = searched(tmp_path / "theirs", levels, plain)
    of = {name: ours.column(name) for name in names}
    assert of["budget"] == "domain.arguments.budget" and of["k"] == "k"
    nothing = {name: name for name in plain}
    pairs = [(place_table(search), search_combinations(search).table) for search in (ours, theirs)]
    for mine, other in zip(*pairs, strict=True):
        kept = [name for name in other if name not in ("runs",)]
        mine, other = innocent(mine, of), innocent(other[kept], nothing)
        pd.testing.assert_frame_equal(mine[other.columns], other)
    for figure, other in zip(drawn, also, strict=True):
        assert figure.data.columns.is_unique and len(figure.data) == len(other.data)
    if ours.is_pbt:
        table = lineage(ours)
        assert list(table[f"value_{of['budget']}"]) == [
            str(trial.values["budget"]) for trial in ours.placed
        ]
    headings = setting_sheet(ours).columns
    assert headings[: len(names)] == [of[name] for name in names]


def test_importance_names_columns():
    text = "::: n 1 2 3 4 5 ::: k 1 2 3 4 ::: seed 1"
    sweep = compute_sweep(Path("results"), experiment(["n", "k"], "important"), text, "many")
    pytest.importorskip("optuna")
    write_importance(sweep, Path("results/runs"))
    data = pd.read_csv(sweep / "tables/importance.csv")
    assert {*data["name"]} == {"domain.arguments.n", "k"} and np.isfinite(data["ped_anova"]).all()


def test_a_sweep_file_names_arguments_as_the_sweep_does():
    """An argument with the name of a pseudo column has its dotted path from the start."""
    keys = "figures: {names: {sample: shown}, encode: {color: n, dash: sample}}"
    lines = [
        "name: mine",
        f"experiment: {experiment(['sample', 'n'], 'sampled')}",
        'sweep: "::: sample 1 2 ::: n 3 4"',
        keys,
    ]
    Path("mine.yaml").write_text("\n".join(lines))
    text = qdsweep("plan", "mine.yaml", cwd=Path.cwd())
    names_all(text, 4)
    settings = read_sweep(Given({}, files=[Path("mine.yaml")]))
    made = sweep_of(settings, Results(Path("results")))
    assert made.columns == ("domain.arguments.sample", "n")
    named = settings.with_columns(made.columns).figures
    assert named.names == {"domain.arguments.sample": "shown"}
    assert (named.encode.color, named.encode.dash) == ("n", "domain.arguments.sample")
