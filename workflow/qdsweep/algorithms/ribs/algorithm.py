"""A composition of pyribs' archives and emitters as an `Algorithm`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from ribs.archives import ArrayStore
from ribs.schedulers import BanditScheduler, Scheduler

from qdsweep.algorithms.base import SEED, Algorithm, Candidates, Fields, spawn_seeds
from qdsweep.algorithms.own import call_own
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import build_archive
from qdsweep.algorithms.ribs.centroids import Centroids
from qdsweep.algorithms.ribs.emitters import (
    begins_at_random,
    build_emitter,
    can_change,
    change_emitter,
    takes_fields,
    wants_gradients,
)
from qdsweep.algorithms.ribs.result_archive import ResultArchive
from qdsweep.config.algorithm import Bandit, Composition, PluginScheduler
from qdsweep.config.emitters import EmitterKind
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.errors import BadInput


class RibsAlgorithm(Algorithm):
    """Asks and tells a scheduler of pyribs.

    Where an emitter wants gradients, an iteration has two batches: solutions with their jacobian,
    then those that follow from it.

    Args:
        ribs_scheduler: The scheduler, with its archives, emitters and generators.
        groups: Number of groups that the emitters are of, as many of each; 0 where it is unknown.
        qd_score_offset: The offset of the QD score; None for the archive's own.
    """

    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {ArrayStore: internals.reduce_store}

    def __init__(
        self, ribs_scheduler: Any, groups: int = 1, qd_score_offset: float | None = None
    ) -> None:
        self.ribs_scheduler = ribs_scheduler
        result = getattr(ribs_scheduler, "result_archive", None)
        reported = ribs_scheduler.archive if result is None else result  # an empty one is false
        self.archive: ResultArchive = ResultArchive(reported, qd_score_offset)
        pool = getattr(ribs_scheduler, "emitter_pool", None)
        self.emitters = list(getattr(ribs_scheduler, "emitters", ()) if pool is None else pool)
        self._groups = groups
        self.needs_jacobian = any(map(wants_gradients, self.emitters))
        self._batches = (True, False) if self.needs_jacobian else (False,)
        self._asked = 0

    def ask(self) -> Candidates | None:
        """Pyribs' `ask_dqd`, where an emitter wants gradients, then its `ask`."""
        if self._asked == 0 and self.needs_jacobian and self._begins_at_random():
            self._asked = 1
        if self._asked == len(self._batches):
            self._asked = 0
            return None
        gradients = self._batches[self._asked]
        self._asked += 1
        scheduler = self.ribs_scheduler
        return Candidates(scheduler.ask_dqd() if gradients else scheduler.ask(), gradients)

    def _begins_at_random(self) -> bool:
        """Whether no gradients are asked for now: pyribs gives no solutions for that."""
        asking = [emitter for emitter in self.emitters if wants_gradients(emitter)]
        return all(map(begins_at_random, asking))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Pyribs' `tell_dqd` or `tell`, with the fields that the archives have."""
        objective, measures = evaluation.objective, evaluation.measures
        fields: dict[str, Any] = {**evaluation.fields, SEED: candidates.seeds}
        # An archive of an earlier release has none for the seeds; one of the user's may lack any.
        for archive in (self.ribs_scheduler.archive, self.archive.ribs_archive):
            known = getattr(archive, "field_list", evaluation.fields)
            fields = {name: values for name, values in fields.items() if name in known}
        if candidates.gradients:
            self.ribs_scheduler.tell_dqd(objective, measures, evaluation.jacobian, **fields)
        else:
            self.ribs_scheduler.tell(objective, measures, **fields)

    def asked(self, *, gradients: bool) -> None:
        """Takes note of a batch that the scheduler was asked for before it came here."""
        self._asked = self._batches.index(gradients) + 1

    def metrics(self) -> dict[str, Any]:
        """Those of the archive, and how often emitters have restarted."""
        restarts = sum(getattr(emitter, "restarts", 0) for emitter in self.emitters)
        return {**self.archive.metrics(), "restarts": restarts}

    def change(self, key: str, value: Any) -> None:
        """The archive's learning rate, the batch size, and keys of emitters that say `mid_run`."""
        emitters: list[Any] = []
        name = "batch_size"
        match key.split("."):
            case ["algorithm", "archive", "learning_rate"]:
                archive = self.ribs_scheduler.archive
                if getattr(archive, "threshold_min", -np.inf) > -np.inf:
                    internals.change(archive, "_learning_rate", value)
                    return
            case ["batch_size"] if self._groups:
                emitters = self.emitters
            case ["algorithm", "emitters", group, *rest] if self._groups:
                count = len(self.emitters) // self._groups
                emitters = self.emitters[int(group) * count : (int(group) + 1) * count]
                name = ".".join(rest)
        if not emitters or not all(can_change(emitter, name) for emitter in emitters):
            raise BadInput(
                f"{key} cannot be changed in mid-run: neither an archive with thresholds nor an "
                "emitter has it, or it is what they are made with; an emitter of yours needs a "
                "method `change(name, value)`"
            )
        for emitter in emitters:
            change_emitter(emitter, name, value)


