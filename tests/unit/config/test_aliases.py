"""Further names of keys: `mutation_scale` is a domain's `step`, `env_steps` the budget `steps`."""

from pathlib import Path

import pytest
from composing import BASE, merged
from in_process import qdsweep
from refusals import refused
from support import write_yaml

from qdsweep.config.compose import compose, read_domain
from qdsweep.planning.request import Given
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.sweep.groups import group_columns
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs

POLE = {
    "domain": "cartpole",
    "algorithm": "cma_me",
    "archive": {"dims": [4, 4]},
    "num_emitters": 1,
    "batch_size": 2,
}
SPHERE = {"preset": "lp_sphere", "solution_dim": 10}


@pytest.mark.parametrize(
    ("changes", "overrides"),
    [
        ({"mutation_scale": 0.1}, {}),
        ({"domain.mutation_scale": 0.1}, {}),
        ({"domain": SPHERE | {"mutation_scale": 0.1}}, {}),
        ({"domain": SPHERE | {"step": 0.7}}, {"mutation_scale": 0.1}),
        ({"mutation_scale": 0.7}, {"domain.mutation_scale": 0.1}),
        ({"mutation_scale": 0.7}, {"step": 0.1}),
    ],
)
def test_mutation_scale_is_the_key_step(changes, overrides):
    same = compose(merged(BASE, changes), overrides)
    assert same == compose(BASE, {"step": 0.1}) != compose(BASE)
    assert run_id(same) == run_id(compose(BASE, {"step": 0.1}))
    assert "mutation_scale" not in same.model_dump(mode="json")["domain"]


def test_env_steps_is_the_budget_steps():
    same = compose({**POLE, "env_steps": 300})
    assert same == compose({**POLE, "steps": 300})
    assert same == compose({**POLE, "iterations": 5}, {"env_steps": 300})
    assert same.model_dump(mode="json")["steps"] == same.budget["steps"] == 300


def test_in_a_domain_preset_and_of_a_class_of_the_user(in_own_folder: Path):
    preset = in_own_folder / "config/domains/wide.yaml"
    preset.parent.mkdir(parents=True)
    write_yaml(preset, {"type": "arm", "mutation_scale": 0.7})
    assert read_domain("wide").step == 0.7
    assert compose({**BASE, "domain": "wide"}).domain.step == 0.7
    assert compose({**BASE, "domain": "wide"}, {"mutation_scale": 0.2}).domain.step == 0.2
    own = compose({**BASE, "domain": "maze"}, {"mutation_scale": 0.2, "arguments.steps": 12})
    assert (own.domain.step, own.domain.arguments) == (0.2, {"steps": 12})


def test_an_argument_of_a_class_keeps_its_name(plugins):
    plugins(
        "scaled",
        "class Scaled:\n    def __init__(self, mutation_scale=1.0, env_steps=9):\n        pass\n",
    )
    own = compose({**BASE, "domain": "scaled:Scaled"}, {"mutation_scale": 2.0, "env_steps": 7})
    assert own.domain.arguments == {"mutation_scale": 2.0, "env_steps": 7}
    assert (own.domain.step, own.budget) == (None, {"iterations": 3})

    both = ("scaled:Scaled", "domain.arguments.mutation_scale", "domain.step")
    for named in ({"type": "scaled:Scaled"}, {"preset": "scaled:Scaled"}):
        with refused(*both):
            compose({**BASE, "domain": {**named, "mutation_scale": 2.0}})


@pytest.mark.parametrize(
    ("changes", "overrides", "names"),
    [
        ({"domain": SPHERE | {"step": 1.0, "mutation_scale": 1.0}}, {}, []),
        ({"domain": SPHERE | {"step": 1.0}, "mutation_scale": 1.0}, {}, []),
        ({"domain": SPHERE | {"mutation_scale": 1.0}, "step": 1.0}, {}, []),
        ({"step": 1.0, "mutation_scale": 1.0}, {}, []),
        ({}, {"step": 1.0, "mutation_scale": 1.0}, ["the command line"]),
    ],
)
def test_both_names_of_a_scale_are_refused(changes, overrides, names):
    with refused("domain.step", "mutation_scale", *names):
        compose(merged(BASE, changes), overrides)


