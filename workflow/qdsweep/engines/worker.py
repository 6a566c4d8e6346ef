"""The code of a worker process: one domain, made once. It imports no ribs."""

import signal

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain
from qdsweep.engines.base import Batch, Outcome
from qdsweep.engines.failures import evaluate_safely
from qdsweep.host.parent import die_with_parent

_domain: Domain | None = None
_objective_on_failure: float | None = None


def start(config: DomainConfig, objective_on_failure: float | None) -> None:
    """Prepares this process: makes the domain, and leaves signals to the main process."""
    global _domain, _objective_on_failure
    # Ctrl-C and Slurm reach the whole group; the main process decides what happens.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(signal.SIGKILL)
    _domain = make_domain(config)
    _objective_on_failure = objective_on_failure


def evaluate(batch: Batch, first: int) -> Outcome:
    """Evaluates a part of a batch that begins with its row `first`."""
    assert _domain is not None
    return evaluate_safely(_domain, batch, first, _objective_on_failure)
