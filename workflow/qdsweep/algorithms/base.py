"""The interface between the loop and an algorithm: ask, tell, and the archive of results.

A family of algorithms has a folder next to this file and a model in `qdsweep.config.families`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation, Exploration, Floats, Seeds, Unroll
from qdsweep.errors import BadInput
from qdsweep.records.archive import SEED, archive_rows

Arrays = dict[str, NDArray[Any]]
Cells = NDArray[np.int64]
# Name -> shape and type of a further value that an archive keeps with each elite. pyribs calls
# them extra fields.
Fields = dict[str, tuple[tuple[int, ...], Any]]


class Candidates(NamedTuple):
    """A batch of solutions that an algorithm asks to evaluate.

    Attributes:
        solutions: ``(n, d)`` float64 solutions.
        gradients: Whether the algorithm needs their jacobian.
        seeds: ``(n,)`` seeds of their evaluations, which the loop sets before `tell`. An archive
            should keep them with its elites, in the field `SEED`.
        experience: Whether the algorithm needs the records of their episodes.
        exploration: How the policies explore; None for greedy ones.
        unroll: The episodes that rows continue; None where all play whole ones.

    Example:
        >>> from qdsweep.algorithms import make_algorithm
        >>> from qdsweep.config.compose import compose
        >>> from qdsweep.domains import make_domain
        >>> experiment = compose("lp_sphere", {"algorithm": "cma_mega", "num_emitters": 1})
        >>> algorithm = make_algorithm(experiment, make_domain(experiment.domain), None)
        >>> candidates = algorithm.ask()
        >>> candidates.solutions.shape, candidates.gradients, candidates.seeds
        ((1, 100), True, None)
    """

    solutions: Floats
    gradients: bool = False
    seeds: Seeds | None = None
    experience: bool = False
    exploration: Exploration | None = None
    unroll: Unroll | None = None


class Before(NamedTuple):
    """The archive after the last iteration, if the present one has other elites already.

    Attributes:
        metrics: `Algorithm.metrics` of it.
        elites: Its elites, or only those in `cells`, as `Archive.rows`.
        cells: The cells that may differ; None for the whole archive.
        geometry: `Archive.geometry` of it.

    Example:
        CMA-MEGA evaluates its centre, and then the steps along the gradients there:

        >>> import numpy as np
        >>> from qdsweep.algorithms import make_algorithm
        >>> from qdsweep.config.compose import compose
        >>> from qdsweep.domains import make_domain
        >>> experiment = compose("lp_sphere", {"algorithm": "cma_mega", "num_emitters": 1})
        >>> domain = make_domain(experiment.domain)
        >>> algorithm = make_algorithm(experiment, domain, None)
        >>> centre = algorithm.ask()._replace(seeds=np.zeros(1, np.uint32))
        >>> result = domain.evaluate(centre.solutions, centre.seeds)
        >>> algorithm.tell(centre, result._replace(jacobian=domain.jacobian(centre.solutions)))
        >>> algorithm.before.metrics["num_elites"], algorithm.metrics()["num_elites"]
        (0, 1)
    """

    metrics: dict[str, Any]
    elites: Arrays
    cells: Cells | None
    geometry: Arrays

    def rows(self, archive: "Archive") -> Arrays:
        """Returns its elites in the order of `Archive.rows`; `archive` is the present one."""
        if self.cells is None:
            return self.elites
        now = archive.rows()
        if not len(self.cells):
            return now
        same = ~np.isin(now["index"], self.cells)
        rows = {name: np.concatenate([now[name][same], self.elites[name]]) for name in now}
        return archive_rows(rows, indexed=True)


class Archive(ABC):
    """The archive with a run's results.

    `ResultArchive` makes one from an archive of pyribs.

    Attributes:
        cells: Number of cells; None where the archive does not divide the measure space. Coverage
            is undefined then.
        cells_stay: Whether a point of the measure space always stays in the same cell.
        replaces_ties: Whether a solution may replace an elite of the same objective.
        loses_elites: Whether a cell may become empty.

    Example:
        The archive of an algorithm, after its first batch:

        >>> import numpy as np
        >>> from qdsweep.algorithms import make_algorithm
        >>> from qdsweep.config.compose import compose
        >>> from qdsweep.domains import make_domain
        >>> experiment = compose("lp_sphere", {"algorithm": "map_elites", "dims": [20, 20]})
        >>> domain = make_domain(experiment.domain)
        >>> algorithm = make_algorithm(experiment, domain, None)
        >>> candidates = algorithm.ask()
        >>> candidates = candidates._replace(seeds=np.zeros(len(candidates.solutions), np.uint32))
        >>> algorithm.tell(candidates, domain.evaluate(candidates.solutions, candidates.seeds))
        >>> archive, elites = algorithm.archive, algorithm.archive.rows()
        >>> archive.cells, (archive.cells_of(elites["measures"]) == elites["index"]).all()
        (400, np.True_)
    """

    cells: int | None
    cells_stay: bool
    replaces_ties: bool = True
    loses_elites: bool = False

    @abstractmethod
    def rows(self) -> Arrays:
        """Returns the elites in a fixed order, as `data` of pyribs' archives.

        Returns:
            ``objective`` ``(n,)``, ``measures`` ``(n, m)``, ``solution`` ``(n, d)`` and the fields
            of n elites, and ``index`` ``(n,)``, the cell of each, where there are cells.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Returns its entry in summary.json: `type`, and `cells` and `dims` or None."""

    @abstractmethod
    def geometry(self) -> Arrays:
        """Returns the arrays that define its cells, where `describe` and the ranges do not."""

    @abstractmethod
    def cells_of(self, measures: Floats) -> Cells:
        """Returns the cell ``(n,)`` of each of ``(n, m)`` measures, as pyribs' `index_of`."""

    @abstractmethod
    def objectives(self, cells: Cells) -> tuple[Cells, Floats]:
        """Returns the occupied cells among these, and the objective of the elite in each.

        Args:
            cells: ``(n,)`` cells.
        """

    def marks(self, cells: Cells) -> tuple[Cells, Floats]:
        """Returns the occupied cells among these, and k numbers that distinguish their elites.

        Args:
            cells: ``(n,)`` cells.

        Returns:
            ``(m,)`` cells and ``(m, k)`` numbers, the objective first.
        """
        occupied, objectives = self.objectives(cells)
        return occupied, objectives[:, np.newaxis]

    def touched(self, measures: Floats) -> Cells:
        """Returns the cells that the latest batch, of ``(n, m)`` measures, may have changed."""
        return self.cells_of(measures)

    def rows_in(self, cells: Cells) -> Arrays:
        """Returns the `rows` in some cells, in any order."""
        rows = self.rows()
        chosen = np.isin(rows["index"], cells)
        return {name: values[chosen] for name, values in rows.items()}


