"""DMS equals pyribs' own parts in a plain loop, and is refused where it cannot work."""

import numpy as np
import pytest
from ribs.archives import DiscountArchive, GridArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler
from small_runs import payload_of
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.base import spawn_seeds
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop

# Several epochs per training, a last minibatch that is not full, and restarts.
KEYS = {"algorithm": "dms", "train_cutoff_loss": 0.001, "restart_rule": 3, "iterations": 12}


@pytest.fixture
def torch():
    pytest.importorskip("torch", reason="torch: `make rl`")
    import torch

    import qdsweep.algorithms.pytorch  # noqa: F401

    return torch


def by_pyribs(exp: Experiment, torch) -> GridArchive:
    """Returns the results of pyribs' example for the settings and seeds of an experiment."""
    from ribs.discount_models import MLP, DiscountModelManager

    domain, settings = make_domain(exp.domain), exp.algorithm.archive
    ranges, (low, high) = [*domain.measures.values()], domain.objective_range
    archive_seed, result_seed, emitter_seed = spawn_seeds(exp, 3)
    torch.manual_seed(int(archive_seed.spawn(1)[0].generate_state(1)[0]))
    network = MLP([(2, 128), (128, 128), (128, 1)], torch.nn.ReLU)
    manager = DiscountModelManager(
        network,
        torch.optim.Adam(network.parameters(), lr=0.001, fused=True),
        torch.device("cpu"),
        train_epochs=5,
        train_cutoff_loss=settings.train_cutoff_loss,
        train_batch_size=32,
        normalize_measures="negative_one_one",
        measures_low=[bounds[0] for bounds in ranges],
        measures_high=[bounds[1] for bounds in ranges],
        normalize_discount="zero_one",
        discount_low=low,
        discount_high=high,
    )
    result = GridArchive(
        solution_dim=domain.solution_dim, dims=exp.archive.dims, ranges=ranges, seed=result_seed
    )
    archive = DiscountArchive(
        solution_dim=domain.solution_dim,
        measure_dim=2,
        learning_rate=settings.learning_rate,
        threshold_min=low,
        discount_model_manager=manager,
        result_archive=result,
        init_train_points=1000,
        empty_points=100,
        seed=archive_seed,
    )
    emitters = [
        EvolutionStrategyEmitter(
            result,
            x0=domain.x0,
            sigma0=domain.step,
            ranker="imp",
            selection_rule="mu",
            restart_rule=exp.algorithm.emitters[0].restart_rule,
            batch_size=exp.batch_size,
            seed=seed,
        )
        for seed in emitter_seed.spawn(exp.num_emitters)
    ]
    scheduler = Scheduler(archive, emitters, result)
    archive.init_discount_model()
    for _ in range(exp.iterations):
        solutions = scheduler.ask()
        evaluation = domain.evaluate(solutions, np.zeros(len(solutions), np.uint32))
        scheduler.tell(evaluation.objective, evaluation.measures)
        archive.train_discount_model()
    return result


def state_after(exp: Experiment) -> State:
    domain = make_domain(exp.domain)
    state = State(make_algorithm(exp, domain, None))
    run_loop(exp, state, Serial(domain), Stop(), lambda *_: None)
    return state


def test_it_equals_pyribs_own_parts_bit_for_bit(torch):
    sizes = {"num_emitters": 5, "batch_size": 12, "archive.dims": [40, 40]}
    exp = compose(TINY, KEYS | sizes)
    theirs, ours = by_pyribs(exp, torch).data(), state_after(exp).algorithm.archive.rows()
    order = np.argsort(theirs["index"])
    assert len(order) > 60
    for name in ("index", "objective", "measures", "solution"):
        assert np.array_equal(theirs[name][order], ours[name]), name


def test_every_setting_of_the_model_changes_the_results(torch):
    def discounts(**changes):
        archive = state_after(compose(TINY, KEYS | changes)).algorithm.ribs_scheduler.archive
        grid = np.random.default_rng(0).uniform(-25, 25, (9, 2))
        return archive.discount_model_manager.inference(grid).tobytes()

    changes = {
        "learning_rate": 0.5,
        "threshold_min": -1.0,
        "init_train_points": 10,
        "empty_points": 5,
        "model_hidden": [16],
        "model_lr": 0.01,
        "train_epochs": 2,
        "train_cutoff_loss": 9.0,
        "train_batch_size": 7,
    }
    results = [discounts(), *(discounts(**{key: value}) for key, value in changes.items())]
    assert len(set(results)) == len(results)


def test_it_does_not_touch_torchs_global_generator(torch):
    torch.manual_seed(1)
    first = float(torch.rand(1))
    torch.manual_seed(1)
    payload_of(state_after(compose(TINY, KEYS)))
    assert float(torch.rand(1)) == first
