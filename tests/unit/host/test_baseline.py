"""`cpu_baseline: avx2` holds for libraries that are imported, or the run is refused."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from in_process import compute_run
from numpy._core import _multiarray_umath as core
from refusals import names_all, refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.domains.base import Evaluation
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import UnfitWorker
from qdsweep.engines.worker import Evaluator, Order
from qdsweep.host import machine
from qdsweep.host.machine import require_baseline, settings
from qdsweep.versions import __version__

pytestmark = pytest.mark.skipif(not core.__cpu_features__["SSE2"], reason="only on x86")

# What numpy 2.1 dispatches to, for which NPY_DISABLE_CPU_FEATURES has other names.
OF_NUMPY_2_1 = ["AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL"]
BEYOND = [name for name in core.__cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))]


def test_this_process_keeps_it():
    require_baseline()
    assert BEYOND, "numpy has loops for AVX-512"


@pytest.mark.parametrize("name", sorted({*BEYOND, *OF_NUMPY_2_1, "AVX10_2"}))
def test_a_numpy_that_uses_more_is_named(monkeypatch, name):
    monkeypatch.setattr(core, "__cpu_dispatch__", [*core.__cpu_dispatch__, name])
    monkeypatch.setitem(core.__cpu_features__, name, True)
    with refused("numpy", np.__version__, name, "cpu_baseline", "native"):
        require_baseline()
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "unset")  # as in `cpu_baseline: native`
    require_baseline()


def test_a_numpy_that_is_built_for_more_or_uses_less_is_named(monkeypatch):
    with monkeypatch.context() as built:
        built.setattr(core, "__cpu_baseline__", [*core.__cpu_baseline__, "AVX512F"])
        built.setitem(core.__cpu_features__, "AVX512F", True)
        with refused("numpy", "AVX512F"):
            require_baseline()
    monkeypatch.setitem(core.__cpu_features__, "X86_V3", False)
    with refused("numpy", "X86_V3"):
        require_baseline()


def test_an_openblas_with_another_kernel_is_named(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "SkylakeX")
    monkeypatch.setitem(machine._AVX2, "OPENBLAS_CORETYPE", "SkylakeX")
    with refused("OpenBLAS", "numpy", "Haswell", "SkylakeX"):
        require_baseline()


def test_a_torch_with_other_kernels_is_named(monkeypatch):
    cpu = SimpleNamespace(get_cpu_capability=lambda: "AVX512")
    torch = SimpleNamespace(backends=SimpleNamespace(cpu=cpu))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with refused("torch", "AVX512", "cpu_baseline"):
        require_baseline()


def test_an_xla_without_its_flag_is_named_where_there_is_avx512(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib", SimpleNamespace())
    monkeypatch.setitem(core.__cpu_features__, "AVX512F", True)
    with refused("jax", "XLA_FLAGS", "--xla_cpu_max_isa=AVX2"):
        require_baseline()
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x --xla_cpu_max_isa=AVX2")
    require_baseline()
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setitem(core.__cpu_features__, "AVX512F", False)
    require_baseline()


class Late:
    """A domain whose first evaluation imports a library that keeps no baseline."""

    solution_dim = 2
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}  # noqa: RUF012
    objective_range = (-100.0, 0.0)
    fields = {}  # noqa: RUF012

    def evaluate(self, solutions, seeds):
        sys.modules["jaxlib"] = SimpleNamespace()
        core.__cpu_features__["AVX512F"] = True
        return Evaluation(-(solutions**2).sum(axis=1), solutions.copy())


@pytest.fixture
def late(monkeypatch):
    """An experiment with that domain."""
    monkeypatch.setitem(sys.modules, "jaxlib", None)  # both are as they were afterwards
    del sys.modules["jaxlib"]
    monkeypatch.setitem(core.__cpu_features__, "AVX512F", False)
    return {**TINY, "algorithm": "map_elites", "domain": {"type": f"{__name__}:Late"}}


def test_a_run_whose_domain_imports_such_a_library_is_refused(late, tmp_path):
    with refused("jax", "cpu_baseline"):
        compute_run(late, tmp_path / "out")


def test_a_worker_whose_domain_imports_such_a_library_is_unfit(late):
    domain = compose(late).domain
    worker = Evaluator(Order(domain, None, __version__, {}, settings(), ".", None))
    assert not worker.problem
    for _ in range(2):
        with refused("jax", "cpu_baseline", kind=UnfitWorker):
            worker.evaluate(Batch(np.zeros((1, 2)), np.zeros(1, dtype=np.uint32)), 0)
    names_all(Evaluator(worker._order).problem, "jax", "cpu_baseline")
