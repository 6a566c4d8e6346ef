"""Config: composition, names, run ids, messages, the generated files, YAML."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import REPO

from qdsweep.cli import manual
from qdsweep.config.algorithm import Algorithm
from qdsweep.config.base import Model
from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.compose import compose, read_domain
from qdsweep.config.domain import DomainConfig
from qdsweep.config.emitters import EmitterKind
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import find_preset, read_preset, read_yaml
from qdsweep.config.sweep import SweepFile
from qdsweep.config.values import typed
from qdsweep.errors import BadInput
from qdsweep.sweep import ids
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs

CONFIG = REPO / "config"

# Small and complete: what the tests change one thing of.
BASE: dict[str, Any] = {
    "domain": {"preset": "lp_sphere", "solution_dim": 10},
    "algorithm": "cma_me",
    "archive": {"dims": [5, 5]},
    "iterations": 3,
}
GYM = {
    "type": "gymnasium",
    "env": "CartPole-v1",
    "objective_range": [0, 500],
    "measures": [{"measure": "mean_observation", "component": 0, "range": [0, 1]}],
}


@pytest.fixture(autouse=True)
def forget_presets() -> None:
    """Every test has its own working directory, and so its own presets."""
    read_preset.cache_clear()


def presets(kind: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG / kind).glob("*.yaml"))


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with changed keys; None removes one."""
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def id_of(changes: dict[str, Any] | None = None, /, **overrides: object) -> str:
    return run_id(compose(merged(BASE, changes or {}), overrides))


# What is generated.


@pytest.mark.parametrize("path", manual.files(), ids=lambda path: path.name)
def test_generated_files_are_those_of_the_models(path: Path):
    made = manual.files()[path]
    assert path.is_file(), f"{path} is missing: run `make schemas`"
    assert path.read_text() == made, f"{path} is out of date: run `make schemas`"


def models(model: type[Model] = Model) -> Iterator[type[Model]]:
    """Every model that a file can have, and their bases: EmitterKind and those with a leading _."""
    for part in model.__subclasses__():
        if part.__module__.startswith("qdsweep.config"):
            yield part
            yield from models(part)


def test_every_key_has_a_description_and_stands_in_the_manual():
    text = manual.manual()
    seen = set()
    for model in models():
        for name, field in model.model_fields.items():
            if name == "type" and get_origin(field.annotation) is Literal:
                assert f"type: {get_args(field.annotation)[0]}`" in text, model
                continue
            assert field.description, f"{model.__name__}.{name} has no description"
            assert "{" not in field.description
            if not (model.__name__.startswith("_") or model is EmitterKind):
                escaped = field.description.replace("|", "\\|")
                assert f"{name}` | " in text and f"| {escaped} |" in text, (model, name)
                seen.add(name)
    assert {"sigma0", "iterations", "workers_per_node", "k_neighbors", "hidden", "sweep"} <= seen


def test_manual_has_every_preset_and_no_gap():
    text = manual.manual()
    for kind in ("experiments", "domains", "algorithms", "sweeps"):
        for name in presets(kind):
            assert f"[{name}]({kind}/{name}.yaml)" in text
    for name in ("example_id", "presets", "sweep", "experiment", "domain", "algorithm", "cluster"):
        assert f"{{{name}}}" not in text


def test_manual_sweeps_expand(in_own_folder: Path):
    (in_own_folder / "seeds.txt").write_text("seed\n1\n2\n")
    sweeps = [line for line in manual.manual().splitlines() if line.startswith("::: ")]
    assert len(sweeps) == 5
    assert [len(table_of_runs("lp_sphere", sweep).rows) for sweep in sweeps] == [6, 6, 4, 4, 4]


