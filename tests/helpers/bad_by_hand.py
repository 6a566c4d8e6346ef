"""Faulty input that no generator produces, most of it in fixtures/bad_input.txt."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import yaml
from bad_input import PLAN, RUN, SWEEP, Case, as_yaml, case_of
from composing import BASE, merged
from support import REPO

SMALL = {
    "domain": "lp_sphere",
    "algorithm": "map_elites",
    "archive": {"dims": [10, 10]},
    "iterations": 3,
    "num_emitters": 1,
}
GROUPS = {
    **SWEEP,
    "experiment": {**SMALL, "algorithm": "map_elites_line"},
    "sweep": "::: algorithm map_elites cma_me :::+ batch_size 16 8 ::: step 0.1 0.5 ::: seed 1 2",
}
TASK = {"type": "gymnasium", "env": "CartPole-v1", "objective_range": [0, 500]}
VALUE = {"metric": "coverage", "mean": 0.5, "margin": 0.1, "source": "a paper"}
_OK_RUN = ("qdsweep", "run", "ok.yaml", "--out", "out")
_OK: dict[str, bytes | None] = {"ok.yaml": as_yaml(SMALL)}


def tabled(section: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each input of a section of the table, and the names in its message."""
    text = (REPO / "tests/fixtures/bad_input.txt").read_text()
    lines = text.split(f"\n[{section}]")[1].split("\n\n")[0].splitlines()[1:]
    for line in lines:
        content, _, names = line.partition("=> ")
        yield content.removesuffix(" "), names.split(" | ")


def mappings(section: str) -> Iterator[tuple[str, Any, list[str]]]:
    for content, names in tabled(section):
        yield f"{section}: {content}", yaml.safe_load(content), names


def hand_made() -> Iterator[Case]:
    """Yields faulty files that no generator produces."""
    yield from _huge()
    yield from _files()
    yield from _experiments()
    yield from _sweeps()
    yield from _command_lines()
    yield from _plugins()


def _huge() -> Iterator[Case]:
    for name, changes, names in mappings("huge"):
        data = {**SMALL, **changes}
        yield case_of(f"run {name}", RUN, data, *names, "GiB")
        sweep, huge = {**SWEEP, "experiment": "huge.yaml"}, {"huge.yaml": as_yaml(data)}
        yield case_of(f"plan {name}", PLAN, sweep, "huge.yaml", *names, "GiB", **huge)
    rows = " ".join(f"::: k{i} " + " ".join(map(str, range(100))) for i in range(8))
    wide = {**SWEEP, "sweep": rows}
    yield case_of("rows that no memory holds", PLAN, wide, "sweep", f"{100**8:,}", "GiB")


