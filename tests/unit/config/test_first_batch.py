"""`first_batch`: the random solutions of the first iteration, over all emitters."""

from typing import Any

import pytest
from composing import BASE, emitter, merged

from qdsweep.config.compose import compose
from qdsweep.errors import BadInput
from qdsweep.sweep.ids import run_id

MAP_ELITES = merged(BASE, {"algorithm": "map_elites"})


def test_the_later_layer_chooses_between_all_emitters_and_each():
    """The algorithm's preset has initial_solutions, an experiment's file may have either."""
    in_all = compose(merged(MAP_ELITES, {"first_batch": 100}))
    assert in_all.first_iteration == 100 and in_all.evaluations_after(2) == 100 + 5 * 30
    each = compose(merged(MAP_ELITES, {"first_batch": 100}), {"initial_solutions": 7})
    assert each.first_iteration == 35 and each.first_batch is None
    swept = compose(merged(MAP_ELITES, {"initial_solutions": 7}), {"first_batch": 9})
    assert swept.first_iteration == 9
    own = merged(BASE, {"algorithm": emitter(type="gaussian", initial_solutions=3)})
    assert compose(own, {"first_batch": 9}).first_iteration == 9


def test_algorithms_that_begin_otherwise_pass_it_over():
    plain, told = compose(BASE), compose(BASE, {"first_batch": 1})
    assert run_id(told) == run_id(plain) and told.first_iteration == 150
    own = compose(merged(BASE, {"algorithm": emitter(type="gaussian")}))
    assert own.first_iteration == 150
    mixed = {
        "archive": {"type": "grid"},
        "emitters": [{"type": "gaussian"}, {"type": "evolution_strategy"}],
    }
    both = merged(BASE, {"algorithm": mixed, "num_emitters": 4})
    assert compose(both, {"first_batch": 10}).first_iteration == 10 + 2 * 30
    bandit = merged(both, {"algorithm": {**mixed, "scheduler": {"type": "bandit"}}})
    assert compose(bandit, {"first_batch": 10}).first_iteration == (10 + 4 * 30) // 2


GRADIENT = {"type": "gradient_operator"}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both in a file": ({"first_batch": 50, "initial_solutions": 9}, "give one of first_batch and"),
    "both, in the emitters": (
        {"first_batch": 50, "algorithm": emitter(type="gaussian", initial_solutions=9)},
        "give one of first_batch and algorithm.emitters.0.initial_solutions",
    ),
    "fewer than emitters": ({"first_batch": 4}, "first_batch = 4: too few for the 5 emitters"),
    "no elites to mix": (
        {"algorithm": emitter(**GRADIENT, operator_type="iso_line_dd")},
        "there are none at first",
    ),
    "gradients at once": (
        {
            "algorithm": {
                "archive": {"type": "grid"},
                "emitters": [GRADIENT, {"type": "gradient_arborescence"}],
            },
            "num_emitters": 2,
            "first_batch": 8,
        },
        "cannot stand beside others that ask for gradients",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradictions_are_refused(case: str):
    changes, message = REFUSED[case]
    with pytest.raises(BadInput) as error:
        compose(merged(MAP_ELITES, changes))
    assert message in str(error.value)


def test_both_on_the_command_line_are_refused():
    with pytest.raises(BadInput, match="--set: give one of"):
        compose(MAP_ELITES, {"initial_solutions": 9, "first_batch": 50}, source="--set")