@pytest.mark.parametrize("name", presets("experiments"))
def test_schema_fits_what_a_run_writes(name: str):
    schema = json.loads((REPO / "workflow/schemas/experiment.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(compose(name).model_dump(mode="json"), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"sede": 1}, schema)


def test_imports_are_light():
    """The Snakefile imports these packages in every job."""
    code = """
import importlib, pkgutil, sys
import qdsweep.config, qdsweep.domains, qdsweep.planning, qdsweep.sweep
for package in (qdsweep.config, qdsweep.planning, qdsweep.sweep):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
from qdsweep.sweep.runs import table_of_runs
table_of_runs("lunar_lander", "::: domain maze:Maze cartpole ::: seed 1")
print({"numpy", "ribs", "pandas", "scipy", "gymnasium"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout == "set()\n"


# Presets.


@pytest.mark.parametrize("name", presets("experiments"))
def test_every_experiment_composes(name: str):
    experiment = compose(name)
    assert experiment.domain.name and experiment.algorithm.name
    assert compose(str(CONFIG / "experiments" / f"{name}.yaml")) == experiment


@pytest.mark.parametrize("name", presets("algorithms"))
def test_every_algorithm_composes(name: str):
    experiment = compose("lp_sphere", {"algorithm": name})
    assert experiment.algorithm.name == name
    assert f"-{name}-" in run_id(experiment)


@pytest.mark.parametrize("name", presets("domains"))
def test_every_domain_composes(name: str):
    dims = [10] * (read_domain(name).measure_dim or 2)
    experiment = compose("lp_sphere", {"domain": name, "dims": dims})
    assert experiment.domain.name == name
    assert read_domain(name) == experiment.domain


@pytest.mark.parametrize("name", presets("clusters"))
def test_every_cluster_reads(name: str):
    assert read_cluster(name).workers >= 1


@pytest.mark.parametrize(
    "path",
    [CONFIG / "config.yaml", *(CONFIG / "sweeps").glob("*.yaml")],
    ids=lambda path: path.stem,
)
def test_every_sweep_composes(path: Path):
    sweep = SweepFile.model_validate(read_yaml(path))
    table = table_of_runs(sweep.experiment, sweep.sweep)
    assert len(table.rows) == len(table.runs) > 1
    assert path.stem in (sweep.name, "config")


def test_a_preset_of_the_working_directory_comes_first(in_own_folder: Path):
    folder = in_own_folder / "config/algorithms"
    folder.mkdir(parents=True)
    (folder / "cma_me.yaml").write_text("archive: {type: grid}\nemitters: [{type: gaussian}]\n")
    assert compose(BASE).algorithm.emitters[0].type == "gaussian"
    assert find_preset("algorithms", "cma_mae").is_relative_to(CONFIG)


# Composition.


def test_layers():
    """Defaults < algorithm < domain < experiment file < overrides."""
    domain = {"preset": "lunar_lander", "episodes": 2}
    experiment = compose(merged(BASE, {"domain": domain, "sigma0": 0.3}), {"sigma0": 0.4})
    assert experiment.domain.episodes == 2  # the experiment's
    assert experiment.domain.evaluation_seed == 52  # the domain preset's
    assert experiment.domain.step == 1.0  # the model's
    emitter = experiment.algorithm.emitters[0]
    assert (emitter.sigma0, emitter.selection_rule) == (0.4, "mu")


def test_the_later_layer_chooses_between_two_ways_to_say_one_thing():
    experiment = compose(BASE, {"evaluations": 100, "algorithm": "cvt_map_elites", "cells": 7})
    assert experiment.budget == {"evaluations": 100}
    assert (experiment.archive.dims, experiment.archive.cells) == (None, 7)


def test_another_type_does_not_inherit_keys():
    domain = {"preset": "pendulum", "policy": {"type": "linear"}}
    assert compose(merged(BASE, {"domain": domain})).domain.policy.type == "linear"
    kept = {"preset": "pendulum", "policy": {"activation": "relu"}}
    policy = compose(merged(BASE, {"domain": kept})).domain.policy
    assert (policy.hidden, policy.activation) == ([8], "relu")


def test_a_swept_preset_takes_the_place_of_the_files():
    """Of its preset; of the whole where it names none, such as in a run's config.yaml."""
    assert compose(BASE, {"domain": "lp_plateau"}).domain.solution_dim == 10
    whole = compose(BASE).model_dump(mode="json")
    swept = compose(whole, {"domain": "arm", "algorithm": "map_elites"})
    assert (swept.domain, swept.algorithm) == (
        read_domain("arm"),
        compose("arm", {"algorithm": "map_elites"}).algorithm,
    )


def test_what_a_run_writes_composes_to_the_same_run():
    for name in presets("experiments"):
        experiment = compose(name, {"seed": 4})
        again = compose(experiment.model_dump(mode="json"))
        assert again == experiment and run_id(again) == run_id(experiment)


def test_composing_changes_nothing_that_it_was_given():
    given_ = copy.deepcopy(BASE)
    overrides = {"algorithm": "cma_mae", "dims": [4, 4]}
    compose(given_, overrides)
    assert given_ == BASE
    assert overrides == {"algorithm": "cma_mae", "dims": [4, 4]}
    assert compose("lp_sphere", {"sigma0": 9.0}) != compose("lp_sphere")


# Names.


@pytest.mark.parametrize(
    "name",
    [
        "sigma0",
        "algorithm.sigma0",
        "emitters.sigma0",
        "emitters.0.sigma0",
        "algorithm.emitters.0.sigma0",
    ],
)
def test_names_of_one_key(name: str):
    assert compose(BASE, {name: 0.25}).algorithm.emitters[0].sigma0 == 0.25
    assert compose({**BASE, name: 0.25}).algorithm.emitters[0].sigma0 == 0.25


def test_names_of_free_mappings():
    experiment = compose({**BASE, "domain": "maze"}, {"arguments.steps": 12})
    assert experiment.domain.arguments == {"steps": 12}
    experiment = compose(BASE, {"algorithm": "openai_es", "es_kwargs.lr": 0.5})
    assert experiment.algorithm.emitters[0].es_kwargs == {"lr": 0.5}


def test_an_ambiguous_name_lists_the_candidates():
    with pytest.raises(BadInput) as error:
        compose(BASE, {"type": "grid"})
    for candidate in ("domain.type", "algorithm.archive.type", "algorithm.emitters.0.type"):
        assert candidate in str(error.value)
    with pytest.raises(BadInput, match=r"domain\.name, algorithm\.name"):
        compose(BASE, {"name": "x"})


@pytest.mark.parametrize(
    "overrides",
    [
        {"sigma0": 0.25, "algorithm": "cma_mae"},
        {"algorithm": "cma_mae", "sigma0": 0.25},
        {"sigma0": 0.25, "experiment": "arm", "algorithm": "cma_mae"},
        {"function": "plateau", "domain": "lp_rastrigin", "sigma0": 0.25, "algorithm": "cma_mae"},
    ],
)
def test_presets_are_applied_first(overrides: dict[str, Any]):
    experiment = compose(BASE, overrides)
    assert experiment.algorithm.name == "cma_mae"
    assert experiment.algorithm.emitters[0].sigma0 == 0.25
    if "experiment" in overrides:
        assert experiment.domain.name == "arm" and experiment.num_emitters == 15
    if "domain" in overrides:
        assert experiment.domain.function == "plateau"


# Run ids.

# NEVER change one of these: finished runs would be computed again by every user. They may change
# only together with MODEL_VERSION (or the `version` of a domain), when results do.
GOLDEN = {
    "lunar_lander-cma_me-s0-9fc04e522a": ("lunar_lander", {}),
    "lunar_lander-openai_es-s0-0979dbf409": (
        "lunar_lander",
        {"algorithm": "openai_es", "cpu_baseline": "native"},
    ),
    "lp_sphere-cma_me-s0-d328d5a277": ("lp_sphere", {}),
    "lp_sphere-map_elites-s3-7b712ff9a1": ("lp_sphere", {"algorithm": "map_elites", "seed": 3}),
    "lp_sphere-cma_mae-s0-2000d89892": ("lp_sphere", {"algorithm": "cma_mae", "sigma0": 0.1}),
    "lp_sphere-cma_maega-s0-9674824735": (
        "lp_sphere",
        {"algorithm": "cma_maega", "add_mode": "single"},
    ),
    "lp_plateau-cvt_map_elites-s0-a3c40a1b2b": (
        "lp_plateau",
        {"algorithm": "cvt_map_elites", "cells": 1000, "x0": [0.5] * 100},
    ),
    "arm-map_elites_line-s0-853165f11a": (
        "arm",
        {"algorithm": "map_elites_line", "evaluations": 1000},
    ),
    "cartpole-cma_me-s0-ec94f9a3e3": ("lp_rastrigin", {"domain": "cartpole", "dims": [20, 20]}),
}


@pytest.mark.parametrize("golden", GOLDEN)
def test_golden_run_ids(golden: str):
    experiment, overrides = GOLDEN[golden]
    assert run_id(compose(experiment, overrides)) == golden


SAME: dict[str, dict[str, Any]] = {
    "budget": {"iterations": 4000},
    "budget in evaluations": {"iterations": None, "evaluations": 77},
    "reload": {"reload": {"max_cost": 0.5, "min_seconds": 0, "max_seconds": 1.5}},
    "defaults of the experiment": {
        "seed": 0,
        "cpu_baseline": "avx2",
        "num_emitters": 5,
        "batch_size": 30,
    },
    "defaults of the domain": {
        "domain": {
            "type": "linear_projection",
            "name": "lp_sphere",
            "function": "sphere",
            "solution_dim": 10,
            "step": 0.5,
            "evaluation_seed": "solution",
        }
    },
    "defaults of the algorithm": {
        "algorithm": {
            "preset": "cma_me",
            "add_mode": "batch",
            "result_archive": False,
            "scheduler": {"type": "all"},
            "archive": {"learning_rate": None},
        }
    },
    "order of keys": dict(reversed(BASE.items())),
    "null budget": {"archive": {"cells": None, "dims": [5, 5]}},
    "a path of a preset": {"algorithm": str(CONFIG / "algorithms/cma_me.yaml")},
}


@pytest.mark.parametrize("what", SAME)
def test_id_is_unaffected_by(what: str):
    assert id_of(SAME[what]) == id_of()


def test_id_is_unaffected_by_the_spelling_of_numbers(in_own_folder: Path):
    def text(sigma0: str) -> str:
        Path(f"{sigma0}.yaml").write_text(json.dumps(BASE)[:-1] + f', "sigma0": {sigma0}}}')
        return run_id(compose(f"{sigma0}.yaml"))

    assert text("0.5") == text("0.50") == text("5e-1") == text(".5") == id_of(sigma0=0.5)
    assert text("1") == text("1.0") == id_of(sigma0=1) != text("0.5")
    assert id_of({"domain": {"preset": "arm", "ranges": [[0, 1], [-1, 2]]}}) == id_of(
        {"domain": {"preset": "arm", "ranges": [[0.0, 1.0], [-1.0, 2.0]]}}
    )
    adam = {"algorithm": "openai_es"}
    assert id_of(**adam, **{"es_kwargs.lr": 1}) == id_of(**adam, **{"es_kwargs.lr": 1.0})
    (rows,) = {row.id for row in table_of_runs(BASE, "::: sigma0 0.5 0.50 5e-1").rows}
    assert rows == id_of(sigma0=0.5)


def test_id_is_unaffected_by_where_a_preset_is(in_own_folder: Path):
    copied = in_own_folder / "elsewhere/cma_me.yaml"
    copied.parent.mkdir()
    copied.write_text((CONFIG / "algorithms/cma_me.yaml").read_text())
    assert id_of({"algorithm": str(copied)}) == id_of()


DIFFERENT: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1},
    "sigma0": {"sigma0": 0.25},
    "cpu_baseline": {"cpu_baseline": "native"},
    "dims": {"dims": [5, 6]},
    "batch_size": {"batch_size": 32},
    "num_emitters": {"num_emitters": 4},
    "algorithm": {"algorithm": "cma_me_imp"},
    "domain": {"domain": "lp_rastrigin"},
    "step": {"step": 0.25},
    "x0": {"x0": 1},
    "evaluation_seed": {"evaluation_seed": 0},
    "on_failure": {"on_failure.objective": 0},
}