def _files() -> Iterator[Case]:
    bomb = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
    )
    for words, good in ((RUN, SMALL), (PLAN, SWEEP)):
        text = as_yaml(good)
        for what, content, *names in (
            ("empty", b"", "mapping"),
            ("only a comment", b"# nothing\n", "mapping"),
            ("a word", b"hello", "mapping"),
            ("a list", b"- 1\n", "mapping"),
            ("a mapping of a number", b"1: 2\n", '"1"'),
            ("a mapping of nothing", text + b"~: 2\n", '"null"'),
            ("not UTF-8", b"a: 1\nname: \xff\xfe", "UTF-8", "line 2", "0xff"),
            ("UTF-16", "name: s".encode("utf-16"), "UTF-8", "0xff"),
            ("UTF-16 without a mark", "name: s".encode("utf-16-be"), "UTF-16", "UTF-8"),
            ("binary", bytes(range(256)), "UTF-8", "0x80"),
            ("with a BOM and an unknown key", b"\xef\xbb\xbf" + text + b"zzz: 1\n", "zzz"),
            ("a folder", None, "YAML|config/experiments/"),
            ("a bomb", bomb, "1,000,000", "line 7"),
            ("deeper than the stack", b"a: " + b"[" * 100_000, "200", "line 1"),
            ("repeating a key", text + b"iterations: 3\niterations: 4\n", "'iterations'", "line"),
            ("repeating a key in braces", b"a: {type: arm, type: arm}\n", "'type'", "line 1"),
            ("holding a NUL", b"name: a\0b\n", "#x0000", "7"),
            ("indented by a tab", b"name: s\n\tx: 1\n", "line 2", "tab", "spaces"),
            ("indented by blanks and a tab", b"a:\n  b: 1\n  \tc: 1\n", "line 3", "tab"),
            ("merging keys", b"a: &a {b: 1}\nc:\n  <<: *a\n", "<<", "line 3"),
            ("without a closing bracket", b"name: [arm\n", "line 2"),
            ("two documents", b"---\na: 1\n---\nb: 2\n", "line 3"),
            ("keyed by a list", b"? [a]\n: b\n", "line 1"),
            ("naming an alias that is not there", b"a: *b\n", "*b", "&b", "line 1"),
            ("an alias of itself", b"a: &a [*a]\n", "YAML"),
            ("a number of 6,000 digits", b"seed: " + b"9" * 6000, "6,000", "300"),
            ("a Python object", b"a: !!python/object/apply:os.system [ls]\n", "os.system", "line"),
            ("a boolean that is none", b"a: !!bool maybe\n", "'maybe'", "!!bool", "line 1"),
            ("a binary text", b"a: !!binary aGk=\n", "bytes"),
        ):
            yield case_of(f"{words[1]}: a file that is {what}", words, content, *names)
    words = ("qdsweep", "sweep", "bad.yaml", "-n")
    for content, name in ((b"", "mapping"), (b"a: \xff", "UTF-8"), (b"a: {", "YAML")):
        yield case_of(f"{words[1]}: {content!r}", words, content, name)
    for key, known in (("name", "[A-Za-z0-9_]|100"), ("experiment", "arm"), ("cluster", "slurm")):
        for value in ("../../x", "a\0b", "a\nb", "x" * 300, "/dev/zero", "ключ", "", "*", "$(id)"):
            data = {**SWEEP, key: value}
            yield case_of(f"{key} {value[:20]!r}", PLAN, data, key, repr(value)[:100], known)


def _experiments() -> Iterator[Case]:
    for name, changes, names in mappings("experiments"):
        yield case_of(name, RUN, merged(BASE, changes), *names)
    for name, emitters, names in mappings("emitters"):
        algorithm = {"archive": {"type": "grid"}, "emitters": emitters}
        yield case_of(name, RUN, {**BASE, "algorithm": algorithm}, *names)
    for name, measures, names in mappings("measures"):
        domain = {**TASK, "measures": measures}
        yield case_of(name, RUN, {**BASE, "domain": domain}, *names)
    for name, values, names in mappings("schedules"):
        schedule = [{"at": 3, "set": values}]
        data = {**BASE, "algorithm": "map_elites_line", "schedule": schedule}
        yield case_of(name, RUN, data, *names)
    words = ("qdsweep", "run", "arm", "--cluster", "bad.yaml", "--out", "out")
    for name, cluster, names in mappings("clusters"):
        yield case_of(name, words, cluster, *names)


def _sweeps() -> Iterator[Case]:
    latin = {"latin.txt": b"seed\n\xff\n"}
    for sweep, names in (
        *tabled("sweeps"),
        ("::: seed " + "9" * 5000, ["9" * 40 + "...", "300"]),
        ("::: seed " + "x" * 100_000, ["seed", "100,002", "integer"]),
        ("::: seed \0", ["column 5", "'\\x00'"]),
    ):
        yield case_of(f"sweep {sweep[:80]!r}", PLAN, {**SWEEP, "sweep": sweep}, *names, **latin)
    for name, changes, names in mappings("keys"):
        yield case_of(name, PLAN, {**GROUPS, **changes}, *names)
    good = {"where": {"algorithm": "cma_me", "step": 0.1}, **VALUE}
    for name, where, names in mappings("published"):
        data = {**GROUPS, "published": [good, {"where": where, **VALUE}]}
        yield case_of(name, PLAN, data, "published", "entry 2", *names)


