"""A run that is forked from the warm process is warm: its first iteration costs what others do."""

import json
import subprocess
import sys
from importlib.util import find_spec
from statistics import median

import pytest
import yaml
from composing import installed
from support import REPO

from qdsweep.config.compose import compose, read_domain
from qdsweep.config.experiment import Experiment

DOMAINS = REPO / "config/domains"
TEXTS = {path.stem: path.read_text() for path in sorted(DOMAINS.glob("*.yaml"))}
# An environment of a module of its own is imported in the fork, before the first iteration.
PRESETS = [name for name, t in TEXTS.items() if "type: gymnasium" in t and "pybullet" not in t]
# Solutions an iteration, which then takes some tens of milliseconds; else 10.
BATCH = {
    "cartpole": 150,
    "rl_cartpole": 100,
    "rl_lunar_lander": 30,
    "pendulum": 60,
    "bipedal_walker": 5,
    "qd_ant": 5,
}
# CPU times, which on a busy machine can be twice as long: the least of the first iterations of
# some forks, and the median of some around the tenth. What is imported or compiled in a fork takes
# more than such an iteration; copies of the pages that a fork writes to take up to a third of one.
FORKS = 8
LATE = slice(5, 12)
# What the warm process does with the experiments that it is sent; then runs, forked from it.
WARM = """
import json, os, sys, time
from qdsweep.host.machine import apply_baseline
apply_baseline("avx2")
from qdsweep.algorithms import make_algorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.warm.server import prepare

def times(data, iterations):
    experiment = Experiment.model_validate_json(json.dumps(data | {"iterations": iterations}))
    domain = make_domain(experiment.domain)
    state = State(make_algorithm(experiment, domain, None))
    ends = [time.process_time()]
    run_loop(experiment, state, Serial(domain), Stop(),
           lambda *_: ends.append(time.process_time()))
    return [end - start for start, end in zip(ends, ends[1:])]

def in_fork(data, iterations):
    reads, writes = os.pipe()
    if os.fork() == 0:
        with open(writes, "w") as pipe:
            json.dump(times(data, iterations), pipe)
        os._exit(0)
    os.close(writes)
    with open(reads) as pipe:
        return json.load(pipe)

sent = sys.stdin.buffer.readline()
prepare(sent)
lengths = json.loads(sys.argv[1])
print(json.dumps([[in_fork(data, n) for n in lengths] for data in json.loads(sent)]))
"""


def small(name: str) -> Experiment:
    """CMA-ME on a preset, with short episodes, and a network that a full covariance bears."""
    domain = {"preset": name, "max_episode_steps": 30}
    if "policy" in yaml.safe_load((DOMAINS / f"{name}.yaml").read_text()):
        domain["policy"] = {"hidden": [4]}
    dims = [4] * (read_domain(name).measure_dim or 2)
    sizes = {"num_emitters": 1, "batch_size": BATCH.get(name, 10), "iterations": 1}
    settings = {"domain": domain, "algorithm": "cma_me", "archive": {"dims": dims}, **sizes}
    return compose(settings)


@pytest.fixture(scope="module")
def spent() -> dict[str, list[list[float]]]:
    """Preset -> CPU time of each iteration, of some forks [s]."""
    experiments = {name: small(name) for name in PRESETS}
    there = [name for name in PRESETS if all(map(find_spec, experiments[name].domain.packages))]
    sent = json.dumps([experiments[name].model_dump(mode="json") for name in there])
    lengths = [*[1] * (FORKS - 1), LATE.stop]
    words = [sys.executable, "-c", WARM, json.dumps(lengths)]
    done = subprocess.run(words, input=sent, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(zip(there, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", PRESETS)
def test_the_first_iteration_of_a_warm_run_takes_what_its_tenth_does(name, spent):
    installed(small(name))
    first = min(run[0] for run in spent[name])
    assert first <= 2 * median(spent[name][-1][LATE])