def test_id_is_affected_by_every_key_that_changes_a_result():
    made = [id_of(), *(id_of(**overrides) for overrides in DIFFERENT.values())]
    assert len(set(made)) == len(made)
    assert len({name.rsplit("-", 1)[1] for name in made}) == len(made)  # the hash alone


def test_id_is_affected_by_versions(monkeypatch: pytest.MonkeyPatch):
    before = id_of()
    monkeypatch.setattr("qdsweep.config.domain.LinearProjection.version", 2)
    domain = id_of()
    monkeypatch.setattr(ids, "MODEL_VERSION", 2)
    assert len({before, domain, id_of()}) == 3


def test_id_is_affected_by_the_source_of_a_users_class(in_own_folder: Path):
    plugin = in_own_folder / "config/plugins/own_domain_of_a_test.py"
    plugin.parent.mkdir(parents=True)
    made = []
    for source in ("class Own: pass", "class Own: ..."):
        plugin.write_text(source)
        made.append(id_of({"domain": "own_domain_of_a_test:Own"}))
    assert made[0] != made[1]
    assert made[0].startswith("Own-cma_me-s0-")


OVERRIDES: dict[str, Any] = {
    "algorithm": "cma_mae",
    "domain": "arm",
    "seed": 7,
    "dims": [9, 8],
    "sigma0": 0.2,
    "algorithm.ranker": "rd",
    "num_emitters": 3,
    "solution_dim": 12,
    "learning_rate": 0.5,
    "step": 0.3,
}


