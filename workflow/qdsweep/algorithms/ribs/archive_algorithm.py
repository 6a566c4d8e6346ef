"""The base class of these algorithms: one archive, and a choice of the rows to insert in it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from ribs.archives import ArrayStore

from qdsweep.algorithms.base import Algorithm, Arrays, Candidates, archive_fields
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import Centroids, ResultArchive, build_archive
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.records.archive import SEED


class ArchiveAlgorithm(Algorithm):
    """An algorithm around one archive of pyribs.

    Args:
        experiment: The experiment; its algorithm has an `archive`.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.
        seed: The seed of the archive's random draws.

    Attributes:
        batch_size: The current batch size.
        settings: The current settings of the algorithm. The domain's `step` replaces a `sigma`
            of null.
        ribs_archive: The archive, with pyribs' interface.
    """

    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = {ArrayStore: internals.reduce_store}

    def __init__(
        self,
        experiment: Experiment,
        domain: Domain,
        shared: Path | None,
        seed: np.random.SeedSequence,
    ) -> None:
        self.batch_size = experiment.batch_size
        self.settings: Any = experiment.algorithm
        if getattr(self.settings, "sigma", 0) is None:  # the domain's natural mutation scale
            self.settings = self.settings.model_copy(update={"sigma": domain.step})
        self.ribs_archive: Any = build_archive(
            self.settings.archive,
            experiment,
            domain,
            archive_fields(domain),
            Centroids(shared),
            seed,
        )
        self.archive: ResultArchive = ResultArchive(self.ribs_archive, domain.objective_range[0])

    @property
    def restarts(self) -> int:
        """Number of restarts from another solution."""
        return 0

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the archive."""
        return {**self.archive.metrics(), "restarts": self.restarts}

    def insert(
        self, candidates: Candidates, evaluation: Evaluation, rows: slice = slice(None)
    ) -> tuple[Arrays, Arrays]:
        """Inserts some rows of a batch.

        Returns:
            The rows, as arguments of `tell` of pyribs' emitters, and the result of the insertion.
        """
        every: Arrays = {
            "solution": candidates.solutions,
            "objective": evaluation.objective,
            "measures": evaluation.measures,
            SEED: np.asarray(candidates.seeds),
            **evaluation.fields,
        }
        # A user's archive may lack some fields.
        known = getattr(self.ribs_archive, "field_list", every)
        chosen = {name: values[rows] for name, values in every.items() if name in known}
        return chosen, self.ribs_archive.add(**chosen)

    def change(self, key: str, value: Any) -> None:
        """Changes the batch size, the archive's learning rate, or a setting that is `mid_run`."""
        match key.split("."):
            case ["batch_size"] if not self.settings.fixed_batch:
                self.batch_size = value
            case ["algorithm", "archive", "learning_rate"]:
                internals.change(self.ribs_archive, "_learning_rate", value)
            case ["algorithm", name]:
                self.settings = self.settings.model_copy(update={name: value})
            case _:
                super().change(key, value)
