"""Input that is wrong in one place, made from the config models, and what must be said of it."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

# Each has models of its own: what the wrong ones are made from.
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "cma_mae": {"domain": "lp_sphere", "algorithm": "cma_mae"},
    "cvt": {"domain": "arm", "algorithm": "cvt_map_elites"},
    "line": {"domain": "lunar_lander", "algorithm": "map_elites_line"},
    "novelty": {"domain": "lp_rastrigin", "algorithm": "novelty_search"},
    "mega": {"domain": "lp_sphere", "algorithm": "cma_mega"},
    "pga_me": {"domain": "pendulum", "algorithm": "pga_me"},
    "mega_es": {"domain": "pendulum", "algorithm": "cma_mega_td3_es"},
    "me_es": {"domain": "pendulum", "algorithm": "me_es"},
    "ga": {"domain": "arm", "algorithm": "ga"},
    "ppo": {"domain": "rl_cartpole", "algorithm": "ppo"},
    "dqn": {"domain": "rl_cartpole", "algorithm": "dqn"},
    "apex_dqn": {"domain": "rl_cartpole", "algorithm": "apex_dqn"},
    "impala": {"domain": "rl_cartpole", "algorithm": "impala"},
    "own": {"domain": "maze", "algorithm": {"preset": "map_elites"}},
}

# What tells a user what to do, or what is allowed.
REMEDY = re.compile(
    r"should|known|\bgive\b|\btake\b|[Ww]rite|must|missing|expected|\bneed|at least|at most|"
    r"did you mean|remove|exactly|choose|leave|smaller|\bset\b|cannot|one of|try|rename|"
    r"more than|allowed|no such|invalid|required|Begin|begins|\bGive\b|has to|name a |usage:|"
    r"line \d|looked in"
)

# Keys of which one is given -> the others of a small experiment.
_INSTEAD: dict[str, tuple[tuple[str, ...], ...]] = {
    "archive.cells": (("archive", "dims"),),
    "evaluations": (("iterations",),),
    "steps": (("iterations",),),
}


@dataclass(frozen=True)
class Case:
    """A command with something wrong, and what its one message must say.

    Attributes:
        name: What is wrong.
        words: The command, `qdsweep ...` or `snakemake ...`.
        files: Those that it reads, by name; None is a folder.
        says: Texts that the message must have, `a|b` for either.
    """

    name: str
    words: tuple[str, ...]
    files: dict[str, bytes | None] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def write(self, folder: Path) -> None:
        """Writes its files."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)


def as_yaml(data: Any) -> bytes:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode()


def tree(folder: Path) -> dict[str, int]:
    """Everything below a folder, and when it was last written."""
    return {
        str(path.relative_to(folder)): 0 if path.is_dir() else path.lstat().st_mtime_ns
        for path in folder.rglob("*")
    }


def faults(model: BaseModel) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yields what is wrong, the data with it, and what must be said, for every key of a model."""
    data = model.model_dump(mode="json")
    for path, info in _keys(model, ()):
        key = ".".join(map(str, path))
        for what, value, says in _wrong_values(info):
            changed = _with(data, path, value)
            for other in _INSTEAD.get(key, ()):  # or the pair of them would be what is wrong
                changed = _with(changed, other, None)
            yield f"{key} {what}", changed, (key, *says)
        if isinstance(path[-1], str):
            misspelt = f"{path[-1][:-1]}_{path[-1][-1]}"
            renamed = _without(_with(data, (*path[:-1], misspelt), _at(data, path)), path)
            says = (misspelt, path[-1])
            if path[-1] == "type":  # without it nobody knows what else there is
                says = ("type|emitters",)
            yield f"{key} misspelt", renamed, says
        if info.is_required():
            says = ("type|emitters",) if path[-1] == "type" else (key,)
            yield f"{key} absent", _without(data, path), says


def _keys(model: BaseModel, prefix: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], FieldInfo]]:
    for name, info in type(model).model_fields.items():
        value, path = getattr(model, name), (*prefix, name)
        yield path, info
        if isinstance(value, BaseModel):
            yield from _keys(value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _keys(item, (*path, index))


def _leaves(annotation: Any) -> set[Any]:
    """The types and literals that a value may have."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {Literal}
    if origin in (list, dict, tuple):
        return {origin}
    if args:
        first = args[:1] if str(origin).endswith("Annotated'>") else args
        return set().union(*map(_leaves, first))
    return {
        dict if isinstance(annotation, type) and issubclass(annotation, BaseModel) else annotation
    }


