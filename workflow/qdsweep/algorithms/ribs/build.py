"""Builds pyribs' archive, emitters and scheduler from the config."""

from typing import Any, Protocol

import numpy as np
import ribs.emitters
from ribs.archives import (
    ArchiveBase,
    CVTArchive,
    DNSArchive,
    GridArchive,
    ProximityArchive,
    SlidingBoundariesArchive,
)
from ribs.emitters import EmitterBase
from ribs.schedulers import BanditScheduler, Scheduler

from qdsweep.algorithms.ribs.centroids import Centroids
from qdsweep.config import archives
from qdsweep.config.algorithm import Bandit
from qdsweep.config.emitters import GradientArborescence, GradientOperator, PluginEmitter
from qdsweep.config.experiment import Experiment
from qdsweep.config.plugin import load_class
from qdsweep.domains.base import Domain, Floats
from qdsweep.errors import BadInput

EMITTERS = {
    "gaussian": ribs.emitters.GaussianEmitter,
    "iso_line": ribs.emitters.IsoLineEmitter,
    "evolution_strategy": ribs.emitters.EvolutionStrategyEmitter,
    "gradient_arborescence": ribs.emitters.GradientArborescenceEmitter,
    "gradient_operator": ribs.emitters.GradientOperatorEmitter,
}


class RibsScheduler(Protocol):
    """What the loop needs of a pyribs scheduler (see the pyribs documentation)."""

    archive: ArchiveBase
    result_archive: ArchiveBase

    def ask(self) -> Floats:
        """Solutions to evaluate."""
        ...

    def ask_dqd(self) -> Floats:
        """Solutions to evaluate with their gradients."""
        ...

    def tell(self, objective: Floats, measures: Floats, **fields: Any) -> None:
        """Inserts evaluated solutions and adapts the emitters."""
        ...

    def tell_dqd(
        self, objective: Floats, measures: Floats, jacobian: Floats, **fields: Any
    ) -> None:
        """The same, for solutions of `ask_dqd`."""
        ...


def build_scheduler(experiment: Experiment, domain: Domain, centroids: Centroids) -> RibsScheduler:
    """Builds the algorithm of an experiment, seeded from the first child of its seed.

    Args:
        experiment: The experiment.
        domain: Its domain.
        centroids: Gives the centroids of a CVT archive.

    Raises:
        BadInput: The algorithm does not fit the domain.
    """
    algorithm = experiment.algorithm
    if algorithm.needs_jacobian and not hasattr(domain, "jacobian"):
        raise BadInput(
            f"algorithm {algorithm.name} needs gradients, but the domain "
            f"{experiment.domain.name} has no jacobian method"
        )
    root = np.random.SeedSequence(experiment.seed, spawn_key=(0,))
    archive_seed, result_seed, emitter_seed = root.spawn(3)
    archive = build_archive(experiment, domain, centroids, archive_seed)
    result = None
    if algorithm.result_archive:
        result = build_result_archive(experiment, domain, centroids, result_seed)
    arguments: dict[str, Any] = {"add_mode": algorithm.add_mode}
    scheduler = algorithm.scheduler
    if isinstance(scheduler, Bandit):
        counts = experiment.num_emitters
        arguments |= {
            "num_active": experiment.num_emitters,
            "reselect": scheduler.reselect,
            "zeta": scheduler.zeta,
        }
    else:
        counts = experiment.num_emitters // len(algorithm.emitters)
    groups = [group for group in algorithm.emitters for _ in range(counts)]
    seeds = emitter_seed.spawn(len(groups))
    emitters = [
        _emitter(group, archive, experiment, domain, seed)
        for group, seed in zip(groups, seeds, strict=True)
    ]
    kind = BanditScheduler if isinstance(scheduler, Bandit) else Scheduler
    return kind(archive, emitters, result, **arguments)


def import_plugins(experiment: Experiment) -> None:
    """Imports the user's emitters, which a reload file can only name."""
    for group in experiment.algorithm.emitters:
        if isinstance(group, PluginEmitter):
            load_class(group.type)