def _command_lines() -> Iterator[Case]:
    commands = (
        *(
            (("qdsweep", "expand", "--samples", "2", text), names)
            for text, names in tabled("drawn")
        ),
        *(((*_OK_RUN, *shlex.split(words)), names) for words, names in tabled("run")),
        *((("qdsweep", *shlex.split(words)), names) for words, names in tabled("commands")),
        ((*_OK_RUN, "--set", "seed=" + "9" * 400), ["--set seed", "300"]),
        ((*_OK_RUN, "--set", "seed=" + "[" * 5000), ["--set seed", "[[[", "300"]),
        (("qdsweep", "run", "ok.yaml", "--out", "x" * 300), ["--out", "302", "folder"]),
        (("qdsweep", "run", "a\0b", "--out", "out"), ["'a\\x00b'", "arm"]),
    )
    for words, names in commands:
        yield Case(" ".join(words)[:80], words, _OK, tuple(names))


def _plugins() -> Iterator[Case]:
    for what, source, *names in (
        ("is not there", None, "config/plugins"),
        ("is no Python", b"class Own(:\n", "own.py", "line 1"),
        ("lacks the class", b"class Other:\n    pass\n", "own.py", "Other"),
        ("is not UTF-8", b"x = '\xff'\nclass Own: pass\n", "own.py", "0xff"),
    ):
        files = {} if source is None else {"config/plugins/own.py": source}
        data = {**SMALL, "domain": "own:Own"}
        yield case_of(f"run: a plug-in that {what}", RUN, data, "own:Own", *names, **files)
        data = {**SWEEP, "experiment": "own.yaml"}
        own = {"own.yaml": as_yaml({**SMALL, "domain": "own:Own"})}
        yield case_of(f"plan: a plug-in that {what}", PLAN, data, "own:Own", *names, **files, **own)


def only_as_processes() -> Iterator[Case]:
    """Yields faulty user code, which may end or print anything, and options of Snakemake."""
    for what, source, *names in (
        ("fails when imported", b"1 / 0\nclass Own: pass\n", "ZeroDivisionError"),
        ("exits when imported", b"import sys\nsys.exit(3)\nclass Own: pass\n", "SystemExit"),
        ("has a function instead", b"def Own(): pass\n", "own.py", "Own"),
        ("has another signature", b"class Own:\n    def __init__(self, a): pass\n", "Own", "'a'"),
        ("evaluates nothing", b"class Own:\n    pass\n", "Own", "solution_dim"),
    ):
        files: dict[str, bytes | None] = {"config/plugins/own.py": source}
        words = ("qdsweep", "check", "own:Own")
        yield Case(f"check: a plug-in that {what}", words, files, ("own:Own", *names))
    ok: dict[str, bytes | None] = {"ok.yaml": as_yaml(SWEEP)}
    for config, *names in (
        ("nam=x", "--config nam", "'name'"),
        ("sweep=::: seed x", "--config sweep", "seed = 'x'", "integer"),
        ("cluster=nope", "--config cluster", "'nope'", "local"),
        ("name=../../x", "--config name", "'../../x'", "[A-Za-z0-9_]"),
        ("experiment=nope", "--config experiment", "'nope'", "arm"),
    ):
        words = ("snakemake", "-n", "--cores", "1", "--configfile", "ok.yaml", "--config", config)
        yield Case(f"snakemake --config {config}", words, ok, tuple(names))
    # Snakemake itself reads other files that are not YAML, and reports them in its own words.
    ours = re.compile("a file that is (with a BOM|a bomb|repeating a key$)")
    for case in (*_huge(), *_files(), *_sweeps(), *_plugins()):
        if case.words == PLAN and ("a file that is" not in case.name or ours.search(case.name)):
            words = ("snakemake", "-n", "--cores", "1", "--configfile", "bad.yaml")
            yield Case(f"snakemake: {case.name}", words, case.files, case.names)
