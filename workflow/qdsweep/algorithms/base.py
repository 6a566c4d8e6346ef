"""What the loop needs of an algorithm, whatever searches behind it: ask, tell, and what came out.

A family of algorithms is a folder beside this file, and a model in `qdsweep.config.algorithm`.
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
# Name -> shape and type of what an archive keeps with each elite besides.
Fields = dict[str, tuple[tuple[int, ...], Any]]
SEED = "evaluation_seed"


class Candidates(NamedTuple):
    """Solutions that an algorithm wants to have evaluated.

    Attributes:
        solutions: ``(n, d)`` solutions.
        gradients: Whether the jacobian is wanted too.
        seeds: ``(n,)`` in `tell`, the seeds that they were evaluated with; an archive should keep
            them with its elites, in the field `SEED`.
        experience: Whether the records of the episodes are wanted too.
        exploration: How the policies explore; None for greedy ones.
    """

    solutions: Floats
    gradients: bool = False
    seeds: Seeds | None = None
    experience: bool = False
    exploration: Exploration | None = None


class Archive(ABC):
    """The archive that a run's results are of.

    Attributes:
        cells: Number of cells; None where it does not divide the measure space, so that coverage
            means nothing.
        cells_stay: Whether a point of the measure space is in the same cell all the time.
    """

    cells: int | None
    cells_stay: bool

    @abstractmethod
    def rows(self) -> Arrays:
        """The elites in a fixed order: index (where there are cells), objective, ..., fields."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What summary.json says of it: `type`, `cells` and `dims`, None where it has none."""

    @abstractmethod
    def geometry(self) -> Arrays:
        """The arrays that say where its cells lie, where `describe` and the ranges do not."""

    @abstractmethod
    def cells_of(self, measures: Floats) -> Cells:
        """The cell ``(n,)`` of each of ``(n, m)`` measures."""

    @abstractmethod
    def objectives(self, cells: Cells) -> tuple[Cells, Floats]:
        """Those of the cells that have an elite, and its objective."""


class Algorithm(ABC):
    """Asks for evaluations and is told their results.

    An iteration is all batches until `ask` returns None. Evaluation seeds, the domain's context
    and the counting of iterations and evaluations are the loop's. Needs of a domain, such as its
    jacobian, are stated by the config model, so that they are refused before anything runs.

    It is pickled between two iterations and between `ask` and `tell`, and must go on from there
    bit for bit. All its randomness comes from the experiment's seed.

    Attributes:
        archive: What results are written from.
        reducers: How types are pickled of which plain pickles would hold too much, as
            `copyreg.pickle` takes them.
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
        """Takes the results of the batch that was asked for last, row by row.

        Args:
            candidates: The batch.
            evaluation: Its results, in the same order.
        """

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Name -> value, None where one means nothing; as `qdsweep.metrics.ARCHIVE_METRICS`.

        And `return`, if it learns a policy: the mean objective of its latest greedy episodes.
        Called in every iteration: nothing of O(archive) in it.
        """

    def meanwhile(self) -> None:  # noqa: B027 - most algorithms have nothing to do
        """Work that needs no results, such as training: done while workers evaluate.

        Called at most once an iteration, after the first of its `ask`; nothing interrupts it.
        """

    def change(self, key: str, value: Any) -> None:
        """Changes a setting between two iterations.

        Args:
            key: The key of the experiment, such as `algorithm.emitters.sigma`, or its last part.
            value: The new value, as the config has it.

        Raises:
            BadInput: It cannot be changed in mid-run; the message names the key and says why.
        """
        raise BadInput(f"{key} cannot be changed in mid-run: no setting of this algorithm can")


def spawn_seeds(experiment: Experiment, count: int) -> list[np.random.SeedSequence]:
    """Returns seeds for the parts of an algorithm: of the first child of the experiment's seed."""
    return np.random.SeedSequence(experiment.seed, spawn_key=(0,)).spawn(count)


def archive_fields(domain: Domain) -> Fields:
    """Returns what an archive stores with each elite: the fields of a domain and `SEED`."""
    fields: Fields = {name: (shape, np.float64) for name, shape in domain.fields.items()}
    return fields | {SEED: ((), np.uint32)}


def require_actor(experiment: Experiment, domain: Domain) -> Actor:
    """Returns the network that a solution of a domain is, for an algorithm that learns its steps.

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
