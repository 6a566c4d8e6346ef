"""The test of a domain's promises in another process, for `qdsweep check`."""

import sys

from qdsweep.config.compose import read_domain
from qdsweep.host.apart import answer, answer_of


def check_elsewhere(name: str) -> str:
    """Checks a domain in a process of its own: what ends the process ends that one alone.

    Args:
        name: A preset's name, a path or a `module:Class`.

    Returns:
        What was found, for a person.

    Raises:
        BadInput: A promise is broken, or the process has ended; the message says why.
    """
    return answer_of("qdsweep.domains.elsewhere", name, name, {}).rstrip("\n")


def _check(name: str) -> str:
    from qdsweep.domains import make_domain
    from qdsweep.domains.check import check_rows

    return "\n".join(check_rows(make_domain(read_domain(name))).lines())


if __name__ == "__main__":
    sys.exit(answer(_check))
