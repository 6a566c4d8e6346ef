"""What a reload file without the user's own digest may name: nothing that runs code by itself.

A pickle calls what it names. Reload files of earlier releases have no digest, and those of another
home or a copied folder have another's: they are read with these names alone.
"""

from collections.abc import Collection
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from qdsweep.config.plugin import plugin_folders

# All classes that are defined there.
_PACKAGES = (
    *("qdsweep.algorithms", "qdsweep.experiment.state"),
    *("ribs.archives", "ribs.emitters", "ribs.schedulers"),
)
# Evaluates texts of its options.
_NEVER = "ribs.emitters.opt._pycma_es"
_NAMES = {
    "builtins": {"bytearray", "complex", "frozenset", "object", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.random._mt19937": {"MT19937"},
    "numpy.random._pcg64": {"PCG64", "PCG64DXSM"},
    "numpy.random._philox": {"Philox"},
    "numpy.random._pickle": {
        *("__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor"),
    },
    "numpy.random._sfc64": {"SFC64"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
    "random": {"Random"},
    "scipy.spatial._ckdtree": {"cKDTree"},
    "scipy.spatial._kdtree": {"KDTree"},
    "sortedcontainers.sortedlist": {"SortedList"},
    "qdsweep.algorithms.ribs.internals": {"restore_store"},
    "qdsweep.config.archives": {
        *("CVTArchive", "DNSArchive", "GridArchive", "ProximityArchive"),
        "SlidingBoundariesArchive",
    },
    "qdsweep.config.emitters": {
        *("EvolutionStrategy", "Gaussian", "GradientArborescence", "GradientOperator", "IsoLine"),
    },
    "qdsweep.config.estimation": {"CMAMEGAES", "CMAMEGATD3ES", "MEES"},
    "qdsweep.config.evolution": {"GA"},
    "qdsweep.config.lagged": {"ApexDQN", "DQN", "IMPALA"},
    "qdsweep.config.learning": {"PGAMapElites", "TD3", "TD3Search"},
    "qdsweep.config.rl": {"A2C", "PPO"},
    "qdsweep.domains.base": {"Actor", "Exploration", "Record"},
    "qdsweep.engines.base": {"Batch", "_repeated"},
}


def may_import(module: str, plugins: Collection[str]) -> bool:
    """Returns whether a module may be imported for such a file.

    Args:
        module: Its name.
        plugins: The `module:name` of the experiment, which it imports anyway.
    """
    return (
        module in _NAMES
        or (_is_in(module, _PACKAGES) and module != _NEVER)
        or _is_own(module, plugins)
    )


def may_name(module: str, name: str, found: Any, plugins: Collection[str]) -> bool:
    """Returns whether such a file may name what was found in a module that it may import."""
    if name in _NAMES.get(module, ()) or (module == "numpy" and _is_scalar(found)):
        return True
    kinds = (type, FunctionType) if _is_own(module, plugins) else (type,)
    is_at_home = isinstance(found, kinds) and (found.__module__, found.__qualname__) == (
        module,
        name,
    )
    return is_at_home and (_is_own(module, plugins) or _is_in(module, _PACKAGES))


def _is_scalar(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, np.generic)


def _is_in(module: str, packages: Collection[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _is_own(module: str, plugins: Collection[str]) -> bool:
    """Whether a module is of the user's plug-ins."""
    top = module.split(".")[0]
    if any(target.partition(":")[0].split(".")[0] == top for target in plugins):
        return True
    places = [folder / top for folder in plugin_folders()]
    return any(Path(f"{place}.py").is_file() or place.is_dir() for place in places)
