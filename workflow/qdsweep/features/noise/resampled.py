"""Algorithms whose solutions are evaluated again: fixed times, or as candidates of an archive."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from qdsweep.algorithms.base import SEED, Algorithm, Arrays, Candidates
from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm, make_ribs
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.features.noise.deep import (
    Again,
    DeepResults,
    deep_classes,
    refuse_sample_fields,
)
from qdsweep.features.noise.depth import Ranked
from qdsweep.features.noise.settings import evaluated_again


class Wrapped(Algorithm):
    """An algorithm around emitters of pyribs, which receive means of several evaluations.

    Args:
        inner: The emitters with their archive.

    Attributes:
        inner: The emitters with their archive.
    """

    reducers: ClassVar[Mapping[type, Callable[[Any], Any]]] = RibsAlgorithm.reducers

    def __init__(self, inner: RibsAlgorithm) -> None:
        self.inner = inner
        self.archive = inner.archive

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the archive, whose objectives are means."""
        return self.inner.metrics()

    def change(self, key: str, value: Any) -> None:
        """Changes a setting of the emitters or of the archive."""
        self.inner.change(key, value)


class Repeated(Wrapped):
    """Each solution is evaluated `times` times.

    Args:
        inner: The emitters with their archive.
        times: Evaluations of each solution.
    """

    def __init__(self, inner: RibsAlgorithm, times: int) -> None:
        super().__init__(inner)
        self._times = times

    def ask(self) -> Candidates | None:
        """Returns each solution of the emitters `times` times, one after the other."""
        candidates = self.inner.ask()
        if candidates is None:
            return None
        return candidates._replace(solutions=np.repeat(candidates.solutions, self._times, axis=0))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Passes the means to the emitters. The other fields are those of the last sample."""
        assert candidates.seeds is not None, "the loop sets them"
        times, last = self._times, slice(self._times - 1, None, self._times)
        objective = evaluation.objective.reshape(-1, times)
        measures = evaluation.measures.reshape(len(objective), times, -1)
        seeds = np.asarray(candidates.seeds, dtype=np.uint32).reshape(-1, times)
        # A mean of one value has its bits.
        mean, centre = (x[:, 0] if times == 1 else x.mean(axis=1) for x in (objective, measures))
        fields = {name: values[last] for name, values in evaluation.fields.items()} | {
            "samples": np.full(len(objective), times),
            "objective_variance": objective.var(axis=1),
            "measures_variance": measures.var(axis=1),
            "sample_seeds": seeds,
        }
        told = candidates._replace(solutions=candidates.solutions[last], seeds=seeds[:, -1])
        self.inner.tell(told, Evaluation(mean, centre, fields))


class Resampled(Wrapped):
    """Some candidates of a deep archive are evaluated again in each iteration.

    Args:
        inner: The emitters, whose archive is one of `deep`.
    """

    def __init__(self, inner: RibsAlgorithm) -> None:
        self.inner = inner
        results = inner.archive
        self.deep: Any = results.ribs_archive
        self.archive = inner.archive = DeepResults(self.deep, float(self.deep.qd_score_offset))
        self._new = 0
        self._again: Ranked | None = None

    @abstractmethod
    def choose(self, solutions: int) -> Ranked:
        """Returns the candidates to evaluate again, in addition to some new solutions."""

    def ask(self) -> Candidates | None:
        """Returns the solutions of the emitters, and then the candidates."""
        candidates = self.inner.ask()
        if candidates is None:
            return None
        self._new = len(candidates.solutions)
        self._again = places = self.choose(self._new)
        old = self.deep.candidates.get("solution", self.deep.candidates.rows(places))
        return candidates._replace(solutions=np.concatenate([candidates.solutions, old]))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Adds a sample to each candidate, and passes their own results to the emitters.

        The archive changes once, by both of them.
        """
        assert candidates.seeds is not None and self._again is not None
        new, old = slice(self._new), slice(self._new, None)
        seeds = np.asarray(candidates.seeds, dtype=np.uint32)
        self.deep.again = Again(self._again, results_of(evaluation, old, seeds), seeds[old])
        told = candidates._replace(solutions=candidates.solutions[new], seeds=seeds[new])
        fields = {name: values[new] for name, values in evaluation.fields.items()}
        self.inner.tell(
            told, Evaluation(evaluation.objective[new], evaluation.measures[new], fields)
        )
        self._again = None


def results_of(evaluation: Evaluation, rows: Any, seeds: Any) -> Arrays:
    """Returns some rows of an evaluation as the fields of an archive."""
    results = {"objective": evaluation.objective, "measures": evaluation.measures, SEED: seeds}
    return {name: values[rows] for name, values in (results | evaluation.fields).items()}


class ExtractME(Resampled):
    """Extract-ME: candidates are drawn by their ranks.

    Args:
        inner: See `Resampled`.
        share: The share of an iteration's evaluations that is for candidates again.
    """

    def __init__(self, inner: RibsAlgorithm, share: float) -> None:
        super().__init__(inner)
        self._share = share

    def choose(self, solutions: int) -> Ranked:
        """Returns candidates that are drawn with a weight of exp(-rank)."""
        return self.deep.choose(evaluated_again(solutions, self._share))


class ArchiveSampling(Resampled):
    """Archive sampling: all candidates, in every iteration."""

    def choose(self, solutions: int) -> Ranked:
        """Returns all candidates."""
        return self.deep.candidates.everywhere()


class DeepGridSearch(Resampled):
    """Deep-Grid: none is evaluated again."""

    def choose(self, solutions: int) -> Ranked:
        """Returns no candidate."""
        return Ranked(*np.empty((2, 0), dtype=np.int64))


def make_fixed(experiment: Experiment, domain: Domain, shared: Path | None) -> Repeated:
    """Makes an algorithm whose solutions are evaluated a fixed number of times; see `make_ribs`."""
    refuse_sample_fields(domain)
    settings: Any = experiment.resampling
    more = {
        "samples": ((), np.int64),
        "objective_variance": ((), np.float64),
        "measures_variance": ((len(domain.measures),), np.float64),
        "sample_seeds": ((settings.times,), np.uint32),
    }
    return Repeated(make_ribs(experiment, domain, shared, more), settings.times)


def make_deep(
    experiment: Experiment, domain: Domain, shared: Path | None, **keys: Any
) -> RibsAlgorithm:
    """Makes emitters with a deep archive; `keys` are those of its cells. See `make_ribs`."""
    refuse_sample_fields(domain)
    if getattr(experiment.resampling, "rule", "") == "lower_bound":
        lowest, best = domain.objective_range
        keys["unknown"] = best - lowest
    depth = getattr(experiment.resampling, "depth", 1)  # that of `adaptive`
    return make_ribs(experiment, domain, shared, classes=deep_classes(depth=depth, **keys))


def make_extract(experiment: Experiment, domain: Domain, shared: Path | None) -> ExtractME:
    """Makes Extract-ME; see `make_ribs`."""
    again: Any = experiment.resampling
    return ExtractME(make_deep(experiment, domain, shared), again.share)


def make_archive_sampling(
    experiment: Experiment, domain: Domain, shared: Path | None
) -> ArchiveSampling:
    """Makes archive sampling; see `make_ribs`."""
    return ArchiveSampling(make_deep(experiment, domain, shared))


def make_deep_grid(experiment: Experiment, domain: Domain, shared: Path | None) -> DeepGridSearch:
    """Makes Deep-Grid; see `make_ribs`."""
    return DeepGridSearch(make_deep(experiment, domain, shared, latest=True, weighted=True))
