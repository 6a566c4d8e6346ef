"""Every key of an algorithm or a domain changes the result, or is refused."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import composing
import numpy as np
import pytest
from composing import installed, presets, with_algorithm
from in_process import compute_sweep, qdsweep
from refusals import refused
from small_runs import digest_of

from qdsweep.algorithms import make_algorithm
from qdsweep.analysis.page.descriptions import algorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment, refuse_idle
from qdsweep.config.keys import dotted, key_paths
from qdsweep.domains import make_domain
from qdsweep.engines.pool import Serial
from qdsweep.errors import BadInput
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.planning.request import Given
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.runs.load import load
from qdsweep.sweep.ids import identify
from qdsweep.sweep.runs import table_of_runs

# Keys of no part: budget, seed, limits, texts, and those that docs/reference explains.
NOT_HERE = re.compile(
    r"iterations|evaluations|steps|seed|timeout|reload\..*|metrics|schedule|cpu_baseline"
    r"|on_failure.*|first_batch|.*\.(name|title|cite|type)|domain\.(function|env)|.*\.arguments"
)
# Keys that may change only the id, and the reason.
EXCEPTIONS = {
    r"domain\.objective_range": "the QD score counts from its lower end",
    r"domain\.step": "the scale of a domain, of which some algorithms need none",
    r"domain\.ranges": "the axes of figures; only an archive with cells has them",
    r"domain\.x0": "the start of a domain; learners draw their first policy",
    r"archive\.(dims|cells)": "every experiment has them; a proximity archive has no cells",
    r"algorithm\.archive\.density_method": "both estimates have one order of the solutions",
    r"algorithm\.archive\.learner_shares": "its rounding leaves the order of solutions as it is",
    r"algorithm\.emitters\.0\.selection_rule": "openai_es takes all solutions; its preset has mu",
    r"algorithm\.clip_rewards": "only the environment knows its rewards",
    r"algorithm\.device": "without a GPU, a run is refused: tests/features/rl/test_gpu.py",
    r"domain\.measures\.\d\.(name|range)": "a label; `ranges` replaces the range",
}
SMALL = {
    "domain": {"preset": "lp_sphere", "solution_dim": 8, "ranges": [[-6, 6], [-6, 6]]},
    "archive": {"dims": [5, 5]},
    "batch_size": 8,
    "iterations": 12,
}
# Values that differ enough in a tiny run, by the last part of a key.
FAR: dict[str, list[Any]] = {
    "depth": [1, 3],
    "bounds": [[-2.5, 2.5], [-1.5, 1.5]],
    "ranges": [[[-3, 3], [-3, 3]]],
    "es_kwargs": [{"mirror_sampling": False}, {"n_vectors": 1}],
    "objective_range": [[-1000, 1000]],
    "range": [[-0.5, 0.5]],
    "env_kwargs": [{"g": 3.0}, {"sutton_barto_reward": True}],
    "wrappers": [[{"type": "TimeAwareObservation"}]],
    "normalize_observations": [True],
}
NUMBERS = (2, 1, 0.01, 1e-4, 3, 0, 100, -50, 7)
LEARNERS = ["a2c", "apex_dqn", "cma_mega_td3_es", "dqn", "impala", "pga_me", "ppo", "td3"]


# Settings with which the keys of a preset act in a tiny run, where the preset has them.
QUICK = {
    "lr": 0.5,
    "novelty_threshold": 3.0,
    "remap_frequency": 20,
    "buffer_capacity": 10,
    "generations": 2,
    "train_cutoff_loss": 0.0,
    "init_train_points": 50,
    "learning_starts": 20,
    "train_freq": 20,
    "buffer_size": 60,
    "target_update_interval": 20,
    "gradient_steps": 2,
    "exploration_steps": 100,
}


def small(name: str, home: Any = SMALL, **changes: Any) -> Experiment:
    """Returns a tiny experiment of a preset, long enough for its keys to act."""
    made = with_algorithm(name, home)
    plain = made.algorithm
    if made.resampling.type is not None:  # its keys have no effect without noise
        home = {**home, "domain": "noisy_arm_measures"}
    base: dict[str, Any] = {}
    if plain.needs_experience:
        base = {"batch_size": 9 if "mega" in name else 3, "iterations": 4}
    if hasattr(plain, "learning_starts"):  # on CartPole, where only large steps change an action
        base |= {"algorithm.learning_rate": 0.05, "iterations": 7}
    if hasattr(plain, "n_epochs"):
        base |= {"algorithm.learning_rate": 0.05, "n_steps": 100, "n_epochs": 2}
    known = {*type(plain).model_fields, *type(plain.archive).model_fields}
    base |= {key: value for key, value in QUICK.items() if key in known}
    if hasattr(plain.archive, "samples"):
        base["algorithm.archive.samples"] = 50
    groups = getattr(plain, "emitters", [])
    base |= {"num_emitters": 2 * len(groups)} if groups else {}
    for number, group in enumerate(groups):
        if hasattr(group, "restart_rule"):
            base[f"algorithm.emitters.{number}.restart_rule"] = 2 if len(groups) > 2 else 3
        if getattr(group, "initial_solutions", 0):
            base[f"algorithm.emitters.{number}.initial_solutions"] = 9
    known = {*base, *composing.QUICK, *composing.LEARNER}  # a key is given once
    short = {key: key.split(".")[-1] for key in changes if key not in base}
    changes = {
        short[key] if short.get(key) in known else key: value for key, value in changes.items()
    }
    return with_algorithm(name, home, **{**base, **changes})


def computed(experiment: Experiment, folder: Path) -> str:
    domain = make_domain(experiment.domain)
    context = np.zeros(domain.context_dim) if hasattr(domain, "context_dim") else None
    state = State(make_algorithm(experiment, domain, folder), steps=0, context=context)
    run_loop(experiment, state, Serial(domain), Stop(), lambda *_: None)
    return digest_of(state)


def others(key: str, value: Any, annotation: Any) -> Iterator[Any]:
    """Yields other values of a key, the most effective first."""
    leaves = set(_leaves(annotation))
    yield from FAR.get(key.split(".")[-1], [])
    yield from (leaf for leaf in leaves if isinstance(leaf, str | bool) and leaf != value)
    if bool in leaves:
        yield not value
    if isinstance(value, list) and int in leaves:
        yield [7, 3]
    elif leaves & {int, float}:
        own = [value * 3, value / 8, value + 1] if isinstance(value, int | float) else []
        for number in (*own, *NUMBERS):
            whole = number == int(number)
            if number != value and (float in leaves or whole):
                yield float(number) if float in leaves else int(number)


def _leaves(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif args := get_args(annotation):
        for part in args:
            yield from _leaves(part)
    else:
        yield annotation


def idle_keys(name: str, folder: Path, prefix: str, **changes: Any) -> set[str]:
    """Returns the keys below a prefix with other ids, but the same result, for all values."""
    base = installed(small(name, **changes))
    digest, own = computed(base, folder), identify(base).fingerprint
    data, found = json.loads(base.model_dump_json()), set()
    for path, annotation in key_paths(Experiment, data):
        key, value = dotted(path), data
        if NOT_HERE.fullmatch(key) or not key.startswith(prefix):
            continue
        for part in path:
            value = value[part]
        accepted = False
        for other in others(key, value, annotation):
            try:
                exp = small(name, **{**changes, key: other})
                idle = dict(exp.idle())  # `refuse_idle` refuses them
                if key in idle or idle.keys() - dict(base.idle()).keys():
                    continue
                if identify(exp).fingerprint == own:
                    continue
                same = computed(exp, folder) == digest
            except (BadInput, ValueError):  # some sizes are refused by pyribs
                continue
            accepted = True
            if not same:
                break
        else:
            if accepted and not any(re.fullmatch(each, key) for each in EXCEPTIONS):
                found.add(key)
    return found


@pytest.mark.parametrize("name", [name for name in presets("algorithms") if "atari" not in name])
def test_every_key_of_an_algorithm_changes_the_result_or_is_refused(name: str, tmp_path: Path):
    prefix = (
        "" if "emitters" in json.loads(small(name).algorithm.model_dump_json()) else "algorithm"
    )
    assert idle_keys(name, tmp_path, prefix) == set()


# Settings that switch off other keys.
SWITCHED: list[tuple[str, dict[str, Any]]] = [
    ("cma_mae", {"result_archive": False}),
    ("cma_mae", {"algorithm.archive.learning_rate": None, "result_archive": False}),
    ("cma_mae", {"algorithm.emitters.0.ranker": "obj"}),
    ("dds", {"algorithm.emitters.0.ranker": "obj", "algorithm.archive.bandwidth": None}),
    ("dns", {"add_mode": "single"}),
    ("map_elites", {"algorithm.archive.learning_rate": 0.1}),
    ("og_map_elites", {"measure_gradients": True}),
    ("openai_es", {"es_kwargs": {"mirror_sampling": False}}),
    ("td3", {"policy_noise": 0.0}),
    ("td3", {"noise_clip": 0.0}),
    ("td3", {"training_ratio": 0.0}),
    ("pga_me", {"gradient_fraction": 0.0}),
    ("pga_me", {"gradient_fraction": 1.0, "iso_sigma": 0.005, "line_sigma": 0.05}),
    ("pga_me", {"training_steps": 0}),
    ("impala", {"use_rms_prop": False}),
    ("apex_dqn", {"eps": 0.0}),
    ("apex_dqn", {"priority_exponent": 0.0}),
]


@pytest.mark.parametrize(("name", "switch"), SWITCHED)
def test_so_does_every_key_next_to_one_that_switches_others_off(
    name: str, switch: Any, tmp_path: Path
):
    assert idle_keys(name, tmp_path, "algorithm", **switch) == set()


DOMAINS: dict[str, dict[str, Any]] = {
    "lp_sphere": {"solution_dim": 8},
    "lp_rastrigin": {"solution_dim": 8, "num_measures": 2},
    "arm": {"solution_dim": 8},
    "cartpole": {"max_episode_steps": 30},
    "pendulum": {"max_episode_steps": 30, "evaluation_seed": "fixed"},
}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_key_of_a_domain_changes_the_result_or_is_refused(name: str, tmp_path: Path):
    keys = {"domain": {"preset": name, **DOMAINS[name]}, "batch_size": 6, "iterations": 3}
    assert idle_keys("map_elites", tmp_path, "domain", home={**SMALL, **keys}) == set()


def test_no_preset_has_a_key_without_effect():
    for name in presets("algorithms"):
        assert not dict(with_algorithm(name).idle()), name
    for name in presets("experiments"):
        assert not dict(compose(name).idle()), name


def test_a_scheduled_change_may_give_a_key_its_effect():
    keys = {"training_steps": 0, "algorithm.learner.gamma": 0.5}
    with refused("algorithm.learner.gamma = 0.5", "training_steps", "0.99"):
        refuse_idle(with_algorithm("pga_me", **keys))
    refuse_idle(with_algorithm("pga_me", **keys, schedule="2 training_steps=4"))
    with refused("algorithm.learner.gamma = 0.5"):
        refuse_idle(with_algorithm("pga_me", **keys, schedule="2 gradient_steps=4"))


# An experiment of an earlier release, with a first threshold that never had an effect.
OLD = {**SMALL, "algorithm": "cma_me", "num_emitters": 1, "threshold_min": -50.0}


def test_runs_with_such_a_key_are_found_and_reported_and_no_new_one_starts(tmp_path: Path):
    compute_sweep(Path("results"), OLD, "::: seed 1 2", name="old")
    first, _ = table_of_runs(OLD, "::: seed 1 2").runs
    config = {"name": "old", "experiment": OLD, "sweep": "::: seed 1 2"}
    start = Start(Results(Path("results")), Given(config))
    assert not start.found.unfinished, "they are finished"
    longer = Given({**config, "experiment": {**OLD, "iterations": 14}})
    assert len(Start(Results(Path("results")), longer).found.unfinished) == 2, (
        "they can be extended"
    )
    run = load(first)
    assert run.config["algorithm"]["archive"]["threshold_min"] == -50
    assert "threshold" not in algorithm("cma_me", [run.config])
    annealed = with_algorithm("cma_mae", SMALL, threshold_min=-50.0).model_dump(mode="json")
    assert "threshold -50" in algorithm("cma_mae", [annealed])
    assert "2 finished" in qdsweep("status", "old", cwd=tmp_path)
    with refused("algorithm.archive.threshold_min = -50.0", "learning_rate"):
        Start(Results(Path("results")), Given({**config, "sweep": "::: seed 1 2 3"}))
