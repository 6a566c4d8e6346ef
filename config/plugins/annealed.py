"""Example of an emitter of your own: Gaussian noise that gets smaller as the search goes on.

`config/experiments/arm_own_emitter.yaml` lets it compete with CMA-ME for the evaluations;
`qdsweep check --algorithm annealed:Annealed` tests it.
"""

from ribs.emitters import GaussianEmitter


class Annealed(GaussianEmitter):
    """MAP-Elites whose mutation scale shrinks by a factor each iteration, down to a floor.

    An emitter is made as `Class(archive, x0=..., batch_size=..., seed=..., **arguments)`; whatever
    it needs later is an attribute, which is pickled with it.

    Args:
        archive: The archive that elites are drawn from.
        x0: ``(d,)`` where the search starts.
        batch_size: Solutions in an iteration.
        seed: Of all its randomness.
        sigma: The first scale [parameter units].
        rate: Its factor each iteration.
        floor: The smallest scale [parameter units].
    """

    def __init__(self, archive, *, x0, batch_size, seed, sigma=0.5, rate=0.99, floor=0.01):
        super().__init__(archive, x0=x0, sigma=sigma, batch_size=batch_size, seed=seed)
        self.rate, self.floor = rate, floor

    def ask(self):
        """Elites, and noise of the present scale; then the scale shrinks."""
        solutions = super().ask()
        self._sigma = (self._sigma * self.rate).clip(min=self.floor)
        return solutions
