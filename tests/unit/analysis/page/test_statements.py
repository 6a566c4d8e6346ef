"""Each statement of the methods paragraph is true of every run: for all presets, and for sweeps."""

import itertools
import re
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin

import pytest
from composing import installed, presets, with_algorithm
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import compute_sweep
from looks import data_of

from qdsweep.analysis.page import descriptions, methods
from qdsweep.config.compose import compose, read_part
from qdsweep.config.emitters import STRATEGIES
from qdsweep.config.experiment import Experiment
from qdsweep.config.keys import ALIASED, dotted, key_paths
from qdsweep.errors import BadInput
from qdsweep.text import listed

# Keys of parts that decide which sentences there are.
NAMES = ("type", "name", "title", "cite", "tuned_by")
SIZES = ("num_emitters", "batch_size", "first_batch")
PARTS = ("archive", "learner", "emitter", "scheduler")


def literals(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in literals(part)]


def options(base: Experiment, path: tuple, annotation: Any) -> list[Any]:
    """Values that a key may have: 0, false, null and [] wherever they are allowed."""
    plain = [None, False, True, 0, 1, 3, 0.25, 40, [], [8], [8, 4], [-1.0, 1.0], {"lr": 0.5}]
    valid: dict[str, Any] = {}
    for value in [*plain, *literals(annotation)]:
        try:
            kept = compose(base.model_dump(mode="json"), {dotted(path): value}, source="test")
        except BadInput:
            continue
        valid.setdefault(repr(value_at(kept.model_dump(mode="json"), path)), value)
    return list(valid.values())


def value_at(config: Any, path: tuple) -> Any:
    for part in path:
        config = config[part]
    return config


def keys_of(base: Experiment, *parts: str) -> list[tuple]:
    """Path and annotation of the keys of some parts of an experiment, without their names."""
    paths = key_paths(Experiment, base.model_dump(mode="json"))
    return [(path, of) for path, of in paths if path[0] in parts and path[-1] not in NAMES]


def runs_of(base: Experiment, swept: dict[tuple, list[Any]]) -> dict[str, Any]:
    """A run for each combination of values that an experiment may have."""
    runs = {}
    for values in itertools.product(*swept.values()):
        changes = {dotted(path): value for path, value in zip(swept, values, strict=True)}
        try:
            config = compose(base.model_dump(mode="json"), changes, source="test")
        except BadInput:
            continue
        summary = {"archive": geometry(config), "iterations": 9}
        about = {"config": config.model_dump(mode="json"), "summary": summary}
        runs[str(values)] = SimpleNamespace(**about, whole=config)
    return runs


def geometry(config: Experiment) -> dict[str, Any]:
    """`archive` of summary.json, without making the environment."""
    domain = config.domain
    measures = getattr(domain, "measures", None) or [None] * (domain.measure_dim or 2)
    own = [of.range if of else (0.0, 1.0) for of in measures]
    return {
        **{"type": "grid", "cells": 4, "dims": [2] * len(measures)},
        "solution_dim": domain.known_solution_dim or 9,
        "ranges": domain.ranges or own,
        "measures": [of.label if of else f"m{n}" for n, of in enumerate(measures)],
        "objective_range": domain.objective_range or (0.0, 1.0),
    }


def holders(config: dict) -> dict[str, dict]:
    """The parts of an experiment whose keys the sentences on algorithms state."""
    algorithm = config["algorithm"]
    groups = {f"emitters.{n}": part for n, part in enumerate(algorithm.get("emitters", ()))}
    parts = {name: algorithm[name] for name in PARTS if name in algorithm}
    return {"": algorithm, "sizes": {key: config[key] for key in SIZES}, **groups, **parts}


def word(holder: str, key: str, value: Any, config: dict) -> str:
    """A value as the paragraph has it."""
    algorithm = config["algorithm"]
    annealed = algorithm.get("archive", {}).get("learning_rate") is not None
    if key == "restart_rule" and isinstance(value, int):
        return f"restarts after {value} iterations"
    words = {
        "restart_rule": f"pyribs' {value} restart rule",
        "add_mode": {"single": "one after another", "batch": "all at once"}.get(str(value)),
        "es": STRATEGIES.get(str(value), ("",))[0],
        "ranker": descriptions._RANKINGS.get(str(value)),
        "result_archive": "a passive elitist archive" if value else "none",
    }
    if key in words:
        return str(words[key])
    if value is None and key in ("sigma", "sigma0", "iso_sigma"):
        return str(config["domain"]["step"])
    if value is None and key == "samples":
        return str(read_part("algorithm", algorithm).sizes(config["batch_size"])[0])
    if value is None and key == "threshold_min" and annealed:
        return "equal to the lower bound of the objective"
    if value is None and key == "bandwidth":
        return "of 5 % of the mean range of the measures"
    if isinstance(value, list) and key.endswith("hidden") and value:
        return listed([str(item) for item in value])
    return "none" if value in (None, [], {}) else descriptions.value_text(value)


