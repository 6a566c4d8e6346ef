"""Parameter sweeps of distributed Quality-Diversity experiments.

From Python, after the sweep of `make demo`:
    >>> from qdsweep import load, load_elites, load_sweep
    >>> run = load("cma_me, seed 1")
    >>> run.replay(run.best()).objective == run.best().objective
    array([ True])
    >>> len(load_sweep("demo")), sorted(load_elites("demo")["algorithm"].unique())
    (6, ['cma_mae', 'cma_me', 'map_elites'])
"""

from typing import Any

__all__ = ["Elite", "Run", "load", "load_elites", "load_sweep"]


def __getattr__(name: str) -> Any:
    # Lazily: most commands need neither pandas nor ribs, and their settings come first.
    if name == "__version__":
        from qdsweep import versions

        return versions.__version__
    if name in __all__:
        from qdsweep.runs import load as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
