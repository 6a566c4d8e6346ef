"""pyribs' archives, emitters and schedulers as an algorithm. Imports pyribs, as light as can be."""

from qdsweep.algorithms.ribs.light_import import light_ribs

with light_ribs():
    import ribs

__all__ = ["ribs"]
