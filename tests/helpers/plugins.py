"""Plug-ins that tests write into a config/plugins: faulty domains and an emitter."""

BROKEN = """
class Broken:
    def __init__(self):
        self.solution_dim, self.objective_range = 2, (0, 1)
        self.measures = {"x": (0, 1), "y": (0, 1)}
        self.fields, self.step = {}, 0.1

    def evaluate(self, solutions, seeds):
        raise RuntimeError("the sensor is off" + " and on" * 50)
"""

FAULTY = '''
import os, time
import numpy as np
from qdsweep.domains.base import Evaluation


class Faulty:
    """Fails for the solution with evaluation seed 666 modulo 40, in the way of `how`."""

    solution_dim = 4
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def __init__(self, how="raise"):
        self.how = how

    def evaluate(self, solutions, seeds):
        objective = -np.sum(solutions**2, axis=1)
        measures = solutions[:, :2].copy()
        for i, seed in enumerate(seeds):
            if seed % 40 == 7:
                if self.how == "raise":
                    raise RuntimeError("the simulator exploded")
                if self.how == "nan":
                    objective[i] = np.nan
                if self.how == "inf":
                    measures[i, 1] = np.inf
                if self.how == "shape":
                    measures = measures[:, :1]
                if self.how == "hang":
                    time.sleep(1000)
                if self.how == "exit":
                    os._exit(3)
                if self.how == "killed":
                    os.kill(os.getpid(), 9)
                if self.how == "sys.exit":
                    raise SystemExit(0)
                if self.how == "in place":
                    solutions[i] = 0.0
                if self.how == "complex":
                    objective = objective + 1j
        if self.how == "ints":  # ints where all are, as a part of a batch may have it
            whole = [int(v) if v > -3 else float(v) for v in objective]
            return Evaluation(whole, measures.tolist())
        return Evaluation(objective, measures)


class Slow(Faulty):
    """Takes 20 ms per solution and never fails."""

    def evaluate(self, solutions, seeds):
        time.sleep(0.02 * len(solutions))
        return Evaluation(-np.sum(solutions**2, axis=1), solutions[:, :2].copy())
'''

# A separate module, because workers would otherwise import pyribs with it.
SHRINKING = '''
from ribs.emitters import GaussianEmitter


class Shrinking(GaussianEmitter):
    """An emitter of the user's, with a state of its own: steps get smaller."""

    def __init__(self, archive, *, x0, batch_size, seed, rate):
        super().__init__(archive, x0=x0, sigma=1.0, batch_size=batch_size, seed=seed)
        self.rate = rate

    def ask(self):
        self._sigma = self._sigma * self.rate
        return super().ask()
'''

# Settings whose numbers agree in their first six digits.
CLOSE = '''
import numpy as np
from qdsweep.domains.base import Evaluation


class Energy:
    """An energy around -2,000,000 over Unix times; its results do not depend on the arguments."""

    solution_dim = 4
    fields = {}
    is_deterministic = True

    def __init__(self, reference=-2000000.0, start=1700000000.0, top=1000.0):
        self.objective_range = (reference, -1999990.0)
        self.measures = {"time": (start, start + 100.0), "year": (top - 0.01, top)}

    def evaluate(self, solutions, seeds):
        shares = 0.5 + 0.5 * np.tanh(solutions[:, :2])
        measures = np.stack([1.7e9 + 100 * shares[:, 0], 999.99 + 0.01 * shares[:, 1]], axis=1)
        return Evaluation(-1999995.0 - np.square(solutions).sum(axis=1).clip(0, 4), measures)
'''

# Objectives near the ends of the numbers of 64 bits.
EXTREME = """
import numpy as np
from qdsweep.domains.base import Evaluation


class Huge:
    solution_dim = 4
    measures = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    objective_range = (-1e308, 1e308)
    fields = {}
    is_deterministic = True

    def evaluate(self, solutions, seeds):
        return Evaluation(self.objective(np.tanh(solutions[:, 2])), np.tanh(solutions[:, :2]))

    def objective(self, share):
        return 1e308 * share


class Big(Huge):
    objective_range = (0, 1e300)

    def objective(self, share):
        return 1e300 * np.abs(share)


class Tiny(Huge):
    objective_range = (0, 1e-300)

    def objective(self, share):
        return 1e-310 * np.abs(share)
"""
