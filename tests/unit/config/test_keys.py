"""Names of keys: by their last part, by their path, ambiguous ones."""

import pytest
from composing import BASE

from qdsweep.config.compose import compose
from qdsweep.errors import BadInput


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


def test_a_key_of_another_algorithm_names_it():
    with pytest.raises(BadInput, match=r"unknown name 'n_epochs'.*It is a key of ppo\. "):
        compose({**BASE, "algorithm": "dqn"}, {"n_epochs": 5})


def test_an_ambiguous_name_lists_the_candidates():
    with pytest.raises(BadInput) as error:
        compose(BASE, {"type": "grid"})
    for candidate in ("domain.type", "algorithm.archive.type", "algorithm.emitters.0.type"):
        assert candidate in str(error.value)
    with pytest.raises(BadInput, match=r"domain\.name, algorithm\.name"):
        compose(BASE, {"name": "x"})


def test_a_step_size_of_other_emitters_names_the_one_of_all():
    with pytest.raises(BadInput, match="the step size of all of them is `step`"):
        compose(BASE, {"algorithm": "map_elites", "sigma0": 0.1})
    for algorithm in ("map_elites", "cma_me"):
        assert compose(BASE, {"algorithm": algorithm, "step": 0.1}).domain.step == 0.1