def test_both_names_of_a_budget_are_refused():
    with refused("steps", "env_steps"):
        compose({**POLE, "steps": 5, "env_steps": 5})
    with refused("steps", "env_steps"):
        compose(POLE, {"steps": 5, "env_steps": 5})
    with refused("iterations", "env_steps"):
        compose({**POLE, "iterations": 5, "env_steps": 5})


def test_a_wrong_value_is_named_by_both():
    with refused("domain.step", "mutation_scale", -1):
        compose(BASE, {"mutation_scale": -1})
    with refused("steps", "env_steps", 0):
        compose(POLE, {"env_steps": 0})
    with refused("lp_sphere", "env_steps", 7):
        compose(BASE, {"env_steps": 7})


def test_a_misspelt_alias_is_suggested():
    with refused("'mutation_scal'", "did you mean 'mutation_scale'"):
        compose(BASE, {"mutation_scal": 1.0})
    with refused("'env_stesp'", "did you mean 'env_steps'"):
        compose({**POLE, "env_stesp": 5})
    with refused("domain.mutation_scal;", "did you mean 'mutation_scale'"):
        compose({**BASE, "domain": SPHERE | {"mutation_scal": 1.0}})
    with refused("algorithm.mutation_scale"):  # only the domain has it
        compose(BASE, {"algorithm.mutation_scale": 1.0})


def test_a_sweep_over_aliases_has_the_same_runs():
    by_key = table_of_runs(BASE, "::: algorithm map_elites cma_me ::: step 0.1 0.5")
    by_alias = table_of_runs(BASE, "::: algorithm map_elites cma_me ::: mutation_scale 0.1 0.5")
    assert [row.id for row in by_alias.rows] == [row.id for row in by_key.rows]
    assert len(by_alias.runs) == 4 and by_alias.columns == ("algorithm", "mutation_scale")
    with refused("step", "mutation_scale"):
        table_of_runs(BASE, "::: step 0.1 0.5 ::: mutation_scale 0.1 0.5")

    larger = table_of_runs(POLE, "::: env_steps 1000 2000 ::: seed 1 2")
    assert larger.runs == table_of_runs(POLE, "::: steps 1000 2000 ::: seed 1 2").runs
    assert group_columns(larger.columns, larger.texts) == ["env_steps"]
    constant = table_of_runs(POLE, "::: env_steps 1000 ::: sigma0 0.1 0.5")
    assert group_columns(constant.columns, constant.texts) == ["sigma0"]


def test_set_takes_them(tmp_path: Path):
    write_yaml(tmp_path / "pole.yaml", POLE)
    folder = tmp_path / "run"
    keys = ("--set", "env_steps=60", "--set", "mutation_scale=0.3")
    qdsweep("run", "pole.yaml", *keys, "--out", folder, cwd=tmp_path)
    expected = compose({**POLE, "steps": 60}, {"step": 0.3})
    assert compose(str(folder / "config.yaml")) == expected


@pytest.mark.parametrize("swept", ["mutation_scale", "domain.mutation_scale", "step"])
@pytest.mark.parametrize("name", ["mutation_scale", "step", "domain.step"])
def test_the_sweep_file_names_a_swept_key_by_any_of_its_names(in_own_folder, swept, name):
    data = {
        "name": "a",
        "experiment": BASE,
        "sweep": f"::: {swept} 0.1 0.5 ::: batch_size 8 16",
        "exclude": [f"{name}=0.5, batch_size=8"],
        "figures": {"names": {name: "$\\sigma$"}, "encode": {"color": name}, "facets": name},
        "tables": {"columns": [name, "qd_score"]},
        "published": [
            {"where": {name: 0.1, "batch_size": 8}, "metric": "coverage", "mean": 0.5}
            | {"margin": 0.1, "source": "a paper"}
        ],
    }
    write_yaml(in_own_folder / "a.yaml", data)
    settings = Start(Results(Path("results")), Given({}, files=["a.yaml"])).settings
    figures = settings.figures
    assert list(figures.names) == settings.tables.columns[:1] == [figures.facets] == [swept]
    assert figures.encode.color == swept and swept in settings.published[0].where
