"""The sweep grammar against its rules, and GNU parallel itself."""

import os
import shlex
import shutil
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qdsweep.errors import BadInput
from qdsweep.sweep.drawn import words
from qdsweep.sweep.grammar import Source, expand, parse


def lines(text: str, directory: Path = Path()) -> list[str]:
    """The rows of a sweep, each as its values joined by blanks."""
    return [" ".join(row) for row in expand(text, directory).rows]


def test_cross_product_varies_the_last_source_fastest():
    table = expand("::: a 1 2 ::: b x y")
    assert table.names == ("a", "b")
    assert table.rows == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::: a 1 2 :::+ b x y", "1 x, 2 y"),
        ("::: a 1 2 :::+ b x y z", "1 x, 2 y"),
        ("::: a 1 2 3 :::+ b x y", "1 x, 2 y"),
        ("::: a 1 2 :::+ b x y :::+ c p q", "1 x p, 2 y q"),
        ("::: a 1 2 3 :::+ b x y :::+ c p", "1 x p"),
        ("::: z 8 9 ::: a 1 2 :::+ b x y", "8 1 x, 8 2 y, 9 1 x, 9 2 y"),
        ("::: a 1 2 :::+ b x y ::: c 5 6", "1 x 5, 1 x 6, 2 y 5, 2 y 6"),
    ],
)
def test_linked_sources_end_with_the_shortest(text, expected):
    assert lines(text) == expected.split(", ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("::: a 1 2 :::+ b x y", []),
        ("::: a 1 2 3 4 :::+ b x y", ["a 3 4"]),
        ("::: z 8 9 ::: a 1 2 :::+ b x y z", ["b z"]),
        ("::: a 1 2 3 :::+ b x y :::+ c p", ["a 3", "b y"]),
    ],
)
def test_what_linked_sources_leave_out_is_said(text, said):
    found = expand(text, Path()).unpaired
    assert [line.partition(":")[0] for line in found] == said


def test_file_sources(tmp_path):
    (tmp_path / "a.txt").write_text("a\n1\n2")
    (tmp_path / "b b.txt").write_text("b\nx y\n\n#z\n")
    assert parse(":::: a.txt 'b b.txt'", tmp_path) == [
        Source("a", ("1", "2")),
        Source("b", ("x y", "", "#z")),
    ]
    assert lines(":::: a.txt ::: c 5 6", tmp_path) == ["1 5", "1 6", "2 5", "2 6"]
    assert lines(f"::: c 5 6 :::: {tmp_path / 'a.txt'}") == ["5 1", "5 2", "6 1", "6 2"]
    assert lines("::: c 5 6 ::::+ a.txt 'b b.txt'", tmp_path) == ["5 1 x y", "6 2 "]


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa\n1\n")
    assert parse(":::: a.txt", tmp_path) == [Source("a", ("1",))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("a'b'\"c\"\\ d", ["abc d"]),
        ("'' \"\" a''", ["", "", "a"]),
        (r"'\n' '\'", [r"\n", "\\"]),
        (r'"\$ \` \" \\ \n"', [r"$ ` " + r'" \ \n']),
        ("a \\\n b", ["a", "b"]),
        ('1\\\n2 "3\\\n4"', ["12", "34"]),
        ("a # b c\nd", ["a", "d"]),
        ("a#b '#c' \\#d", ["a#b", "#c", "#d"]),
        ("$HOME * ~ {1..3} [1] ; | &", ["$HOME", "*", "~", "{1..3}", "[1]", ";", "|", "&"]),
        ("\u00a0 \u2028", ["\u00a0", "\u2028"]),
    ],
)
def test_words_are_cut_as_bash_cuts_them(text, expected):
    assert [word.text for word in words(text)] == expected


