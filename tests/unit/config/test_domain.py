"""A domain's config: facts that are known before the domain is made."""

import numpy as np
import pytest
from domain_makers import LENGTH, config, make, task

ARM = {"type": "arm", "solution_dim": 5}


def test_config_values_end_up_on_the_domain():
    domain = make(**ARM, ranges=[[-1, 1], [0, 2]], objective_range=[-5, 50], x0=0.5, step=2)
    assert domain.measures == {"end effector x": (-1, 1), "end effector y": (0, 2)}
    assert domain.objective_range == (-5, 50)
    np.testing.assert_array_equal(domain.x0, [0.5] * 5)
    assert domain.x0.flags.writeable
    assert domain.step == 2
    default = make(**ARM)
    assert (default.step, list(default.x0)) == (0.1, [0.0] * 5)
    assert list(make(**ARM, x0=[1, 2, 3, 4, 5]).x0) == [1, 2, 3, 4, 5]


def test_what_is_known_before_the_domain_is_made():
    assert [config(**ARM).measure_dim, config(**ARM).known_solution_dim] == [2, 5]
    lander = config(type="lunar_lander")
    assert [lander.measure_dim, lander.known_solution_dim, lander.has_jacobian] == [2, 32, False]
    assert lander.evaluation_seed == "fixed" and lander.step == 1.0
    walker = config(**task("X-v0", LENGTH))
    assert [walker.measure_dim, walker.known_solution_dim] == [1, None]
    plugin = config(type="maze:Maze")
    assert [plugin.measure_dim, plugin.has_jacobian] == [None, None]


@pytest.mark.parametrize(
    ("measure", "label"),
    [
        ({"measure": "final_observation", "component": 3}, "final observation 3"),
        (
            {"measure": "fraction_above", "component": 8, "threshold": 0.5},
            "share of time with observation 8 above 0.5",
        ),
        ({"measure": "episode_length"}, "episode length"),
        ({"measure": "episode_length", "name": "steps"}, "steps"),
    ],
)
def test_measures_have_readable_names(measure, label):
    assert config(**task("X-v0", measure | {"range": [0, 1]})).measures[0].label == label