class Algorithm(ABC):
    """Asks for evaluations and receives their results.

    An iteration is all batches until `ask` returns None. The loop owns evaluation seeds, the
    domain's context, and the numbers of iterations and evaluations. The config model declares the
    parts that a domain must have, such as a jacobian, so an unsuitable domain is refused before a
    run starts.

    An algorithm is pickled between two iterations and between `ask` and `tell`, and must resume
    from there bit for bit. All its randomness comes from the experiment's seed.
    `qdsweep check --algorithm module:Class` tests both.

    Attributes:
        archive: The archive that results are written from.
        reducers: Type -> its reducer, in the form of `copyreg.pickle`, for types whose plain
            pickles are too large.
        needs_jacobian: Whether it ever asks for gradients, which not every domain has.
        needs_experience: Whether it ever asks for experience, which not every domain has.
        before: The archive after the last iteration, within an iteration of several batches (see
            `keep`); else None.

    Example:
        Random search, one batch per iteration, on the sum of two parameters:

        >>> import numpy as np
        >>> from ribs.archives import GridArchive
        >>> from qdsweep.algorithms.base import SEED, Algorithm, Candidates
        >>> from qdsweep.algorithms.ribs.archives import ResultArchive
        >>> from qdsweep.domains.base import Evaluation
        >>> class Random(Algorithm):
        ...     def __init__(self, solution_dim, dims, ranges, extra_fields, batch_size, seed):
        ...         archive = GridArchive(
        ...             solution_dim=solution_dim, dims=dims, ranges=ranges,
        ...             extra_fields=extra_fields,
        ...         )
        ...         self.archive = ResultArchive(archive)
        ...         self._rng = np.random.default_rng(seed)
        ...         self._shape = batch_size, solution_dim
        ...         self._is_asked = False
        ...
        ...     def ask(self):
        ...         self._is_asked = not self._is_asked
        ...         if not self._is_asked:
        ...             return None
        ...         return Candidates(self._rng.normal(size=self._shape))
        ...
        ...     def tell(self, candidates, evaluation):
        ...         self.archive.ribs_archive.add(
        ...             candidates.solutions, evaluation.objective, evaluation.measures,
        ...             **evaluation.fields, **{SEED: candidates.seeds},
        ...         )
        ...
        ...     def metrics(self):
        ...         return {**self.archive.metrics(), "restarts": 0}
        >>> random = Random(2, [10, 10], [(-9, 9), (-9, 9)], {SEED: ((), np.uint32)}, 40, seed=1)
        >>> while (batch := random.ask()) is not None:
        ...     result = Evaluation(batch.solutions.sum(axis=1), batch.solutions)
        ...     random.tell(batch._replace(seeds=np.zeros(40, np.uint32)), result)
        >>> random.metrics()["num_elites"]
        7
    """

    archive: Archive
    needs_jacobian: bool = False
    needs_experience: bool = False
    before: Before | None = None
    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {}

    @abstractmethod
    def ask(self) -> Candidates | None:
        """Returns the next batch of the iteration, or None at its end."""

    @abstractmethod
    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Receives the results of the latest batch, row by row.

        Args:
            candidates: The batch, with the seeds of its evaluations.
            evaluation: Its results, in the same order.
        """

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the archive, for the row of the iteration in metrics.csv.

        Every iteration calls this. A sum over the objectives of all elites is cheap enough, a copy
        of their solutions is not.

        Returns:
            Name -> value, None where it is undefined; the names are `metrics.ARCHIVE_METRICS`. An
            algorithm that learns a policy adds `return`, the mean objective of its latest greedy
            episodes.
        """

    def keep(self, measures: Floats | None) -> None:
        """Keeps the present archive until the iteration ends, in `before`.

        An algorithm calls it before it inserts a batch that another batch follows. Results of an
        unfinished run are then those of a whole iteration. The algorithm sets `before` to None
        when its iteration ends.

        Args:
            measures: ``(n, m)`` measures of the solutions, if only their cells can change.
        """
        cells, archive = None, self.archive
        if measures is not None and archive.cells_stay:
            cells = np.unique(archive.cells_of(measures))
        elites = archive.rows() if cells is None else archive.rows_in(cells)
        geometry = {name: values.copy() for name, values in archive.geometry().items()}
        self.before = Before(self.metrics(), elites, cells, geometry)

    def meanwhile(self) -> None:  # noqa: B027 - most algorithms have nothing to do
        """Does work that needs no results, such as training, while workers evaluate.

        The loop calls it at most once per iteration, after the first `ask`, without interruption.
        """

    def change(self, key: str, value: Any) -> None:
        """Changes a setting between two iterations.

        Args:
            key: The key of the experiment, such as `algorithm.emitters.sigma`, or its last part.
            value: The new value, in the form of the config.

        Raises:
            BadInput: It cannot change during the run; the message has the key and the reason.
        """
        raise BadInput(f"{key} cannot change during a run: no setting of this algorithm can")


def spawn_seeds(experiment: Experiment, count: int) -> list[np.random.SeedSequence]:
    """Returns seeds for an algorithm's parts, from the first child of the experiment's seed."""
    return np.random.SeedSequence(experiment.seed, spawn_key=(0,)).spawn(count)


def archive_fields(domain: Domain) -> Fields:
    """Returns the fields that an archive stores with each elite: those of a domain and `SEED`."""
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
            f"algorithm {experiment.algorithm.name} learns from the steps of episodes, which the "
            f"domain {experiment.domain.name} does not return (it has no `actor`). Use a domain "
            "of the type gymnasium, or an algorithm that only needs scores, such as "
            "map_elites_line"
        )
    return actor
