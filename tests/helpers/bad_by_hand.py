"""Input that is wrong as no generator thinks of it, and what its message names."""

import re
from collections.abc import Iterator
from typing import Any

from bad_input import PLAN, RUN, SWEEP, Case, as_yaml, case_of
from composing import BASE, emitter, merged

SMALL = {
    "domain": "lp_sphere",
    "algorithm": "map_elites",
    "archive": {"dims": [10, 10]},
    "iterations": 3,
    "num_emitters": 1,
}
_OK = ("qdsweep", "run", "ok.yaml", "--out", "out")
_OK_FILE: dict[str, bytes | None] = {"ok.yaml": as_yaml(SMALL)}


def hand_made() -> Iterator[Case]:
    """What no generator thinks of."""
    yield from _huge()
    yield from _files()
    yield from _experiments()
    yield from _clusters()
    yield from _sweeps()
    yield from _drawn()
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
        ({"domain": {"preset": "arm", "solution_dim": 10**15}}, f"{10**15:,}"),
        (
            {"domain": {"preset": "arm", "solution_dim": 10**7}, "algorithm": "cma_es"},
            "es = cma_es",
        ),
        *(
            ({"domain": "rl_cartpole", "algorithm": name, key: value}, f"algorithm.{key} = {value}")
            for name, key, value in (
                ("ppo", "evaluation_episodes", 10**13),
                ("ppo", "n_steps", 10**13),
                ("ppo", "vf_hidden", [10**7, 10**7]),
                ("dqn", "buffer_size", 10**13),
            )
        ),
    ):
        data = {**SMALL, **sets}
        yield case_of(f"run with {key}", RUN, data, key, "GiB")
        sweep = {**SWEEP, "experiment": "huge.yaml"}
        huge = {"huge.yaml": as_yaml(data)}
        yield case_of(f"plan with {key}", PLAN, sweep, "huge.yaml", key, "GiB", **huge)
    rows = " ".join(f"::: k{i} " + " ".join(map(str, range(100))) for i in range(8))
    wide = {**SWEEP, "sweep": rows}
    yield case_of("rows that no memory holds", PLAN, wide, "sweep", f"{100**8:,}", "GiB")
    words = (*_OK, "--workers", "100000000")
    yield Case("workers that no memory holds", words, _OK_FILE, ("--workers", "GiB"))


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
            ("a mapping of a number", b"1: 2\n", "mapping"),
            ("not UTF-8", b"name: \xff\xfe", "UTF-8", "0xff"),
            ("UTF-16", "name: s".encode("utf-16"), "UTF-8", "0xff"),
            ("binary", bytes(range(256)), "UTF-8", "0x80"),
            ("begun by a BOM, with an unknown key", b"\xef\xbb\xbf" + text + b"zzz: 1\n", "zzz"),
            ("a folder", None, "YAML|config/experiments/"),
            ("a bomb", bomb, "1,000,000", "line 7"),
            ("deeper than the stack", b"a: " + b"[" * 100_000, "200", "line 1"),
            ("repeating a key", text + b"iterations: 3\niterations: 4\n", "'iterations'", "line"),
            ("repeating a key in braces", b"a: {type: arm, type: arm}\n", "'type'", "line 1"),
            ("holding a NUL", b"name: a\0b\n", "#x0000", "7"),
            ("indented by a tab", b"name: s\n\tx: 1\n", "line 2"),
            ("without a closing bracket", b"name: [arm\n", "line 2"),
            ("two documents", b"---\na: 1\n---\nb: 2\n", "line 3"),
            ("keyed by a list", b"? [a]\n: b\n", "line 1"),
            ("naming an alias that is not there", b"a: *b\n", "line 1, column 4"),
            ("an alias of itself", b"a: &a [*a]\n", "YAML"),
            ("a number of 6,000 digits", b"seed: " + b"9" * 6000, "6,000", "300"),
            ("a Python object", b"a: !!python/object/apply:os.system [ls]\n", "os.system", "line"),
            ("a boolean that is none", b"a: !!bool maybe\n", "'maybe'"),
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
    data = {**SWEEP, "clusters": "slurm"}
    yield case_of("a key that no sweep has", PLAN, data, "clusters", "'cluster'")
    data = {**SWEEP, "sweep": {"::": "seed 1"}}
    yield case_of("a sweep that YAML has read", PLAN, data, "sweep", "|", "::: seed 1 2 3")
    yield case_of("no experiment", PLAN, {"name": "s", "sweep": "::: seed 1"}, "experiment")


