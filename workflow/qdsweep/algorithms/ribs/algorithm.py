"""A composition of pyribs' archives and emitters as an `Algorithm`, and the types of emitters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from ribs import emitters
from ribs.archives import ArchiveBase, ArrayStore, DensityArchive, DiscountArchive
from ribs.emitters import EmitterBase
from ribs.emitters.opt import LMMAEvolutionStrategy
from ribs.schedulers import BanditScheduler, Scheduler

from qdsweep.algorithms.base import Algorithm, Candidates, archive_fields, spawn_seeds
from qdsweep.algorithms.own import call_own, takes_fields
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import Centroids, ResultArchive, build_archive
from qdsweep.algorithms.ribs.single import SingleScheduler
from qdsweep.config import emitters as config
from qdsweep.config.emitters import EmitterKind
from qdsweep.config.experiment import Experiment
from qdsweep.config.families import Bandit, Composition, PluginScheduler, equal_shares
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.errors import BadInput
from qdsweep.records.archive import SEED

# If these keys are null in the config, the domain's natural mutation scale replaces them.
_SCALES = ("sigma", "sigma0", "iso_sigma")

_RESTARTING = (emitters.EvolutionStrategyEmitter, emitters.GradientArborescenceEmitter)
# The keys that an assignment to the attribute of their name does not change.
_CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "ranker": internals.change_ranker,
    "sigma0": internals.change_sigma0,
    "lr": internals.change_lr,
}
_ATTRIBUTES = {(emitters.GradientArborescenceEmitter, "normalize_grad"): "_normalize_grads"}


class EmitterType(NamedTuple):
    """A type of emitter. The keys of its config are the arguments of pyribs' class.

    Attributes:
        model: Its config.
        ribs: Its class in pyribs.
        asked: `batch_size` of qdsweep -> that of pyribs, which does not count the solutions whose
            gradients the emitter needs.
    """

    model: type[config.EmitterKind]
    ribs: type[EmitterBase]
    asked: Callable[[int], int] = lambda batch_size: batch_size


EMITTER_TYPES = {
    "gaussian": EmitterType(config.Gaussian, emitters.GaussianEmitter),
    "iso_line": EmitterType(config.IsoLine, emitters.IsoLineEmitter),
    "evolution_strategy": EmitterType(config.EvolutionStrategy, emitters.EvolutionStrategyEmitter),
    "gradient_arborescence": EmitterType(
        config.GradientArborescence,
        emitters.GradientArborescenceEmitter,
        asked=lambda batch_size: batch_size - 1,
    ),
    "gradient_operator": EmitterType(
        config.GradientOperator,
        emitters.GradientOperatorEmitter,
        asked=lambda batch_size: batch_size // 2,
    ),
}


def type_of_emitter(emitter: EmitterBase) -> EmitterType | None:
    """Returns the type of an emitter; None for a user's class."""
    return next((kind for kind in EMITTER_TYPES.values() if kind.ribs is type(emitter)), None)


def can_change(emitter: EmitterBase, name: str) -> bool:
    """Returns whether a key of an emitter, or `batch_size`, can change between two iterations."""
    kind = type_of_emitter(emitter)
    if kind is None:
        return name.startswith("arguments.") and hasattr(emitter, "change")
    if name == "batch_size":
        return not isinstance(getattr(emitter, "_opt", None), LMMAEvolutionStrategy)
    return name in kind.model.model_fields and kind.model.mid_run(name) != "never"


def change_emitter(emitter: Any, name: str, value: Any) -> None:
    """Changes a key of an emitter, or `batch_size`, between two iterations; see `can_change`."""
    kind = type_of_emitter(emitter)
    if kind is None:
        emitter.change(name.removeprefix("arguments."), value)
    elif name == "batch_size":
        internals.change_batch_size(emitter, kind.asked(value))
    elif name in _CHANGES:
        _CHANGES[name](emitter, value)
    else:
        internals.change(emitter, _ATTRIBUTES.get((kind.ribs, name), f"_{name}"), value)


def wants_gradients(emitter: Any) -> bool:
    """Returns whether an emitter needs gradients, that is, overrides `ask_dqd`."""
    ask = getattr(type(emitter), "ask_dqd", None)
    return ask is not None and ask is not EmitterBase.ask_dqd


def begins_at_random(emitter: Any) -> bool:
    """Returns whether the next batch of a gradient emitter is its random first one."""
    gradients = isinstance(emitter, emitters.GradientOperatorEmitter)
    return gradients and emitter.archive.empty and emitter.initial_solutions is not None


