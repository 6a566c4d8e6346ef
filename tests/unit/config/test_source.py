"""The hash of the user's code: golden values, and changes that affect it."""

import subprocess
import sys
from pathlib import Path

import pytest
from pythons import VERSIONS, other_pythons
from refusals import refused

from qdsweep.config import source
from qdsweep.config.plugin import load_class, needed_files
from qdsweep.config.source import code_hash

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


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_hash_on_another_python(version: str):
    """Since Python 3.12, f-strings are several tokens."""
    if version not in other_pythons():
        pytest.skip(f"no other Python {version}: uv python install {version}")
    code = f"import sys; sys.path.insert(0, {str(Path(source.__file__).parent)!r}); import source; "
    code += f"print(source.code_hash(open({str(FIXTURE)!r}, 'rb').read()))"
    words = [other_pythons()[version], "-I", "-B", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == GOLDEN, done.stderr


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