GYM = {
    "type": "gymnasium",
    "env": "CartPole-v1",
    "objective_range": [0, 500],
    "measures": [{"measure": "mean_observation", "component": 0, "range": [0, 1]}],
}
_LENGTH = {"measure": "episode_length", "range": [0, 1000]}
ES = "evolution_strategy"
_GRADIENT = {"type": "gradient_operator"}
_SCHEDULED = {"algorithm": "map_elites_line", "iterations": 30}
_PPO = {"domain": "cartpole", "algorithm": "ppo", "num_emitters": 1}


def _gym(*measures: dict[str, Any], **keys: Any) -> dict[str, Any]:
    domain = {**GYM, **({"measures": list(measures)} if measures else {}), **keys}
    return {"domain": domain, "archive": {"dims": [5] * (len(measures) or 1)}}


def _arm(**keys: Any) -> dict[str, Any]:
    return {"domain": {"preset": "arm", **keys}}


def _change(at: int = 3, **values: Any) -> dict[str, Any]:
    return _SCHEDULED | {"schedule": [{"at": at, "set": values}]}


# Changes of BASE, and what the message names.
EXPERIMENTS: tuple[tuple[dict[str, Any], *tuple[str, ...]], ...] = (
    # Keys that are missing, given twice or instead of each other.
    ({"dims": [6, 6]}, "archive.dims", "dims"),
    ({"evaluations": 5}, "iterations", "evaluations"),
    ({"iterations": None}, "iterations", "evaluations"),
    ({"archive": {"dims": [5, 5], "cells": 25}}, "archive.dims", "archive.cells"),
    ({"archive": {"cells": {"x": 25}, "dims": [5, 5]}}, "archive.dims", "archive.cells"),
    ({"archive": {}}, "archive.dims", "archive.cells"),
    ({"algorithm": emitter(sigma=1)}, "algorithm.emitters.0.type"),
    ({"domain": None, "domian": "arm"}, "'domain'", "'domian'"),
    (_gym({"measure": "episode_length"}), "domain.measures.0.range"),
    # Names of presets, types and other libraries.
    ({"algorithm": "apex"}, "algorithm = 'apex'", "apex_dqn"),
    ({"algorithm": "SAC"}, "algorithm = 'SAC'", "td3", "ppo"),
    ({"algorithm": "PPO"}, "algorithm = 'PPO'", "'ppo'"),
    ({"algorithm": "CMA-ME"}, "algorithm = 'CMA-ME'", "'cma_me'"),
    ({"algorithm": {"type": "SAC"}}, "algorithm.type = 'SAC'", "td3", "ppo"),
    ({"algorithm": {"type": "lab.make"}}, "algorithm.type = 'lab.make'", "module:name"),
    ({"algorithm": {"preset": "cma_mee"}}, "algorithm = 'cma_mee'", "'cma_me'"),
    ({"algorithm": "gone/mine.yaml"}, "gone/mine.yaml", "config/algorithms/"),
    ({"domain": {"preset": 5}}, "preset = 5", "preset"),
    ({"domain": {"type": "lunar_landr"}}, "domain.type = 'lunar_landr'", "'lunar_lander'"),
    ({"domain": {"type": "a:b:c"}}, "domain.type = 'a:b:c'", "module:Class|pattern"),
    ({"domain": "no_such_module_anywhere:1x"}, "'no_such_module_anywhere:1x'", "pattern"),
    # Values of a wrong type, or out of range.
    ({"seed": "5"}, "seed = '5'", "integer"),
    ({"seed": 5.0}, "seed = 5.0", "integer"),
    ({"sigma0": "0.5"}, "emitters.0.sigma0 = '0.5'", "number"),
    ({"algorithm": {"archive": {"type": "grid"}, "emitters": ["gaussian"]}}, "0 = 'gaussian'"),
    ({"algorithm": {"preset": "cma_me", "emitters": {7: {}}}}, "algorithm.emitters = {'7': {}}"),
    ({"archive": {"dims": [5, 0]}}, "archive.dims = [5, 0]", "1"),
    ({"bounds": [1, -1]}, "emitters.0.bounds", "1.0", "-1.0"),
    ({"bounds": [1]}, "emitters.0.bounds = [1]", "items"),
    (_arm(ranges=[[1, 0], [0, 1]]), "domain.ranges.0", "1.0", "0.0"),
    (_arm(ranges=[[0, float("inf")], [0, 1]]), "domain.ranges.0.1 = inf", "number"),
    (_arm(objective_range=[5, 5]), "domain.objective_range", "5.0"),
    ({"reload": {"min_seconds": 9, "max_seconds": 1}}, "reload.min_seconds = 9.0", "1.0"),
    # Parts that do not fit each other.
    ({"archive": {"dims": [5, 5, 5]}}, "archive.dims = [5, 5, 5]", "2 measures", "lp_sphere"),
    ({"archive": {"cells": 100}}, "cma_me", "archive.dims", "cvt"),
    (_arm(ranges=[[0, 1]]), "ranges", "1", "2 measures"),
    (_arm(x0=[0, 1]), "x0", "2", "100 parameters"),
    (_arm(solution_dim=1), "cma_es", "1 parameter", "map_elites"),
    ({"algorithm": "lm_ma_es"}, "batch_size = 30", "lm_ma_es", "solution_dim = 10"),
    ({"algorithm": "openai_es", "batch_size": 7}, "batch_size = 7", "openai_es", "even"),
    ({"batch_size": 1}, "batch_size = 1", "2"),
    ({"algorithm": "cma_mega", "batch_size": 2}, "batch_size = 2", "3"),
    ({"algorithm": emitter(**_GRADIENT), "batch_size": 7}, "batch_size = 7", "even"),
    ({"domain": "lunar_lander", "algorithm": "cma_mega"}, "cma_mega", "jacobian", "cma_me"),
    ({"algorithm": {"preset": "cma_mega", "scheduler": {"type": "bandit"}}}, "gradients", "bandit"),
    ({"algorithm": emitter(type=ES, es="pycma_es")}, "emitters.0.es", "pycma_es", "cma_es"),
    ({"algorithm": emitter(type="bayesian_opt")}, "'bayesian_opt'", ES),
    ({"algorithm": emitter(type=ES, es_kwargs={"lr": 1})}, "es_kwargs", "cma_es", "'lr'"),
    (
        {"algorithm": emitter(type=ES, es="openai_es", es_kwargs={"beta": 1})},
        *("es_kwargs", "'beta'", "'beta1'|'beta2'"),
    ),
    (
        {"algorithm": emitter(type=ES, es="openai_es", es_kwargs={"lr": True})},
        *("es_kwargs", "lr = True", "float"),
    ),
    (
        {"algorithm": emitter(type="gaussian") | {"emitters": [{"type": "gaussian"}] * 2}},
        *("num_emitters = 5", "2 groups"),
    ),
    # Measures of a task.
    (_gym({"measure": "mean_action", "range": [0, 1]}), "measures.0", "component"),
    (
        _gym({"measure": "fraction_above", "component": 1, "range": [0, 1]}),
        *("measures.0", "fraction_above", "threshold"),
    ),
    (
        _gym({"measure": "mean_action", "component": 0, "threshold": 1, "range": [0, 1]}),
        *("measures.0", "mean_action", "threshold"),
    ),
    (_gym(_LENGTH | {"component": 1}), "measures.0", "episode_length", "component"),
    (_gym(_LENGTH, _LENGTH), "domain.measures", "'episode length'"),
    (_gym(_LENGTH, ranges=[[0, 1], [0, 1]]), "ranges", "2", "1"),
    # The first iteration.
    (
        {"algorithm": "map_elites", "first_batch": 50, "initial_solutions": 9},
        *("first_batch", "initial_solutions"),
    ),
    (
        {"first_batch": 50, "algorithm": emitter(type="gaussian", initial_solutions=9)},
        *("first_batch", "algorithm.emitters.0.initial_solutions"),
    ),
    ({"algorithm": "map_elites", "first_batch": 4}, "first_batch = 4", "5 emitters"),
    (
        {"algorithm": emitter(**_GRADIENT, operator_type="iso_line_dd")},
        *("iso_line_dd", "initial_solutions", "first_batch"),
    ),
    (
        {
            "algorithm": {
                "archive": {"type": "grid"},
                "emitters": [_GRADIENT, {"type": "gradient_arborescence"}],
            },
            **{"num_emitters": 2, "first_batch": 8},
        },
        *("first_batch", "initial_solutions"),
    ),
    # Schedules.
    (_change(**{"archive.dims": [3, 3]}), "archive.dims", "line_sigma", "batch_size"),
    (_change(seed=3), "seed", "line_sigma", "batch_size"),
    (_change(learning_rate=0.1), "learning_rate", "line_sigma", "batch_size"),
    (_change(bounds=[-1, 1]), "bounds", "line_sigma", "batch_size"),
    (_change(step=0.1), "domain.step", "line_sigma", "batch_size"),
    (_change(iso_sigma=-1.0), "schedule", "3", "iso_sigma = -1.0", "0"),
    (_change(iso_sigma=None), "schedule", "iso_sigma = null"),
    (_change(iso_sigmo=1.0), "'iso_sigmo'", "'iso_sigma'"),
    (_change(**{"iso_sigma": 1.0, "algorithm.iso_sigma": 1.0}), "schedule", "iso_sigma"),
    (
        _SCHEDULED | {"schedule": [{"at": 3, "set": {"iso_sigma": 1.0}}] * 2},
        *("schedule", "at = 3, 3"),
    ),
    (
        _change(batch_size=7) | {"algorithm": "openai_es", "batch_size": 8},
        *("schedule", "3", "openai_es", "even"),
    ),
    (
        _change(batch_size=6) | {"algorithm": "lm_ma_es", "batch_size": 8},
        *("batch_size", "lm_ma_es"),
    ),
    # Reinforcement learning.
    (_PPO | {"evaluation_seed": "fixed"}, "evaluation_seed = fixed", "ppo", "solution"),
    (_PPO | {"evaluation_seed": 3}, "evaluation_seed = 3", "ppo", "solution"),
    (_PPO | {"num_emitters": 2}, "num_emitters = 2", "ppo", "1"),
    (_PPO | {"minibatch": 1}, "minibatch", "2"),
    (_PPO | {"domain": "lp_sphere"}, "ppo", "lp_sphere"),
    (_PPO | {"normalize_observations": True}, "normalize_observations", "ppo"),
    ({"domain": "rl_cartpole", "algorithm": "dqn", "n_epochs": 5}, "'n_epochs'", "ppo"),
)


