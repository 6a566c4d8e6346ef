"""What a domain is: the objective and the measures of a batch of solutions."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Seeds = NDArray[np.uint32]
# What `Record.ends` says of a step.
GOES_ON, TERMINATED, CUT = 0, 1, 2


class Record(NamedTuple):
    """The experience of one evaluation: t steps of k episodes, one episode after another.

    Attributes:
        observations: ``(t + k, s)`` float32, each once; the last of an episode follows its steps.
        actions: ``(t, a)`` float32, as the environment was given them, discrete ones one-hot; of
            rows that explore by "gaussian", the noisy outputs before they were squashed.
        rewards: ``(t,)`` float32.
        ends: ``(t,)`` uint8: the episode goes on (0), it ended (1), the time limit cut it (2).
    """

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    ends: NDArray[np.uint8]


class Exploration(NamedTuple):
    """How the policies of some rows depart from what their networks say, to learn of other actions.

    What is drawn comes from the row's evaluation seed. A row whose scales are all 0 acts greedily.

    Attributes:
        kind: "softmax": a discrete action is drawn from softmax(output / scale); "epsilon": with
            the probability `scale` a discrete action is uniform; "gaussian": `scale` times normal
            noise is added to each output, before it is squashed into bounds.
        scale: ``(n, 1)``; of "gaussian" ``(n, a)``, for each of the outputs.
    """

    kind: str
    scale: Floats

    def part(self, rows: slice) -> "Exploration":
        """Returns that of some of the rows."""
        return self._replace(scale=self.scale[rows])


class Actor(NamedTuple):
    """The network whose weights a solution is: what a learner must know to train it.

    Its layout is that of `qdsweep.domains.policies.Policy.network`.

    Attributes:
        shapes: (outputs, inputs) of each layer.
        bias: Whether each layer has biases.
        activation: Of the hidden layers, "tanh" or "relu".
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
        tally: ``(n, k)`` what each row adds to the run's context, or None.
        experience: The record of each row, None for one that failed; None where none is wanted.
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

    A domain is pure and row-independent: row i of a result has the same bits whatever else is in
    the batch, whichever process computes it and however often. (So no BLAS product across rows:
    ``X @ W`` on a part of a batch differs in the last bits from the same rows of the whole.)

    A domain may also have ``jacobian(solutions) -> (n, 1 + m, d)``, which the gradient emitters
    need, and ``render(solution, seed)``, the pictures ``(h, w, 3)`` uint8 of an evaluation for
    `qdsweep rollout`, which films environments of gymnasium.make by itself. And it may learn from
    all evaluations of a run, as observation normalisation does: with a `context_dim` k,
    ``evaluate(solutions, seeds, context)`` is also given the run's context ``(k,)``, zeros plus the
    tallies of all earlier batches, added row by row in order; it is the same for all rows of a
    batch and part of the reload file.

    And algorithms may learn from it: with an `actor`, ``evaluate(..., experience=True)`` also
    returns a `Record` of each row, and ``evaluate(..., exploration=...)`` takes the `Exploration`
    of the rows, or None. With a `frame_skip` k, a decision, which is a row of a record, lasts k
    environment steps.

    Attributes:
        solution_dim: Number of parameters of a solution, d.
        measures: Name -> (lower, upper) range of each measure, in order.
        objective_range: (lowest, best) objective; the lower end gives the QD-score offset.
        x0: ``(d,)`` where a search starts. (A class of yours may leave it out: zeros.)
        step: Natural mutation scale, > 0. (A class of yours may leave it out: 0.5.)
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
            seeds: ``(n,)`` seeds, all the randomness that an evaluation may use.
        """
        ...
