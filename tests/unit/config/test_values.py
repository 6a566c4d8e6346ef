"""Values of a sweep: the YAML 1.2 core ones."""

import math

import pytest

from qdsweep.config.base import typed, value_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("3", 3), ("-1", -1), ("+7", 7), ("007", 7), ("0x1f", 31), ("0o17", 15)],
        *[
            ("0.5", 0.5),
            ("1e-3", 0.001),
            ("1E5", 1e5),
            (".5", 0.5),
            ("1.", 1.0),
            ("-2.5e+1", -25.0),
        ],
        *[(".inf", math.inf), ("-.INF", -math.inf), ("+.Inf", math.inf)],
        *[("true", True), ("False", False), ("TRUE", True), ("null", None), ("~", None)],
        *[("[]", []), ("[1, 2]", [1, 2]), ("[1,[1e-3, a]]", [1, [0.001, "a"]]), ("[1,]", [1])],
        *[
            ("[ true, null , x y ]", [True, None, "x y"]),
            ("['1', \"a, b\", '']", ["1", "a, b", ""]),
        ],
        *[("'007'", "007"), ('"1e5"', "1e5"), ('"a \\"b\\""', 'a "b"'), ("'it''s'", "it's")],
    ],
)
def test_typed_values(text, expected):
    value = typed(text)
    assert value == expected
    assert type(value) is type(expected)


def test_not_a_number():
    assert all(math.isnan(typed(text)) for text in (".nan", ".NaN", ".NAN"))


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "no", "on", "yes", "Off", "tRUE", "1:30", "1_000", "1,5", "2020-01-01", "1.2.3"],
        *[
            "e5",
            "1e",
            ".",
            "-",
            "+",
            "inf",
            "nan",
            "0b1",
            "-0x1",
            "0o8",
            " 1",
            "1 ",
            "1\n",
            "\u0663",
        ],
        *["cma_me", "a: b", "{a: 1}", "[1", "1]", "[1][2]", "[,]", "[1,,2]", "[it's]"],
        *["'1", "1'", '"a"b"', "'it's'", "'a' 'b'"],
    ],
)
def test_everything_else_is_text(text):
    assert typed(text) == text


@pytest.mark.parametrize(
    "value", ["007", "1e5", "true", "", "[1]", "a", '"a"', "it's", 7, [1, "a"]]
)
def test_a_value_is_read_again_from_its_text(value):
    assert typed(value_text(value)) == value
