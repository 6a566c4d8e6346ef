"""Adaptive sampling: a new solution needs as many samples as the elite that it replaces."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import SEED, Arrays, Candidates
from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation, Floats, Seeds
from qdsweep.features.noise.deep import Again, Sampled
from qdsweep.features.noise.depth import PoolRows, Ranked, SampleSeeds
from qdsweep.features.noise.resampled import Resampled, make_deep, results_of


class Challengers:
    """The new solutions of an iteration, with the samples that they have so far.

    Args:
        results: Objective ``(n,)``, measures ``(n, m)`` and the domain's fields of one sample each.
        seeds: ``(n,)`` their evaluation seeds.

    Attributes:
        means: Mean objective ``(n,)`` and mean measures ``(n, m)``; the other fields are those of
            the latest sample.
        samples: ``(n,)`` number of samples.
    """

    def __init__(self, results: Arrays, seeds: Seeds) -> None:
        count = len(results["objective"])
        self.means = {name: values.copy() for name, values in results.items()}
        self.samples = np.ones(count, dtype=np.int64)
        self._spread = {name: np.zeros_like(results[name]) for name in ("objective", "measures")}
        self._drawn = [(np.arange(count), seeds)]

    def sample(self, rows: PoolRows, results: Arrays, seeds: Seeds) -> None:
        """Adds one sample to each of some solutions, by their rows."""
        self.samples[rows] += 1
        for name, spread in self._spread.items():
            before, new = self.means[name][rows], results[name]
            count = self.samples[rows].reshape(-1, *[1] * (new.ndim - 1))
            mean = before + (new - before) / count  # Welford's updates
            spread[rows] += (new - before) * (new - mean)
            self.means[name][rows] = mean
        for name in results.keys() - self._spread.keys():
            self.means[name][rows] = results[name]
        self._drawn.append((rows, seeds))

    def all_samples(self, competes: NDArray[np.bool_]) -> Sampled:
        """Returns the samples of all solutions; `competes` are those that may be inserted."""
        owners, seeds = map(np.concatenate, zip(*self._drawn, strict=True))
        spread = self._spread
        return Sampled(
            self.samples,
            spread["objective"],
            spread["measures"],
            SampleSeeds(owners, seeds),
            competes,
        )


class AdaptiveSampling(Resampled):
    """Adaptive sampling (Justesen et al. 2019), for the solutions of an iteration together.

    The first batch of an iteration has each new solution once. The second one has the elites that
    they challenge, those of the cells where they are. From then on, each batch has one more sample
    of the solutions that are better than the elite where they are, but have fewer samples. Those
    that are better at the end may replace this elite.

    Args:
        inner: The emitters, whose archive is one of `deep`.
    """

    def __init__(self, inner: RibsAlgorithm) -> None:
        super().__init__(inner)
        self._candidates: Candidates | None = None
        self._challengers: Challengers | None = None
        self._elites: Again | None = None
        self._open: PoolRows = np.empty(0, dtype=np.int64)

    def choose(self, solutions: int) -> Ranked:
        """Returns the elites that new solutions challenge."""
        assert self._challengers is not None
        cells = np.unique(self._cells())
        cells = cells[self.deep.candidates.tops(cells) >= 0]
        return Ranked(cells, np.zeros(len(cells), dtype=np.int64))

    def ask(self) -> Candidates | None:
        """Returns the next batch of the iteration, or None at its end."""
        depth = self.deep.candidates
        if self._challengers is None:
            self._candidates = self.inner.ask()
            if self._candidates is None:
                self.before = None
            return self._candidates
        assert self._candidates is not None
        solutions = self._candidates.solutions[self._open]
        if self._elites is None:
            self._again = self.choose(len(self._candidates.solutions))
            old = depth.get("solution", depth.rows(self._again))
            solutions = np.concatenate([solutions, old])
        return self._candidates._replace(solutions=solutions)

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Adds the samples of a batch. After the last one, the emitters receive the means."""
        seeds = np.asarray(candidates.seeds, dtype=np.uint32)
        if self._challengers is None:
            self._challengers = Challengers(results_of(evaluation, slice(None), seeds), seeds)
            self._open = np.arange(0)
            if len(self.choose(len(seeds)).cells):
                self.keep(evaluation.measures[:0])
                self._open = self._wanting()
                return
        else:
            new = slice(len(self._open))
            results = results_of(evaluation, new, seeds)
            self._challengers.sample(self._open, results, seeds[new])
            if self._elites is None:
                assert self._again is not None
                old = slice(len(self._open), None)
                self._elites = Again(self._again, results_of(evaluation, old, seeds), seeds[old])
            self._open = self._wanting()
            if len(self._open):
                return
        self._end()

    def _cells(self) -> PoolRows:
        """Returns the cell of each new solution, by its mean measures."""
        assert self._challengers is not None
        cells: PoolRows = self.deep.index_of(self._challengers.means["measures"])
        return cells

    def _elite(self) -> tuple[Floats, PoolRows]:
        """Returns mean and number of samples of the elite in the cell of each new solution.

        An elite that was challenged counts with its new sample, if it has one, or with the one that
        it will get. In an empty cell, the mean is -inf and the number 0.
        """
        depth, cells = self.deep.candidates, self._cells()
        rows = depth.tops(cells)
        known = rows >= 0
        means, samples = np.full(len(cells), -np.inf), np.zeros(len(cells), dtype=np.int64)
        means[known] = depth.get("objective", rows[known])
        samples[known] = depth.get("samples", rows[known])
        places = self.choose(0) if self._elites is None else self._elites.places
        place = np.searchsorted(places.cells, cells)
        place[place == len(places.cells)] = 0
        again = known & (places.cells[place] == cells)
        samples[again] += 1
        if self._elites is not None:
            new = self._elites.results["objective"][place[again]]
            means[again] += (new - means[again]) / samples[again]
        return means, samples

    def _wanting(self) -> PoolRows:
        """Returns the new solutions that need another sample: better ones with too few."""
        assert self._challengers is not None
        means, samples = self._elite()
        is_open = self._challengers.means["objective"] > means
        is_open &= self._challengers.samples < samples
        return np.flatnonzero(is_open)

    def _end(self) -> None:
        """Changes the archive, and passes the means of their solutions to the emitters."""
        assert self._challengers is not None and self._candidates is not None
        challengers, means = self._challengers, self._challengers.means
        competes = np.ones(len(challengers.samples), dtype=bool)
        if self._elites is not None:
            elite, samples = self._elite()
            competes = (means["objective"] > elite) & (challengers.samples >= samples)
        self.deep.again = self._elites
        self.deep.sampled = challengers.all_samples(competes)
        fields = {
            name: values
            for name, values in means.items()
            if name not in ("objective", "measures", SEED)
        }
        told = self._candidates._replace(seeds=means[SEED])
        self.inner.tell(told, Evaluation(means["objective"], means["measures"], fields))
        self._challengers = self._candidates = self._elites = self._again = None


def make_adaptive(experiment: Experiment, domain: Domain, shared: Path | None) -> AdaptiveSampling:
    """Makes adaptive sampling; see `make_ribs`."""
    return AdaptiveSampling(make_deep(experiment, domain, shared))
