"""Published values as tests declare them."""

from qdsweep.config.sweep import Published


def entry(where, **changes):
    keys = {"metric": "coverage", "mean": 0.5, "tolerance": 0.1, "source": "a paper, table 1"}
    return Published(where=where, **(keys | changes))
