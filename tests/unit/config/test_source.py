"""The hash of the user's code: golden values, and changes that affect it."""

import subprocess
import sys
from pathlib import Path

import pytest
from pythons import VERSIONS, other_pythons
from refusals import refused

from qdsweep.config import source
from qdsweep.config.own_code import load_class, needed_files
from qdsweep.config.source import code_hash, untyped_hash

FIXTURE = Path(__file__).parents[2] / "fixtures/golden_source.py.txt"
# NEVER change it: every run with a user's own code would be computed again.
GOLDEN = "6695c260738ad8e723dffa9c43cb7068febc4eefd18ac0989b05c0ad62a5deb0"

CODE = '''"""Doc."""
import numpy as np


class Own:
    def f(self, a, b=1):  # why
        """Doc."""
        if a:
            return [a, b]
        return "x"
'''
SAME = {
    "a comment": CODE.replace("# why", "# because"),
    "no comment": CODE.replace("  # why", ""),
    "a docstring": CODE.replace('"""Doc."""', "'''Another\none.'''"),
    "no docstring": CODE.replace('        """Doc."""\n', ""),
    "blank lines": CODE.replace("\n", "\n\n"),
    "width of indents": CODE.replace("    ", "  "),
    "tabs": CODE.replace("    ", "\t"),
    "line breaks in brackets": CODE.replace("[a, b]", "[\n  a,\n  b]"),
    "line ends": CODE.replace("\n", "\r\n"),
    "no last line end": CODE.rstrip("\n"),
    "a mark of UTF-8": "\ufeff" + CODE,
}
OTHER = {
    "a number": CODE.replace("b=1", "b=2"),
    "a string": CODE.replace('"x"', '"y"'),
    "depth": CODE.replace('        return "x"', '            return "x"'),
    "a name": CODE.replace("Own", "Mine"),
    "an f-string": CODE.replace('"x"', 'f"x"'),
    "a lone f-string": CODE.replace('"""Doc."""', 'f"""{print()}"""'),
    "lines joined": CODE.replace("import numpy as np", "import numpy as np;"),
}


@pytest.mark.parametrize("what", SAME)
def test_hash_is_unaffected_by(what: str):
    assert SAME[what] != CODE
    assert code_hash(SAME[what].encode()) == code_hash(CODE.encode())


def test_hash_follows_what_is_executed():
    hashes = {code_hash(text.encode()) for text in (CODE, *OTHER.values())}
    assert len(hashes) == 1 + len(OTHER)


def test_golden_hash():
    assert code_hash(FIXTURE.read_bytes()) == GOLDEN


PLAIN = """from __future__ import annotations
import functools
import numpy as np
from functools import cache

SIZE = 3

class Arm:
    length: float

    def __init__(
        self, joints=2, /, *links, scale=(1, 2), **kw
    ):
        self.joints = joints
        größe = 1, 2

    @property
    def dim(self): return self.joints

    async def reach(self, solutions): return f"{solutions!r:>{9}}"

    @functools.lru_cache(3)
    def cached(self, size): return make(size)

def make(size=SIZE): return [size]
@cache  # no signature
def other(size): return Arm().cached(size)
"""
TYPED = """from __future__ import annotations
import functools
import numpy as np
from functools import cache
from collections.abc import (
    Callable, Iterator,
)
import numpy.typing as npt
from typing import Any

SIZE: int = 3

class Arm:
    length: float

    def __init__(
        self, joints: (int) = 2, /, *links: "Any", scale: tuple[int, int] = (1, 2), **kw: Any
    ) -> (
        None  # a comment
    ):
        self.joints: int = joints
        größe: tuple[{"ä": int}["ä"], (int)] = 1, 2

    @property
    def dim(self) -> int: return self.joints

    async def reach(self, solutions: npt.NDArray[np.int64]) -> ((str)): return f"{solutions!r:>{9}}"

    @functools.lru_cache(3)
    def cached(self, size: int) -> "list[int]": return make(size)

def make(size: ((int | None)) = SIZE) -> list[Callable[[int], int]]: return [size]
from typing import Sequence
@cache
def other(size: Sequence[Arm]): return Arm().cached(size)
"""


FIELDS = """from dataclasses import dataclass, fields
@dataclass
class P:
    scale: float = 100.0

SCALE = P.scale if fields(P)[0].type is float else 1
"""