def _experiments() -> Iterator[Case]:
    for changes, *names in EXPERIMENTS:
        yield case_of(f"run with {changes}", RUN, merged(BASE, changes), *names)


def _clusters() -> Iterator[Case]:
    words = ("qdsweep", "run", "arm", "--cluster", "bad.yaml", "--out", "out")
    for cluster, *names in (
        ({"engine": "ray", "dask": {"address": "tls://a:1"}}, "dask", "engine = ray"),
        (
            {"engine": "dask", "nodes": 2, "dask": {"scheduler_file": "s.json"}},
            *("nodes = 1", "nodes = 2"),
        ),
        (
            {"engine": "dask", "dask": {"address": "tls://a:1", "scheduler_file": "s.json"}},
            *("address", "scheduler_file"),
        ),
        (
            {"engine": "dask", "dask": {"address": "tls://a:1", "tls_cert": "a.pem"}},
            *("tls_ca_file", "tls_cert", "tls_key"),
        ),
        ({"engine": "ray", "ray": {"address": "auto"}}, "address", "workers"),
        (
            {"engine": "ray", "ray": {"address": "tls://a:1", "workers": 2}},
            *("ray.address", "tls://a:1", "auto"),
        ),
        (
            {"engine": "ray", "workers_per_node": 8, "ray": {"address": "auto", "workers": 2}},
            *("workers_per_node = 8", "ray.workers"),
        ),
        ({"engine": "processes", "dashboard": True}, "dashboard", "processes"),
        ({"engine": "dask", "mpi": {"launcher": "mpiexec"}}, "mpi.launcher", "engine = dask"),
        ({"engine": "processes", "nodes": 2}, "processes", "nodes = 2", "dask"),
        ({"runtime_min": "1h30m"}, "runtime_min = '1h30m'", "integer"),
        ({"extra": "; rm -rf x"}, "extra = '; rm -rf x'", "pattern"),
        ({"engine": "proceses"}, "engine = 'proceses'", "'processes'"),
    ):
        yield case_of(f"cluster {cluster}", words, cluster, *names)
    words = (*_OK, "--cluster", "lcal")
    yield Case("a cluster that is nearly local", words, _OK_FILE, ("'lcal'", "'local'"))


