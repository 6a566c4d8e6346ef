"""A missing package that only some experiments need is reported before any run starts."""

import sys

import pytest
from composing import BASE
from in_process import checked_sweep, compute_run, qdsweep
from refusals import names_all, refused
from support import write_yaml

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.domain import LinearProjection
from qdsweep.config.families import Composition
from qdsweep.config.requirements import check_installed
from qdsweep.planning.checks import check_packages
from qdsweep.records.paths import Results

CARTPOLE = {**BASE, "domain": "cartpole", "algorithm": "map_elites"}
NOT_THERE = {**CARTPOLE, "domain": {"preset": "cartpole", "env": "no_robots:Crawler-v0"}}


def test_a_domain_in_a_module_that_is_not_there_is_refused(tmp_path):
    check_packages({"run": compose(CARTPOLE)}, Results(tmp_path))
    with refused("domain cartpole", "no_robots:Crawler-v0"):
        check_packages({"run": compose(NOT_THERE)}, Results(tmp_path))


@pytest.mark.parametrize(
    ("part", "name"), [(LinearProjection, "domain lp_sphere"), (Composition, "algorithm cma_me")]
)
def test_an_extra_that_is_not_there_is_refused_with_its_remedy(tmp_path, monkeypatch, part, name):
    monkeypatch.setattr(part, "packages", ("pybullet_of_nobody",))
    names = (name, "pybullet_of_nobody", "`make extras`")
    with refused(*names):
        check_packages({"run": compose(BASE)}, Results(tmp_path))
    file = write_yaml(tmp_path / "experiment.yaml", BASE)
    names_all(qdsweep("run", file, "--out", "run", cwd=tmp_path, code=2), *names)


@pytest.mark.parametrize(("engine", "library"), [("ray", "ray"), ("mpi", "mpi4py")])
def test_an_engine_that_is_not_installed_is_refused(monkeypatch, engine, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with refused(f"engine {engine}", library, "`make extras`"):
        check_installed(Cluster(engine=engine))
    check_installed(Cluster(engine="dask"))


def test_tpe_without_its_library_is_refused(tmp_path, monkeypatch):
    data = {"name": "a", "experiment": BASE, "sweep": ":::~ sigma0 uniform 0.1 1"}
    search = {"samples": 8, "batches": 2, "sampling": "tpe"}
    file = write_yaml(tmp_path / "mine.yaml", data | {"search": search})
    checked_sweep(file)
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    with refused("search", "sampling = tpe", "sobol", "random", "optuna", "`make extras`"):
        checked_sweep(file)


def test_finished_runs_need_nothing(tmp_path, monkeypatch):
    made = compose(BASE)
    compute_run(BASE, tmp_path / "runs" / "done")
    monkeypatch.setattr(LinearProjection, "packages", ("no_robots",))
    check_packages({"done": made}, Results(tmp_path))
    with refused("no_robots"):
        check_packages({"done": made, "other": made}, Results(tmp_path))