@contextmanager
def restarting(emitters: Sequence[Any]) -> Iterator[None]:
    """Lets emitters restart in a `with` block from x0, as long as their archive is empty.

    pyribs restarts them from a random elite, and raises an IndexError where there is none.
    """
    emitter = next((each for each in emitters if isinstance(each, _RESTARTING)), None)
    if emitter is None or not getattr(emitter.archive, "empty", False):
        yield
        return
    archive, sample = emitter.archive, emitter.archive.sample_elites
    archive.sample_elites = lambda n: {"solution": [emitter.x0] * n} if archive.empty else sample(n)
    try:
        yield
    finally:
        del archive.sample_elites  # the method of its class


def build_emitter(
    group: Any,
    archive: ArchiveBase,
    experiment: Experiment,
    domain: Domain,
    seed: np.random.SeedSequence,
    drawn: int = 0,
) -> EmitterBase:
    """Builds an emitter from the config of its group. Its first batch has `drawn` solutions."""
    arguments: dict[str, Any] = {
        "x0": domain.x0,
        "batch_size": experiment.batch_size,
        "seed": seed,
    }
    if isinstance(group, config.PluginEmitter):
        where = "algorithm.emitters"
        own: EmitterBase = call_own(where, group.type, group.arguments, arguments, (archive,))
        return own
    kind = EMITTER_TYPES[group.type]
    arguments["batch_size"] = kind.asked(experiment.batch_size)
    arguments |= group.model_dump(exclude={"type", "bounds", "initial_solutions"})
    arguments |= {name: domain.step for name in _SCALES if arguments.get(name, 0) is None}
    if group.bounds is not None:
        arguments["bounds"] = [group.bounds] * domain.solution_dim
    if drawn:
        first_seed, arguments["seed"] = seed.spawn(2)
        rng = np.random.default_rng(first_seed)
        noise = rng.standard_normal((drawn, domain.solution_dim))
        arguments["initial_solutions"] = arguments.pop("x0") + noise
    return kind.ribs(archive, **arguments)


class RibsAlgorithm(Algorithm):
    """Wraps a scheduler of pyribs.

    If an emitter needs gradients, an iteration has two batches: solutions for their jacobian, then
    the solutions that follow from it.

    Args:
        ribs_scheduler: The scheduler, with its archives, emitters and generators.
        groups: Number of groups of emitters, of equal shares; 0 if it is unknown.
        qd_score_offset: The offset of the QD score; None for the archive's own.
    """

    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {ArrayStore: internals.reduce_store}

    def __init__(
        self, ribs_scheduler: Any, groups: int = 1, qd_score_offset: float | None = None
    ) -> None:
        self.ribs_scheduler = ribs_scheduler
        result = getattr(ribs_scheduler, "result_archive", None)
        reported = ribs_scheduler.archive if result is None else result  # an empty archive is falsy
        self.archive: ResultArchive = ResultArchive(reported, qd_score_offset)
        pool = getattr(ribs_scheduler, "emitter_pool", None)
        self.emitters = list(getattr(ribs_scheduler, "emitters", ()) if pool is None else pool)
        self._groups = groups
        self.needs_jacobian = any(map(wants_gradients, self.emitters))
        self._batches = (True, False) if self.needs_jacobian else (False,)
        self._asked = 0

    def ask(self) -> Candidates | None:
        """Calls pyribs' `ask_dqd`, if an emitter needs gradients, and then its `ask`."""
        if self._asked == 0 and self.needs_jacobian and self._begins_at_random():
            self._asked = 1
        if self._asked == len(self._batches):
            self._asked, self.before = 0, None
            return None
        gradients = self._batches[self._asked]
        self._asked += 1
        scheduler = self.ribs_scheduler
        return Candidates(scheduler.ask_dqd() if gradients else scheduler.ask(), gradients)

    def _begins_at_random(self) -> bool:
        """Returns whether the next batch is random, so that pyribs needs no gradients."""
        asking = [emitter for emitter in self.emitters if wants_gradients(emitter)]
        return all(map(begins_at_random, asking))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Calls pyribs' `tell_dqd` or `tell`, with the fields that the archives have."""
        objective, measures = evaluation.objective, evaluation.measures
        fields: dict[str, Any] = {**evaluation.fields, SEED: candidates.seeds}
        # An archive of an earlier release has no field for seeds. A user's may lack any field.
        for archive in (self.ribs_scheduler.archive, self.archive.ribs_archive):
            if isinstance(archive, DensityArchive | DiscountArchive):  # it ignores them
                continue
            known = getattr(archive, "field_list", evaluation.fields)
            fields = {name: values for name, values in fields.items() if name in known}
        if candidates.gradients:
            self.keep(measures if self._groups else None)
            self.ribs_scheduler.tell_dqd(objective, measures, evaluation.jacobian, **fields)
        else:
            with restarting(self.emitters):
                self.ribs_scheduler.tell(objective, measures, **fields)
            if isinstance(self.ribs_scheduler.archive, DiscountArchive):
                internals.train_discounts(self.ribs_scheduler.archive)

    def asked(self, *, gradients: bool) -> None:
        """Records that the scheduler has already been asked for a batch."""
        self._asked = self._batches.index(gradients) + 1

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the archive, and the number of restarts of the emitters."""
        restarts = sum(getattr(emitter, "restarts", 0) for emitter in self.emitters)
        return {**self.archive.metrics(), "restarts": restarts}

    def change(self, key: str, value: Any) -> None:
        """Changes the archive's learning rate, the batch size, or a `mid_run` key of emitters."""
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
                sizes = equal_shares(len(self.emitters), self._groups)
                owners = np.repeat(range(self._groups), sizes)
                pairs = zip(self.emitters, owners, strict=True)
                emitters = [emitter for emitter, owner in pairs if owner == int(group)]
                name = ".".join(rest)
        if not emitters or not all(can_change(emitter, name) for emitter in emitters):
            raise BadInput(
                f"{key} cannot change during a run: no archive with thresholds and no emitter has "
                "it, or it is only an argument of their constructors. Your own emitter needs a "
                "method `change(name, value)`"
            )
        for emitter in emitters:
            change_emitter(emitter, name, value)


