"""Metrics and fields of the user never stand in the place of a result of qdsweep.

Each name in each file of a run and of a sweep is tried: it is refused, or it is harmless.
"""

import csv
import json
import keyword
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import compute_run, compute_sweep, forget_plugins, qdsweep
from refusals import names_all, refused
from results import forget_sums, read_json
from ribs.emitters import EmitterBase

from qdsweep.analysis.columns import OF_SETTINGS, SEARCH_BEFORE, SEARCH_BEHIND
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import Evaluation, Record
from qdsweep.domains.plugin import check_rows, refuse_fields
from qdsweep.elites.reevaluation import start_reevaluation
from qdsweep.errors import BadInput
from qdsweep.planning.checks import require_own_code
from qdsweep.records.paths import RunDir
from qdsweep.records.status import read_status
from qdsweep.runs.load import Run, load

DOMAIN = """
import numpy as np
from qdsweep.domains.base import Evaluation, Record

class F:
    solution_dim = 3
    measures = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)

    def __init__(self, names=()):
        self.fields = {name: () for name in names}

    def evaluate(self, solutions, seeds):
        fields = {name: np.full(len(solutions), i + 0.5) for i, name in enumerate(self.fields)}
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2], fields)
"""
SMALL = {
    "algorithm": "map_elites",
    "archive": {"dims": [6, 6]},
    "num_emitters": 1,
    "batch_size": 20,
    "initial_solutions": 20,
    "iterations": 3,
    "seed": 1,
}
VOLATILE = ("timings", "attempts", "versions", "sources")


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path) -> None:
    folder = Path("config/plugins")
    folder.mkdir(parents=True)
    (folder / "ff.py").write_text(DOMAIN)
    forget_plugins()


def domain(*names: str) -> dict:
    return {"type": "ff:F", "arguments": {"names": [*names]}, "x0": 0.0}


def write_metrics(names: list[str]) -> list[str]:
    """Writes a function for each name, which returns its place, and returns the key `metrics`."""
    text = "def {}(archive, evaluation):\n    return {}.25"
    functions = [text.format(name, place) for place, name in enumerate(names)]
    Path("config/plugins/nn.py").write_text("\n\n".join(functions))
    forget_plugins()
    return [f"nn:{name}" for name in names]


def names_of_files() -> list[str]:
    """Returns all names in the files of a sweep with a metric and a field, and of its runs."""
    metrics = write_metrics(["innocent"])
    experiment = {**SMALL, "algorithm": "cvt_map_elites", "archive": {"cells": 30}}
    experiment |= {"domain": domain("innocent"), "metrics": metrics}
    compute_sweep(Path("results"), experiment, "::: step 0.1 0.2 ::: seed 1 2")
    (run, *_) = Path("results/runs").iterdir()
    start_reevaluation(run, 2, 1, Cluster(workers_per_node=1))
    names = {name for file in Path("results").rglob("*") for name in names_in(file)}
    names |= {*signature(EmitterBase.tell).parameters}  # pyribs passes fields by their names
    names |= {*Evaluation._fields, *Record._fields, *vars(read_status(RunDir(run).state))}
    names |= {*SEARCH_BEFORE, *SEARCH_BEHIND, *OF_SETTINGS}
    fitting = {name for name in names if name.isidentifier() and not keyword.iskeyword(name)}
    assert len(fitting) > 120
    assert {
        "archive_digest",
        "eta_seconds",
        "centroids",
        "iteration",
        "scale",
        "core_seconds_mean",
    } < fitting
    return sorted(fitting - {"innocent"})


def names_in(file: Path) -> Iterator[str]:
    if file.suffix == ".json":
        yield from keys_in(read_json(file))
    elif file.suffix in (".csv", ".tsv"):
        delimiter = "," if file.suffix == ".csv" else "\t"
        yield from next(csv.reader(file.read_text().splitlines(), delimiter=delimiter))
    elif file.suffix == ".npz":
        with np.load(file) as arrays:
            yield from arrays


