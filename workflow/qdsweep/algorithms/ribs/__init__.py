"""pyribs' archives, emitters and schedulers as an algorithm, and a fast import of pyribs.

The import leaves out scikit-learn, scipy.stats and torch, which take most of its time.

pyribs needs the first two only in functions: for k-means, density archives and Bayesian
optimisation. Stand-ins replace them and import the real function at the first call. pyribs needs
torch for type annotations, for discount models, and for density archives with zuko. Discount
models are imported again at their first use, with the real torch. Results do not change;
`tests/unit/algorithms/test_light_import.py` compares them.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

# The names that pyribs 0.12 imports from them.
_NAMES = {
    "sklearn": (),
    "sklearn.cluster": ("k_means",),
    "sklearn.gaussian_process": ("GaussianProcessRegressor",),
    "sklearn.gaussian_process.kernels": ("Matern",),
    "sklearn.neighbors": ("KernelDensity", "NearestNeighbors"),
    "scipy.stats": ("entropy", "norm"),
    "scipy.stats.qmc": ("Sobol",),
}

# The module of pyribs 0.12 that needs torch in a class statement.
_WITH_TORCH = "ribs.discount_models"


@contextmanager
def light_ribs() -> Iterator[None]:
    """Makes `import ribs` fast in this block. After it, every module is the real one."""
    # If the user's code has already imported them, no time can be saved.
    if any(name in sys.modules for name in ("ribs", "sklearn", "scipy.stats")):
        yield
        return
    stand_ins: dict[str, Any] = {module: ModuleType(module) for module in _NAMES}
    for module, names in _NAMES.items():
        for name in names:
            setattr(stand_ins[module], name, _later(module, name))
    warnings = ModuleType("sklearn.exceptions")
    warnings.ConvergenceWarning = UserWarning  # type: ignore[attr-defined]
    stand_ins["sklearn.exceptions"] = warnings
    if "torch" not in sys.modules and importlib.util.find_spec("zuko") is None:
        stand_ins["torch"] = None  # as if it were not installed
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for module in stand_ins:
            del sys.modules[module]
        if "torch" in stand_ins:
            _forget(_WITH_TORCH)


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **keywords)

    return call


def _forget(module: str) -> None:
    """Removes a module of pyribs, so that its next use imports it again."""
    package, _, name = module.rpartition(".")
    if sys.modules.pop(module, None) is None:
        return
    parent = sys.modules[package]
    delattr(parent, name)

    def find(wanted: str) -> ModuleType:
        if wanted == name:
            return importlib.import_module(module)
        raise AttributeError(f"module {package!r} has no attribute {wanted!r}")

    parent.__getattr__ = find  # type: ignore[method-assign]


with light_ribs():
    import ribs

__all__ = ["ribs"]
