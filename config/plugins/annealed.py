"""Example of your own emitter: Gaussian noise that decreases during the search.

`config/experiments/arm_own_emitter.yaml` lets it compete with CMA-ME for the evaluations;
`qdsweep check --algorithm annealed:Annealed` tests it.
"""

from ribs.emitters import GaussianEmitter


class Annealed(GaussianEmitter):
    """MAP-Elites whose mutation scale shrinks by a factor each iteration, down to a floor.

    An emitter is created as `Class(archive, x0=..., batch_size=..., seed=..., **arguments)`. Its
    state is in its attributes, which are pickled with it.

    Args:
        archive: The archive from which elites are drawn.
        x0: The start of the search ``(d,)``.
        batch_size: Solutions in an iteration.
        seed: The seed of all its randomness.
        sigma: The initial scale [parameter units].
        rate: The factor of the scale in each iteration.
        floor: The smallest scale [parameter units].
    """

    def __init__(self, archive, *, x0, batch_size, seed, sigma=0.5, rate=0.99, floor=0.01):
        super().__init__(archive, x0=x0, sigma=sigma, batch_size=batch_size, seed=seed)
        self.rate, self.floor = rate, floor

    def ask(self):
        """Returns elites with noise of the current scale, and reduces the scale."""
        solutions = super().ask()
        self._sigma = (self._sigma * self.rate).clip(min=self.floor)
        return solutions
