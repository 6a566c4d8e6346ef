"""Libraries and programs that are missing are refused by name."""

import sys

import pytest
from refusals import refused

from qdsweep.config.cluster import Cluster
from qdsweep.config.requirements import check_installed


@pytest.mark.parametrize(("engine", "library"), [("ray", "ray"), ("mpi", "mpi4py")])
def test_an_engine_that_is_not_installed_is_refused(monkeypatch, engine, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not there
    with refused(f"engine {engine}", library, "`make extras`"):
        check_installed(Cluster(engine=engine))
    check_installed(Cluster(engine="dask"))
