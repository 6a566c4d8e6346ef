"""Experiments that tests compose."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support import REPO

from qdsweep.config.compose import compose, read_part
from qdsweep.config.experiment import Experiment
from qdsweep.config.families import Composition
from qdsweep.config.family import FORMER
from qdsweep.config.files import find_preset, read_yaml
from qdsweep.config.requirements import require_packages_of
from qdsweep.errors import BadInput
from qdsweep.features.rl.settings import ValueBased

CONFIG = REPO / "config"


# A small, complete experiment, of which tests change one key.
BASE: dict[str, Any] = {
    "domain": {"preset": "lp_sphere", "solution_dim": 10},
    "algorithm": "cma_me",
    "archive": {"dims": [5, 5]},
    "iterations": 3,
}


# Two experiments whose ids are equal for seed 1: the first ten digits of their fingerprints are.
COLLIDING: dict[str, Any] = {**BASE, "num_emitters": 1, "batch_size": 10, "iterations": 5}
SIGMAS = ("2.121426", "2.126263")
ONE_ID = "lp_sphere-cma_me-s1-6d8b6ec2d1"


def presets(kind: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG / kind).glob("*.yaml"))


# Values that make a learner fast enough for a test, if an algorithm has these keys.
QUICK = {
    "training_steps": 4,
    "training_ratio": 0.05,
    "gradient_minibatch": 16,
    "gradient_observations": 32,
    "evaluate_every": 1,
    "train_freq": 100,
    "learning_starts": 50,
}
LEARNER = {"critic_hidden": [16, 16], "minibatch": 16}


@contextmanager
def skipped_if_missing() -> Iterator[None]:
    """Skips the test with the remedy if a package is missing."""
    try:
        yield
    except BadInput as missing:
        pytest.skip(str(missing))


def installed(experiment: Experiment) -> Experiment:
    """Returns the experiment. If it needs a missing package, the test is skipped."""
    with skipped_if_missing():
        require_packages_of(experiment)
    return experiment


def with_algorithm(name: str, home: Any = "lp_sphere", **changes: Any) -> Experiment:
    """Returns an experiment with an algorithm, on short episodes if it learns from steps."""
    part = read_part("algorithm", read_yaml(find_preset("algorithms", name)))
    own: dict[str, Any] = {} if isinstance(part, Composition) else {"num_emitters": 1}
    if part.needs_experience:
        home = read_yaml(find_preset("experiments", home)) if isinstance(home, str) else home
        preset = "rl_cartpole" if isinstance(part, ValueBased) else "pendulum"
        home = {**home, "domain": {"preset": preset, "max_episode_steps": 20}}
        own |= LEARNER if hasattr(part, "learner") else {}
        own |= {key: value for key, value in QUICK.items() if key in type(part).model_fields}
    return compose(home, {"algorithm": name, **own, **changes}, source="test")


def before_its_renaming(name: str) -> dict[str, Any]:
    """Returns a renamed preset with the name and the title of earlier releases."""
    return read_yaml(find_preset("algorithms", name)) | FORMER[name]._asdict()


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` with changed keys; None removes a key."""
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def emitter(**keys: Any) -> dict[str, Any]:
    return {"archive": {"type": "grid"}, "emitters": [keys]}
