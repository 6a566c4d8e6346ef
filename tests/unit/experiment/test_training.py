"""Algorithms that learn from the steps of episodes, while workers evaluate.

test_resume.py stops runs while they train.
"""

import pickle
import signal
import time
from itertools import pairwise

import pytest
from composing import with_algorithm
from refusals import refused
from small_runs import StopsAfter, fresh, payload_of
from support import TINY

from qdsweep.algorithms.base import require_actor
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Hanging, Interrupted, Stop


def test_a_record_costs_the_reload_file_only_its_own_bytes(tmp_path):
    """Records of a part are not views of one array, which each of them would save."""
    exp = with_algorithm("td3", TINY)
    state, engine = fresh(exp, tmp_path)
    sizes = []
    for rows in (1, 2, 3):
        stop = Stop()
        with pytest.raises(Interrupted):
            run_loop(exp, state, StopsAfter(engine.domain, stop, 1), stop, lambda *_: None)
        sizes.append(len(payload_of(state)))
        assert len(state.pending.experience) == rows
        state = pickle.loads(payload_of(state))
    own = sum(part.nbytes for part in state.pending.experience[0][:4])
    assert all(own < b - a < own + 700 for a, b in pairwise(sizes))


def test_training_that_takes_longer_than_the_timeout_is_no_hanging_evaluation(monkeypatch):
    clock = [0.0]
    for name in ("monotonic", "process_time"):  # it computes, and is not suspended
        monkeypatch.setattr(time, name, lambda: clock[0])

    def alarm_after(seconds):
        clock[0] += seconds
        signal.raise_signal(signal.SIGALRM)

    with Stop() as stop:
        with stop.interruptible(timeout=1000):
            with stop.deferred():
                alarm_after(3000)
            alarm_after(500)
        assert stop.longest_delay == 3000, "the time to reserve before the time limit"
        with pytest.raises(Hanging), stop.interruptible(timeout=1000):
            alarm_after(1500)


def test_a_domain_without_steps_is_refused():
    exp = compose(TINY)
    with refused("cma_mae", "lp_sphere", "actor"):
        require_actor(exp, make_domain(exp.domain))
