"""Every preset and ready sweep of the project is valid."""

import json
from pathlib import Path

import pytest
from composing import BASE, CONFIG, presets, with_algorithm

from qdsweep.config.cluster import read_cluster
from qdsweep.config.compose import compose, read_domain
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.config.memory import require_memory_of
from qdsweep.config.sweep import SweepFile
from qdsweep.planning.rows import sweep_of
from qdsweep.records.paths import Results
from qdsweep.sweep.ids import run_id


@pytest.mark.parametrize("name", presets("experiments"))
def test_every_experiment_composes(name: str):
    experiment = compose(name)
    assert experiment.domain.name and experiment.algorithm.name
    assert compose(str(CONFIG / "experiments" / f"{name}.yaml")) == experiment
    require_memory_of(experiment)


@pytest.mark.parametrize("name", presets("algorithms"))
def test_every_algorithm_composes(name: str):
    experiment = with_algorithm(name)
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
def test_every_sweep_composes(path: Path, tmp_path: Path):
    sweep = SweepFile.model_validate_json(json.dumps(read_yaml(path)))
    table = sweep_of(sweep, Results(tmp_path))
    assert len(table.rows) == len(table.runs) > 1
    assert path.stem in (sweep.name, "config")


def test_a_preset_of_the_working_directory_comes_first(in_own_folder: Path):
    folder = in_own_folder / "config/algorithms"
    folder.mkdir(parents=True)
    (folder / "cma_me.yaml").write_text("archive: {type: grid}\nemitters: [{type: gaussian}]\n")
    assert compose(BASE).algorithm.emitters[0].type == "gaussian"
    assert find_preset("algorithms", "cma_mae").is_relative_to(CONFIG)
