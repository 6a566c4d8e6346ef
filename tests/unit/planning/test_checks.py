"""What a sweep file may not ask for: Snakemake says it before any job, as it is said here."""

import sys

import pytest
from in_process import checked_sweep
from support import TINY, write_yaml

from qdsweep.config.cluster import Cluster
from qdsweep.config.requirements import check_installed
from qdsweep.errors import BadInput

SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"
LINE = {**TINY, "algorithm": "map_elites_line"}


def refusal(folder, **changes) -> str:
    file = {"name": "tiny", "experiment": TINY, "sweep": SWEEP} | changes
    with pytest.raises(BadInput) as error:
        checked_sweep(write_yaml(folder / "mine.yaml", file))
    return str(error.value)


@pytest.mark.parametrize(
    ("sweep", "changes", "words"),
    [
        ("::: sigma 1", {}, ["sweep, row 1", "sigma", "is `step`"]),
        ("::: seed 1 -1", {}, ["sweep, row 2", "seed = -1", "greater than or equal to 0"]),
        ("::: seed", {}, ["seed"]),
        (SWEEP, {"batch_size": 0}, ["batch_size = 0"]),
        (SWEEP, {"archive": {"dims": [3, 3, 3]}}, ["archive.dims = [3, 3, 3]", "2 measures"]),
    ],
)
def test_runs_that_cannot_be(tmp_path, sweep, changes, words):
    said = refusal(tmp_path, sweep=sweep, experiment=TINY | changes)
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("further", "words"),
    [
        (
            {"confirm": {"seeds": [2, 5]}},
            ["confirm.seeds = [2, 5]", "it uses 2", "such as [3, 6]"],
        ),
        ({"confirm": {"seeds": [5, 2]}}, ["confirm.seeds", "first <= last"]),
        ({"confirm": {"top": 0, "seeds": [5, 7]}}, ["confirm.top = 0"]),
        (
            {"confirm": {"top": 4, "seeds": [5, 7]}},
            ["confirm.top = 4", "has 3 groups to choose from", "write 3 or less"],
        ),
        ({"reevaluate": {"times": 0}}, ["reevaluate.times = 0"]),
    ],
)
def test_confirmations_and_re_evaluations_that_cannot_be(tmp_path, further, words):
    sweep = "::: iso_sigma 0.1 0.3 0.6 ::: seed 1 2"
    said = refusal(tmp_path, sweep=sweep, experiment=LINE, **further)
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["coverag"], "tables: columns: 'coverag' is unknown; did you mean 'coverage'?"),
        (["n", "n"], "tables: columns: 'n' stands there twice"),
        (["sigma0"], "known: algorithm, group, n, iqm, evaluations"),
    ],
)
def test_columns_that_no_table_has(tmp_path, columns, words):
    assert words in refusal(tmp_path, tables={"columns": columns})


def test_a_sweep_file_has_no_repeated_keys(tmp_path):
    config = write_yaml(tmp_path / "mine.yaml", {"name": "tiny", "experiment": TINY})
    config.write_text(config.read_text() + "name: other\n")
    with pytest.raises(BadInput, match=r"mine\.yaml.*\n?.*stands here twice"):
        checked_sweep(config)


@pytest.mark.parametrize(("engine", "library"), [("ray", "ray"), ("mpi", "mpi4py")])
def test_an_engine_that_is_not_installed_is_refused(monkeypatch, engine, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not there
    with pytest.raises(BadInput, match=rf"engine {engine} needs {library}: .*`make extras`"):
        check_installed(Cluster(engine=engine))
    check_installed(Cluster(engine="dask"))


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("obj_maks", ["search: metric = obj_maks", "did you mean 'obj_max'"]),
        ("qd_auc", ["search: metric = qd_auc", "by what metrics.csv has", "qd_score"]),
    ],
)
def test_a_metric_that_no_search_can_decide_by_is_refused(tmp_path, metric, words):
    said = refusal(tmp_path, search={"halving": {"metric": metric}})
    assert all(word in said for word in words), said
    said = refusal(tmp_path, search={"halving": {}}, rank="qd_auc")
    assert "search: rank = qd_auc" in said


def test_tpe_without_its_library_is_refused(tmp_path, monkeypatch):
    asked = {"sweep": ":::~ step uniform 0.1 1", "search": {"samples": 8, "batches": 2}}
    asked["search"]["sampling"] = "tpe"
    checked_sweep(write_yaml(tmp_path / "mine.yaml", {"name": "a", "experiment": LINE, **asked}))
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not there
    said = refusal(tmp_path, experiment=LINE, **asked)
    assert "search: sampling = tpe, unlike sobol and random, needs optuna: " in said
    assert "; `make extras` installs it (envs/search.lock)" in said
