"""Libraries and programs that are missing are refused by name."""

import sys

import pytest

from qdsweep.config.cluster import Cluster
from qdsweep.config.requirements import check_installed
from qdsweep.errors import BadInput


@pytest.mark.parametrize(("engine", "library"), [("ray", "ray"), ("mpi", "mpi4py")])
def test_an_engine_that_is_not_installed_is_refused(monkeypatch, engine, library):
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not there
    with pytest.raises(BadInput, match=rf"engine {engine} needs {library}: .*`make extras`"):
        check_installed(Cluster(engine=engine))
    check_installed(Cluster(engine="dask"))
