"""Parameter sweeps of distributed Quality-Diversity experiments.

From Python:
    >>> from qdsweep import load, load_sweep
    >>> run = load("results/runs/ID")  # doctest: +SKIP
    >>> run.archive, run.metrics, run.config  # doctest: +SKIP
    >>> run.replay(run.best())  # doctest: +SKIP
    >>> load_sweep("demo")  # doctest: +SKIP
"""

from typing import Any

__all__ = ["Elite", "Run", "load", "load_sweep"]


def __getattr__(name: str) -> Any:
    # Lazily: most commands need neither pandas nor ribs, and their settings come first.
    if name == "__version__":
        from qdsweep import versions

        return versions.__version__
    if name in __all__:
        from qdsweep.experiment import load as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
