"""The interface between the loop and an algorithm: ask, tell, and the archive of results.

A family of algorithms has a folder next to this file and a model in `qdsweep.config.algorithm`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation, Exploration, Floats, Seeds
from qdsweep.errors import BadInput

Arrays = dict[str, NDArray[Any]]
Cells = NDArray[np.int64]
# Name -> shape and type of a further value that an archive keeps with each elite.
Fields = dict[str, tuple[tuple[int, ...], Any]]
SEED = "evaluation_seed"


class Candidates(NamedTuple):
    """Solutions that an algorithm wants to have evaluated.

    Attributes:
        solutions: ``(n, d)`` solutions.
        gradients: Whether the algorithm needs their jacobian.
        seeds: ``(n,)`` in `tell`, the seeds of their evaluations. An archive should keep them
            with its elites, in the field `SEED`.
        experience: Whether the algorithm needs the records of their episodes.
        exploration: How the policies explore; None for greedy ones.
    """

    solutions: Floats
    gradients: bool = False
    seeds: Seeds | None = None
    experience: bool = False
    exploration: Exploration | None = None


class Archive(ABC):
    """The archive that holds a run's results.

    Attributes:
        cells: Number of cells; None where it does not divide the measure space. Coverage is
            undefined then.
        cells_stay: Whether a point of the measure space always stays in the same cell.
    """

    cells: int | None
    cells_stay: bool

    @abstractmethod
    def rows(self) -> Arrays:
        """The elites in a fixed order: index (where there are cells), objective, ..., fields."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Its entry in summary.json: `type`, `cells` and `dims`, None where it has none."""

    @abstractmethod
    def geometry(self) -> Arrays:
        """The arrays that define its cells, where `describe` and the ranges do not suffice."""

    @abstractmethod
    def cells_of(self, measures: Floats) -> Cells:
        """The cell ``(n,)`` of each of ``(n, m)`` measures."""

    @abstractmethod
    def objectives(self, cells: Cells) -> tuple[Cells, Floats]:
        """The occupied cells among these, and the objective of each elite."""


class Algorithm(ABC):
    """Asks for evaluations and receives their results.

    An iteration is all batches until `ask` returns None. The loop owns evaluation seeds, the
    domain's context, and the numbers of iterations and evaluations. The config model declares what
    a domain must have, such as a jacobian, so an unsuitable domain is refused before a run starts.

    It is pickled between two iterations and between `ask` and `tell`, and must resume from there
    bit for bit. All its randomness comes from the experiment's seed.

    Attributes:
        archive: The archive that results are written from.
        reducers: Type -> its reducer, as `copyreg.pickle` takes it, for types whose plain pickles
            are too large.
        needs_jacobian: Whether it ever asks for gradients, which not every domain has.
        needs_experience: Whether it ever asks for experience, which not every domain has.
    """

    archive: Archive
    needs_jacobian: bool = False
    needs_experience: bool = False
    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {}

    @abstractmethod
    def ask(self) -> Candidates | None:
        """The next batch of the iteration, or None when it has no more."""

    @abstractmethod
    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Takes the results of the latest batch, row by row.

        Args:
            candidates: The batch.
            evaluation: Its results, in the same order.
        """

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Name -> value, None where it is undefined; the names are `metrics.ARCHIVE_METRICS`.

        An algorithm that learns a policy adds `return`: the mean objective of its latest greedy
        episodes. Every iteration calls this, so it must not take O(archive) time.
        """

    def meanwhile(self) -> None:  # noqa: B027 - most algorithms have nothing to do
        """Does work that needs no results, such as training, while workers evaluate.

        The loop calls it at most once per iteration, after the first `ask`, without interruption.
        """

    def change(self, key: str, value: Any) -> None:
        """Changes a setting between two iterations.

        Args:
            key: The key of the experiment, such as `algorithm.emitters.sigma`, or its last part.
            value: The new value, as the config has it.

        Raises:
            BadInput: It cannot change during the run; the message has the key and the reason.
        """
        raise BadInput(f"{key} cannot be changed in mid-run: no setting of this algorithm can")


def spawn_seeds(experiment: Experiment, count: int) -> list[np.random.SeedSequence]:
    """Returns seeds for an algorithm's parts, from the first child of the experiment's seed."""
    return np.random.SeedSequence(experiment.seed, spawn_key=(0,)).spawn(count)


def archive_fields(domain: Domain) -> Fields:
    """Returns what an archive stores with each elite: the fields of a domain and `SEED`."""
    fields: Fields = {name: (shape, np.float64) for name, shape in domain.fields.items()}
    return fields | {SEED: ((), np.uint32)}


def require_actor(experiment: Experiment, domain: Domain) -> Actor:
    """Returns the network that a solution encodes, for an algorithm that learns from its steps.

    Args:
        experiment: The experiment.
        domain: Its domain.

    Raises:
        BadInput: The domain has none.
    """
    actor: Actor | None = getattr(domain, "actor", None)
    if actor is None:
        raise BadInput(
            f"algorithm {experiment.algorithm.name} learns from the steps of episodes, of which "
            f"the domain {experiment.domain.name} tells nothing (it has no `actor`); take a domain "
            "of the type gymnasium, or an algorithm that learns from the scores alone, such as "
            "map_elites_line"
        )
    return actor