def _wrong_values(info: FieldInfo) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    leaves = _leaves(info.annotation)
    if Any in leaves:
        return
    texts = leaves & {str, Literal}
    if not texts:
        yield "is text", "häß/../x", ("häß/../x",)
    if not leaves & {bool, str}:
        yield "is true", True, ("True",)
    if not leaves & {list, tuple}:
        yield "is a list", ["q", 7], ("q", "7")
    if dict not in leaves:
        yield "is a mapping", {"q": 7}, ("q",)
    if not leaves & {int, float}:
        yield "is a number", 7.25, ("7.25",)
    if leaves & {int, float} and float not in leaves:
        yield "is a fraction", 1.5, ("1.5",)
    if Literal in leaves and str not in leaves:
        yield "is no choice", "../../etc/passwd", ("../../etc/passwd",)
        yield "is empty", "", ("''",)
    for bound in info.metadata:
        match bound:
            case Ge(ge=low):
                yield "too small", low - 1, (str(low - 1),)
            case Gt(gt=low):
                yield "at its open end", low, (str(low),)
            case Le(le=high):
                yield "too large", high + 1, (str(high + 1),)
            case Lt(lt=high):
                yield "at its open upper end", high, (str(high),)
            case MinLen(min_length=1) if leaves & {list}:
                yield "is empty", [], ("[]",)
        if getattr(bound, "pattern", None):
            for what, value in (
                ("climbs", "../../x"),
                ("is unicode", "ключ ключ"),
                ("has a NUL", "a\0b"),
                ("has a line break", "a\nb"),
            ):
                yield what, value, (repr(value),)
    if leaves & {float}:
        yield "is infinite", float("inf"), ("inf",)
        yield "is not a number", float("nan"), ("nan",)


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        data = data[part]
    return data


