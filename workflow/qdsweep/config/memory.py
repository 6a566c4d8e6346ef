"""Sizes of an experiment that do not fit in memory: its archive, emitters and solutions."""

from collections.abc import Iterator
from itertools import pairwise

from qdsweep.config.archive_kinds import CVTArchive, DensityArchive, DiscountArchive, PluginArchive
from qdsweep.config.emitters import EvolutionStrategy
from qdsweep.config.experiment import Experiment
from qdsweep.config.families import Composition
from qdsweep.host.machine import grants_all, require_memory

_NUMBER = 8  # a float64 [bytes]
# A lower bound for each one [bytes]; the smallest emitter was measured at 500.
_EMITTER = 400
_TRANSITION = 28  # of a replay buffer: two observations of one number, action, reward and end
_WEIGHT = 12  # with its gradient and one moment of the optimiser, in float32


def require_memory_of(
    experiment: Experiment, solution_dim: int | None = None, *, anywhere: bool = False
) -> None:
    """Refuses an experiment whose archive, emitters or solutions cannot fit in memory.

    The check compares their smallest possible sizes, so it accepts all that has ever run.

    Args:
        experiment: The experiment.
        solution_dim: Parameters of a solution, where the domain's code has computed them.
        anywhere: Whether it may be computed on another machine than this one.

    Raises:
        BadInput: They cannot; the message names the keys.
    """
    dim = solution_dim or experiment.domain.known_solution_dim or 1
    for size, label in _arrays(experiment, dim):
        require_memory(size, label, anywhere=anywhere)
    for cells, label in _archives(experiment):
        # pyribs allocates it as a whole, and fills one row at a time.
        amount = f"{cells:,} solutions of {dim:,} parameter(s)"
        text = f"{label}: an archive with {amount}"
        require_memory(_NUMBER * cells * dim, text, anywhere=anywhere or grants_all())


def _archives(experiment: Experiment) -> Iterator[tuple[int, str]]:
    """Yields the cells of an archive that pyribs makes, and their key."""
    algorithm, archive = experiment.algorithm, experiment.archive
    kinds = [getattr(algorithm, "archive", None), algorithm.reported_archive]
    if any(kind and kind.cells and not isinstance(kind, PluginArchive) for kind in kinds):
        key = "cells" if archive.dims is None else "dims"
        yield archive.size, f"archive.{key} = {getattr(archive, key)}"


def _arrays(experiment: Experiment, dim: int) -> Iterator[tuple[int, str]]:
    """Yields sizes of arrays filled in each iteration or at the start [bytes], and their keys."""
    algorithm, emitters = experiment.algorithm, experiment.num_emitters
    sizes = f"num_emitters = {emitters}, batch_size = {experiment.batch_size}"
    solutions = emitters * experiment.batch_size
    unit = f"solutions of {dim:,} parameter(s) in an iteration"
    yield _NUMBER * solutions * dim, f"{sizes}: {solutions:,} {unit}"
    first = experiment.first_iteration
    key = "initial_solutions of the emitters"
    if (greedy := getattr(algorithm, "evaluation_episodes", None)) is not None:
        key = f"algorithm.evaluation_episodes = {greedy}"
    if experiment.first_batch is not None:
        key = f"first_batch = {experiment.first_batch}"
    yield _NUMBER * first * dim, f"{key}: {first:,} {unit}"
    yield _EMITTER * emitters, f"num_emitters = {emitters}: this number of emitters"
    for key, count in algorithm.buffers.items():
        size = _TRANSITION + experiment.domain.observation_bytes
        yield size * count, f"algorithm.{key} = {count}: this number of transitions"
    archive = getattr(algorithm, "archive", None)
    networks = dict(algorithm.networks)
    if isinstance(archive, DiscountArchive):
        networks["archive.model_hidden"] = archive.model_hidden
    for key, hidden in networks.items():
        weights = sum(ins * outs for ins, outs in pairwise((1, *hidden, 1)))
        yield _WEIGHT * weights, f"algorithm.{key} = {hidden}: a network of such layers"
    if isinstance(algorithm, Composition):
        for number, emitter in enumerate(algorithm.emitters):
            if isinstance(emitter, EvolutionStrategy) and emitter.es == "cma_es":
                label = f"algorithm.emitters.{number}.es = cma_es: a matrix of {dim:,} x {dim:,}"
                yield _NUMBER * dim**2, f"{label} numbers (sep_cma_es has none)"
    if isinstance(archive, DensityArchive):
        size = archive.buffer_size
        yield _NUMBER * size, f"algorithm.archive.buffer_size = {size}: this number of points"
    if isinstance(algorithm.reported_archive, CVTArchive):
        samples = algorithm.reported_archive.samples
        yield _NUMBER * samples, f"algorithm.archive.samples = {samples}: this number of points"