def fact(holder: str, key: str, model: Any, words: list[str]) -> str:
    """The statement about a key: the title of its field with all values."""
    part = model.model_fields.get(key) if model else None
    titles = {"restart_rule": "...", "threshold_min": "initial acceptance threshold"}
    before, _, after = (titles.get(key) or (part and part.title) or f"{key} =").partition("...")
    if words == ["1"]:
        after = re.sub(r"^((?: [\w-]+)*? [\w-]+)s\b", r"\1", after)
    known, unset = [w for w in words if w != "none"], ["none"] * ("none" in words)
    if not (after and known):
        return f"{before.strip()} {listed([*known, *unset], 'or')}{after}".strip()
    return " or ".join([f"{before.strip()} {listed(known, 'or')}{after}".strip(), *unset])


def part_of(holder: str, experiment: Experiment) -> Any:
    if holder == "sizes":
        return experiment
    part: Any = experiment.algorithm
    for name in filter(None, holder.split(".")):
        part = part[int(name)] if name.isdecimal() else getattr(part, name)
    return part


def idle(holder: str, experiment: Experiment) -> set[str]:
    """The keys that have no effect next to the others: no word is on them."""
    if holder == "":
        return set(experiment.algorithm.unused)
    return {key for key, _ in part_of(holder, experiment).idle()} if holder == "archive" else set()


def check_algorithm(runs: dict[str, Any], base: Experiment) -> None:
    """Every value that differs is stated together with all others, and nothing else is stated."""
    every = [(run.config, run.whole) for run in runs.values()]
    configs = [config for config, _ in every]
    (text,) = methods._algorithms(runs, {})
    text = rest = descriptions.plain_citations(text)
    facts = []
    # The resampling of a preset is no key of its algorithm.
    for key, value in base.resampling.model_dump().items():
        if key != "type":
            statement = fact("", key, type(base.resampling), [descriptions.value_text(value)])
            rest = rest.replace(statement, "|")
    for holder, keys in holders(configs[0]).items():
        for key in keys:
            if key in (*NAMES, *PARTS, "emitters") or (holder == "scheduler" and len(keys) == 1):
                continue
            read = [config for config, whole in every if key not in idle(holder, whole)]
            pairs = [(holders(config)[holder][key], config) for config in read]
            words = list(dict.fromkeys(word(holder, key, *pair) for pair in pairs))
            if not words:
                continue
            statement = fact(holder, key, type(part_of(holder, base)), words)
            facts.append((statement, len(words) > 1, key))
    for statement, differs, key in sorted(facts, key=lambda each: -len(each[0])):
        found = re.search(rf"(?<![\w-]){re.escape(statement)}(?![\w.]\w)", rest)
        if differs and not is_ignored(key, base):
            assert found, (statement, text)
        if found:
            rest = rest[: found.start()] + "|" + rest[found.end() :]
    assert not re.search(r"=|true|false|none|\d\.\d|\b(mutation|rate|size)\b", rest), (rest, text)


def is_ignored(key: str, base: Experiment) -> bool:
    """Whether the algorithm does not read one of the sizes."""
    draws = base.algorithm.draws_first
    return (key == "first_batch" and not draws) or (
        key == "num_emitters" and not hasattr(base.algorithm, "emitters")
    )


@pytest.mark.parametrize("name", presets("algorithms"))
def test_what_is_swept_is_stated_with_all_its_values(name):
    base = with_algorithm(name)
    every = {path: options(base, path, of) for path, of in keys_of(base, "algorithm", *SIZES)}
    every = {path: values for path, values in every.items() if len(values) > 1}
    for path, values in every.items():
        check_algorithm(runs_of(base, {path: values}), base)
    some = sorted(every, key=dotted)
    names = st.lists(st.sampled_from(some), min_size=2, max_size=3, unique=True)

    @given(names, st.data())
    @settings(derandomize=True, max_examples=2, deadline=None, database=None)
    def check(paths, data):
        few = [data.draw(st.permutations(every[path]))[:2] for path in paths]
        runs = runs_of(base, dict(zip(paths, few, strict=True)))
        if runs:
            check_algorithm(runs, base)

    check()


HOMES = ("arm", "lp_sphere", "lunar_lander", "cartpole", "qd_hopper", "atari_pong")


@pytest.mark.parametrize("name", HOMES)
def test_every_other_value_that_differs_is_stated(name):
    base = compose(name, source="test")
    parts = ("domain", "on_failure", "timeout", "cpu_baseline", "reload")
    for path, annotation in keys_of(base, *parts):
        runs = runs_of(base, {path: options(base, path, annotation)})
        values = [value_at(run.config, path) for run in runs.values()]
        tasks = {descriptions.task(run) for run in runs.values()}
        in_algorithm = {
            descriptions.plain_citations(methods._algorithms({"": r}, {})[0]) for r in runs.values()
        }
        words = ["none" if v in (None, [], {}) else descriptions.value_text(v) for v in values]
        key = ALIASED.get(dotted(path), dotted(path))
        told = f"{key} ({listed(list(dict.fromkeys(words)), 'or')})" in methods._further(runs)
        everywhere = len(tasks) == len(runs) or len(in_algorithm) == len(runs)
        assert told or everywhere or len(runs) < 2, (path, methods._further(runs), tasks)