def _sweeps() -> Iterator[Case]:
    first = "::: seed 1 2 3"
    for sweep, *names in (
        ("::: seed {1..1000000000}", "row 1", "seed", "'{1..1000000000}'", "integer"),
        ("::: seed 1.5", "row 1", "seed", "1.5", "integer"),
        ("::: seed 1 -1", "row 2", "seed = -1", "0"),
        ("::: seed " + "9" * 5000, "9" * 40 + "...", "300"),
        ("::: sed 1 2", "row 1", "'sed'", "'seed'"),
        ("::: seed", "line 1, column 5", first),
        ("::: seed 1 ::: seed 2", "column 16", "'seed'"),
        (":::: nofile", "column 6", "'nofile'"),
        (":::: /dev/zero", "column 6", "'/dev/zero'", "device"),
        (":::: latin.txt", "column 6", "'latin.txt'", "UTF-8"),
        (":::: -", "column 6", "file"),
        ("::::: seed 1", "column 1", "':::::'", "::::+"),
        ("seed 1 2", "column 1", "'seed'", first),
        (":::+ seed 1 2", "column 1", ":::+", ":::"),
        ("::: seed 'x", "column 10", "'"),
        ("::: seed 1\\", "column 11"),
        ("::: seed " + "x" * 100_000, "seed", "100,002", "integer"),
        ("::: seed \0", "column 5", "'\\x00'"),
        ("::: algorithm cma_mee", "'cma_mee'", "'cma_me'"),
        ("::: algorithm ../../x", "'../../x'", "config/algorithms/"),
        ("::: algorithm map_elites :::+ sigma0 1", "sigma0", "step", "map_elites"),
        ("::: domain nope:Nope", "nope:Nope", "config/plugins"),
        ("::: archive.dims [10]", "archive.dims = [10]", "2 measures"),
        ("::: seed 1 ::: archive.dims [0,3]", "[0, 3]", "1"),
        ("::: archive.dims [1000000000,1000000000]", "[1000000000, 1000000000]", "GiB"),
        ("::: batch_size 0", "batch_size = 0", "1"),
        (":::~ sigma0 log 0 1", "column 17", "0", "0 < LO"),
        (":::~ sigma0 log 0.1 1", "sigma0", "search: {samples: N}"),
        ("::: name a b", "'name'", "domain.name", "algorithm.name"),
        ("::: type a b", "domain.type", "algorithm.archive.type", "algorithm.emitters.0.type"),
        ("::: domain.name ../../x", "domain.name", "'../../x'", "[A-Za-z0-9_.]"),
    ):
        data = {**SWEEP, "sweep": sweep}
        yield case_of(f"sweep {sweep[:40]!r}", PLAN, data, *names, **{"latin.txt": b"seed\n\xff\n"})
    groups = {"experiment": {**SMALL, "algorithm": "map_elites_line"}}
    groups["sweep"] = (
        "::: algorithm map_elites cma_me :::+ batch_size 16 8 ::: step 0.1 0.5 ::: seed 1 2"
    )
    tpe = {"samples": 8, "batches": 2, "sampling": "tpe"}
    for key, value, *names in (
        ("exclude", ["x"], "'x'", "NAME=VALUE", "step"),
        ("exclude", [""], "''", "NAME=VALUE"),
        ("exclude", ["stepp=0.1"], "'stepp=0.1'", "'step'"),
        ("exclude", ["step=3"], "entry 1", "step=3"),
        ("exclude", ["step=0.1", "step=0.5"], "sweep"),
        ("rank", "nope", "nope", "qd_score"),
        ("imported", ["nofile.yaml"], "nofile.yaml", "`qdsweep import --help`"),
        ("figures", {"labels": {"a": "b"}}, "labels", "'a'", "map_elites"),
        ("figures", {"encode": {"color": "stepp"}}, "encode", "color", "'stepp'", "'step'"),
        (
            "figures",
            {"encode": {"facets": "step"}, "facets": "algorithm"},
            *("facets", "encode", "step", "algorithm"),
        ),
        ("figures", {"names": {"sigma": "s"}}, "names", "'sigma'", "step", "algorithm"),
        ("figures", {"names": {"step": r"$\frac$"}}, "names", "step", r"'$\\frac$'"),
        ("figures", {"names": {"step": "group"}}, "'step'", "'group'"),
        ("confirm", {"seeds": [5, 1]}, "seeds", "[5, 1]", "0"),
        ("confirm", {"seeds": [0, 10**9]}, "seeds", "1000000000", "1,000"),
        ("confirm", {"seeds": [1, 5]}, "confirm.seeds = [1, 5]", "1", "[3, 7]"),
        ("confirm", {"top": 5, "seeds": [5, 7]}, "confirm.top = 5", "4"),
        ("reevaluate", {"times": 10**9}, "1000000000", "10000"),
        ("search", {"samples": 10**8}, "100000000", "100000"),
        ("search", {"halving": {"metric": "obj_maks"}}, "metric = obj_maks", "'obj_max'"),
        ("search", {"halving": {"metric": "qd_auc"}}, "metric = qd_auc", "qd_score"),
        ("search", {"halving": {"first": "1/3", "rungs": ["1/6", 1]}}, "first", "rungs"),
        ("search", tpe | {"sampling": "lhs"}, "search", "batches", "tpe"),
        ("tables", {"columns": ["coverag"]}, "columns", "'coverag'", "'coverage'"),
        ("tables", {"columns": ["n", "n"]}, "columns", "'n'"),
        ("tables", {"columns": ["sigma0"]}, "columns", "'sigma0'", "iqm", "evaluations"),
        ("rollouts", {}, "lp_sphere", "gymnasium"),
    ):
        data = {**SWEEP, **groups, key: value}
        yield case_of(f"{key}: {value}", PLAN, data, key, *names)
    published = {"metric": "coverage", "mean": 0.5, "tolerance": 0.1, "source": "a paper"}
    for where, *names in (
        ({"algoritm": "cma_me"}, "where.algoritm", "'algorithm'"),
        ({"seed": 1}, "where.seed", "algorithm", "batch_size", "step"),
        ({"algorithm": "cma_mae"}, '"cma_mae"', "'cma_me'", "map_elites"),
        ({"step": 0.3}, "where.step = 0.3", "0.1", "0.5"),
        ({"step": True}, "where.step = true", "0.1", "0.5"),
        ({"algorithm": "cma_me", "batch_size": 16}, "algorithm", "batch_size"),
        ({"algorithm": "cma_me"}, "2", "step"),
        ({}, "4", "step"),
    ):
        good = {"where": {"algorithm": "cma_me", "step": 0.1}, **published}
        data = {**SWEEP, **groups, "published": [good, {"where": where, **published}]}
        yield case_of(f"published of {where}", PLAN, data, "published", "entry 2", *names)


