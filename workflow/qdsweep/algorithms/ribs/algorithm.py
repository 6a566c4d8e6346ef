"""A composition of pyribs' archives and emitters as an `Algorithm`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from ribs.archives import ArrayStore
from ribs.schedulers import BanditScheduler, Scheduler

from qdsweep.algorithms.base import SEED, Algorithm, Candidates
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import Fields, build_archive
from qdsweep.algorithms.ribs.centroids import Centroids
from qdsweep.algorithms.ribs.emitters import CHANGEABLE, build_emitter, kind_of, takes_fields
from qdsweep.algorithms.ribs.result_archive import ResultArchive
from qdsweep.config.algorithm import Bandit, Composition
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
    """

    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {ArrayStore: internals.reduce_store}

    def __init__(self, ribs_scheduler: Scheduler | BanditScheduler, groups: int = 1) -> None:
        self.ribs_scheduler = ribs_scheduler
        self.archive: ResultArchive = ResultArchive(ribs_scheduler.result_archive)
        pool = getattr(ribs_scheduler, "emitter_pool", None)
        self.emitters = list(ribs_scheduler.emitters if pool is None else pool)
        self._groups = groups
        kinds = [kind_of(emitter) for emitter in self.emitters]
        gradients = any(kind is not None and kind.model.needs_jacobian for kind in kinds)
        self._batches = (True, False) if gradients else (False,)
        self._asked = 0

    def ask(self) -> Candidates | None:
        """Pyribs' `ask_dqd`, where an emitter wants gradients, then its `ask`."""
        if self._asked == len(self._batches):
            self._asked = 0
            return None
        gradients = self._batches[self._asked]
        self._asked += 1
        scheduler = self.ribs_scheduler
        return Candidates(scheduler.ask_dqd() if gradients else scheduler.ask(), gradients)

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Pyribs' `tell_dqd` or `tell`, with the domain's fields and the evaluation seeds."""
        objective, measures = evaluation.objective, evaluation.measures
        fields: dict[str, Any] = dict(evaluation.fields)
        if self._keeps_seeds():
            fields[SEED] = candidates.seeds
        if candidates.gradients:
            self.ribs_scheduler.tell_dqd(objective, measures, evaluation.jacobian, **fields)
        else:
            self.ribs_scheduler.tell(objective, measures, **fields)

    def _keeps_seeds(self) -> bool:
        """Whether the archives have a field for them: those of an earlier release have none."""
        archives = self.ribs_scheduler.archive, self.ribs_scheduler.result_archive
        return all(SEED in each.field_list for each in archives)

    def asked(self, *, gradients: bool) -> None:
        """Takes note of a batch that the scheduler was asked for before it came here."""
        self._asked = self._batches.index(gradients) + 1

    def metrics(self) -> dict[str, Any]:
        """Those of the archive, and how often emitters have restarted."""
        restarts = sum(getattr(emitter, "restarts", 0) for emitter in self.emitters)
        return {**self.archive.metrics(), "restarts": restarts}

    def change(self, key: str, value: Any) -> None:
        """What acts at once: the archive's learning rate, and what emitters read in each `ask`."""
        parts: list[Any] = []
        match key.split("."):
            case ["algorithm", "archive", "learning_rate" as name]:
                archive = self.ribs_scheduler.archive
                parts = [archive] if getattr(archive, "threshold_min", -np.inf) > -np.inf else []
            case ["algorithm", "emitters", group, name] if self._groups:
                count = len(self.emitters) // self._groups
                parts = self.emitters[int(group) * count : (int(group) + 1) * count]
                kinds = [kind_of(emitter) for emitter in parts]
                if not all(kind is not None and name in kind.changeable for kind in kinds):
                    parts = []
        if not parts:
            raise BadInput(
                f"{key} cannot be changed in mid-run. Of an algorithm, these can: the learning "
                f"rate of an archive that has one, and {', '.join(CHANGEABLE)} of its emitters"
            )
        for each in parts:
            internals.change(each, name, value)


def make(experiment: Experiment, domain: Domain, shared: Path | None) -> RibsAlgorithm:
    """Builds the archives, emitters and scheduler of an experiment.

    Args:
        experiment: The experiment; the first child of its seed is that of everything here.
        domain: Its domain.
        shared: The folder of centroids; None for any points.
    """
    algorithm, size, centroids = experiment.algorithm, experiment.archive, Centroids(shared)
    assert isinstance(algorithm, Composition)
    root = np.random.SeedSequence(experiment.seed, spawn_key=(0,))
    archive_seed, result_seed, emitter_seed = root.spawn(3)
    fields: Fields = {name: (shape, np.float64) for name, shape in domain.fields.items()}
    if all(map(takes_fields, algorithm.emitters)):
        fields[SEED] = ((), np.uint32)
    archive = build_archive(algorithm.archive, size, domain, fields, centroids, archive_seed)
    result = None
    if algorithm.result_archive:
        reported = algorithm.reported_archive
        result = build_archive(reported, size, domain, fields, centroids, result_seed)
    scheduler = algorithm.scheduler
    count = experiment.num_emitters
    if not isinstance(scheduler, Bandit):
        count //= len(algorithm.emitters)
    groups = [group for group in algorithm.emitters for _ in range(count)]
    emitters = [
        build_emitter(group, archive, experiment, domain, seed)
        for group, seed in zip(groups, emitter_seed.spawn(len(groups)), strict=True)
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
    else:
        made = Scheduler(archive, emitters, result, add_mode=algorithm.add_mode)
    return RibsAlgorithm(made, groups=len(algorithm.emitters))
