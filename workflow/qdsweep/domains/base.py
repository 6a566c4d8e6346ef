"""The interface of a domain: the objective and the measures of a batch of solutions."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Seeds = NDArray[np.uint32]
# The values of `Record.ends`.
GOES_ON, TERMINATED, CUT = 0, 1, 2


class Record(NamedTuple):
    """The experience of one evaluation: t steps of k episodes, one episode after another.

    Attributes:
        observations: ``(t + k, s)`` float32, each once; the last of an episode follows its steps.
        actions: ``(t, a)`` float32, as passed to the environment; discrete ones are one-hot. Rows
            that explore by "gaussian" have the noisy outputs before they were squashed.
        rewards: ``(t,)`` float32.
        ends: ``(t,)`` uint8: the episode continues (0), it ended (1), the time limit cut it (2).
    """

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    ends: NDArray[np.uint8]


class Exploration(NamedTuple):
    """How the policies of some rows deviate from their networks, to try other actions.

    Random draws come from the row's evaluation seed. A row whose scales are all 0 acts greedily.

    Attributes:
        kind: "softmax": a discrete action is drawn from softmax(output / scale). "epsilon": with
            the probability `scale` a discrete action is uniform. "gaussian": `scale` times normal
            noise is added to each output, before it is squashed into bounds.
        scale: ``(n, 1)``; ``(n, a)`` for "gaussian", one for each output.
    """

    kind: str
    scale: Floats

    def part(self, rows: slice) -> "Exploration":
        """Returns the exploration of some rows."""
        return self._replace(scale=self.scale[rows])


class Actor(NamedTuple):
    """The network whose weights are a solution, as a learner needs it.

    Its layout is that of `qdsweep.domains.policies.Policy.network`.

    Attributes:
        shapes: (outputs, inputs) of each layer.
        bias: Whether each layer has biases.
        activation: The activation of the hidden layers, "tanh" or "relu".
        low: ``(a,)`` lower bounds of the actions, which are centre + half * tanh(output); None
            where the actions are discrete or unbounded.
        high: ``(a,)`` upper bounds, or None.
        discrete: Whether the action is the index of the largest output.
    """

    shapes: tuple[tuple[int, int], ...]
    bias: bool
    activation: str
    low: Floats | None
    high: Floats | None
    discrete: bool = False


class Evaluation(NamedTuple):
    """The result of evaluating n solutions, row by row.

    Attributes:
        objective: ``(n,)`` objective values, in the domain's own scale.
        measures: ``(n, m)`` measures, in the order of the domain's `measures`.
        fields: Further values to keep with each elite, each ``(n, ...)`` (pyribs extra fields).
        jacobian: ``(n, 1 + m, d)`` gradients of the objective and of each measure, or None.
        tally: ``(n, k)`` the term of each row in the run's context, or None.
        experience: The record of each row, None for a failed row; None if not requested.
        steps: ``(n,)`` environment steps of each row; None where no episodes are played.
    """

    objective: Floats
    measures: Floats
    fields: dict[str, NDArray] = {}  # noqa: RUF012 - never mutated
    jacobian: Floats | None = None
    tally: Floats | None = None
    experience: list[Record | None] | None = None
    steps: NDArray[np.int64] | None = None


class Domain(Protocol):
    """An objective function with measures.

    A domain is pure and row-independent: row i of a result has the same bits in any batch, in any
    process and at every repetition. This excludes BLAS products across rows. ``X @ W`` on a part of
    a batch differs in the last bits from the same rows of the whole.

    A domain may have ``jacobian(solutions) -> (n, 1 + m, d)``, which gradient emitters need. It
    may have ``render(solution, seed)``, the pictures ``(h, w, 3)`` uint8 of an evaluation, for
    `qdsweep rollout`; environments of gymnasium.make need none.

    It may learn from all evaluations of a run, as observation normalisation does. With a
    `context_dim` k, ``evaluate(solutions, seeds, context)`` receives the run's context ``(k,)``. It
    is zeros plus the tallies of all earlier batches, added row by row in order. The context is the
    same for all rows of a batch, and part of the reload file.

    Algorithms may learn from a domain with an `actor`. ``evaluate(..., experience=True)`` then
    returns a `Record` of each row too, and ``evaluate(..., exploration=...)`` takes the
    `Exploration` of the rows, or None. With a `frame_skip` k, a decision (a row of a record)
    lasts k environment steps.

    Attributes:
        solution_dim: Number of parameters of a solution, d.
        measures: Name -> (lower, upper) range of each measure, in order.
        objective_range: (lowest, best) objective; the lower end gives the QD-score offset.
        x0: ``(d,)`` where a search starts. (Optional in your class: zeros.)
        step: Natural mutation scale, > 0. (Optional in your class: 0.5.)
        fields: Name -> shape of the extra fields that `evaluate` returns.
    """

    solution_dim: int
    measures: dict[str, tuple[float, float]]
    objective_range: tuple[float, float]
    x0: Floats
    step: float
    fields: dict[str, tuple[int, ...]]

    def evaluate(self, solutions: Floats, seeds: Seeds) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` solutions.
            seeds: ``(n,)`` seeds, the only source of randomness for an evaluation.
        """
        ...
