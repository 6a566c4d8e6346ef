"""YAML 1.2, in files and in the values of a sweep."""

import math
import os
from pathlib import Path

import pytest
from refusals import refused

from qdsweep.config.files import read_yaml
from qdsweep.config.model import typed, value_text

# fmt: off
SCALARS = [
    ("3", 3), ("-1", -1), ("+12", 12), ("012", 12), ("0x1F", 31), ("0o17", 15),
    ("0.5", 0.5), ("1e-3", 0.001), ("1E+3", 1000.0), (".5", 0.5), ("1.", 1.0), ("-2.5e+1", -25.0),
    (".inf", math.inf), ("-.INF", -math.inf), ("+.Inf", math.inf),
    ("true", True), ("FALSE", False), ("null", None), ("~", None),
    ("[]", []), ("[50, 5e1, x]", [50, 50.0, "x"]), ("[1,[1e-3, a]]", [1, [0.001, "a"]]),
    ("[ true, null , x y ]", [True, None, "x y"]), ("['1', \"a, b\", '']", ["1", "a, b", ""]),
    ("'1'", "1"), ('"true"', "true"), ("'007'", "007"), ('"1e5"', "1e5"), ("'it''s'", "it's"),
    ('"a \\"b\\""', 'a "b"'),
]
TEXTS = [
    "no", "on", "yes", "Off", "tRUE", "1:30", "1_000", "1,5", "2020-01-01", "1.2.3", "cma_me",
    "e5", "1e", ".", "+", "inf", "nan", "0b1", "-0x1", "0o8", "\u0663", "<<", "=",
]
# Only in a sweep: YAML reads another value, or none.
BARE = ["", " ", "-", " 1", "1 ", "1\n", "a: b", "{a: 1}", "[1", "1]", "[1][2]", "[,]", "[1,,2]",
        "[it's]", "'1", "1'", '"a"b"', "'it's'", "'a' 'b'"]
# Only in a file.
WRITTEN = [("", None), ("{1..5}", {"1..5": None})]
# fmt: on


@pytest.mark.parametrize(("text", "value"), [*SCALARS, *((text, text) for text in TEXTS), *WRITTEN])
def test_values_of_a_file(text: str, value: object, in_own_folder: Path):
    Path("a.yaml").write_text(f"a: {text}\n")
    read = read_yaml(Path("a.yaml"))["a"]
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(("text", "value"), [*SCALARS, *((text, text) for text in TEXTS + BARE)])
def test_values_of_a_sweep(text: str, value: object):
    assert typed(text) == value and type(typed(text)) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *("007", "1e5", "true", "", "[1]", "a", '"a"', "it's", ".inf", 7, [1, "a"], -0.0, True),
        *(math.inf, -math.inf, math.nan, [0.7, math.inf], [[-math.inf], None, math.nan, ".nan"]),
    ],
)
def test_a_value_is_read_again_from_its_text(value: object):
    assert repr(typed(value_text(value))) == repr(value)


def test_a_fifo_is_refused_and_not_waited_for(in_own_folder: Path):
    os.mkfifo("a.yaml")
    with refused("a.yaml", "regular file"):
        read_yaml(Path("a.yaml"))


def test_a_quoted_merge_key_is_a_text(in_own_folder: Path):
    Path("a.yaml").write_text("a: {'<<': 1}\n")
    assert read_yaml(Path("a.yaml")) == {"a": {"<<": 1}}


def test_yaml_nan_anchors_and_unicode(in_own_folder: Path):
    Path("a.yaml").write_text("a: .nan\nb: &x [1]\nc: *x\nd: café\n", encoding="utf-8")
    read = read_yaml(Path("a.yaml"))
    assert math.isnan(read["a"])
    assert (read["b"], read["c"], read["d"]) == ([1], [1], "café")
    assert all(math.isnan(typed(text)) for text in (".nan", ".NaN", ".NAN"))


def test_a_number_that_config_yaml_could_not_have_is_refused(in_own_folder: Path):
    """It has decimal digits there, of which a 0x number needs more."""
    text = "0x" + "f" * 290
    Path("a.yaml").write_text(f"a: {text}\n")
    with refused("a.yaml", "0xff", 300):
        read_yaml(Path("a.yaml"))
    with refused("0xff", 300):
        typed(text)