@given(st.permutations(sorted(OVERRIDES)))
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_id_is_unaffected_by_the_order_of_overrides(names: list[str]):
    assert id_of(**{name: OVERRIDES[name] for name in names}) == id_of(**OVERRIDES)


def test_rows_that_differ_in_budget_are_one_run():
    table = table_of_runs(BASE, "::: iterations 5 20 10 ::: seed 1 2")
    assert len(table.rows) == 6
    assert [run.iterations for run in table.runs.values()] == [20, 20]


# Bad input.


def emitter(**keys: Any) -> dict[str, Any]:
    return {"archive": {"type": "grid"}, "emitters": [keys]}


def gym(**keys: Any) -> dict[str, Any]:
    return {"domain": {**GYM, **keys}, "archive": {"dims": [5]}}


def measure(**keys: Any) -> dict[str, Any]:
    return gym(measures=[keys])


ES = "evolution_strategy"
# Changes of BASE, and what the message must contain besides its source.
WRONG_FILES: list[tuple[dict[str, Any], list[str]]] = [
    # Unknown keys, at every level.
    ({"sede": 3}, ["sede", "'seed'"]),
    ({"archive": None, "archve": {"dims": [5, 5]}}, ["archve", "archive"]),
    ({"domain": None, "domian": "arm"}, ["'domain' is missing", "'domian'"]),
    ({"algorithm": None}, ["'algorithm' is missing"]),
    ({"domain": {"preset": "arm", "solution_dmi": 3}}, ["domain.solution_dmi", "'solution_dim'"]),
    ({"algorithm": {"preset": "cma_me", "emiters": []}}, ["algorithm.emiters", "'emitters'"]),
    ({"algorithm": emitter(type="gaussian", sgima=1)}, ["emitters.0.sgima", "'sigma'"]),
    (
        {"algorithm": {"preset": "cma_me", "archive": {"learning_rat": 1}}},
        ["algorithm.archive.learning_rat", "'learning_rate'"],
    ),
    (
        {"algorithm": {"preset": "cma_me", "scheduler": {"type": "bandit", "zet": 1}}},
        ["algorithm.scheduler.zet", "'zeta'"],
    ),
    ({"archive": {"dmis": [5, 5]}}, ["archive.dmis", "'dims'"]),
    ({"reload": {"max_secnds": 5}}, ["reload.max_secnds", "'max_seconds'"]),
    (measure(measure="mean_action", componnt=0, range=[0, 1]), ["0.componnt", "'component'"]),
    (gym(policy={"type": "mlp", "hidden": [3], "activatoin": 1}), ["activatoin", "'activation'"]),
    # Missing and repeated ones.
    ({"domain": {"solution_dim": 3}}, ["domain.type is missing"]),
    (measure(measure="mean_action", component=0), ["domain.measures.0.range is missing"]),
    (gym(policy={"type": "mlp"}), ["domain.policy.hidden is missing"]),
    ({"algorithm": emitter(sigma=1)}, ["algorithm.emitters.0.type is missing"]),
    ({"dims": [6, 6]}, ["archive.dims is given twice", "dims"]),
    ({"evaluations": 5}, ["one of iterations and evaluations"]),
    ({"iterations": None}, ["budget", "iterations", "evaluations"]),
    ({"archive": {"dims": [5, 5], "cells": 25}}, ["one of archive.dims and archive.cells"]),
    ({"archive": {}}, ["archive.dims and archive.cells"]),
    # Unknown names of presets and types.
    ({"domain": "lp_spere"}, ["domain = 'lp_spere'", "'lp_sphere'"]),
    ({"algorithm": {"preset": "cma_mee"}}, ["algorithm = 'cma_mee'", "'cma_me'"]),
    ({"algorithm": "gone/mine.yaml"}, ["gone/mine.yaml", "no such file"]),
    ({"domain": {"type": "lunar_landr"}}, ["domain.type = 'lunar_landr'", "'lunar_lander'"]),
    ({"algorithm": emitter(type="gausian")}, ["emitters.0.type = 'gausian'", "'gaussian'"]),
    (
        {"algorithm": {"preset": "cma_me", "archive": {"type": "gird"}}},
        ["algorithm.archive.type = 'gird'", "'grid'"],
    ),
    (gym(policy={"type": "mpl"}), ["domain.policy.type = 'mpl'", "'mlp'"]),
    ({"domain": "no_such_module_anywhere:1x"}, ["'no_such_module_anywhere:1x'", "pattern"]),
    # Values of a wrong type.
    ({"seed": True}, ["seed = True", "integer"]),
    ({"seed": "5"}, ["seed = '5'", "integer"]),
    ({"seed": 5.0}, ["seed = 5.0", "integer"]),
    ({"sigma0": "0.5"}, ["emitters.0.sigma0 = '0.5'", "number"]),
    ({"sigma0": True}, ["emitters.0.sigma0 = True", "number"]),
    ({"algorithm": {"preset": "cma_me", "result_archive": 1}}, ["result_archive = 1", "boolean"]),
    ({"domain": 5}, ["domain = 5", "mapping"]),
    ({"domain": {"preset": 5}}, ["preset = 5", "name of a preset"]),
    ({"domain": {"type": 5}}, ["domain.type = 5", "text"]),
    ({"domain": {"type": ["arm"]}}, ["domain.type = ['arm']", "text"]),
    ({"archive": [5, 5]}, ["archive = [5, 5]", "mapping"]),
    ({"archive": {"dims": "5 5"}}, ["archive.dims = '5 5'", "list"]),
    ({"algorithm": {"archive": {"type": "grid"}, "emitters": ["gaussian"]}}, ["0 = 'gaussian'"]),
    ({"algorithm": {"preset": "cma_me", "emitters": {"sigma0": 1}}}, ["emitters = {'sigma0': 1}"]),
    ({"algorithm": {"preset": "cma_me", "emitters": {7: {}}}}, ["algorithm.emitters = {'7': {}}"]),
    ({"algorithm": {"preset": "cma_me", "emitters": []}}, ["emitters = []", "at least 1 item"]),
    ({"domain": {"preset": "arm", "x0": "zero"}}, ["domain.x0 = 'zero'", "number or a list"]),
    # Values out of range.
    ({"seed": -1}, ["seed = -1", ">= 0|greater than or equal to 0"]),
    ({"seed": 2**63}, [f"seed = {2**63}", "less than"]),
    ({"batch_size": 0}, ["batch_size = 0", "1"]),
    ({"iterations": 0}, ["iterations = 0", "1"]),
    ({"archive": {"dims": [5, 0]}}, ["archive.dims = [5, 0]", "at least 1"]),
    ({"archive": {"cells": 0}}, ["archive.cells = 0", "1"]),
    ({"learning_rate": 2}, ["archive.learning_rate = 2", "less than or equal to 1"]),
    ({"restart_rule": "bsic"}, ["restart_rule = 'bsic'", "'basic'"]),
    ({"cpu_baseline": "avx"}, ["cpu_baseline = 'avx'", "'avx2'"]),
    ({"bounds": [1, -1]}, ["emitters.0.bounds", "1.0 is not below", "-1.0"]),
    ({"bounds": [1]}, ["emitters.0.bounds = [1]", "more items"]),
    ({"domain": {"preset": "arm", "ranges": [[1, 0], [0, 1]]}}, ["ranges.0", "1.0 is not below"]),
    ({"domain": {"preset": "arm", "objective_range": [5, 5]}}, ["domain.objective_range", "5.0"]),
    ({"domain": {"preset": "arm", "evaluation_seed": "fixd"}}, ["= 'fixd'", "'fixed'"]),
    ({"reload": {"min_seconds": 9, "max_seconds": 1}}, ["reload.min_seconds = 9.0", "1.0"]),
    ({"sigma0": float("nan")}, ["sigma0 = nan", "finite"]),
    ({"domain": {"preset": "arm", "x0": float("inf")}}, ["domain.x0 = inf", "finite"]),
    (
        {"domain": {"preset": "arm", "ranges": [[0, float("inf")], [0, 1]]}},
        ["domain.ranges.0.1 = inf", "finite"],
    ),
    ({"domain": {"type": "arm", "name": "a/b"}}, ["domain.name = 'a/b'", "pattern"]),
    ({"domain": {"type": "arm", "name": ""}}, ["domain.name = ''", "pattern"]),
    # Parts that do not fit each other.
    ({"archive": {"dims": [5, 5, 5]}}, ["archive.dims = [5, 5, 5]", "2 measures", "lp_sphere"]),
    ({"archive": {"cells": 100}}, ["cma_me", "archive.dims", "cvt"]),
    ({"domain": {"preset": "arm", "ranges": [[0, 1]]}}, ["ranges has 1", "2 measures"]),
    ({"domain": {"preset": "arm", "x0": [0, 1]}}, ["x0 has 2 entries", "100 parameters"]),
    ({"domain": {"preset": "arm", "solution_dim": 1}}, ["cma_es", "1 parameter", "map_elites"]),
    ({"algorithm": "lm_ma_es"}, ["batch_size = 30", "lm_ma_es", "solution_dim = 10"]),
    ({"algorithm": "openai_es", "batch_size": 7}, ["batch_size = 7", "openai_es", "even"]),
    ({"batch_size": 1}, ["batch_size = 1", "at least 2"]),
    ({"algorithm": "cma_mega", "batch_size": 2}, ["batch_size = 2", "at least 3"]),
    ({"algorithm": emitter(type="gradient_operator"), "batch_size": 7}, ["= 7", "even"]),
    ({"domain": "lunar_lander", "algorithm": "cma_mega"}, ["cma_mega", "jacobian", "cma_me"]),
    ({"algorithm": {"preset": "cma_mega", "scheduler": {"type": "bandit"}}}, ["gradients"]),
    ({"algorithm": emitter(type=ES, es="pycma_es")}, ["emitters.0.es", "pycma_es", "cma_es"]),
    ({"algorithm": emitter(type="bayesian_opt")}, ["'bayesian_opt'", "two results", ES]),
    ({"algorithm": emitter(type=ES, es_kwargs={"lr": 1})}, ["es_kwargs", "cma_es", "'lr'"]),
    (
        {"algorithm": emitter(type=ES, es="openai_es", es_kwargs={"beta": 1})},
        ["es_kwargs", "'beta'", "'beta1'|'beta2'"],
    ),
    (
        {"algorithm": emitter(type=ES, es="openai_es", es_kwargs={"lr": True})},
        ["es_kwargs", "lr = True", "float"],
    ),
    (
        {
            "algorithm": {
                "archive": {"type": "grid"},
                "emitters": [{"type": "gaussian"}, {"type": "iso_line"}],
            }
        },
        ["num_emitters = 5", "2 groups"],
    ),
    (measure(measure="mean_action", range=[0, 1]), ["measures.0", "needs a component"]),
    (
        measure(measure="fraction_above", component=1, range=[0, 1]),
        ["measures.0", "fraction_above needs a threshold"],
    ),
    (
        measure(measure="mean_action", component=0, threshold=1, range=[0, 1]),
        ["measures.0", "mean_action has no threshold"],
    ),
    (gym(measures=GYM["measures"] * 2), ["domain.measures", "mean of observation 0"]),
]


