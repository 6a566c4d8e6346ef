"""Plays learning algorithms batch by batch, and learners of reinforcement learning directly."""

import hashlib
import pickle
from collections import deque

import numpy as np
import pytest
from composing import with_algorithm
from pydantic import BaseModel
from small_runs import StopsAfter, digest_of, fresh, payload_of

from qdsweep.algorithms import make_algorithm
from qdsweep.config.cluster import Cluster
from qdsweep.domains import make_domain
from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Actor, Record
from qdsweep.engines import make_engine
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Interrupted, Stop

BREAKOUT = {
    "preset": "atari_breakout",
    "observation": "screen",
    "pixels": "bytes",
    "policy": {"type": "convolutional"},
    "max_frames": 60,
}
ACTOR = Actor(((8, 4), (2, 8)), True, "relu", None, None, discrete=True)
SCREENS = Actor(
    ((8, 64), (2, 8)),
    True,
    "relu",
    None,
    None,
    discrete=True,
    image=(2, 9, 9),
    convolutions=((4, 3, 2),),
)
BOUND = np.ones(2)
CONTINUOUS = Actor(((8, 4), (2, 8)), True, "tanh", -BOUND, BOUND)
ACTORS = {"vectors": ACTOR, "screens": SCREENS, "continuous": CONTINUOUS}
# Minibatches of 8, and of what is left of 3 episodes.
KEYS = {
    "ppo": {"n_epochs": 2, "vf_hidden": [6], "ent_coef": 0.01, "decay_steps": 500},
    "a2c": {"vf_hidden": [6], "normalize_advantage": True, "ent_coef": 0.01},
    "impala": {"vf_hidden": [6], "n_steps": 5, "ent_coef": 0.01},
    "dqn": {"n_steps": 2, "target_update_interval": 20, "gamma": 0.9},
    "apex_dqn": {"n_steps": 2, "target_update_interval": 20, "gamma": 0.9},
}


def made(preset="dqn", actor=ACTOR, **settings):
    """Returns a small learner of a preset that trains often."""
    quick = {"train_freq": 10, "gradient_steps": 3, "minibatch": 8, "learning_starts": 0}
    own = quick if "dqn" in preset else {"minibatch": 8}
    experiment = with_algorithm(preset, **{**own, **settings})
    made = make_algorithm(experiment, make_domain(experiment.domain), None)
    return made.learner_type(actor, made.settings, np.random.SeedSequence(3))


def tell(algorithm, domain, candidates, first_seed=0):
    """Evaluates a batch, passes the results to the algorithm, and returns them."""
    seeds = first_seed + np.arange(len(candidates.solutions), dtype=np.uint32)
    options = {"experience": True} if candidates.experience else {}
    if candidates.exploration is not None:
        options["exploration"] = candidates.exploration
    evaluation = domain.evaluate(candidates.solutions, seeds, **options)
    algorithm.tell(candidates._replace(seeds=seeds), evaluation)
    return evaluation


def episode(steps, seed=0, end=TERMINATED):
    """Returns a record with arbitrary numbers."""
    rng = np.random.default_rng(seed)
    ends = np.full(steps, GOES_ON, np.uint8)
    ends[-1] = end
    return Record(
        rng.normal(size=(steps + 1, 4)).astype(np.float32),
        np.eye(2, dtype=np.float32)[rng.integers(0, 2, steps)],
        rng.normal(size=steps).astype(np.float32),
        ends,
    )


def content(value):
    """Returns the state of an object as texts, numbers and bytes, which can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, content(item)) for key, item in value.items()]
    if isinstance(value, list | tuple | deque):
        return [content(item) for item in value]
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if type(value).__module__.startswith("qdsweep.features"):
        own = type(value).__getstate__ is not object.__getstate__
        return content(value.__getstate__() if own else vars(value))
    return repr(value)


def outcome(state):
    """The results of all random numbers, episodes and updates of a run."""
    algorithm = state.algorithm
    parts = [algorithm.learner, algorithm.tokens, algorithm.returns, algorithm.metrics()]
    learned = hashlib.sha256(repr(content(parts)).encode()).hexdigest()
    return digest_of(state), learned, state.steps, state.failures


def resumed_equals_straight(exp, stops, workers, folder):
    """Stops a run after some rows, and resumes it with workers: it is the same as a straight run.

    Returns:
        The state of the straight run.
    """
    straight, engine = fresh(exp, folder)
    scored = engine.objective_on_failure = exp.on_failure and exp.on_failure.objective
    run_loop(exp, straight, engine, Stop(), lambda *_: None)
    expected = outcome(straight)
    cluster = Cluster(engine="processes", workers_per_node=workers)
    pool = make_engine(cluster, exp, engine.domain, None, None, {})
    try:
        for rows in stops:
            (state, _), stop = fresh(exp, folder), Stop()
            with pytest.raises(Interrupted):
                stopping = StopsAfter(engine.domain, stop, rows, scored=scored)
                run_loop(exp, state, stopping, stop, lambda *_: None)
            np.random.seed()  # another process
            state = pickle.loads(payload_of(state))
            pool.wait()
            run_loop(exp, state, pool, Stop(), lambda *_: None)
            assert outcome(state) == expected, rows
    finally:
        pool.close()
    return straight


def record(kind: str, seed: int, steps: int) -> Record:
    """An episode of vectors or of screens, which terminates or is truncated."""
    one = episode(steps, seed, (TERMINATED, CUT)[seed % 2])
    if kind == "screens":
        frames = np.random.default_rng(seed).integers(0, 256, (steps + 1, 81), np.uint8)
        one = one._replace(observations=frames)
    return one


def trained(name: str, kind: str, **keys):
    """A learner after two iterations of three episodes."""
    learner = made(name, ACTORS[kind], **{**KEYS[name], **keys})
    for iteration in range(2):
        learner.learn([record(kind, 3 * iteration + seed, 11 + seed) for seed in range(3)])
    return learner


def weights_digest(learner) -> str:
    """The hash of the weights and of the optimiser's moments."""
    weights, optimizer = learner.__getstate__()["model"]
    moments = [state for _, state in sorted(optimizer["state"].items())]
    parts = [value for part in (weights, *moments) for _, value in sorted(part.items())]
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()[:16]