def test_a_sweep_may_span_lines_and_hold_comments():
    text = "\n::: a 1 2  # two\n# and\n:::+ b x \\\n  y\n"
    assert lines(text) == ["1 x", "2 y"]


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("seed 1 2", "line 1, column 1", "'seed' stands before the first source"),
        ("parallel ::: a 1", "line 1, column 1", "before the first source"),
        ("::: a 1 ::::: b 2", "line 1, column 9", "':::::' is not an operator"),
        ("::: a 1 ::+ b 2", "line 1, column 9", "'::+' is not an operator"),
        ("::: a 1\n :::b 2", "line 2, column 2", "':::b' is not an operator"),
        ("::: a 1 ':::+ b 2'", "line 1, column 9", "is not an operator"),
        ("::: a 'x", "line 1, column 7", "the quote ' is not closed"),
        ('::: a x"', "line 1, column 8", 'the quote " is not closed'),
        ("::: a x\\", "line 1, column 8", "a backslash has nothing after it"),
        (":::+ a 1", "line 1, column 1", ":::+ has no source before it"),
        ("::::+ f", "line 1, column 1", "::::+ has no source before it"),
        (":::", "line 1, column 1", "lacks a name and values"),
        ("::: a ::: b 1", "line 1, column 5", "lacks values"),
        ("::: '' 1", "line 1, column 5", "the name of this source is empty"),
        ("::: a 1 ::: b 1 ::: a 2", "line 1, column 21", "the name 'a' is used twice"),
        ("::: a 1 ::: b 1 ::: a 2", "", "the names so far: a, b"),
        ("::: a '1\t2'", "line 1, column 5", r"value 1 of 'a', '1\t2', holds the character '\t'"),
        ("::: a 1 '2\n3'", "line 1, column 5", r"holds the character '\n'"),
        ("::: a 1\r\n::: b 2\r\n", "line 1, column 5", r"holds the character '\r'"),
        ("::: a \udcff", "line 1, column 5", r"holds the character '\udcff'"),
        ("::::", "line 1, column 1", ":::: has no file"),
        ("::: a 1 :::: -", "line 1, column 14", "does not read standard input"),
        (":::: none.txt", "line 1, column 6", "No such file or directory"),
        (":::: .", "line 1, column 6", "cannot be read: Is a directory"),
        (":::: 'a\0b'", "line 1, column 6", "cannot be read"),
        (":::: empty.txt", "line 1, column 6", "is empty"),
        (":::: name.txt", "line 1, column 6", "has a name but no values"),
        (":::: nameless.txt", "line 1, column 6", "the name of this source is empty"),
        (":::: dos.txt", "line 1, column 6", "has Windows line ends"),
        (":::: tab.txt", "line 1, column 6", r"holds the character '\t'"),
        (":::: latin1.txt", "line 1, column 6", "it is not UTF-8 text"),
        ("", "", "it is empty"),
        (" # nothing\n", "", "it is empty"),
    ],
)
def test_errors_show_place_and_problem(tmp_path, text, place, problem):
    files = {
        "empty.txt": b"",
        "name.txt": b"a\n",
        "nameless.txt": b"\n1\n",
        "dos.txt": b"a\r\n1\r\n",
        "tab.txt": b"a\tb\n1\t2\n",
        "latin1.txt": b"a\n\xe9\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        expand(text, tmp_path)
    assert place in str(caught.value)
    assert problem in str(caught.value)


def test_an_error_marks_the_word():
    with pytest.raises(BadInput) as caught:
        expand("::: a 1\n::: b 2 ::::: c 3\n::: d 4")
    assert str(caught.value) == (
        "sweep, line 2, column 9: ':::::' is not an operator.\n"
        "  ::: b 2 ::::: c 3\n"
        "          ^^^^^\n"
        "Write one of ::: :::+ :::: ::::+ :::~ with a blank on both sides."
    )


def gnu_parallel(text: str, columns: int, directory: Path) -> list[tuple[str, ...]]:
    """The rows that `parallel --header :` makes of a text that bash has read."""
    template = " ".join(["echo", *(f"{{{column}}}" for column in range(1, columns + 1))])
    output = subprocess.run(
        ["bash", "-c", f"parallel --will-cite --header : -k --dry-run '{template}' {text}"],
        cwd=directory,
        env={**os.environ, "PARALLEL": "", "PARALLEL_SHELL": "/bin/bash"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert not output.stderr, output.stderr.decode()
    return [tuple(shlex.split(line)[1:]) for line in output.stdout.decode().split("\n")[:-1]]


PLAIN = set(string.ascii_letters + string.digits + "_-+.,:/=@%^é")
CHARACTERS = st.sampled_from("ab01 :+-'\"\\#$`*?[]{}();&|<>!~=,.%@^_/é\u00a0\u2028日😀\x01\x7f")
VALUES = st.one_of(
    st.sampled_from(["1", "2", "1e-3", "cma_me", "", "-", "--", "{}", "{1}", "{2}", "[1, 2]", ":"]),
    st.text(CHARACTERS, max_size=6),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\t\n\r"), max_size=3),
).filter(lambda value: not value.startswith("::"))
NAMES = st.from_regex(r"[a-z_]{2,8}(\.[a-z]{1,3})?", fullmatch=True)
GAPS = st.sampled_from([" ", "  ", "\t", " \\\n", " \\\n  "])


@st.composite
def written(draw, value: str) -> str:
    """A word as someone may write it for bash."""
    styles = ["single", "double", "escaped"]
    if value and set(value) <= PLAIN:
        styles += ["plain"] * 3
    match draw(st.sampled_from(styles)) if value else draw(st.sampled_from(styles[:2])):
        case "single":
            return "'" + value.replace("'", "'\\''") + "'"
        case "double":
            return '"' + "".join("\\" + c if c in '"\\$`' else c for c in value) + '"'
        case "escaped":
            return "".join("\\" + character for character in value)
    return value


@st.composite
def command_lines(draw) -> tuple[str, dict[str, str]]:
    """A sweep with all four operators, and the files that it names."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    text, files = [], {}
    while names:
        operator = draw(
            st.sampled_from([":::", ":::+", "::::", "::::+"] if text else [":::", "::::"])
        )
        count = draw(st.integers(1, 2)) if operator.startswith("::::") else 1
        words_after = []
        for name in names[:count]:
            values = draw(st.lists(VALUES, min_size=1, max_size=3))
            if operator.startswith("::::"):
                file = f"file {len(files)}.txt"
                end = "\n" if values[-1] == "" else draw(st.sampled_from(["", "\n"]))
                files[file] = "\n".join([name, *values]) + end
                words_after.append(file)
            else:
                words_after += [name, *values]
        names = names[count:]
        text += [operator, *[draw(written(word)) for word in words_after]]
    gapped = "".join(draw(GAPS) + word for word in text)
    return gapped + draw(st.sampled_from(["", " # a comment 'x"])), files


@pytest.mark.skipif(
    not shutil.which("parallel") and not os.environ.get("CI"),
    reason="GNU parallel is not installed; `apt-get install parallel`",
)
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(command_lines())
def test_rows_are_those_of_gnu_parallel(tmp_path, command_line):
    assert shutil.which("parallel"), "GNU parallel is needed in CI: apt-get install parallel"
    text, files = command_line
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode())
    table = expand(text, tmp_path)
    assert table.rows == gnu_parallel(text, len(table.names), tmp_path)
