"""The names that a reload file without the user's digest may contain."""

import copyreg
import io
import pickle
import sys
from pathlib import Path

import pytest
from composing import installed, presets, with_algorithm
from refusals import refused
from small_runs import payload_of
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.domains import make_domain
from qdsweep.experiment.reload import UnknownName, _Wary, load_state
from qdsweep.experiment.state import State
from qdsweep.features.learning.td3 import TD3

HURTFUL = [
    ("antigravity", "geohash"),
    ("builtins", "eval"),
    ("builtins", "getattr"),
    ("numpy", "load"),
    ("numpy.testing._private.utils", "runstring"),
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("qdsweep.algorithms.check", "pickle.loads"),
    ("qdsweep.algorithms.own", "call_own"),
    ("qdsweep.algorithms.own", "load_plugin"),
    ("qdsweep.config.archive_kinds", "PluginArchive"),
    ("qdsweep.config.own_code", "load_function"),
    ("qdsweep.experiment.state", "State.__init__.__globals__"),
    ("ribs.emitters.opt._pycma_es", "PyCMAEvolutionStrategy"),
    ("mine", "os.system"),
    ("mine", "run"),
]


@pytest.mark.parametrize("name", presets("algorithms"))
def test_they_are_enough_for_every_algorithm(name, tmp_path):
    experiment = installed(with_algorithm(name, TINY))
    domain = make_domain(experiment.domain)
    state = State(make_algorithm(experiment, domain, tmp_path), steps=0)
    payload = payload_of(state)
    assert b"qdsweep.config" not in payload
    read = load_state(io.BytesIO(payload), is_own=False)
    assert type(read.algorithm) is type(state.algorithm)
    assert getattr(read.algorithm, "settings", 0) == getattr(state.algorithm, "settings", 0)


@pytest.mark.parametrize("name", ["ga", "td3", "cma_mega_td3_es"])
def test_settings_that_earlier_releases_pickled_as_models_are_read(name, monkeypatch):
    experiment = with_algorithm(name, TINY)
    state = State(make_algorithm(experiment, make_domain(experiment.domain), None), steps=0)
    monkeypatch.delattr(TD3, "__getstate__")
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **state.algorithm.reducers}
    pickler.dump(state)
    assert b"qdsweep.features." in buffer.getvalue()
    read = load_state(io.BytesIO(buffer.getvalue()), is_own=False)
    assert read.algorithm.settings == state.algorithm.settings


@pytest.fixture
def mine(plugins, monkeypatch) -> None:
    """A user's module that imports dangerous modules."""
    plugins("mine", "import os\nfrom subprocess import run\n\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(str(Path("config/plugins").resolve()))


def naming(module: str, name: str) -> io.BytesIO:
    return io.BytesIO(
        b"\x80\x04\x8c" + bytes([len(module)]) + module.encode()
        + b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93."
    )  # fmt: skip


@pytest.mark.parametrize(("module", "name"), HURTFUL)
def test_what_can_hurt_is_not_among_them(mine, module, name):
    with refused(f"{module}.{name}", kind=UnknownName):
        load_state(naming(module, name), is_own=False)
    assert "antigravity" not in sys.modules


def test_classes_of_the_users_plugins_are(mine):
    assert _Wary(naming("mine", "Mine"), ()).load().__name__ == "Mine"