def keys_in(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from keys_in(part)


def is_refused(metric: str) -> bool:
    try:
        require_own_code(compose({**SMALL, "domain": "lp_sphere", "metrics": [f"nn:{metric}"]}))
    except BadInput as error:
        names_all(str(error), f"nn:{metric}", f"name: my_{metric}")
        return True
    return False


def is_refused_as_field(name: str) -> bool:
    try:
        refuse_fields(make_domain(compose({**SMALL, "domain": domain(name)}).domain), "ff.py")
    except BadInput as error:
        names_all(str(error), "ff.py", f"'{name}'", f"my_{name}")
        return True
    return False


def plain(names: list[str]) -> list[str]:
    return [f"q{i}_" for i in range(len(names))]


# The columns of a metric in each file.
PARTS = {
    "metrics.csv": ("",),
    "summary.csv": ("",),
    "table.csv": ("_mean", "_se", "_n", "_median", "_iqm", "_iqm_low", "_iqm_high"),
    "curves.csv": ("_mean", "_se"),
}


def told_apart(file: Path, names: list[str]) -> pd.DataFrame:
    """Returns a table without times, with the names of `plain` for its own metrics."""
    table = pd.read_csv(file)
    pairs = [*zip(names, plain(names), strict=True)]
    columns = {f"{a}{part}": f"{b}{part}" for a, b in pairs for part in PARTS[file.name]}
    assert table.columns.is_unique
    timed = [name for name in table if "seconds" in name and name not in columns]
    return table.drop(columns=timed).rename(columns=columns)


def test_a_metric_with_any_name_of_a_file_is_refused_or_harmless():
    names = names_of_files()
    write_metrics(names)
    free = [name for name in names if not is_refused(name)]
    taken = {"iterations", "archive_digest", "archive", "failures", "seconds", "iqm", "sources"}
    assert not taken & {*free} and {"seed", "batch"} < {*free}
    folders = []
    for place, own in enumerate((free, plain(free))):
        metrics, results = write_metrics(own), Path(f"results_{place}")
        experiment = {**SMALL, "domain": "lp_sphere", "metrics": metrics}
        folders.append(compute_sweep(results, experiment, "::: step 0.1 0.2"))
    runs = ([RunDir(run) for run in folder.parents[1].glob("runs/*")] for folder in folders)
    pairs = [*zip(*runs, strict=True)]
    files = [[folder / file for folder in folders] for file in [*PARTS][1:]]
    for ours, theirs in files + [[run.metrics for run in pair] for pair in pairs]:
        mine, other = told_apart(ours, free), told_apart(theirs, plain(free))
        pd.testing.assert_frame_equal(mine[list(other)], other)
    for ours, theirs in pairs:
        summary, other = read_json(ours.summary), read_json(theirs.summary)
        renamed = dict(zip(free, plain(free), strict=True))
        summary = {renamed.get(name, name): value for name, value in summary.items()}
        for volatile in VOLATILE:
            del summary[volatile], other[volatile]
        assert summary == other
        measured = read_status(ours.state).metrics
        assert {name: measured[name] for name in free} == {n: i + 0.25 for i, n in enumerate(free)}


@pytest.mark.parametrize("algorithm", ["map_elites", "cvt_map_elites"])
def test_a_field_with_any_name_of_a_file_is_refused_or_harmless(algorithm: str):
    names = names_of_files()
    free = [name for name in names if not is_refused_as_field(name)]
    assert {"steps", "tally", "centroids", "boundaries", "evaluation_seed"}.isdisjoint(free)
    size = {"cells": 30} if algorithm == "cvt_map_elites" else {"dims": [6, 6]}
    experiment = {**SMALL, "algorithm": algorithm, "archive": size}
    runs = [
        compute_run({**experiment, "domain": domain(*own)}, Path(f"run_{place}"))
        for place, own in enumerate((free, plain(free)))
    ]
    ours, theirs = map(Run, runs)
    assert ours.summary["archive_digest"] == theirs.summary["archive_digest"]
    mine, other = (told_apart(run / "metrics.csv", []) for run in runs)
    pd.testing.assert_frame_equal(mine, other)
    renamed = dict(zip(free, plain(free), strict=True))
    assert [renamed.get(name, name) for name in ours.arrays] == [*theirs.arrays]
    for name, value in zip(ours.arrays.values(), theirs.arrays.values(), strict=True):
        np.testing.assert_array_equal(name, value)
    assert ours.elites().shape == theirs.elites().shape and ours.elites().columns.is_unique
    assert len(ours.archive) == len(theirs.archive)
    seed = int(ours.best().index)
    assert seed == theirs.best().index and ours.best().fields.keys() == {*free}


def test_a_start_names_file_metric_and_remedy():
    metrics = write_metrics(["iterations", "fine"])
    lines = [f"{key}: {json.dumps(value)}" for key, value in SMALL.items()]
    Path("it.yaml").write_text("\n".join([*lines, "domain: lp_sphere", f"metrics: {metrics}"]))
    text = qdsweep("run", "it.yaml", "--out", "out", cwd=Path.cwd(), code=2)
    names_all(text, "it.yaml", "metrics.0", "nn:iterations", "summary.json", "name: my_iterations")
    assert not Path("out").exists()
    sweep = 'name: met\nexperiment: {name}\nsweep: "::: {swept} 1 2"\n'
    Path("met.yaml").write_text(sweep.format(name="it.yaml", swept="seed"))
    text = qdsweep("plan", "met.yaml", cwd=Path.cwd(), code=2)
    names_all(text, "met.yaml", "nn:iterations", "summary.json", "name: my_iterations")
    Path("it.yaml").write_text(Path("it.yaml").read_text().replace("iterations'", "fine'"))
    metrics = write_metrics(["seed"])
    Path("it.yaml").write_text("\n".join([*lines, "domain: lp_sphere", f"metrics: {metrics}"]))
    text = qdsweep("plan", "met.yaml", cwd=Path.cwd(), code=2)
    names_all(text, "met.yaml", "nn:seed", "name: my_seed")


@pytest.mark.parametrize("name", ["centroids", "steps", "evaluation_seed", "jacobian"])
def test_a_start_names_file_field_and_remedy(name: str):
    lines = [f"{key}: {json.dumps(value)}" for key, value in SMALL.items()]
    experiment = "\n".join([*lines, f"domain: {json.dumps(domain(name))}"])
    Path("f.yaml").write_text(experiment)
    text = qdsweep("run", "f.yaml", "--out", "out", cwd=Path.cwd(), code=2)
    names_all(text, "config/plugins/ff.py", "ff:F", "fields", f"'{name}'", f"my_{name}")
    assert not Path("out/state/metrics.csv").exists()
    with refused(f"'{name}'"):
        check_rows(make_domain(compose("f.yaml").domain))


def test_results_with_such_names_stay_readable():
    """A release without this check has computed them."""
    write_metrics(["archive_digest", "innocent"])
    own = ["nn:innocent", {"function": "nn:archive_digest", "name": "archive_digest"}]
    experiment = {**SMALL, "domain": domain("innocent"), "metrics": own}
    sweep = compute_sweep(Path("results"), experiment, "::: seed 1 2", rank="innocent")
    for run in Path("results/runs").iterdir():
        assert read_json(run / "summary.json")["archive_digest"] == 0.25
        for folder in (run, run / "state"):
            with np.load(folder / "archive.npz") as arrays:
                renamed = {name.replace("innocent", "steps"): arrays[name] for name in arrays}
            np.savez(folder / "archive.npz", **renamed)
        assert len(load(run).archive) == len(load(run).elites()) > 5
        assert "steps" in load(run).best().fields
    forget_sums(Path("results"))
    qdsweep("aggregate", "tiny", cwd=Path.cwd())
    assert list(pd.read_csv(sweep / "summary.csv")["innocent"]) == [1.25, 1.25]
