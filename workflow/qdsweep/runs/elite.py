"""An elite of a finished run, and the seed of its evaluation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.algorithms.base import Arrays
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Floats, Seeds
from qdsweep.errors import BadInput
from qdsweep.experiment.fresh_seeds import elite_contexts
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.records.archive import SEED, field_names
from qdsweep.records.history import read_history
from qdsweep.records.paths import RunFiles

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Elite:
    """An elite, that is, one row of archive.npz. The names are those of pyribs' elites.

    Attributes:
        row: The number of its row, from 0.
        index: The number of its cell.
        solution: ``(d,)`` parameters.
        objective: The objective, in the domain's own scale.
        measures: ``(m,)`` measures.
        evaluation_seed: The seed of its evaluation. It is None in a run of an earlier release, or
            of an own algorithm that does not keep it; use `Run.seed_of` there.
        fields: Name -> value of its other fields, which come from the domain.

    Example:
        >>> from qdsweep import load  # after `make demo`
        >>> run = load("cma_me, seed 1")
        >>> elite = run.best()
        >>> elite.solution.shape, elite.measures.shape, elite.evaluation_seed
        ((32,), (2,), 52)
        >>> elite.objective == run.archive.best_elite["objective"]
        np.True_
    """

    row: int
    index: int
    solution: Floats
    objective: float
    measures: Floats
    evaluation_seed: int | None
    fields: dict[str, Any]


def elite_of(arrays: Arrays, row: int) -> Elite:
    """Returns the elite of a row of archive.npz."""
    fields = {name: arrays[name][row] for name in field_names(arrays)}
    seed = fields.pop(SEED, None)
    return Elite(
        row,
        int(arrays["index"][row]),
        arrays["solution"][row],
        float(arrays["objective"][row]),
        arrays["measures"][row],
        None if seed is None else int(seed),
        fields,
    )


def possible_seeds(
    experiment: Experiment, elite: Elite, files: RunFiles, metrics: "pd.DataFrame"
) -> Seeds:
    """Returns the possible seeds of an elite's evaluation.

    The history has the iteration of the elite, but not its row in the batches of the iteration.

    Args:
        experiment: The experiment of its run.
        elite: The elite.
        files: The run's files, with its history.
        metrics: The run's metrics.

    Returns:
        ``(k,)`` seeds, one of which is the elite's. There are none if the iteration is unknown.
    """
    domain = experiment.domain
    policy = domain.evaluation_seed
    if isinstance(policy, int) or policy == "fixed" or domain.is_deterministic:
        return evaluation_seeds(policy, experiment.seed, 0, 0, 1)
    history = read_history(files)
    in_cell = [] if history is None else np.flatnonzero(history.index == elite.index).tolist()
    if history is None or not in_cell or history.objective[in_cell[-1]] != elite.objective:
        return np.empty(0, np.uint32)
    iteration = int(history.iteration[in_cell[-1]]) - 1  # seeds count iterations from 0
    evaluations = np.concatenate(([0], metrics["evaluations"].to_numpy(np.int64)))
    size = int(evaluations[iteration + 1] - evaluations[iteration])
    count = size if policy == "solution" else 1
    return evaluation_seeds(policy, experiment.seed, iteration, 0, count)


def context_for(domain: Domain, elite: Elite | None, name: str) -> Floats | None:
    """Returns the context with which a domain evaluated an elite; None for most domains.

    Args:
        domain: The domain.
        elite: The elite.
        name: The domain's name.

    Raises:
        BadInput: The domain has a context, and no elite is given.
    """
    if elite is None:
        if hasattr(domain, "context_dim"):
            raise BadInput(
                f"the domain {name} normalises observations: also pass the elite whose "
                "normalisation to use, such as run.evaluate(solutions, seeds, run.best())"
            )
        return None
    fields = {key: np.asarray(value)[np.newaxis] for key, value in elite.fields.items()}
    contexts = elite_contexts(domain, fields, name)
    return None if contexts is None else contexts[0]


def describe_nearest(arrays: Arrays, point: Floats, ranges: list[tuple[float, float]]) -> str:
    """Returns a description of the elites whose measures are nearest to a point.

    Args:
        arrays: The arrays of archive.npz.
        point: ``(m,)`` measures.
        ranges: The measures' ranges, which are the units of the distance. Measures outside of them
            are shown at the edge, where `Run.at` finds the elite.
    """
    low, high = np.array(ranges).T
    distance = np.square((arrays["measures"] - point) / (high - low)).sum(axis=1)
    return "; ".join(
        f"{said(np.clip(arrays['measures'][row], low, high))} "
        f"(objective {arrays['objective'][row]:.6g})"
        for row in np.argsort(distance, kind="stable")[:3]
    )


def said(measures: Floats) -> str:
    """Returns measures in the form of the command line."""
    return ",".join(f"{value:.4g}" for value in measures)
