"""The iterations of a run that is forked from the warm process import and compile nothing."""

import contextlib
import json
import subprocess
import sys

import pytest
import yaml
from composing import installed
from support import REPO

from qdsweep.config.compose import compose, read_domain
from qdsweep.config.experiment import Experiment
from qdsweep.config.requirements import require_packages_of
from qdsweep.errors import BadInput

DOMAINS = REPO / "config/domains"
PRESETS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(DOMAINS.glob("*.yaml"))}
SHORT = {"gymnasium": {"max_episode_steps": 30}, "atari": {"max_frames": 80}}
# The warm process's work with the received experiments, and then runs that are forked from it.
WARM = """
import json, os, sys
from qdsweep.host.machine import apply_baseline
apply_baseline("avx2")
from numba.core.event import install_recorder
from qdsweep.algorithms import make_algorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.warm.server import prepare

def loaded(data):
    experiment = Experiment.model_validate_json(json.dumps(data))
    domain = make_domain(experiment.domain)
    state = State(make_algorithm(experiment, domain, None))
    before = set(sys.modules)
    with install_recorder("numba:compile") as compiled:
        run_loop(experiment, state, Serial(domain), Stop(), lambda *_: None)
    return sorted(set(sys.modules) - before) + [str(event) for _, event in compiled.buffer]

def in_fork(data):
    reads, writes = os.pipe()
    if os.fork() == 0:
        with open(writes, "w") as pipe:
            json.dump(loaded(data), pipe)
        os._exit(0)
    os.close(writes)
    with open(reads) as pipe:
        return json.load(pipe)

sent = sys.stdin.buffer.readline()
if sys.argv[1:] != ["cold"]:
    prepare(sent)
print(json.dumps([in_fork(data) for data in json.loads(sent)]))
"""


def small(name: str) -> Experiment:
    """Returns CMA-ME on a preset, with short episodes and a network small enough for CMA-ES."""
    preset = PRESETS[name]
    domain = {"preset": name, **SHORT.get(preset["type"], {})}
    if "hidden" in preset.get("policy", {}):
        domain["policy"] = {"hidden": [4]}
    dims = [4] * (read_domain(name).measure_dim or 2)
    sizes = {"num_emitters": 1, "batch_size": 10, "iterations": 3}
    settings = {"domain": domain, "algorithm": "cma_me", "archive": {"dims": dims}, **sizes}
    return compose(settings)


def in_forks(experiments: list[Experiment], *words: str) -> list[list[str]]:
    """Returns the imports in the iterations of each, forked from a process with all of them."""
    sent = json.dumps([experiment.model_dump(mode="json") for experiment in experiments])
    command = [sys.executable, "-c", WARM, *words]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    experiments = {}
    for name in PRESETS:
        with contextlib.suppress(BadInput):
            require_packages_of(small(name))
            experiments[name] = small(name)
    return dict(zip(experiments, in_forks([*experiments.values()]), strict=True))


@pytest.mark.parametrize("name", PRESETS)
def test_iterations_of_a_warm_run_import_and_compile_nothing(name, loaded):
    installed(small(name))
    assert loaded[name] == []


def test_those_of_a_cold_run_do():
    assert in_forks([small("cartpole")], "cold") != [[]]
