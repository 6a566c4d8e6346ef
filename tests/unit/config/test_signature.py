"""The arguments of a user's code, read from its source, and swept by name."""

import sys

import pytest
from own_parts import LAB
from refusals import refused
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.config.own_code import parameters, refuse_unknown
from qdsweep.sweep.ids import run_id

SOURCE = """
import dataclasses
from elsewhere import Base, borrowed

def plain(a, *, b=1): ...
def anything(a, **rest): ...

class First:
    def __init__(self, x, y=2): ...

class Second(First):
    pass

class Third(Second):
    def __init__(self, *, z=3, **rest): ...

class Foreign(Base):
    def __init__(self, *, w, **rest): ...

@dataclasses.dataclass
class Data:
    a: int = 1
"""


@pytest.mark.parametrize(
    ("name", "takes", "complete"),
    [
        ("plain", ["a", "b"], True),
        ("anything", ["a"], False),
        ("First", ["x", "y"], True),
        ("Second", ["x", "y"], True),
        ("Third", ["z", "x", "y"], True),
        ("Foreign", ["w"], False),
        ("Data", [], False),
        ("borrowed", [], False),
    ],
)
def test_parameters_are_read_without_an_import(plugins, name, takes, complete):
    plugins("unread", SOURCE)
    assert parameters(f"unread:{name}") == (takes, complete)
    assert "unread" not in sys.modules


def test_an_unknown_argument_is_refused_as_far_as_can_be_seen(plugins):
    plugins("unread", SOURCE)
    with refused("algorithm", "unread:plain", "'bb'", "'b'", "a, b"):
        refuse_unknown("unread:plain", "algorithm", {"bb": 1})
    refuse_unknown("unread:anything", "algorithm", {"bb": 1})


@pytest.mark.parametrize("name", ["sigma", "algorithm.sigma", "algorithm.arguments.sigma"])
@pytest.mark.parametrize("base", ["lab:make", {"type": "lab:make", "sigma": 0.1}])
def test_an_argument_is_swept_by_its_name(plugins, name, base):
    plugins("lab", LAB)
    exp = compose({**TINY, "algorithm": base}, {name: 0.7})
    assert exp.algorithm.arguments == {"sigma": 0.7}
    assert "ribs.schedulers" in sys.modules or "lab" not in sys.modules


def test_an_argument_of_any_own_part_is_swept_and_ours_come_first(plugins):
    plugins("lab", LAB)
    parts = {
        "archive": {"type": "floor:Floor"},
        "emitters": [{"type": "annealed:Annealed"}],
        "scheduler": {"type": "lab:Counting"},
    }
    swept = {"least": 1.0, "rate": 0.5, "every": 3, "seed": 9, "batch_size": 4}
    exp = compose({**TINY, "algorithm": parts}, swept)
    own = [part.arguments for part in exp.algorithm.own_parts.values()]
    assert own == [{"rate": 0.5}, {"least": 1.0}, {"every": 3}]
    assert (exp.seed, exp.batch_size) == (9, 4)


def test_a_later_layer_wins_and_a_layer_sets_a_key_once(plugins, in_own_folder):
    plugins("lab", LAB)
    folder = in_own_folder / "config/algorithms"
    folder.mkdir()
    (folder / "mine.yaml").write_text("type: lab:make\narguments: {sigma: 0.1, n: 1}\n")
    exp = compose({**TINY, "algorithm": {"preset": "mine", "sigma": 0.2}})
    assert exp.algorithm.arguments == {"sigma": 0.2, "n": 1} and exp.algorithm.name == "mine"
    twice = {"type": "lab:make", "sigma": 0.1, "arguments": {"sigma": 0.2}}
    with refused("algorithm.sigma", "arguments"):
        compose({**TINY, "algorithm": twice})
    inline, nested = (
        run_id(compose({**TINY, "algorithm": {"type": "lab:make", **part}}))
        for part in ({"sigma": 0.2}, {"arguments": {"sigma": 0.2}})
    )
    assert inline == nested


def test_the_source_is_part_of_the_id(plugins):
    plugins("lab", LAB)
    before = run_id(compose({**TINY, "algorithm": "lab:make"}))
    assert "-make-s5-" in before
    plugins("lab", LAB.replace("n=2", "n=3"))
    assert run_id(compose({**TINY, "algorithm": "lab:make"})) != before