def wrong(message: str, source: str, parts: list[str]) -> None:
    for part in [source, *parts]:
        assert any(option in message for option in part.split("|")), f"{part!r} not in:\n{message}"
    assert "Traceback" not in message and "\n\n" not in message


@pytest.mark.parametrize(("changes", "parts"), WRONG_FILES)
def test_wrong_experiment_file(changes: dict[str, Any], parts: list[str], in_own_folder: Path):
    data = merged(BASE, changes)
    text = json.dumps(data).replace("NaN", ".nan").replace("Infinity", ".inf")
    Path("mine.yaml").write_text(text)  # JSON is YAML
    with pytest.raises(BadInput) as error:
        compose("mine.yaml")
    wrong(str(error.value), "mine.yaml", parts)
    with pytest.raises(BadInput):
        compose(data)


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        ({"sigam0": 1}, ["sigam0", "'sigma0'", "cma_me", "lp_sphere"]),
        ({"algorithm": "map_elites", "sigma0": 1}, ["sigma0", "'sigma'", "map_elites"]),
        ({"domain": "arm", "function": "sphere"}, ["function", "arm"]),
        ({"sigma0": 1, "algorithm.sigma0": 1}, ["sigma0 and algorithm.sigma0 are one key"]),
        ({"iterations": 5, "evaluations": 5}, ["one of iterations and evaluations"]),
        ({"dims": [5, 5], "cells": 5}, ["one of archive.dims and archive.cells"]),
        ({"archive": [5, 5]}, ["'archive' is not one value", "archive.dims, archive.cells"]),
        ({"emitters.1.sigma0": 3}, ["emitters.1.sigma0", "emitters.0.sigma0"]),
        ({"²": 3}, ["²"]),
        ({"": 3}, ["''"]),
        ({"seed": "x"}, ["seed = 'x'", "integer"]),
        ({"seed": None}, ["seed = None", "integer"]),
        ({"seed": [1, 2]}, ["seed = [1, 2]", "integer"]),
        ({"sigma0": float("inf")}, ["sigma0 = inf", "finite"]),
        ({"dims": [5]}, ["archive.dims = [5]", "2 measures"]),
        ({"es": "pycma_es"}, ["emitters.0.es", "pycma_es", "cma_es"]),
        ({"algorithm": 5}, ["algorithm = 5", "name of a preset"]),
        ({"algorithm": "cma_mee"}, ["algorithm = 'cma_mee'", "'cma_me'"]),
        ({"domain": "maze:Maze", "solution_dim": 5}, ["solution_dim", "Maze"]),
    ],
)
def test_wrong_override(overrides: dict[str, Any], parts: list[str]):
    with pytest.raises(BadInput) as error:
        compose(BASE, overrides, source="sweep, row 3")
    wrong(str(error.value), "sweep, row 3", parts)


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
    ("text", "parts"),
    [
        ("engin: serial\n", ["engin", "'engine'"]),
        ("engine: proceses\n", ["engine = 'proceses'", "'processes'"]),
        ("workers_per_node: two\n", ["workers_per_node = 'two'", "integer"]),
        ("workers_per_node: 0\n", ["workers_per_node = 0", "1"]),
        ("workers_per_node: true\n", ["workers_per_node = True", "integer"]),
        ("engine: processes\nnodes: 2\n", ["engine processes", "nodes = 2", "dask"]),
        ("runtime_min: 1h30m\n", ["runtime_min = '1h30m'", "integer"]),
        ("extra: '; rm -rf x'\n", ["extra = '; rm -rf x'"]),
        ("mem_mb_main: 300\n", ["mem_mb_main = 300", "400"]),
    ],
)
def test_wrong_cluster(text: str, parts: list[str], in_own_folder: Path):
    Path("mine.yaml").write_text(text)
    with pytest.raises(BadInput) as error:
        read_cluster("mine.yaml")
    wrong(str(error.value), "mine.yaml", parts)
    with pytest.raises(BadInput, match="did you mean 'local'"):
        read_cluster("lcal")


@pytest.mark.parametrize(
    ("experiment", "title"),
    [
        ("config/experiments/arm.yaml", "arm"),
        ({"domain": "lp_sphere"}, "lp_sphere"),
        ({"domain": {"preset": "lp_sphere", "solution_dim": 10}}, "lp_sphere"),
        ({"domain": {"type": "linear_projection", "name": "my_sphere"}}, "my_sphere"),
        ({"domain": {"type": "linear_projection"}}, "mine"),
    ],
)
def test_an_experiment_in_the_sweep_file_is_called_by_its_domain(experiment, title):
    assert SweepFile(name="mine", experiment=experiment).title == title


def test_models_are_closed_and_frozen():
    for model in (Algorithm, Cluster, DomainConfig, Experiment, SweepFile):
        assert model.model_config["extra"] == "forbid"
    with pytest.raises(ValueError, match="frozen"):
        compose(BASE).seed = 3  # type: ignore[misc]


# YAML 1.2.


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
