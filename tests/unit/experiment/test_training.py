"""Algorithms that learn from experience while workers evaluate: once a batch."""

import pickle
import signal
import time
from itertools import pairwise

import numpy as np
import pytest
from refusals import refused
from small_runs import StopsAfter, payload_of
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.base import Algorithm, Candidates
from qdsweep.config.algorithm import Composition
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.base import Exploration
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Hanging, Interrupted, Stop

ROWS, ITERATIONS = 6, 4
PENDULUM = {
    "domain": {"preset": "pendulum", "max_episode_steps": 15},
    "algorithm": "map_elites",
    "num_emitters": 1,
    "batch_size": ROWS,
    "iterations": ITERATIONS,
}
# Some rows explore: a reload file and workers must have it, or rewards are others.
EXPLORATION = Exploration("gaussian", np.array([[0.0], [0.5], [1.0], [0.0], [2.0], [0.5]]))
# While it trains, a test may do something.
hooks = []


class Learner(Algorithm):
    """What it asks for next depends on all experience, its order, and how often it trained."""

    needs_experience = True

    def __init__(self, experiment, domain, shared):
        self.dim, self.asked = domain.solution_dim, False
        self.memory, self.weight, self.trained = [], 0.0, 0

    def ask(self):
        self.asked = not self.asked
        if not self.asked:
            return None
        seed = abs(int(self.weight * 1e6)) % 2**32
        noise = np.random.default_rng(seed).normal(size=(ROWS, self.dim))
        return Candidates(noise, experience=True, exploration=EXPLORATION)

    def tell(self, candidates, evaluation):
        assert evaluation.steps.tolist() == [15] * ROWS
        assert candidates.exploration.scale.tolist() == EXPLORATION.scale.tolist()
        self.memory += [float(record.rewards.sum()) for record in evaluation.experience]

    def metrics(self):
        return {}

    def meanwhile(self):
        self.trained += 1
        for reward in self.memory:
            self.weight = 0.9 * self.weight + reward
        for hook in hooks:
            hook()


@pytest.fixture
def exp(monkeypatch):
    hooks.clear()
    yield compose({**TINY, **PENDULUM}, {})
    hooks.clear()


def learner(exp) -> tuple[State, Serial]:
    domain = make_domain(exp.domain)
    return State(Learner(exp, domain, None)), Serial(domain)


def outcome(state: State) -> tuple[list[float], float, int]:
    algorithm = state.algorithm
    return algorithm.memory, algorithm.weight, algorithm.trained


def reloaded(state: State) -> State:
    return pickle.loads(payload_of(state))


@pytest.mark.parametrize("iteration", [1, 3])
def test_a_signal_during_training_never_trains_twice(exp, iteration):
    straight, engine = learner(exp)
    run_loop(exp, straight, engine, Stop(), lambda *_: None)
    assert straight.algorithm.trained == ITERATIONS
    state, _ = learner(exp)
    stop = Stop()
    hooks.append(lambda: state.algorithm.trained == iteration and stop.ask("SIGTERM"))
    with pytest.raises(Interrupted):
        run_loop(exp, state, engine, stop, lambda *_: None)
    hooks.clear()
    state = reloaded(state)
    assert state.trained and state.algorithm.trained == iteration
    assert not state.pending.done.any()
    run_loop(exp, state, engine, Stop(), lambda *_: None)
    assert outcome(state) == outcome(straight)


def test_a_record_costs_the_reload_file_its_own_bytes_alone(exp):
    """Records of a part are no views of one array that is saved with each of them."""
    state, engine = learner(exp)
    sizes = []
    for rows in (1, 2, 3):
        stop = Stop()
        with pytest.raises(Interrupted):
            run_loop(exp, state, StopsAfter(engine.domain, stop, 1), stop, lambda *_: None)
        sizes.append(len(payload_of(state)))
        assert len(state.pending.experience) == rows
        state = reloaded(state)
    own = sum(part.nbytes for part in state.pending.experience[0])
    assert all(own < b - a < own + 700 for a, b in pairwise(sizes))


def test_training_that_takes_longer_than_the_timeout_is_no_hanging_evaluation(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def alarm_after(seconds):
        clock[0] += seconds
        signal.raise_signal(signal.SIGALRM)

    with Stop() as stop:
        with stop.interruptible(timeout=1000):
            with stop.deferred():
                alarm_after(3000)
            alarm_after(500)
        assert stop.longest_delay == 3000, "what the end of the wall time must leave room for"
        with pytest.raises(Hanging), stop.interruptible(timeout=1000):
            alarm_after(1500)


@pytest.mark.parametrize(
    "domain",
    [
        {"preset": "lp_sphere", "solution_dim": 10},
        {"preset": "pendulum", "normalize_observations": True},
    ],
)
def test_a_domain_that_tells_nothing_of_its_steps_is_refused(monkeypatch, domain):
    monkeypatch.setattr(Composition, "code", f"{__name__}:Learner")
    exp = compose({**TINY, **PENDULUM, "domain": domain}, {})
    with refused("map_elites", domain["preset"], "actor"):
        make_algorithm(exp, make_domain(exp.domain), None)