def _drawn() -> Iterator[Case]:
    for sweep, *names in (
        (":::~ a", ":::~ NAME KIND"),
        (":::~ a gauss 0 1", "'gauss'", "normal"),
        (":::~ a uniform 1", "'1'", "LO HI"),
        (":::~ a uniform 1 nan", "'1 nan'", "LO HI"),
        (":::~ a uniform 1 1e999", "'1 1e999'", "LO HI"),
        (":::~ a uniform 2 1", "2", "1", "LO HI"),
        (":::~ a log -1 1", "-1", "0 < LO"),
        (":::~ a log 1e-320 1e308", "1e-320", "1e308"),
        (":::~ a uniform -1e308 1e308", "-1e308", "1e308"),
        (":::~ a int 1 2.5", "int", "2.5"),
        (":::~ a int 1 99999999999999999999", "99999999999999999999", "2^53"),
        (":::~ a normal 1 0", "0", "normal"),
        (":::~ a choice", "choice"),
        (":::~ a choice x ''", "choice"),
        (":::~ a choice x x", "'x'"),
        (":::~ a int 1 2 if b=1", "b=1"),
        (":::~ a int 1 2 if a=1", "a=1"),
        ("::: b 1 2 :::~ a int 1 2 if b", "if"),
        ("::: b 1 2 :::~ a int 1 2 if b=3", "'b=3'", "1"),
        ("::: b 1 2 :::~ a int 1 2 if b=1,b=2", "'b'"),
        (":::~ a int 1 2 :::+ b 1 2", ":::+"),
        ("::: a 1 :::~ a int 1 2", "'a'"),
        ("::: sample 1 :::~ a int 1 2", "sample"),
        (":::~ sample int 1 2", "'sample'"),
        ("::~ a int 1 2", "'::~'", ":::~"),
        ("::: a 1", "--samples|samples"),
    ):
        words = ("qdsweep", "expand", "--samples", "2", sweep)
        yield Case(f"drawn {sweep}", words, {}, tuple(names))


