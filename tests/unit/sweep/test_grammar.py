"""The sweep grammar follows its rules, and equals GNU parallel."""

import errno
import os
import shlex
import shutil
import string
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import names_all, refused

from qdsweep.errors import BadInput
from qdsweep.sweep.drawn import SAMPLE, DrawnSource
from qdsweep.sweep.grammar import (
    OPERATORS,
    Source,
    drawn_in,
    expand,
    from_argv,
    parse,
    recover,
)
from qdsweep.sweep.words import words


def lines(text: str, directory: Path = Path()) -> list[str]:
    """Returns the rows of a sweep, each as its values joined by blanks."""
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
    ("text", "left_out"),
    [
        ("::: a 1 2 :::+ b x y", []),
        ("::: a 1 2 3 4 :::+ b x y", ["a 3 4"]),
        ("::: z 8 9 ::: a 1 2 :::+ b x y z", ["b z"]),
        ("::: a 1 2 3 :::+ b x y :::+ c p", ["a 3", "b y"]),
    ],
)
def test_what_linked_sources_leave_out_is_listed(text, left_out):
    unpaired = expand(text, Path()).unpaired
    assert [line.partition(":")[0] for line in unpaired] == left_out
    assert "None" not in str(unpaired), "each names the other source"


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


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("2", ["line 3", "'a.txt'", "'2'"]),
        ("", ["line 4", "empty line"]),
        (" 3", ["line 5", "blanks"]),
        ("4 # four", ["line 6", "comments"]),
    ],
)
def test_a_value_of_a_file_has_a_line(tmp_path, value, names):
    (tmp_path / "a.txt").write_text("a\n1\n2\n\n 3\n4 # four\n2\n")
    table = expand("::: b 7 :::: a.txt ::: c 2", tmp_path)
    line = table.line_of("a", value)
    names_all(line, *names)
    assert (": " in line) == (value != "2"), "a remedy"
    assert table.line_of("c", "2") == table.line_of("b", "7") == ""
    assert [source.name for source in table.files] == ["a"]


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


SEED = "::: seed 1 2 3"