def test_type_annotations_change_the_id_and_not_what_is_computed():
    assert code_hash(TYPED.encode()) != code_hash(PLAIN.encode())
    assert untyped_hash(TYPED.encode()) == untyped_hash(PLAIN.encode())
    hashes = {untyped_hash(text.encode()) for text in (CODE, *OTHER.values())}
    assert len(hashes) == 1 + len(OTHER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A:\n    x: int = 1\n", "class A:\n    x: str = 1\n"),  # a dataclass reads it
        ("class A:\n    if 1:\n        x: int = 1\n", "class A:\n    if 1:\n        x = 1\n"),
        ("@f.register\ndef g(x: int): pass\n", "@f.register\ndef g(x: str): pass\n"),
        ("def f():\n    x: int\n    x = 1\n", "def f():\n    x = 1\n"),  # makes it local
        ("def f(x: (y := 3)): pass\n", "def f(x): pass\n"),
        ("def f(x: g()): pass\n", "def f(x): pass\n"),
        ("import inspect\ndef f(x: int): pass\ninspect.signature(f)\n",
         "import inspect\ndef f(x): pass\ninspect.signature(f)\n"),
        ("from typing import Any\nAny\n", "from mine import Any\nAny\n"),
        ("from typing import Any\ncast = Any\n", "cast = Any\n"),
        ("import mine\ndef f(x: mine.X): pass\n", "def f(x): pass\n"),  # it may do anything
        ("from .typing import A\n", ""),
        ("def f(x: int = 1): pass\n", "def f(x: int = 2): pass\n"),
        ("x: int = 1\n", "x: int = 2\n"),
        ("f = lambda x: x\n", "f = lambda x: y\n"),
        ("a = {1: int}\n", "a = {1: str}\n"),
        (FIELDS, f"from __future__ import annotations\n{FIELDS}"),
        *(
            (code, code.replace(": float", ": int"))
            for code in (
                "def f(x: float): pass\ng = getattr(f, '__annotations__')\n",
                "def f(x: float): pass\nf = validate_call(f)\n",
                "def f(x: float): pass\ndispatch.register(f)\n",
                "class A:\n    def f(self, x: float): pass\n\nlib.apply(A().f)\n",
                "class A:\n    def f(self, x: float): pass\n\nlib.apply(getattr(A(), 'f'))\n",
                "class A:\n    def f(self, x: float): pass\n\nlib.apply(A)\n",
                "@lib.checked\nclass A:\n    def f(self, x: float): pass\n",
                "@lib.checked\nclass A:\n    class B:\n        def f(self, x: float): pass\n",
                "class A(metaclass=M):\n    def f(self, x: float): pass\n",
                "import evil\n@evil.cache\ndef f(x: float): pass\n",
                "import evil\n@evil.setter\ndef f(x: float): pass\n",
                "from evil import cache\n@cache\ndef f(x: float): pass\n",
                "from evil import property\n@property\ndef f(x: float): pass\n",
                "@lib.kernel\ndef f(x):\n    y: float = x\n",  # it reads the source
            )
        ),
    ],
)  # fmt: skip
def test_annotations_that_code_may_read_count(before: str, after: str):
    assert untyped_hash(before.encode()) != untyped_hash(after.encode())


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_hash_on_another_python(version: str):
    """Since Python 3.12, f-strings are several tokens."""
    if version not in other_pythons():
        pytest.skip(f"no other Python {version}: uv python install {version}")
    code = f"import sys; sys.path.insert(0, {str(Path(source.__file__).parent)!r}); import source; "
    code += f"text = open({str(FIXTURE)!r}, 'rb').read(); "
    code += "print(source.code_hash(text), source.untyped_hash(text))"
    words = [other_pythons()[version], "-I", "-B", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [GOLDEN, untyped_hash(FIXTURE.read_bytes())], done.stderr


def test_what_is_no_python_is_refused():
    for text in (b"def", b"x = '\n", b"\xff", b"x\0"):
        with pytest.raises((SyntaxError, ValueError)):
            code_hash(text)


def test_an_imported_file_that_is_no_python_is_refused_by_name(plugins):
    plugins("metric_of_mine", "def metric(archive, evaluation):\n    import torn_file\n")
    plugins("torn_file", "def (")
    with refused("torn_file.py"):
        needed_files(["metric_of_mine:metric"])


def test_nothing_is_written_next_to_a_plugin(plugins, tmp_path, monkeypatch):
    """Its import may be refused."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    plugins("helping", "VALUE = 3\n")
    plugins("written", "from helping import VALUE\n\n\nclass Own:\n    value = VALUE\n")
    assert load_class("written:Own").value == 3
    assert not sys.dont_write_bytecode
    assert not list(tmp_path.rglob("__pycache__"))