def build_archive(
    experiment: Experiment,
    domain: Domain,
    centroids: Centroids,
    seed: np.random.SeedSequence | None = None,
) -> ArchiveBase:
    """Builds the archive that the emitters search with."""
    archive = experiment.algorithm.archive
    common = _common(domain) | {"seed": seed}
    match archive:
        case archives.GridArchive():
            return GridArchive(
                dims=experiment.archive.dims,
                ranges=_ranges(domain),
                **_threshold(archive, domain),
                **common,
            )
        case archives.CVTArchive():
            return CVTArchive(
                centroids=centroids.get(archive, experiment.archive.size, _ranges(domain)),
                ranges=_ranges(domain),
                **_threshold(archive, domain),
                **common,
            )
        case archives.SlidingBoundariesArchive():
            return SlidingBoundariesArchive(
                dims=experiment.archive.dims,
                ranges=_ranges(domain),
                remap_frequency=archive.remap_frequency,
                buffer_capacity=archive.buffer_capacity,
                **common,
            )
        case archives.ProximityArchive():
            return ProximityArchive(
                measure_dim=len(domain.measures),
                k_neighbors=archive.k_neighbors,
                novelty_threshold=archive.novelty_threshold,
                local_competition=archive.local_competition,
                **common,
            )
        case archives.DNSArchive():
            return DNSArchive(
                measure_dim=len(domain.measures),
                capacity=experiment.archive.size,
                k_neighbors=archive.k_neighbors,
                **common,
            )


def build_result_archive(
    experiment: Experiment,
    domain: Domain,
    centroids: Centroids,
    seed: np.random.SeedSequence | None = None,
) -> ArchiveBase:
    """Builds the archive that a run's results are of: elitist, without thresholds."""
    archive = experiment.algorithm.archive
    if not experiment.algorithm.result_archive:
        return build_archive(experiment, domain, centroids, seed)
    common = _common(domain) | {"seed": seed, "ranges": _ranges(domain)}
    if isinstance(archive, archives.CVTArchive):
        cells = centroids.get(archive, experiment.archive.size, _ranges(domain))
        return CVTArchive(centroids=cells, **common)
    return GridArchive(dims=experiment.archive.dims, **common)


def _common(domain: Domain) -> dict[str, Any]:
    return {
        "solution_dim": domain.solution_dim,
        "qd_score_offset": domain.objective_range[0],
        "extra_fields": {name: (shape, np.float64) for name, shape in domain.fields.items()},
    }


def _ranges(domain: Domain) -> list[tuple[float, float]]:
    return list(domain.measures.values())


def _threshold(
    archive: archives.GridArchive | archives.CVTArchive, domain: Domain
) -> dict[str, float | None]:
    """CMA-MAE's annealing (Fontaine & Nikolaidis 2023, eq. 2); none without a learning rate."""
    if archive.learning_rate is None:
        return {}
    lowest = archive.threshold_min
    return {
        "learning_rate": archive.learning_rate,
        "threshold_min": domain.objective_range[0] if lowest is None else lowest,
    }


def _emitter(
    group: Any,
    archive: ArchiveBase,
    experiment: Experiment,
    domain: Domain,
    seed: np.random.SeedSequence,
) -> EmitterBase:
    """Builds one emitter: the config's keys are the arguments of pyribs' class."""
    arguments: dict[str, Any] = {
        "x0": domain.x0,
        "batch_size": experiment.batch_size,
        "seed": seed,
    }
    if isinstance(group, PluginEmitter):
        return load_class(group.type)(archive, **arguments, **group.arguments)
    arguments |= group.model_dump(exclude={"type", "bounds", "initial_solutions"})
    for sigma in ("sigma", "sigma0", "iso_sigma"):
        if sigma in arguments and arguments[sigma] is None:
            arguments[sigma] = domain.step
    if group.bounds is not None:
        arguments["bounds"] = [group.bounds] * domain.solution_dim
    if getattr(group, "initial_solutions", 0):
        first_seed, arguments["seed"] = seed.spawn(2)
        noise = np.random.default_rng(first_seed).standard_normal(
            (group.initial_solutions, domain.solution_dim)
        )
        arguments["initial_solutions"] = arguments.pop("x0") + noise
    # `batch_size` counts the solutions that are asked for gradients too.
    if isinstance(group, GradientArborescence):
        arguments["batch_size"] -= 1
    if isinstance(group, GradientOperator):
        arguments["batch_size"] //= 2
    return EMITTERS[group.type](archive, **arguments)