def make(experiment: Experiment, domain: Domain, shared: Path | None) -> RibsAlgorithm:
    """Builds the archives, emitters and scheduler of an experiment.

    Args:
        experiment: The experiment; the first child of its seed is that of everything here.
        domain: Its domain.
        shared: The folder of centroids; None for any points.
    """
    algorithm, centroids = experiment.algorithm, Centroids(shared)
    assert isinstance(algorithm, Composition)
    archive_seed, result_seed, emitter_seed = spawn_seeds(experiment, 3)
    fields: Fields = {name: (shape, np.float64) for name, shape in domain.fields.items()}
    if all(map(takes_fields, algorithm.emitters)):
        fields[SEED] = ((), np.uint32)
    archive = build_archive(algorithm.archive, experiment, domain, fields, centroids, archive_seed)
    result = None
    if algorithm.result_archive:
        reported = algorithm.reported_archive
        result = build_archive(reported, experiment, domain, fields, centroids, result_seed)
    scheduler = algorithm.scheduler
    count = algorithm.of_each_group(experiment.num_emitters)
    groups = [group for group in algorithm.emitters for _ in range(count)]
    seeds, drawn = emitter_seed.spawn(len(groups)), _drawn(groups, experiment.first_batch)
    emitters = [
        build_emitter(group, archive, experiment, domain, seed, first)
        for group, seed, first in zip(groups, seeds, drawn, strict=True)
    ]
    if isinstance(scheduler, Bandit):
        made: Any = BanditScheduler(
            archive,
            emitters,
            result,
            num_active=experiment.num_emitters,
            reselect=scheduler.reselect,
            zeta=scheduler.zeta,
            add_mode=algorithm.add_mode,
        )
    elif isinstance(scheduler, PluginScheduler):
        made = call_own(
            "algorithm.scheduler",
            scheduler.type,
            scheduler.arguments,
            {"add_mode": algorithm.add_mode},
            (archive, emitters, result),
        )
    else:
        made = Scheduler(archive, emitters, result, add_mode=algorithm.add_mode)
    offset = domain.objective_range[0]
    return RibsAlgorithm(made, groups=len(algorithm.emitters), qd_score_offset=offset)


def _drawn(groups: Sequence[EmitterKind], total: int | None) -> list[int]:
    """Returns the size of each emitter's random first batch; `total` is shared equally."""
    if total is None:
        return [getattr(group, "initial_solutions", 0) for group in groups]
    drawing = [n for n, group in enumerate(groups) if group.draws_first]
    sizes = [0] * len(groups)
    for place, n in enumerate(drawing):  # the first ones get the rest
        sizes[n] = total // len(drawing) + (place < total % len(drawing))
    return sizes