def _with(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _without(data: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(data)
    del _at(changed, path[:-1])[path[-1]]
    return changed


SMALL = {
    "domain": "lp_sphere",
    "algorithm": "map_elites",
    "archive": {"dims": [10, 10]},
    "iterations": 3,
    "num_emitters": 1,
}
SWEEP = {"name": "s", "experiment": "lp_sphere", "sweep": "::: seed 1 2"}
_RUN = ("qdsweep", "run", "bad.yaml", "--out", "out")
_PLAN = ("qdsweep", "plan", "bad.yaml")


def _case(name: str, words: tuple[str, ...], data: Any, *says: str, **more: bytes | None) -> Case:
    content = data if data is None or isinstance(data, bytes) else as_yaml(data)
    return Case(name, words, {"bad.yaml": content, **more}, ("bad.yaml", *says))


def generated() -> Iterator[Case]:
    """Every key of every model, wrong in every way that its type has."""
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.compose import compose
    from qdsweep.config.sweep import SweepFile

    seen: set[str] = set()
    for name, parts in EXPERIMENTS.items():
        of_groups = 2 if name in ("cma_mae", "line") else 1
        sizes = {"archive": {"dims": [10, 10]}, "num_emitters": of_groups, "batch_size": 36}
        for what, data, says in faults(compose({**sizes, "iterations": 3, **parts})):
            if what not in seen:
                seen.add(what)
                yield _case(f"experiment {name}: {what}", _RUN, data, *says)
    credentials = {"tls_ca_file": "a", "tls_cert": "b", "tls_key": "c"}
    for data in (
        {"engine": "dask", "dask": {"address": "tls://h:1", **credentials}},
        {"engine": "ray", "ray": {"address": "auto", "workers": 2}},
        {"engine": "mpi", "mpi": {"launcher": "srun"}},
    ):
        words = ("qdsweep", "run", "arm", "--cluster", "bad.yaml", "--out", "out")
        for what, changed, says in faults(Cluster.model_validate(data)):
            if (what not in seen or what.split(".")[0] in data) and what != "extra climbs":
                seen.add(what)
                yield _case(f"cluster {data['engine']}: {what}", words, changed, *says)
    where = {
        "where": {"algorithm": "map_elites"},
        "metric": "coverage",
        "mean": 0.5,
        "tolerance": 0.1,
    }
    value = {"mean": 0.5, "tolerance": 0.1, "source": "x"}
    two = {"experiment": "lunar_lander", "sweep": "::: algorithm map_elites cma_me ::: seed 1 2"}
    asked = {"reevaluate": {}, "rollouts": {}, "confirm": {"top": 1, "seeds": [101, 110]}}
    drawn = {"experiment": "lp_sphere", "sweep": ":::~ sigma0 log 0.1 1 ::: seed 1 2"}
    for data in (
        {**SWEEP, **two, "published": [{**where, **value}], **asked},
        {**SWEEP, **drawn, "search": {"samples": 9, "halving": {}}},
        {**SWEEP, **drawn, "search": {"pbt": {"population": 4, "generations": 3}}},
    ):
        for what, changed, says in faults(SweepFile.model_validate_json(json.dumps(data))):
            if what not in seen and what != "name is a number":  # which is a name
                seen.add(what)
                yield _case(f"sweep: {what}", _PLAN, changed, *says)


def hand_made() -> Iterator[Case]:
    """What no generator thinks of."""
    yield from _huge()
    yield from _files()
    yield from _sweeps()
    yield from _command_lines()
    yield from _plugins()


def _huge() -> Iterator[Case]:
    for sets, key in (
        ({"archive": {"dims": [10**9, 10**9]}}, "archive.dims = [1000000000, 1000000000]"),
        (
            {"algorithm": "cvt_map_elites", "archive": {"cells": 10**15}},
            f"archive.cells = {10**15}",
        ),
        ({"algorithm": "cvt_map_elites", "samples": 10**16}, f"samples = {10**16}"),
        ({"num_emitters": 10**15}, f"num_emitters = {10**15}"),
        ({"batch_size": 10**15}, f"batch_size = {10**15}"),
        ({"first_batch": 10**15}, f"first_batch = {10**15}"),
        ({"initial_solutions": 10**15}, "initial_solutions"),
        ({"domain": {"preset": "arm", "solution_dim": 10**15}}, f"{10**15:,} parameter"),
        (
            {"domain": {"preset": "arm", "solution_dim": 10**7}, "algorithm": "cma_es"},
            "es = cma_es",
        ),
    ):
        data = {**SMALL, **sets}
        yield _case(f"run with {key}", _RUN, data, key, "GiB", "take a smaller one")
        sweep = {**SWEEP, "experiment": "huge.yaml"}
        text = {"huge.yaml": as_yaml(data)}
        says = ("huge.yaml", key, "GiB", "take a smaller one")
        yield _case(f"plan with {key}", _PLAN, sweep, *says, **text)
    rows = " ".join(f"::: k{i} " + " ".join(map(str, range(100))) for i in range(8))
    yield _case("rows that no memory holds", _PLAN, {**SWEEP, "sweep": rows}, "rows", "GiB")
    yield Case("workers that no memory holds", (*_OK, "--workers", "100000000"), _OK_FILE, ("GiB",))


def _files() -> Iterator[Case]:
    bomb = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
    )
    for words, good in ((_RUN, SMALL), (_PLAN, SWEEP)):
        text = as_yaml(good)
        for what, content, says in (
            ("empty", b"", "mapping"),
            ("only a comment", b"# nothing\n", "mapping"),
            ("not UTF-8", b"name: \xff\xfe", "UTF-8"),
            ("UTF-16", "name: s".encode("utf-16"), "UTF-8"),
            ("begun by a BOM, with an unknown key", b"\xef\xbb\xbf" + text + b"zzz: 1\n", "zzz"),
            ("a folder", None, "no such file|directory"),
            ("a list", b"- 1\n", "mapping"),
            ("a bomb", bomb, "values"),
            ("deeper than the stack", b"a: " + b"[" * 100_000, "200 deep"),
            ("saying a key twice", text + b"iterations: 3\niterations: 4\n", "twice"),
            ("holding a NUL", b"name: a\0b\n", "#x0000"),
            ("indented by a tab", b"name: s\n\tx: 1\n", "line 2|line 1"),
            ("two documents", b"---\na: 1\n---\nb: 2\n", "line 3"),
            ("binary", bytes(range(256)), "UTF-8"),
            ("a number of 6,000 digits", b"seed: " + b"9" * 6000, "6,000 digits"),
            ("a Python object", b"a: !!python/object/apply:os.system [ls]\n", "python/object"),
        ):
            yield _case(f"{words[1]}: a file that is {what}", words, content, says)
    for key in ("name", "experiment", "cluster"):
        for value in ("../../x", "a\0b", "a\nb", "x" * 300, "/dev/zero", "ключ", "", "*", "$(id)"):
            data = {**SWEEP, key: value}
            yield _case(f"{key} {value[:20]!r}", _PLAN, data, key, repr(value)[:100])


def _sweeps() -> Iterator[Case]:
    for sweep, *says in (
        ("::: seed {1..1000000000}", "seed", "'{1..1000000000}'"),
        ("::: seed 1.5", "seed", "1.5"),
        ("::: seed -1", "seed", "-1"),
        ("::: seed " + "9" * 5000, "99999"),
        ("::: sed 1 2", "'sed'", "'seed'"),
        ("::: seed", "values"),
        ("::: seed 1 ::: seed 2", "twice"),
        (":::: nofile", "'nofile'"),
        (":::: /dev/zero", "'/dev/zero'", "device"),
        (":::: latin.txt", "'latin.txt'", "UTF-8"),
        (":::: -", "standard input"),
        ("::::: seed 1", "operator"),
        ("seed 1 2", "first source"),
        (":::+ seed 1 2", "link"),
        ("::: seed 'x", "not closed"),
        ("::: seed 1\\", "backslash"),
        ("::: seed " + "x" * 100_000, "seed", "100,002 characters"),
        ("::: seed \0", "'\\x00'"),
        ("::: algorithm cma_mee", "'cma_mee'", "'cma_me'"),
        ("::: algorithm ../../x", "'../../x'"),
        ("::: domain nope:Nope", "nope:Nope"),
        ("::: archive.dims [10]", "[10]"),
        ("::: seed 1 ::: archive.dims [0,3]", "[0, 3]"),
        ("::: archive.dims [1000000000,1000000000]", "[1000000000, 1000000000]", "GiB"),
        (":::~ sigma0 log 0 1", "logarithm"),
        (":::~ sigma0 log 0.1 1", "samples"),
        ("::: name a b", "ambiguous"),
        ("::: domain.name ../../x", "domain.name", "'../../x'"),
    ):
        data = {**SWEEP, "sweep": sweep}
        yield _case(f"sweep {sweep[:40]!r}", _PLAN, data, *says, **{"latin.txt": b"seed\n\xff\n"})
    for key, value, *says in (
        ("exclude", ["x"], "'x'"),
        ("rank", "nope", "nope"),
        ("imported", ["nofile.yaml"], "nofile.yaml"),
        ("figures", {"labels": {"a": "b"}}, "labels", "'a'"),
        ("confirm", {"seeds": [5, 1]}, "[5, 1]"),
        ("confirm", {"seeds": [0, 10**9]}, "1000000000"),
        ("reevaluate", {"times": 10**9}, "1000000000"),
        ("search", {"samples": 10**8}, "100000000"),
        ("tables", {"columns": ["x"]}, "columns", "'x'"),
        ("rollouts", {}, "lp_sphere"),
    ):
        yield _case(f"{key}: {value}", _PLAN, {**SWEEP, key: value}, key, *says)


_OK = ("qdsweep", "run", "ok.yaml", "--out", "out")
_OK_FILE: dict[str, bytes | None] = {"ok.yaml": as_yaml(SMALL)}


def _command_lines() -> Iterator[Case]:
    for words, *says in (
        ((), "COMMAND"),
        (("nope",), "'nope'"),
        (("run",), "experiment", "--out"),
        ((*_OK[1:], "--nope"), "--nope"),
        ((*_OK[1:], "--set", "seed"), "--set seed", "KEY=VALUE"),
        ((*_OK[1:], "--set", "=3"), "--set =3", "KEY=VALUE"),
        ((*_OK[1:], "--set", "seed=1", "--set", "seed=2"), "--set seed", "twice"),
        ((*_OK[1:], "--set", "sed=1"), "--set", "'sed'", "'seed'"),
        ((*_OK[1:], "--set", "seed=x"), "--set", "seed = 'x'"),
        ((*_OK[1:], "--set", "ключ=1"), "--set", "'ключ'"),
        ((*_OK[1:], "--set", "seed=" + "9" * 400), "--set seed", "300 digits"),
        ((*_OK[1:], "--set", "seed=" + "[" * 5000), "--set seed", "[[["),
        ((*_OK[1:], "--set", "archive.dims=[1000000000,1000000000]"), "--set", "archive.dims"),
        ((*_OK[1:], "--workers", "0"), "--workers 0"),
        ((*_OK[1:], "--workers", "1.5"), "--workers", "'1.5'"),
        ((*_OK[1:], "--cluster", "../x.yaml"), "../x.yaml"),
        ((*_OK[1:], "--cluster", "nope"), "'nope'", "local"),
        ((*_OK[1:], "--max-seconds", "-1"), "--max-seconds -1"),
        ((*_OK[1:], "--max-seconds", "nan"), "--max-seconds nan"),
        ((*_OK[1:], "--max-seconds", "x"), "--max-seconds", "'x'"),
        (("run", "ok.yaml", "--out", "ok.yaml"), "--out ok.yaml"),
        (("run", "ok.yaml", "--out", "ok.yaml/x/y"), "--out ok.yaml/x/y"),
        (("run", "ok.yaml", "--out", "x" * 300), "--out", "too long"),
        (("run", "nope", "--out", "out"), "'nope'"),
        (("plan", "nope"), "'nope'"),
        (("plan", "nope.yaml"), "nope.yaml"),
        (("plan", "ok.yaml", "--results"), "--results"),
        (("expand", "::: a"), "values"),
        (("expand", "--samples", "0", ":::~ a log 1 2"), "--samples", "0"),
        (("expand", "--sampling", "x", "--samples", "2", ":::~ a log 1 2"), "--sampling", "'x'"),
        (("status", "../x"), "'../x'"),
        (("status", "nope"), "nope"),
        (("status",), "results"),
        (("watch", "--every", "0"), "--every 0"),
        (("watch", "--every", "x"), "--every", "'x'"),
        (("export", "nope"), "nope"),
        (("clean", "--nope"), "--nope"),
        (("init", "ok.yaml"), "ok.yaml"),
        (("import", "nope.yaml"), "nope.yaml"),
        (("import", "ok.yaml"), "ok.yaml"),
        (("scale", "ok.yaml", "--workers", "0", "--out", "out"), "--workers", "0"),
        (("scale", "ok.yaml", "--workers", "a,b", "--out", "out"), "--workers", "a,b"),
        (("rollout", "nope"), "nope"),
        (("rollout", "nope", "--seconds", "0"), "--seconds 0"),
        (("rollout", "nope", "--at", "x"), "--at", "'x'"),
        (("reevaluate", "nope"), "nope"),
        (("reevaluate", "nope", "--workers", "0"), "--workers 0"),
        (("worker", "--join", "nope"), "nope"),
        (("worker", "--connect", "nope"), "nope"),
        (("worker",), "--join", "--connect"),
        (("check",), "domain"),
        (("check", "nope:Nope"), "nope"),
        (("check", "--algorithm", "nope"), "nope"),
        (("aggregate", "nope"), "nope"),
        (("plot", "a/b"), "'a/b'"),
        (("report", "nope"), "nope"),
        (("place", "nope", "x", "0"), "nope"),
        (("decide", "nope", "x", "y"), "'y'"),
    ):
        name = "qdsweep " + " ".join(words)[:60]
        yield Case(name, ("qdsweep", *words), _OK_FILE, tuple(says))


def _plugins() -> Iterator[Case]:
    for what, source, *says in (
        ("is not there", None, "own"),
        ("is no Python", b"class Own(:\n", "no Python"),
        ("lacks the class", b"class Other:\n    pass\n", "Other"),
        ("is not UTF-8", b"x = '\xff'\nclass Own: pass\n", "no Python"),
    ):
        files = {} if source is None else {"config/plugins/own.py": source}
        data = {**SMALL, "domain": "own:Own"}
        yield _case(f"run: a plug-in that {what}", _RUN, data, "own:Own", *says, **files)
        data = {**SWEEP, "experiment": "own.yaml"}
        own = {"own.yaml": as_yaml({**SMALL, "domain": "own:Own"})}
        yield _case(f"plan: a plug-in that {what}", _PLAN, data, "own:Own", *says, **files, **own)


def only_as_processes() -> Iterator[Case]:
    """Code of the user's, which ends or prints as it likes, and Snakemake."""
    for what, source, *says in (
        ("fails when imported", b"1 / 0\nclass Own: pass\n", "ZeroDivisionError"),
        ("exits when imported", b"import sys\nsys.exit(3)\nclass Own: pass\n", "SystemExit"),
        ("has a function instead", b"def Own(): pass\n", "no class Own"),
        ("has another signature", b"class Own:\n    def __init__(self, a): pass\n", "Own"),
        ("evaluates nothing", b"class Own:\n    pass\n", "Own"),
    ):
        files: dict[str, bytes | None] = {"config/plugins/own.py": source}
        words = ("qdsweep", "check", "own:Own")
        yield Case(f"check: a plug-in that {what}", words, files, ("own:Own", *says))
    ok: dict[str, bytes | None] = {"ok.yaml": as_yaml(SWEEP)}
    for config, *says in (
        ("nam=x", "--config nam", "'name'"),
        ("sweep=::: seed x", "--config sweep", "seed = 'x'"),
        ("cluster=nope", "--config cluster", "'nope'"),
        ("name=../../x", "--config name", "'../../x'"),
        ("experiment=nope", "--config experiment", "'nope'"),
    ):
        words = ("snakemake", "-n", "--cores", "1", "--configfile", "ok.yaml", "--config", config)
        yield Case(f"snakemake --config {config}", words, ok, tuple(says))
    # Of files that are no YAML, Snakemake reads the others itself, and says so in its own words.
    ours = re.compile("a file that is (begun by a BOM|a bomb|saying a key twice)")
    for case in (*_huge(), *_files(), *_sweeps(), *_plugins()):
        if case.words == _PLAN and ("a file that is" not in case.name or ours.search(case.name)):
            words = ("snakemake", "-n", "--cores", "1", "--configfile", "bad.yaml")
            yield Case(f"snakemake: {case.name}", words, case.files, case.says)