def make_ribs(
    experiment: Experiment,
    domain: Domain,
    shared: Path | None,
    more: Mapping[str, Any] = MappingProxyType({}),
    classes: Mapping[type[ArchiveBase], Callable[..., ArchiveBase]] = MappingProxyType({}),
) -> RibsAlgorithm:
    """Builds the archives, emitters and scheduler of an experiment.

    Args:
        experiment: The experiment; all seeds here derive from the first child of its seed.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.
        more: Fields of each elite in addition to those of the domain, as `Fields`. An emitter of
            the user's whose `tell` takes no fields excludes them.
        classes: Classes of archives in the place of pyribs', see `build_archive`.
    """
    algorithm, centroids = experiment.algorithm, Centroids(shared)
    assert isinstance(algorithm, Composition)
    _require_diversity(algorithm, domain)
    archive_seed, result_seed, emitter_seed = spawn_seeds(experiment, 3)
    fields = archive_fields(domain)
    if not all(map(takes_fields, algorithm.emitters)):
        del fields[SEED]
    else:
        fields |= more
    result = None
    if algorithm.result_archive:
        reported = algorithm.reported_archive
        result = build_archive(reported, experiment, domain, fields, centroids, result_seed)
    archive = build_archive(
        algorithm.archive, experiment, domain, fields, centroids, archive_seed, result, classes
    )
    scheduler = algorithm.scheduler
    sizes = algorithm.group_sizes(experiment.num_emitters)
    groups = [group for group, n in zip(algorithm.emitters, sizes, strict=True) for _ in range(n)]
    seeds, drawn = emitter_seed.spawn(len(groups)), _drawn(groups, experiment.first_batch)
    searched = archive if result is None or algorithm.archive.keeps_elites else result
    emitters = [
        build_emitter(group, searched, experiment, domain, seed, first)
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
        scheduler_class = SingleScheduler if algorithm.add_mode == "single" else Scheduler
        made = scheduler_class(archive, emitters, result, add_mode=algorithm.add_mode)
    offset = domain.objective_range[0]
    return RibsAlgorithm(made, groups=len(algorithm.emitters), qd_score_offset=offset)


def _require_diversity(algorithm: Composition, domain: Domain) -> None:
    """Refuses a ranker whose third objective the domain does not compute."""
    for number, emitter in enumerate(algorithm.emitters):
        ranker = getattr(emitter, "ranker", None)
        if ranker == "nslc_classic" and domain.fields.get("genotypic_diversity") != ():
            raise BadInput(
                f"algorithm.emitters.{number}.ranker = nslc_classic: the domain has no field "
                "genotypic_diversity with one number per solution. Add it to the `fields` of your "
                "own domain, or use ranker nslc"
            )


def _drawn(groups: Sequence[EmitterKind], total: int | None) -> list[int]:
    """Returns the size of each emitter's random first batch; `total` is shared equally."""
    if total is None:
        return [getattr(group, "initial_solutions", 0) for group in groups]
    drawing = [n for n, group in enumerate(groups) if group.draws_first]
    sizes = [0] * len(groups)
    for place, n in enumerate(drawing):  # the first emitters share the remainder
        sizes[n] = total // len(drawing) + (place < total % len(drawing))
    return sizes
