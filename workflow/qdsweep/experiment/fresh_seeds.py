"""Evaluates elites again with fresh seeds, and finds out whether evaluations depend on their seed.

A search keeps a solution for one lucky evaluation where they do (Flageat and Cully, Uncertain
Quality-Diversity, arXiv:2302.00463).
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import SEED, Arrays
from qdsweep.config.experiment import Experiment
from qdsweep.config.sweep import Reevaluate
from qdsweep.domains.base import Domain, Floats, Seeds
from qdsweep.domains.normalizer import context_of
from qdsweep.engines.batch import Batch, Engine
from qdsweep.errors import BadInput
from qdsweep.experiment.stop import OUT_OF_TIME, Interrupted, Stop
from qdsweep.files import atomic
from qdsweep.records.results import UNKNOWN, Stochastic

log = logging.getLogger("qdsweep")

# Elites that are evaluated again after a run.
CHECKED_ELITES = 32
# Solutions per batch: enough for many workers, but few enough for the memory.
_BATCH = 4096


def find_noise(
    experiment: Experiment,
    domain: Domain,
    elites: Callable[[], Arrays],
    engine: Engine,
    stop: Stop,
    path: Path,
) -> Stochastic:
    """Returns whether evaluations of a run's elites depend on their seed.

    At most `CHECKED_ELITES` of them get one more evaluation, in no budget. An error changes no
    result.

    Args:
        experiment: The run's experiment.
        domain: Its domain.
        elites: Returns them, as archive.npz has them.
        engine: The run's engine.
        stop: Decides when to stop before the end.
        path: The file for the evaluations.

    Raises:
        Interrupted: A signal asked the run to stop.
    """
    if experiment.domain.is_deterministic or getattr(domain, "is_deterministic", None) is True:
        return False
    rows = elites()
    count = len(rows["objective"])
    if not count:
        return UNKNOWN
    try:
        chosen = np.unique(
            np.linspace(0, count - 1, min(count, CHECKED_ELITES)).round().astype(np.int64)
        )
        log.info("%d elites are evaluated again with fresh seeds, in no budget", len(chosen))
        sequence = np.random.SeedSequence(experiment.seed, spawn_key=(3,))
        seeds = sequence.generate_state(len(chosen)).astype(np.uint32)
        some = {name: values[chosen] for name, values in rows.items()}
        contexts = elite_contexts(domain, some, experiment.domain.name)
        evaluate = partial(_evaluate, some["solution"], contexts, engine, stop, experiment.timeout)
        again, before = evaluate(seeds), _results(some)
        differs = (again != before).any(axis=1)
        if differs.any() and SEED in some:
            # An algorithm may keep a mean instead of an evaluation, so its own seed decides.
            before = evaluate(some[SEED].astype(np.uint32))
            differs = (again != before).any(axis=1)
        known = ~np.isnan(again + before).any(axis=1)
        if not known.any():
            return UNKNOWN
        stochastic = bool(differs[known].any())
        write_noise(path, chosen, seeds, again, stochastic)
        return stochastic
    except Interrupted:
        if stop.reason != OUT_OF_TIME:
            raise
        log.warning("not known whether evaluations depend on their seed: the wall time ends")
        return UNKNOWN
    except Exception as error:
        log.warning("not known whether evaluations depend on their seed: %s", error)
        return UNKNOWN


def write_noise(
    path: Path, rows: NDArray[np.int64], seeds: Seeds, results: Floats, stochastic: bool
) -> None:
    """Writes the evaluations of some elites with fresh seeds.

    Args:
        path: The file.
        rows: ``(k,)`` rows of archive.npz.
        seeds: ``(k,)`` their fresh seeds.
        results: ``(k, 1 + m)`` objective and measures with these seeds.
        stochastic: Whether evaluations depend on their seed.
    """
    with atomic(path) as file:
        np.savez_compressed(
            file,
            row=rows,
            evaluation_seed=seeds,
            objective=results[:, 0],
            measures=results[:, 1:],
            stochastic=np.array(stochastic),
        )


def _results(rows: Arrays) -> Floats:
    """Returns ``(k, 1 + m)`` objective and measures."""
    return np.column_stack([rows["objective"], rows["measures"]]).astype(np.float64)


def fresh_seeds(settings: Reevaluate, run: str, elites: int) -> Seeds:
    """Returns the evaluation seeds of all repeats of all elites, ``(times * n,)`` uint32.

    They depend only on the seed, the run, the repeat and the elite; common ones not on the run.
    Runs with seeds of their own are independent, as tests of groups assume. The spawn keys differ
    from those of a search, (0,) and (1, t), so an elite never gets its old seed, even with the same
    `seed`.
    """
    entropy = [settings.seed]
    if not settings.common:
        entropy.append(int.from_bytes(hashlib.sha256(run.encode()).digest()))
    repeats = [
        np.random.SeedSequence(entropy, spawn_key=(2, repeat)).generate_state(elites)
        for repeat in range(settings.times)
    ]
    return np.concatenate(repeats).astype(np.uint32)


def _evaluate(
    solutions: Floats,
    contexts: Floats | None,
    engine: Engine,
    stop: Stop,
    timeout: float | None,
    seeds: Seeds,
) -> Floats:
    """Evaluates some solutions with other seeds.

    Args:
        solutions: ``(k, d)`` solutions.
        contexts: ``(k, c)`` context of each, or None.
        engine: Evaluates them.
        stop: Decides when to stop before the end.
        timeout: The longest time of an evaluation [s].
        seeds: ``(k,)`` seeds.

    Returns:
        ``(k, 1 + m)`` objective and measures; NaN where an evaluation has failed.
    """
    results: Floats = np.empty((len(seeds), 0))
    for rows, batch in batches(np.arange(len(seeds)), solutions, seeds, contexts):
        with stop.interruptible(timeout):
            for part, outcome in engine.evaluate(batch, [slice(0, len(rows))]):
                stop.progress()
                values = _results(outcome.evaluation._asdict())
                values[[failure.row - part.start for failure in outcome.failures]] = np.nan
                if not results.size:
                    results = np.full((len(seeds), values.shape[1]), np.nan)
                results[rows[part]] = values
    return results


def elite_contexts(domain: Domain, arrays: Arrays, name: str) -> Floats | None:
    """Returns the context of each elite's evaluation, ``(n, k)``; None for most domains.

    Args:
        domain: The domain.
        arrays: The arrays of archive.npz, or some rows of them.
        name: The domain's name.

    Raises:
        BadInput: The archive does not contain it.
    """
    if not hasattr(domain, "context_dim"):
        return None
    if not {"observation_mean", "observation_std"} <= arrays.keys():
        raise BadInput(
            f"the domain {name} learns from all evaluations of a run, and archive.npz does not "
            "contain its state at the evaluation of each elite (observation_mean, "
            "observation_std). Such elites cannot be evaluated again: remove the key reevaluate"
        )
    return context_of(arrays["observation_mean"], arrays["observation_std"])


def batches(
    missing: NDArray[np.int64], solutions: Floats, seeds: Seeds, contexts: Floats | None
) -> Iterator[tuple[NDArray[np.int64], Batch]]:
    """Divides the missing evaluations into batches, each with one context.

    Args:
        missing: ``(k,)`` rows of the samples.
        solutions: ``(n, d)`` solutions of the elites.
        seeds: ``(times * n,)`` evaluation seeds.
        contexts: ``(n, c)`` context of each elite, or None.

    Yields:
        Rows of the samples, and their batch.
    """
    elites = len(solutions)
    groups = [missing]
    if contexts is not None:
        _, kinds = np.unique(contexts, axis=0, return_inverse=True)
        kind = kinds.ravel()[missing % elites]
        order = np.argsort(kind, kind="stable")
        groups = np.split(missing[order], np.flatnonzero(np.diff(kind[order])) + 1)
    for group in groups:
        for start in range(0, len(group), _BATCH):
            rows = group[start : start + _BATCH]
            which = rows % elites
            context = None if contexts is None else contexts[which[0]]
            yield rows, Batch(solutions[which], seeds[rows], context=context)
