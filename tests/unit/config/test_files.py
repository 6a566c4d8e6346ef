"""YAML 1.2 without repeated keys; files that cannot be read."""

import re
from pathlib import Path

import pytest
from composing import wrong

from qdsweep.config.base import typed
from qdsweep.config.compose import compose
from qdsweep.config.files import read_yaml
from qdsweep.errors import BadInput


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("domain: arm\nseed: 1\nseed: 2\n", ["'seed'", "twice", "line 3"]),
        ("domain: {type: arm, type: arm}\n", ["'type'", "twice", "line 1"]),
        ("- domain: arm\n", ["mapping"]),
        ("", ["mapping"]),
        ("hello", ["mapping"]),
        ("1: 2\n", ["mapping"]),
        ("domain: arm\narchive:\n\tdims: [3, 3]\n", ["not valid YAML", "line 3"]),
        ("domain: [arm\n", ["not valid YAML"]),
        ("a: 1\n---\nb: 2\n", ["single document"]),
        ("? [a]\n: b\n", ["key", "line 1"]),
        ("a: *b\n", ["alias", "line 1"]),
        ("a: &a [*a]\n", ["not valid YAML"]),
        ("a: !!python/name:os.system\n", ["not valid YAML", "python/name"]),
        ("a: !!binary aGk=\n", ["not valid YAML"]),
        ("a: !!timestamp 2001-99-99\n", ["not valid YAML"]),
        ("a: !!bool maybe\n", ["not valid YAML", "maybe"]),
        (f"a: {'9' * 5000}\n", ["not valid YAML", "digits"]),
        ("a: \x01\n", ["not valid YAML"]),
    ],
)
def test_wrong_yaml(text: str, parts: list[str], in_own_folder: Path):
    Path("broken.yaml").write_text(text)
    for read in (compose, lambda name: read_yaml(Path(name))):
        with pytest.raises(BadInput) as error:
            read("broken.yaml")
        wrong(str(error.value), "broken.yaml", parts)


def test_wrong_files(in_own_folder: Path):
    Path("latin.yaml").write_bytes(b"a: \xff")
    Path("folder.yaml").mkdir()
    for name, parts in {
        "gone.yaml": ["no such file", "experiments"],
        "latin.yaml": ["cannot be read"],
        "folder.yaml": ["no such file"],
        "lp_sphre": ["'lp_sphre'", "'lp_sphere'"],
        "": ["experiment = ''", "lp_sphere"],
        "x" * 300: ["no config/experiments/"],
        "a\0b": ["experiment = 'a\\x00b'"],
    }.items():
        with pytest.raises(BadInput) as error:
            compose(name)
        wrong(str(error.value), "", parts)
        with pytest.raises(BadInput):
            read_yaml(Path(name))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E+3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.inf", float("-inf")),
        ("+12", 12),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("<<", "<<"),
        ("=", "="),
        ("{1..5}", {"1..5": None}),
        ("[50, 5e1, x]", [50, 50.0, "x"]),
    ],
)
def test_yaml_scalars(text: str, value: object, in_own_folder: Path):
    Path("a.yaml").write_text(f"a: {text}\n")
    found = read_yaml(Path("a.yaml"))["a"]
    assert found == value and type(found) is type(value)
    if re.fullmatch(r"[\w.+:~-]+", text):  # a sweep reads it so, too
        assert typed(text) == value and type(typed(text)) is type(value)


def test_yaml_nan_anchors_and_unicode(in_own_folder: Path):
    Path("a.yaml").write_text("a: .nan\nb: &x [1]\nc: *x\nd: café\n", encoding="utf-8")
    found = read_yaml(Path("a.yaml"))
    assert found["a"] != found["a"]
    assert (found["b"], found["c"], found["d"]) == ([1], [1], "café")