@pytest.mark.parametrize(
    ("text", "place", "names"),
    [
        ("seed 1 2", "1, column 1", ["'seed'", SEED]),
        ("::: a 1 ::::: b 2", "1, column 9", ["':::::'", *OPERATORS]),
        ("::: a 1 ::+ b 2", "1, column 9", ["'::+'"]),
        ("::: a 1\n :::b 2", "2, column 2", ["':::b'"]),
        ("::: a 1 ':::+ b 2'", "1, column 9", ["':::+ b 2'"]),
        ("::: a 'x", "1, column 7", ["quote '"]),
        ('::: a x"', "1, column 8", ['quote "']),
        ("::: a x\\", "1, column 8", ["backslash"]),
        (":::+ a 1", "1, column 1", [":::+", ":::"]),
        ("::::+ f", "1, column 1", ["::::+", "with ::::,"]),
        (":::", "1, column 1", ["name", "values", "::: NAME VALUE"]),
        ("::: a ::: b 1", "1, column 5", ["values", SEED]),
        ("::: '' 1", "1, column 5", ["name", "empty"]),
        ("::: a 1 ::: b 1 ::: a 2", "1, column 21", ["'a'", ": a, b"]),
        ("::: a '1\t2'", "1, column 5", ["value 1 of 'a'", r"'1\t2'", r"'\t'"]),
        ("::: 'a\tb' 2", "1, column 5", [r"name, 'a\tb'", r"'\t'"]),
        ("::: a 1 '2\n3'", "1, column 5", ["value 2 of 'a'", r"'2\n3'", r"'\n'"]),
        ("::: a 1\r\n::: b 2\r\n", "1, column 5", [r"'\r'"]),
        ("::: a \udcff", "1, column 5", [r"'\udcff'"]),
        ("::::", "1, column 1", [":::: FILE", ":::: seeds.txt"]),
        ("::: a 1 :::: -", "1, column 14", ["standard input", "file"]),
        (":::: none.txt", "1, column 6", ["/none.txt'", os.strerror(errno.ENOENT)]),
        (":::: .", "1, column 6", [os.strerror(errno.EISDIR)]),
        (":::: /dev/null", "1, column 6", ["/dev/null", "device"]),
        (":::: 'a\0b'", "1, column 6", [r"a\x00b"]),
        (":::: 0.txt", "1, column 6", ["/0.txt'", "empty", "first line", "name", "value"]),
        (":::: name.txt", "1, column 6", ["/name.txt'", "no values", "first line"]),
        (":::: nameless.txt", "1, column 6", ["name"]),
        (":::: dos.txt", "1, column 6", ["/dos.txt'", "Windows", r"s/\r$//' dos.txt"]),
        (":::: tab.txt", "1, column 6", [r"'\t'"]),
        (":::: latin1.txt", "1, column 6", ["/latin1.txt'", "UTF-8", "first line"]),
        (":::~ sigma0 log 1 2 :::+ b 1 2", "1, column 21", [":::+", ":::~"]),
        (":::~ sigma0 log 1 2 :::+ b 1 2", "1, column 21", [":::+", ":::~"]),
        (":::~ a choice 'x\t' y", "1, column 6", [r"'x\t'"]),
        ("::: a 1 :::~ a log 1 2", "1, column 14", ["'a'", ": a, sample"]),
        ("::: a 1 :::~ b choice 2 if a=3", "1, column 28", ["'a=3'", "1"]),
        (":::~ a choice x y :::~ b choice 2 if a=z", "1, column 38", ["'a=z'", "x, y"]),
        ("::: sample 1 :::~ a log 1 2", "", ["sample"]),
        ("", "", [SEED]),
        (" # nothing\n", "", [SEED]),
    ],
)
def test_an_error_names_its_place_and_the_remedy(tmp_path, text, place, names):
    files = {
        "0.txt": b"",
        "name.txt": b"a\n",
        "nameless.txt": b"\n1\n",
        "dos.txt": b"a\r\n1\r\n",
        "tab.txt": b"a\tb\n1\t2\n",
        "latin1.txt": b"a\n\xe9\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        expand(text, tmp_path, one_draw)
    names_all(str(caught.value), "sweep", place and f"line {place}", *names)
    assert "None" not in str(caught.value), "problem and remedy"


def one_draw(sources: Sequence[DrawnSource]) -> list[tuple[str, ...]]:
    return [tuple(source.value(0.5) for source in sources)]


def test_an_error_marks_the_word(snapshot):
    with pytest.raises(BadInput) as caught:
        expand("::: a 1\n::: b 2 ::::: c 3\n::: d 4")
    assert str(caught.value) == snapshot


def test_samples_need_a_drawn_source_and_a_drawn_source_samples():
    with refused("sigma0", "samples"):
        expand("::: a 1 :::~ sigma0 log 1 2")
    with refused("search", ":::~"):
        expand("::: a 1", draw=one_draw)


def test_keys_without_a_value_are_those_of_conditions_that_do_not_hold():
    text = ":::~ b choice x y :::~ c int 1 9 if b=y :::~ d int 1 9 if c=2 ::: a 1 ''"
    table = expand(text, draw=lambda sources: [("x", "2", "3"), ("y", "2", "4"), ("y", "5", "6")])
    assert table.rows[::2] == [
        ("0", "x", "", "", "1"),
        ("1", "y", "2", "4", "1"),
        ("2", "y", "5", "", "1"),
    ]
    unset = [table.unset(dict(zip(table.names, row, strict=True))) for row in table.rows]
    assert unset[1::2] == [{SAMPLE, "c", "d"}, {SAMPLE}, {SAMPLE, "d"}]
    assert expand("::: a ''").unset({"a": ""}) == set()
    linked = expand("::: a x y :::+ c '' 2")
    assert [linked.unset(dict(zip("ac", row, strict=True))) for row in linked.rows] == [
        {"c"},
        set(),
    ]
    assert [source.name for source in drawn_in(text)] == ["b", "c", "d"]
    assert drawn_in(f":::: none.txt {text}") == drawn_in(text), "no file is read"


def test_a_table_that_does_not_fit_into_the_memory_is_refused():
    many = " ".join(map(str, range(1000)))
    with refused("sweep", f"{1000**5:,}"):
        expand(" ".join(f"::: {name} {many}" for name in "abcde"))


def test_a_command_line_may_draw_and_read_files(tmp_path):
    (tmp_path / "b.txt").write_text("b\n5\n")
    text = ":::: b.txt :::~ a choice 7"
    assert from_argv([text], tmp_path, lambda sources: [("7",)]).rows == [("5", "0", "7")]


def test_only_the_sweep_of_another_key_is_recovered():
    entries = ["sweep=::: a 1", "other=::: c x=3"]
    assert recover("::: b 2", entries, "other") == "::: c x=3"
    with refused("plan", "{'::': 'a 1'}", "  sweep: |\n    ::: algorithm"):
        recover({"::": "a 1"}, entries, "plan")
    with refused("plan", repr("::: a $b"), "--configfile FILE", "  sweep: |\n    ::: algorithm"):
        recover(None, ["plan=::: a $b"], "plan")


def gnu_parallel(text: str, columns: int, directory: Path) -> list[tuple[str, ...]]:
    """Returns the rows of `parallel --header :` for a text that bash has read."""
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
    """A word in any form that bash accepts."""
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
