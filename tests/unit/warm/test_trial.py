"""The quick check of a user's algorithms before any job of a sweep."""

import pytest
from own_parts import HOSTILE, LAB
from refusals import refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.host.machine import settings
from qdsweep.warm.trial import try_algorithms


def test_a_start_tries_own_algorithms_in_another_process(plugins, monkeypatch):
    for name in settings():  # as in the process that starts Snakemake
        monkeypatch.delenv(name, raising=False)
    plugins("lab", LAB)
    plugins("hostile", HOSTILE)
    good = [compose({**TINY, "algorithm": "lab:make", "seed": seed}) for seed in range(3)]
    bad = compose({**TINY, "algorithm": "hostile:raises"})
    with refused("hostile:raises", "ValueError: no licence", "`qdsweep check --algorithm NAME`"):
        try_algorithms([*good, bad, compose(TINY)])


ABRUPT = """
import os
import signal
import time

def stops():
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)

def gone():
    os._exit(7)

def loud():
    print("x" * 1000)
    raise ValueError("no licence")
"""


@pytest.mark.parametrize(
    ("name", "reason"), [("gone", "exit code 7"), ("loud", "ValueError: no licence")]
)
def test_its_message_is_one_of_ours_whatever_the_algorithm_does(plugins, name, reason):
    plugins("abrupt", ABRUPT)
    with refused(f"abrupt:{name}", reason):
        try_algorithms([compose({**TINY, "algorithm": f"abrupt:{name}"})])


def test_of_several_domains_the_refused_one_is_named(plugins):
    plugins("abrupt", ABRUPT)
    of = ({**TINY, "domain": name, "algorithm": "abrupt:loud"} for name in ("lp_sphere", "arm"))
    with refused("domain lp_sphere", "no licence"):
        try_algorithms(map(compose, of))


def test_ctrl_c_meanwhile_ends_with_the_remedy(plugins):
    plugins("abrupt", ABRUPT)
    with refused("Ctrl-C", "same command"):
        try_algorithms([compose({**TINY, "algorithm": "abrupt:stops"})])


def test_it_starts_nothing_where_all_parts_are_pyribs(monkeypatch):
    monkeypatch.setattr("subprocess.run", None)
    try_algorithms([compose(TINY)])


def test_a_learner_whose_actions_do_not_suit_is_refused_before_anything_starts():
    changes = {"algorithm": "pga_me", "num_emitters": 1, "batch_size": 10}
    with refused("algorithm pga_me", "TD3", "discrete"):
        try_algorithms([compose("cartpole", changes)])