def _command_lines() -> Iterator[Case]:
    run = _OK[1:]
    a_set = (*run, "--set")
    for words, *names in (
        ((), "COMMAND"),
        (("nope",), "'nope'", "plan"),
        (("run",), "experiment", "--out"),
        ((*run, "--nope"), "--nope", "COMMAND"),
        ((*a_set, "seed"), "--set seed", "KEY=VALUE"),
        ((*a_set, "=3"), "--set =3", "KEY=VALUE"),
        ((*a_set, "seed=1", "--set", "seed=2"), "--set seed"),
        ((*a_set, "sed=1"), "--set", "'sed'", "'seed'"),
        ((*a_set, "seed=x"), "--set", "seed = 'x'", "integer"),
        ((*a_set, "seed=null"), "--set", "seed = None", "integer"),
        ((*a_set, "seed=[1, 2]"), "--set", "seed = [1, 2]", "integer"),
        ((*a_set, "ключ=1"), "--set", "'ключ'", "seed"),
        ((*a_set, "²=1"), "--set", "'²'", "seed"),
        ((*a_set, "seed=" + "9" * 400), "--set seed", "300"),
        ((*a_set, "seed=" + "[" * 5000), "--set seed", "[[[", "300"),
        ((*a_set, "archive.dims=[1000000000,1000000000]"), "--set", "archive.dims", "GiB"),
        ((*a_set, "archive=[5, 5]"), "--set", "'archive'", "archive.dims", "archive.cells"),
        ((*a_set, "dims=[5]"), "--set", "archive.dims = [5]", "2 measures"),
        ((*a_set, "cells=5", "--set", "dims=[5, 5]"), "--set", "archive.dims", "archive.cells"),
        ((*a_set, "step=1", "--set", "domain.step=1"), "--set", "step", "domain.step"),
        (
            (*a_set, "iterations=5", "--set", "evaluations=5"),
            *("--set", "iterations", "evaluations"),
        ),
        (
            (*a_set, "initial_solutions=9", "--set", "first_batch=50"),
            *("--set", "initial_solutions", "first_batch"),
        ),
        ((*a_set, "sigma0=1"), "--set", "sigma0", "step", "map_elites"),
        ((*a_set, "domain=arm", "--set", "function=sphere"), "--set", "'function'", "arm"),
        ((*a_set, "emitters.1.step=3"), "--set", "emitters.1.step", "step"),
        ((*a_set, "domain=maze:Maze", "--set", "solution_dim=5"), "solution_dim", "Maze"),
        *(
            ((*a_set, f"schedule={text}"), "--set", "schedule", "AT KEY=VALUE|twice|list")
            for text in ("step=0.1", "3", "3 step", "3 =1", "-3 step=1", "3 a=1 a=2")
        ),
        ((*run, "--workers", "0"), "--workers 0", "1"),
        ((*run, "--workers", "1.5"), "--workers", "'1.5'", "int"),
        ((*run, "--cluster", "../x.yaml"), "../x.yaml", "config/clusters/"),
        ((*run, "--cluster", "nope"), "'nope'", "local"),
        ((*run, "--max-seconds", "-1"), "--max-seconds -1", "0"),
        ((*run, "--max-seconds", "nan"), "--max-seconds nan", "0"),
        ((*run, "--max-seconds", "x"), "--max-seconds", "'x'", "float"),
        (("run", "ok.yaml", "--out", "ok.yaml"), "--out ok.yaml", "folder"),
        (("run", "ok.yaml", "--out", "ok.yaml/x/y"), "--out ok.yaml/x/y", "folder"),
        (("run", "ok.yaml", "--out", "x" * 300), "--out", "302", "folder"),
        (("run", "nope", "--out", "out"), "'nope'", "arm"),
        (("run", "lp_sphre", "--out", "out"), "'lp_sphre'", "'lp_sphere'"),
        (("run", "a\0b", "--out", "out"), "'a\\x00b'", "arm"),
        (("plan", "nope"), "'nope'", "published_lp"),
        (("plan", "nope.yaml"), "nope.yaml", "config/sweeps/"),
        (("plan", "ok.yaml", "--results"), "--results", "DIR"),
        (("expand", "::: a"), "column 5", "::: NAME VALUE"),
        (("expand", "--samples", "0", ":::~ a log 1 2"), "--samples", "0", "1"),
        (
            ("expand", "--sampling", "x", "--samples", "2", ":::~ a log 1 2"),
            "--sampling",
            "'sobol'",
        ),
        (("expand", ":::~ a log 1 2"), "samples", "--samples N"),
        (("status", "../x"), "'../x'", "results/sweeps/"),
        (("status", "nope"), "nope", "results/sweeps/nope/plan.json"),
        (("status",), "results", "--results"),
        (("watch", "--every", "0"), "--every 0", "0.1"),
        (("watch", "--every", "x"), "--every", "'x'", "float"),
        (("export", "nope"), "nope", "results/sweeps/nope/plan.json"),
        (("clean", "--nope"), "--nope", "COMMAND"),
        (("init", "ok.yaml"), "ok.yaml", "folder"),
        (("import", "nope.yaml"), "nope.yaml", "`qdsweep import --help`"),
        (("import", "ok.yaml"), "ok.yaml", "seeds", "iterations", "'evaluations'"),
        (("scale", "ok.yaml", "--workers", "0", "--out", "out"), "--workers 0", "1,2,4,8"),
        (("scale", "ok.yaml", "--workers", "a,b", "--out", "out"), "--workers a,b", "1,2,4,8"),
        (("rollout", "nope"), "nope/config.yaml", "folder"),
        (("rollout", "nope", "--seconds", "0"), "--seconds 0", "0"),
        (("rollout", "nope", "--at", "x"), "--at", "'x'", "1.1,2.0"),
        (("reevaluate", "nope"), "nope/config.yaml", "folder"),
        (("reevaluate", "nope", "--workers", "0"), "--workers 0", "1"),
        (("worker", "--join", "nope"), "--join nope", "folder"),
        (("worker", "--connect", "nope"), "--connect nope", "connection/scheduler.json"),
        (("worker",), "--join", "--connect"),
        (("check",), "domain", "--algorithm NAME"),
        (("check", "nope:Nope"), "nope:Nope", "config/plugins"),
        (("check", "--algorithm", "nope"), "'nope'", "cma_me"),
        (("aggregate", "nope"), "results/sweeps/nope/plan.json"),
        (("plot", "a/b"), "'a/b'", "results/sweeps/"),
        (("report", "nope"), "results/sweeps/nope/plan.json"),
        (("place", "nope", "x", "0"), "results/sweeps/nope/plan.json"),
        (("decide", "nope", "x", "y"), "BLOCK", "'y'", "int"),
    ):
        name = "qdsweep " + " ".join(words)[:60]
        yield Case(name, ("qdsweep", *words), _OK_FILE, tuple(names))


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
    """Code of the user's, which ends or prints as it likes, and Snakemake."""
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
    # Of files that are no YAML, Snakemake reads the others itself, and says so in its own words.
    ours = re.compile("a file that is (begun by a BOM|a bomb|repeating a key$)")
    for case in (*_huge(), *_files(), *_sweeps(), *_plugins()):
        if case.words == PLAN and ("a file that is" not in case.name or ours.search(case.name)):
            words = ("snakemake", "-n", "--cores", "1", "--configfile", "bad.yaml")
            yield Case(f"snakemake: {case.name}", words, case.files, case.names)
