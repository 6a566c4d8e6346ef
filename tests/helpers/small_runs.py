"""A small experiment and its state, in this process."""

from pathlib import Path

from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.serial import Serial
from qdsweep.experiment.state import State
from qdsweep.records.archive import archive_digest


def experiment(**changes: object) -> Experiment:
    return compose(TINY, changes)


def fresh(exp: Experiment, folder: Path) -> tuple[State, Serial]:
    domain = make_domain(exp.domain)
    return State(make_algorithm(exp, domain, folder)), Serial(domain)


def digest_of(state: State) -> str:
    return archive_digest(state.algorithm.archive.rows())