def test_parts_of_other_types_have_sentences_of_their_own():
    grid = with_algorithm("map_elites").model_dump(mode="json")
    archive = {"type": "cvt", "samples": 70}
    cvt = {**grid, "algorithm": grid["algorithm"] | {"archive": archive}}
    text = descriptions.algorithm("map_elites", [grid, cvt])
    first, second = text.split(". ")
    assert "with a grid archive" in first and "points" not in first
    assert "with a CVT archive" in second and "centroids of 70 points" in second
    mixed = with_algorithm("cma_me_mixed").model_dump(mode="json")
    scheduler = {"type": "bandit", "zeta": 0.1, "reselect": "all"}
    bandit = {**mixed, "algorithm": mixed["algorithm"] | {"scheduler": scheduler}}
    text = descriptions.algorithm("cma_me_mixed", [mixed, bandit])
    assert text.count("A bandit") == 1 and "with the scheduler all" in text.partition("A bandit")[0]


def test_a_schedule_gives_all_values_and_says_when_they_change():
    base = with_algorithm("map_elites_line", schedule="3 line_sigma=0; 90 line_sigma=0.7")
    runs = runs_of(base, {})
    (text,) = methods._algorithms(runs, {})
    assert "line mutation scale 0.2 or 0.0" in text, "the run ends before its last change"
    assert "3 algorithm.emitters.0.line_sigma=0.0" in methods._schedules(runs)
    assert not methods._schedules(runs_of(with_algorithm("map_elites_line"), {}))


# Distribution -> what the paragraph calls it.
LIBRARIES = {"mujoco": "MuJoCo", "box2d": "Box2D", "pybullet": "PyBullet", "gymnasium": "Gymnasium"}


@pytest.mark.parametrize("name", presets("experiments"))
def test_the_libraries_of_a_domain_are_those_of_its_environment(name):
    pytest.importorskip("mujoco")
    import gymnasium

    experiment = compose(name, source="test")
    if "pybullet" in getattr(experiment.domain, "env", ""):  # its module names its own packages
        installed(experiment)
    config = experiment.model_dump(mode="json")
    env = config["domain"].get("env", "LunarLander-v3" if name == "lunar_lander" else "")
    used = {"gymnasium"} if env else set()
    if env:
        code = "pybullet" if "pybullet" in env else str(gymnasium.spec(env).entry_point)
        used |= {library for library in LIBRARIES if library in code}
    versions = dict.fromkeys([*methods._TITLES, "qdsweep"], "1")
    summary = {"versions": versions, "engine": "serial"}
    text = methods.software([summary], methods._libraries({"": SimpleNamespace(config=config)}))
    assert {library for library, title in LIBRARIES.items() if f"{title} 1" in text} == used
    assert ("Arcade" in text) == (config["domain"]["type"] == "atari") and "Dask" not in text


@pytest.mark.parametrize("name", presets("algorithms"))
def test_the_libraries_of_an_algorithm_are_those_that_it_imports(name):
    algorithm = with_algorithm(name).model_dump(mode="json")["algorithm"]
    is_rl = algorithm.get("type") in ("ppo", "a2c", "dqn", "apex_dqn", "impala")
    archive = algorithm.get("archive", {"type": "grid"})
    used = {
        "PyTorch": is_rl or archive["type"] == "discount",
        "Stable-Baselines3": is_rl,
        "scikit-learn": archive["type"] == "cvt" or archive.get("density_method") == "kde_sklearn",
    }
    config = {"algorithm": algorithm, "domain": compose("arm").model_dump(mode="json")["domain"]}
    versions = dict.fromkeys([*methods._TITLES, "qdsweep"], "1")
    libraries = methods._libraries({"": SimpleNamespace(config=config)})
    text = methods.software([{"versions": versions, "engine": "ray"}], libraries)
    assert {title: f"{title} 1" in text for title in used} == used
    assert "Ray 1" in text and "pyribs 1" in text


def test_the_paragraph_of_a_sweep_over_zero(tmp_path):
    keys = {"domain": {"preset": "arm", "solution_dim": 5}, "archive": {"dims": [4, 4]}}
    keys |= {"algorithm": "map_elites_line", "num_emitters": 1, "batch_size": 5}
    sweep = "::: line_sigma 0 0.2 ::: evaluations 20 40 65 ::: seed 1 2"
    text = methods.methods(data_of(compute_sweep(tmp_path, keys, sweep)), set()).text
    assert "line mutation scale 0.0 or 0.2" in text
    assert "20, 40 or 65 evaluations" in text
