"""What is said of a wrong experiment: file, key, value and the nearest known one."""

import json
from pathlib import Path
from typing import Any

import pytest
from composing import BASE, emitter, merged, wrong

from qdsweep.config.compose import compose
from qdsweep.errors import BadInput

GYM = {
    "type": "gymnasium",
    "env": "CartPole-v1",
    "objective_range": [0, 500],
    "measures": [{"measure": "mean_observation", "component": 0, "range": [0, 1]}],
}


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
    ({"algorithm": "apex"}, ["algorithm = 'apex'", "race", "take apex_dqn"]),
    ({"algorithm": {"type": "sac"}}, ["algorithm.type = 'sac'", "take td3 or ppo"]),
    ({"algorithm": {"type": "SAC"}}, ["algorithm.type = 'SAC'", "take td3 or ppo"]),
    ({"algorithm": {"type": "lab.make"}}, ["algorithm.type = 'lab.make'", "be module:name"]),
    ({"algorithm": {"type": 3}}, ["algorithm.type = 3", "string"]),
    ({"algorithm": emitter(sigma=1)}, ["algorithm.emitters.0.type is missing"]),
    ({"dims": [6, 6]}, ["archive.dims is given twice", "dims"]),
    ({"evaluations": 5}, ["one of iterations and evaluations"]),
    ({"iterations": None}, ["budget", "iterations", "evaluations"]),
    ({"archive": {"dims": [5, 5], "cells": 25}}, ["one of archive.dims and archive.cells"]),
    ({"archive": {"cells": {"x": 25}, "dims": [5, 5]}}, ["one of archive.dims and archive.cells"]),
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
        ({"algorithm": "map_elites", "sigma0": 1}, ["sigma0", "`step`", "map_elites"]),
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
