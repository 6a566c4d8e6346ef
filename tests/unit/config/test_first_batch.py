"""`first_batch`: the random solutions of the first iteration, over all emitters."""

from composing import BASE, emitter, merged

from qdsweep.config.compose import compose
from qdsweep.sweep.ids import run_id

MAP_ELITES = merged(BASE, {"algorithm": "map_elites"})


def test_the_later_layer_chooses_between_all_emitters_and_each():
    """The algorithm's preset has initial_solutions. An experiment's file may have either key."""
    in_all = compose(merged(MAP_ELITES, {"first_batch": 100}))
    assert in_all.first_iteration == 100 and in_all.evaluations_after(2) == 100 + 5 * 30
    each = compose(merged(MAP_ELITES, {"first_batch": 100}), {"initial_solutions": 7})
    assert each.first_iteration == 35 and each.first_batch is None
    swept = compose(merged(MAP_ELITES, {"initial_solutions": 7}), {"first_batch": 9})
    assert swept.first_iteration == 9
    own = merged(BASE, {"algorithm": emitter(type="gaussian", initial_solutions=3)})
    assert compose(own, {"first_batch": 9}).first_iteration == 9


def test_algorithms_that_begin_otherwise_pass_it_over():
    plain, ours = compose(BASE), compose(BASE, {"first_batch": 1})
    assert run_id(ours) == run_id(plain) and ours.first_iteration == 150
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
