"""Good and hostile user algorithms, which tests write into a config/plugins."""

LAB = '''
import numpy as np
from qdsweep.algorithms.base import Algorithm, Candidates
from qdsweep.algorithms.ribs.archives import ResultArchive
from ribs.archives import GridArchive
from ribs.emitters import EmitterBase, GaussianEmitter
from ribs.schedulers import Scheduler


def make(solution_dim, ranges, batch_size, seed, sigma=0.5, n=2):
    archive = GridArchive(solution_dim=solution_dim, dims=[9, 9], ranges=ranges, seed=seed)
    x0 = np.zeros(solution_dim)
    emitters = [
        GaussianEmitter(archive, x0=x0, sigma=sigma, batch_size=batch_size, seed=seed + i)
        for i in range(n)
    ]
    return Scheduler(archive, emitters)


class Counting(Scheduler):
    """A scheduler of the user's, with a state of its own and an argument."""

    def __init__(self, archive, emitters, result_archive=None, *, add_mode, every=2):
        super().__init__(archive, emitters, result_archive, add_mode=add_mode)
        self.every, self.batches = every, 0

    def tell(self, objective, measures, **fields):
        self.batches += 1
        super().tell(objective, measures, **fields)


class Bare(EmitterBase):
    """No more than pyribs' base class asks for: no restarts, no bounds."""

    def __init__(self, archive, *, x0, batch_size, seed, **kwargs):
        none = {"bounds": None, "lower_bounds": None, "upper_bounds": None}
        super().__init__(archive, solution_dim=len(x0), **none)
        self.x0, self.n, self.rng = x0, batch_size, np.random.default_rng(seed)

    def ask(self):
        return self.x0 + self.rng.normal(size=(self.n, self.solution_dim))


class Batches(Algorithm):
    """Three random batches an iteration, and work that needs no results."""

    def __init__(self, solution_dim, ranges, seed):
        self.grid = GridArchive(solution_dim=solution_dim, dims=[5, 5], ranges=ranges)
        self.archive, self.rng = ResultArchive(self.grid), np.random.default_rng(seed)
        self.batch = self.trained = 0

    def ask(self):
        self.batch = (self.batch + 1) % 4
        return Candidates(self.rng.normal(size=(5, self.grid.solution_dim))) if self.batch else None

    def tell(self, candidates, evaluation):
        self.grid.add(candidates.solutions, evaluation.objective, evaluation.measures)

    def metrics(self):
        return {**self.archive.metrics(), "restarts": 0}

    def meanwhile(self):
        self.trained += 1


class Everything:
    """An archive without cells, statistics or fields that is no class of pyribs' at all."""

    def __init__(self, solution_dim, measure_dim, seed):
        self.solution_dim, self.measure_dim = solution_dim, measure_dim
        self.dtypes = dict.fromkeys(("solution", "objective", "measures"), np.float64)
        self.field_list = list(self.dtypes)
        self.rng, self.kept = np.random.default_rng(seed), []

    @property
    def empty(self):
        return not self.kept

    def add(self, solution, objective, measures):
        self.kept += list(zip(solution, objective, measures))
        return {"status": np.full(len(objective), 2), "value": np.asarray(objective)}

    def data(self):
        names = ("solution", "objective", "measures")
        return {name: np.array(rows) for name, rows in zip(names, zip(*self.kept))}

    def sample_elites(self, n):
        rows = self.rng.integers(len(self.kept), size=n)
        return {name: values[rows] for name, values in self.data().items()}
'''

HOSTILE = """
import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import EmitterBase, GaussianEmitter
from ribs.schedulers import Scheduler
from qdsweep.algorithms.base import Algorithm, Candidates
from qdsweep.algorithms.ribs.archives import ResultArchive


class NoBounds(EmitterBase):
    def __init__(self, archive, *, x0, batch_size, seed):
        super().__init__(archive, solution_dim=len(x0))


class Own(GaussianEmitter):
    def __init__(self, archive, *, x0, batch_size, seed):
        super().__init__(archive, x0=x0, sigma=1.0, batch_size=batch_size, seed=seed)


class Unpicklable(Own):
    def __init__(self, archive, *, x0, batch_size, seed):
        super().__init__(archive, x0=x0, batch_size=batch_size, seed=seed)
        self.rule = lambda x: x


class Global(Own):
    def ask(self):
        return np.random.normal(size=(3, self.solution_dim))


class Wide(Own):
    def ask(self):
        return np.zeros((3, self.solution_dim + 1))


class Flat(Own):
    def ask(self):
        return np.zeros(self.solution_dim)


class Nan(Own):
    def ask(self):
        return np.full((3, self.solution_dim), np.nan)


class Gone(Own):
    def tell(self, *rows, **fields):
        raise RuntimeError("no memory of it")


def grid(solution_dim, ranges):
    return GridArchive(solution_dim=solution_dim, dims=[5, 5], ranges=ranges)


def scheduler(archive, emitter):
    x0 = np.zeros(archive.solution_dim)
    return Scheduler(archive, [emitter(archive, x0=x0, batch_size=3, seed=1)])


def seeded(solution_dim, ranges, seed):
    np.random.seed(seed)
    return scheduler(grid(solution_dim, ranges), Global)


def nothing(solution_dim):
    return None


class Late(Scheduler):
    @property
    def result_archive(self):
        raise RuntimeError("not yet")


def late(solution_dim, ranges, x0):
    archive = GridArchive(solution_dim=solution_dim, dims=[4, 4], ranges=ranges)
    return Late(archive, [GaussianEmitter(archive, x0=x0, sigma=1.0)])


def raises(solution_dim):
    raise ValueError("no licence")


def leaves(solution_dim):
    raise SystemExit(0)


def needs(solution_dim, gpu):
    return None


def narrow(solution_dim):
    return scheduler(grid(solution_dim, [(-1, 1)] * 2), Own)


def small(ranges):
    return scheduler(grid(3, ranges), Own)


class Abstract(Algorithm):
    def ask(self):
        return None


class Endless(Algorithm):
    def __init__(self, solution_dim):
        self.dim = solution_dim

    def ask(self):
        return Candidates(np.zeros((2, self.dim)))

    def tell(self, candidates, evaluation):
        pass

    def metrics(self):
        return {}


class Unmeasured(Endless):
    asked = False

    def ask(self):
        self.asked = not self.asked
        return super().ask() if self.asked else None


class _Hiding(ResultArchive):
    def objectives(self, cells):
        cells, objective = super().objectives(cells)
        return cells[1:], objective[1:]

    def marks(self, cells):
        cells, objective = self.objectives(cells)
        return cells, objective[:, None]


class Hides(Algorithm):
    # Its archive has an elite that it does not give.
    def __init__(self, solution_dim, ranges, seed):
        grid = GridArchive(solution_dim=solution_dim, dims=[9, 9], ranges=ranges)
        self.archive, self.asked = _Hiding(grid), False
        self.rng = np.random.default_rng(seed)

    def ask(self):
        self.asked = not self.asked
        shape = 5, self.archive.ribs_archive.solution_dim
        return Candidates(self.rng.normal(size=shape)) if self.asked else None

    def tell(self, candidates, evaluation):
        self.archive.ribs_archive.add(
            candidates.solutions, evaluation.objective, evaluation.measures
        )

    def metrics(self):
        return {**self.archive.metrics(), "restarts": 0}
"""

