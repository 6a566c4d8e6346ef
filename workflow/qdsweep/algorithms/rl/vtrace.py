"""V-trace (Espeholt et al. 2018, eq. 1): values of a policy from what an earlier one has played."""

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Floats


def vtrace(
    rewards: Floats,
    values: Floats,
    following: Floats,
    last: NDArray[np.bool_],
    ratios: Floats,
    *,
    gamma: float,
    rho_bar: float,
    c_bar: float,
) -> tuple[Floats, Floats]:
    """Returns the targets of the values, and the advantages of the policy gradient.

    The t steps are those of some unrolls, one behind another. With ratios of 1 the targets are the
    n-step returns up to the end of each unroll.

    Args:
        rewards: ``(t,)``.
        values: ``(t,)`` V of the observation before each step.
        following: ``(t,)`` V of the one after it, 0 where the step has ended the episode.
        last: ``(t,)`` whether it is the last step of its unroll.
        ratios: ``(t,)`` pi(a|x) / mu(a|x), of the policy that learns and the one that played.
        gamma: Discount of later rewards.
        rho_bar: Where ratios of temporal differences are cut: this decides whose values it finds.
        c_bar: Where ratios of the trace are cut: this decides how quickly.

    Returns:
        ``(t,)`` v_s, and ``(t,)`` rho_s (r_s + gamma v_{s+1} - V(x_s)).
    """
    rho, c = np.minimum(ratios, rho_bar), np.minimum(ratios, c_bar)
    differences = rho * (rewards + gamma * following - values)
    carried = np.where(last, 0.0, gamma * c)
    corrections, later = np.empty_like(differences), 0.0
    for step in reversed(range(len(differences))):
        later = corrections[step] = differences[step] + carried[step] * later
    targets = values + corrections
    after = np.where(last, following, np.append(targets[1:], 0.0))
    return targets, rho * (rewards + gamma * after - values)
