"""The interface of a domain: the objective and the measures of a batch of solutions."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Seeds = NDArray[np.uint32]
# The values of `Record.ends`: the episode continues, it terminated, its time limit truncated it.
GOES_ON, TERMINATED, CUT = 0, 1, 2


class Token(NamedTuple):
    """An episode between two unrolls, as seed and actions from which it can be played again.

    Attributes:
        seed: The seed of its reset; None for an episode that has not started.
        actions: ``(t,)`` or ``(t, a)`` its actions so far, as passed to the environment.

    Example:
        A row of three decisions pauses an episode of CartPole, and the next row continues it:

        >>> import numpy as np
        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> from qdsweep.domains.base import Exploration, Token, Unroll
        >>> domain, seeds = make_domain(read_domain("rl_cartpole")), np.array([7], np.uint32)
        >>> policy, token = np.zeros((1, domain.solution_dim)), Token()
        >>> for _ in range(2):
        ...     [record] = domain.evaluate(
        ...         policy, seeds, experience=True,
        ...         exploration=Exploration("softmax", np.ones((1, 1))),
        ...         unroll=Unroll(3, [token], 1),
        ...     ).experience
        ...     token = record.token
        >>> len(record.rewards), token.actions
        (3, array([1, 0, 1, 1, 0, 1], dtype=uint8))
    """

    seed: int | None = None
    actions: Any = ()


class Unroll(NamedTuple):
    """The decisions of rows that continue an episode, instead of playing a whole one.

    Such a row continues the episode of its token, and starts new ones where that has ended. Their
    seeds come from the seed of the evaluation. The row depends only on its solution, that seed and
    the token. A process that still has the environment of the token continues with it. Any other
    process plays the actions again.

    Attributes:
        decisions: The number of decisions of such a row.
        tokens: The episode that each row continues; None for rows that play whole episodes.
        episodes: The number of paused episodes of the run, whose environments a process may keep.

    Example:
        The last two of three rows, of which the last one plays a whole episode:

        >>> from qdsweep.domains.base import Token, Unroll
        >>> Unroll(5, [Token(), Token(), None], episodes=2).part(slice(1, 3)).tokens
        [Token(seed=None, actions=()), None]
    """

    decisions: int
    tokens: list[Token | None]
    episodes: int

    def part(self, rows: slice) -> "Unroll":
        """Returns those of a slice of the rows."""
        return self._replace(tokens=self.tokens[rows])


class Record(NamedTuple):
    """The transitions of one evaluation: t steps of k episodes, one episode after another.

    Attributes:
        observations: ``(t + k, s)`` float32, the observation before each step, as the policy saw it
            (normalised where the domain normalises). The last observation of an episode follows its
            steps. Of screens, it has each frame once, as bytes: ``(t + k, height * width)`` uint8;
            see `Actor.image`.
        actions: ``(t, a)`` float32, as passed to the environment; discrete ones are one-hot. Rows
            that explore by "gaussian" have the noisy outputs before they are squashed.
        rewards: ``(t,)`` float32, the reward of each step.
        ends: ``(t,)`` uint8, whether a step is the last of its episode. 0: the episode continues.
            1: it is terminated. 2: it is truncated by its time limit (gymnasium's terms), or it is
            paused, after the last step of an unroll.
        before: Frames of screens at the start that precede the first observation. Only a continued
            episode has them.
        token: The episode that the next unroll of this row continues; None for whole episodes.

    Example:
        A pole falls after nine steps of a policy that always pushes to the left:

        >>> import numpy as np
        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> domain = make_domain(read_domain("rl_cartpole"))
        >>> solutions, seeds = np.zeros((1, domain.solution_dim)), np.array([7], np.uint32)
        >>> [record] = domain.evaluate(solutions, seeds, experience=True).experience
        >>> record.observations.shape, record.actions.shape, record.ends.tolist()
        ((10, 4), (9, 2), [0, 0, 0, 0, 0, 0, 0, 0, 1])
    """

    observations: NDArray[Any]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    ends: NDArray[np.uint8]
    before: int = 0
    token: Token | None = None


class Episode(NamedTuple):
    """A played episode of t steps, for your own measure (`measure: module:function`).

    Its arrays are read-only.

    Attributes:
        observations: ``(t + 1, o)`` float64, the observation of `reset`, then one after each step.
            Atari: uint8, the memory before the first decision and after each one.
        actions: ``(t, a)`` float64, as passed to the environment; discrete ones are one-hot.
        rewards: ``(t,)`` float64, the reward of each step.
        infos: The `info` of each step, without the one of `reset`. Atari has none.

    Example:
        The share of steps with a positive reward, tried on an episode of four steps:

        >>> import numpy as np
        >>> from qdsweep.domains.base import Episode
        >>> def rewarded(episode):
        ...     return np.mean(episode.rewards > 0)
        >>> rewards = np.array([0.0, 1.0, 1.0, 1.0])
        >>> float(rewarded(Episode(np.zeros((5, 2)), np.ones((4, 1)), rewards, [{}] * 4)))
        0.75
    """

    observations: NDArray[Any]
    actions: Floats
    rewards: Floats
    infos: list[dict[str, Any]]


class Exploration(NamedTuple):
    """How the policies of some rows deviate from their networks, to try other actions.

    Random draws come from the row's evaluation seed. A row whose scales are all 0 acts greedily.

    Attributes:
        kind: "softmax", "epsilon" or "gaussian". Softmax draws a discrete action from
            softmax(output / scale). Epsilon takes a uniform discrete action with the probability
            `scale`. Gaussian adds `scale` times normal noise to each output, before the output is
            squashed into bounds.
        scale: ``(n, 1)``; for "gaussian" ``(n, a)``, one scale for each output.

    Example:
        Random actions keep a pole up for longer than one constant action:

        >>> import numpy as np
        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> from qdsweep.domains.base import Exploration
        >>> domain = make_domain(read_domain("rl_cartpole"))
        >>> solutions, seeds = np.zeros((2, domain.solution_dim)), np.array([7, 7], np.uint32)
        >>> exploration = Exploration("epsilon", np.array([[0.0], [1.0]]))
        >>> domain.evaluate(solutions, seeds, exploration=exploration).steps
        array([ 9, 17])
    """

    kind: str
    scale: Floats

    def part(self, rows: slice) -> "Exploration":
        """Returns the exploration of a slice of the rows."""
        return self._replace(scale=self.scale[rows])


class Actor(NamedTuple):
    """A description of the policy network whose weights are a solution, for learners.

    A solution has the weights and biases layer by layer, as in
    `qdsweep.domains.policies.Policy.network`.

    Attributes:
        shapes: (outputs, inputs) of each layer.
        bias: Whether each layer has biases.
        activation: The activation of the hidden layers, "tanh" or "relu".
        low: ``(a,)`` lower bounds of the actions; None where the actions are discrete or
            unbounded. A bounded action is centre + half range * tanh(output).
        high: ``(a,)`` upper bounds of the actions, or None.
        discrete: Whether the action is the index of the largest output.
        image: (frames, height, width) of an observation, whose pixels are divided by 255; None for
            vectors. It has the latest frames of the episode, the newest last. Before there are as
            many, the first one is repeated.
        convolutions: (filters, kernel, stride) of the layers before `shapes`, each with biases and
            ReLU. Their weights are those of torch's Conv2d, without padding.

    Example:
        The parameters of a network without convolutions are those of its layers:

        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> domain = make_domain(read_domain("rl_cartpole"))
        >>> domain.actor.shapes, domain.actor.discrete
        (((64, 4), (64, 64), (2, 64)), True)
        >>> sum(n * (m + domain.actor.bias) for n, m in domain.actor.shapes) == domain.solution_dim
        True
    """

    shapes: tuple[tuple[int, int], ...]
    bias: bool
    activation: str
    low: Floats | None
    high: Floats | None
    discrete: bool = False
    image: tuple[int, int, int] | None = None
    convolutions: tuple[tuple[int, int, int], ...] = ()

    @property
    def inputs(self) -> int:
        """Size of a row of `Record.observations`."""
        return self.image[1] * self.image[2] if self.image else self.shapes[0][1]

    @property
    def kind(self) -> type[np.generic]:
        """The type of `Record.observations`."""
        return np.uint8 if self.image else np.float32


class Evaluation(NamedTuple):
    """The result of evaluating n solutions, row by row.

    Attributes:
        objective: ``(n,)`` objective values, in the domain's own scale.
        measures: ``(n, m)`` measures, in the order of the domain's `measures`.
        fields: Name -> ``(n, ...)`` further values to keep with each elite. pyribs calls them
            extra fields.
        jacobian: ``(n, 1 + m, d)`` gradients of the objective and of each measure, or None.
        tally: ``(n, k)`` the term that each row adds to the run's context, or None.
        experience: The record of each row, None for a failed row; None if not requested.
        steps: ``(n,)`` environment steps of each row; None where no episodes are played.

    Example:
        Two solutions of a domain whose measures are the first two parameters:

        >>> import numpy as np
        >>> from qdsweep.domains.base import Evaluation
        >>> solutions = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
        >>> result = Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2])
        >>> result.objective, result.measures.shape
        (array([-25.,  -1.]), (2, 2))
    """

    objective: Floats
    measures: Floats
    fields: dict[str, NDArray] = {}  # noqa: RUF012 - never mutated
    jacobian: Floats | None = None
    tally: Floats | None = None
    experience: list[Record | None] | None = None
    steps: NDArray[np.int64] | None = None


def copied(value: Any) -> Any:
    """Returns a value with copies of its arrays, lists, tuples and dicts; other objects stay.

    The user's code gets such copies, because it may write into them, and its own arrays are copied,
    because it may use them again.
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = map(copied, value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def outside(
    objective: Floats, objective_range: tuple[float, float]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns which of ``(n,)`` objectives are below a range, and which are above it.

    An objective that is outside only by a rounding error counts as inside.
    """
    low, high = objective_range
    error = 1e-9 * (high - low)
    return objective < low - error, objective > high + error


class Domain(Protocol):
    """An objective function with measures.

    Any class with these attributes and an `evaluate` is a domain; it need not inherit from
    `Domain`. `qdsweep check module:Class` tests it.

    A domain is pure and row-independent: row i of a result has the same bits in any batch, in any
    process and at every repetition. This excludes BLAS products across rows. ``X @ W`` on a part of
    a batch differs in the last bits from the same rows of the whole.

    A domain may have ``jacobian(solutions) -> (n, 1 + m, d)``, which gradient emitters need. It
    may have ``render(solution, seed)``, which yields the pictures ``(h, w, 3)`` uint8 of an
    evaluation for `qdsweep rollout`. Environments of gymnasium.make need no such method. It may
    have ``draw(solution)``, which returns the lines that `qdsweep explore` shows of a solution
    ``(d,)``, each ``(k, 2)`` points (x, y). With two measures, they are also drawn on the map, in
    the units of the measures.

    It may learn from all evaluations of a run, as observation normalisation does. With a
    `context_dim` k, ``evaluate(solutions, seeds, context)`` receives the run's context ``(k,)``. It
    is zeros plus the tallies of all earlier batches, added row by row in order. The context is the
    same for all rows of a batch, and part of the reload file (the checkpoint of a run).

    Algorithms may learn from a domain with an `actor`. ``evaluate(..., experience=True)`` then
    returns a `Record` of each row too, and ``evaluate(..., exploration=...)`` takes the
    `Exploration` of the rows, or None. Learners with `unroll` need ``evaluate(..., unroll=...)``,
    which takes an `Unroll` or None. With a `frame_skip` k, a decision (one row of a record)
    lasts k environment steps, and an episode may have more before the first one.

    Attributes:
        solution_dim: Number of parameters of a solution, d.
        measures: Name -> (lower, upper) range of each measure, in order.
        objective_range: (lowest, best) objective. The QD-score offset is the lowest objective.
        x0: ``(d,)`` starting point of a search. Optional in your class; the default is zeros.
        step: Natural mutation scale, > 0 [parameter units]. Optional in your class; the default
            is 0.5.
        fields: Name -> shape of the extra fields that `evaluate` returns, per solution.

    Example:
        A sphere with two measures, and the test of the contract:

        >>> from qdsweep.domains.base import Evaluation
        >>> from qdsweep.domains.plugin import check_rows
        >>> class Sphere:
        ...     solution_dim = 10
        ...     measures = {"first": (-5.0, 5.0), "second": (-5.0, 5.0)}
        ...     objective_range = (-250.0, 0.0)
        ...     fields = {}
        ...
        ...     def evaluate(self, solutions, seeds):
        ...         return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2])
        >>> check_rows(Sphere()).ranges
        {'first': (-5.0, 5.0), 'second': (-5.0, 5.0)}
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
            solutions: ``(n, d)`` float64 solutions, which `evaluate` must not change.
            seeds: ``(n,)`` uint32 seeds, one per solution: the only source of randomness.

        Returns:
            The results, row by row.
        """
        ...


def evaluated(result: Any) -> Evaluation:
    """Returns what `Domain.evaluate` has returned.

    Raises:
        TypeError: It is not an `Evaluation`.
    """
    if not isinstance(result, Evaluation):
        raise TypeError(
            f"evaluate returned a {type(result).__name__}; "
            "return qdsweep.domains.base.Evaluation(objective, measures)"
        )
    return result


def concatenate(parts: list[Evaluation]) -> Evaluation:
    """Returns the evaluation of all rows of some parts, in their order.

    Steps of a failed row are 0 if another row has any.
    """
    jacobians = [part.jacobian for part in parts if part.jacobian is not None]
    tallies = [part.tally for part in parts if part.tally is not None]
    records = [record for part in parts for record in part.experience or ()]
    steps = None
    if any(part.steps is not None for part in parts):
        none = np.zeros(1, dtype=np.int64)
        steps = np.concatenate([none if part.steps is None else part.steps for part in parts])
    return Evaluation(
        np.concatenate([part.objective for part in parts]),
        np.concatenate([part.measures for part in parts]),
        {name: np.concatenate([p.fields[name] for p in parts]) for name in parts[0].fields},
        np.concatenate(jacobians) if jacobians else None,
        np.concatenate(tallies) if tallies else None,
        records if parts[0].experience is not None else None,
        steps,
    )


def real_numbers(name: str, values: Any) -> NDArray:
    """Returns a part of an `Evaluation` as an array.

    Raises:
        TypeError: It is not an array of real numbers.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError(f"{name} has rows of different lengths") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} contains {array.dtype}, not real numbers")
    return array