LOSING = '''
import numpy as np
from qdsweep.algorithms.base import SEED, Algorithm, Candidates
from qdsweep.algorithms.ribs.archives import ResultArchive
from qdsweep.domains.base import Evaluation
from ribs.archives import GridArchive
from ribs.emitters import GaussianEmitter
from ribs.schedulers import Scheduler


class Again(Algorithm):
    """Evaluates elites again; their objectives and measures are means, so that they move."""

    def __init__(self, solution_dim, dims, ranges, extra_fields, batch_size, seed):
        self.grid = GridArchive(
            solution_dim=solution_dim, dims=dims, ranges=ranges, extra_fields=extra_fields
        )
        self.archive, self.rng = ResultArchive(self.grid), np.random.default_rng(seed)
        self.shape, self.asked, self.known = (batch_size, solution_dim), False, []

    def ask(self):
        self.asked = not self.asked
        if not self.asked:
            return None
        self.again = self.rng.permutation(len(self.known))[: self.shape[0] // 2]
        new = self.rng.normal(scale=30, size=(self.shape[0] - len(self.again), self.shape[1]))
        old = [self.known[place][0] for place in self.again]
        return Candidates(np.concatenate([np.reshape(old, (-1, self.shape[1])), new]))

    def tell(self, candidates, evaluation):
        noise = np.random.default_rng(candidates.seeds).normal(size=(len(candidates.seeds), 3))
        rows = zip(
            candidates.solutions,
            evaluation.objective + 9 * noise[:, 0],
            evaluation.measures + 9 * noise[:, 1:],
            candidates.seeds,
        )
        for place, (solution, objective, measures, seed) in enumerate(rows):
            if place < len(self.again):
                row = self.known[self.again[place]]
                row[1:] = [(row[1] + objective) / 2, (row[2] + measures) / 2, seed]
            else:
                self.known.append([solution, objective, measures, seed])
        self.grid.clear()
        solution, objective, measures, seed = map(np.array, zip(*self.known))
        self.grid.add(solution, objective, measures, **{SEED: seed})

    def metrics(self):
        return {**self.archive.metrics(), "restarts": 0}


class Decaying(GridArchive):
    """Its elites get worse."""

    def add(self, *args, **fields):
        self._store._fields["objective"] *= 0.9
        return super().add(*args, **fields)


class Forgetting(GridArchive):
    """It forgets all elites when it has twenty."""

    def add(self, *args, **fields):
        if len(self) > 20:
            self.clear()
        return super().add(*args, **fields)


class Latest(GridArchive):
    """A solution replaces the elite of its cell, also one of the same objective."""

    def add(self, solution, objective, measures, **fields):
        self._store._fields["threshold"][:] = -np.inf
        return super().add(solution, objective, measures, **fields)


class Clearing(Scheduler):
    """It clears the archive in every third iteration."""

    told = 0

    def tell(self, objective, measures, **fields):
        self.told += 1
        if self.told % 3 == 0:
            self.archive.clear()
        return super().tell(objective, measures, **fields)


class Adding(GaussianEmitter):
    """It also adds solutions that nobody evaluates."""

    def __init__(self, archive, *, x0, batch_size, seed):
        super().__init__(archive, sigma=9.0, x0=x0, batch_size=batch_size, seed=seed)

    def tell(self, solution, objective, measures, add_info, **fields):
        self.archive.add(solution, objective - 1, -measures, **fields)


class Flat:
    """Nine cells, and one objective."""

    solution_dim, fields, objective_range, step = 2, {}, (0.0, 1.0), 0.5
    measures = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}

    def evaluate(self, solutions, seeds):
        return Evaluation(np.full(len(solutions), 0.5), np.tanh(solutions))
'''
