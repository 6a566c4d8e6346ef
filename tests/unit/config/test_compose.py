"""Composition of an experiment: the priority of layers."""

import copy
from typing import Any

import pytest
from composing import BASE, merged, presets
from pydantic import ValidationError
from refusals import refused

from qdsweep.config.compose import compose, read_domain
from qdsweep.config.sweep import SweepFile
from qdsweep.sweep.ids import run_id


def test_layers():
    """Defaults < algorithm < domain < experiment file < overrides."""
    domain = {"preset": "lunar_lander", "episodes": 2}
    experiment = compose(merged(BASE, {"domain": domain, "sigma0": 0.3}), {"sigma0": 0.4})
    assert experiment.domain.episodes == 2  # from the experiment
    assert experiment.domain.evaluation_seed == 52  # from the domain preset
    assert experiment.domain.step == 1.0  # from the model
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


def test_keys_of_a_type_that_is_set_with_them():
    settings = {"policy.hidden": [5], "domain.policy.type": "mlp"}
    for names in (settings, dict(reversed(settings.items()))):
        domain = {"preset": "pendulum", "policy": {"type": "linear"}}
        assert compose(merged(BASE, {"domain": domain}), names).domain.policy.hidden == [5]
        file = {key: value for key, value in BASE.items() if key != "domain"} | names
        assert compose({**file, "domain": "atari_qbert"}).domain.policy.hidden == [5]


def test_a_swept_preset_takes_the_place_of_the_files():
    """The key of its preset, or of the whole file if it names none, as in a run's config.yaml."""
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
    experiment = compose("cartpole", {"algorithm": "map_elites"})
    data = experiment.model_dump(mode="json")
    assert data["first_batch"] == 100
    turned = dict(reversed(data.items()))
    assert compose(data) == compose(turned) == experiment


def test_composing_changes_nothing_that_it_was_given():
    base, overrides = copy.deepcopy(BASE), {"algorithm": "cma_mae", "dims": [4, 4]}
    compose(base, overrides)
    assert base == BASE
    assert overrides == {"algorithm": "cma_mae", "dims": [4, 4]}
    assert compose("lp_sphere", {"sigma0": 9.0}) != compose("lp_sphere")


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


def test_an_experiment_is_frozen():
    with pytest.raises(ValidationError):
        compose(BASE).seed = 3  # type: ignore[misc]


def test_a_short_name_of_a_file_goes_with_the_algorithm_that_it_is_a_key_of():
    """`initial_solutions: 0` in the file applies only to its own algorithm."""
    assert compose("qd_hopper").algorithm.emitters[0].initial_solutions == 0
    assert compose("qd_hopper", {"algorithm": "map_elites"}).algorithm.emitters[0].sigma is None
    assert compose("qd_hopper", {"algorithm": "cma_me"}).algorithm.name == "cma_me"
    learner = compose("qd_hopper", {"algorithm": "pga_me", "domain": "pendulum", "dims": [9, 9]})
    assert learner.algorithm.iso_sigma == 0.005
    with refused("'initial_solutions'"):
        compose("qd_hopper", {"algorithm": "cma_me", "initial_solutions": 3})
    with refused("'initial_solutoins'"):
        compose({**BASE, "initial_solutoins": 0}, {"algorithm": "cma_mae"})
