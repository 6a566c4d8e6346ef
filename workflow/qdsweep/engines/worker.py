"""What runs in a worker process: one domain, kept alive. Imports no ribs."""

import ctypes
import os
import signal

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines import base

_domain: Domain | None = None


def start(config: DomainConfig) -> None:
    """Prepares this process: builds the domain, leaves signals to the main process."""
    global _domain
    # Ctrl-C and Slurm reach the whole group; the main process decides what happens.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    _die_with_parent()
    _domain = make_domain(config)


def evaluate(batch: base.Batch) -> Evaluation:
    """Evaluates a part of a batch."""
    assert _domain is not None
    return base.evaluate(_domain, batch)


def _die_with_parent() -> None:
    """A main process that is killed leaves no worker behind (Linux: PR_SET_PDEATHSIG)."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # it died in between
        os._exit(1)
