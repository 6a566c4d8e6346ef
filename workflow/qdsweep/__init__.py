"""Parameter sweeps of distributed Quality-Diversity experiments.

From Python:
    >>> from qdsweep import load, load_elites, load_sweep
    >>> run = load("ID")  # doctest: +SKIP
    >>> run.archive, run.elites(), run.metrics, run.config  # doctest: +SKIP
    >>> run.replay(run.best())  # doctest: +SKIP
    >>> load_sweep("demo"), load_elites("demo")  # doctest: +SKIP
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
