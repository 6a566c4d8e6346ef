"""Names of keys: by their last part, by their path."""

import pytest
from composing import BASE
from refusals import refused

from qdsweep.config.compose import compose


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


@pytest.mark.parametrize("algorithm", ["map_elites", "cma_me"])
def test_one_name_is_the_step_size_of_all_emitters(algorithm):
    assert compose(BASE, {"algorithm": algorithm, "step": 0.1}).domain.step == 0.1


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("polcy", ["'polcy'", "did you mean 'policy'", " archive,", " policy,", " emitters,"]),
        ("policy", ["'policy'", "domain.policy.hidden", "domain.policy.activation"]),
        ("polcy.hidden", ["'polcy.hidden'", "domain.policy.hidden"]),
    ],
)
def test_a_nested_part_is_one_of_the_known_names(name, names):
    with refused(*names):
        compose({**BASE, "domain": "pendulum"}, {name: 3})
