"""The gradient of a minibatch in shares, each computed by one thread.

The number of shares decides the bits of the sum. The number of threads does not, as the shares are
added in their order.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from qdsweep.host.threads import in_order

# Returns the loss of a share, and anything else that the caller needs of it.
LossOfShare = Callable[[], tuple[torch.Tensor, Any]]
# Numbers that one call adds: its part of the sum stays in the cache of a core.
_BLOCK = 1 << 16


def cut_shares(count: int, parts: int) -> list[slice]:
    """Returns consecutive slices of `count` rows, whose sizes differ by 1 at most.

    Args:
        count: Number of rows, at least 1.
        parts: Number of slices. There are fewer if there are fewer rows.
    """
    parts = min(parts, count)
    ends = [count * number // parts for number in range(parts + 1)]
    return [slice(start, end) for start, end in pairwise(ends)]


def add_gradients(
    parameters: Iterable[torch.nn.Parameter], shares: Sequence[LossOfShare]
) -> list[Any]:
    """Gives parameters the gradient of the sum of all shares' losses.

    Args:
        parameters: The parameters, without gradients.
        shares: The functions of the shares. They are called in threads, so they change nothing.

    Returns:
        What each share returns in addition to its loss.
    """
    if len(shares) == 1:
        loss, other = shares[0]()
        loss.backward()
        return [other]
    learnt = [parameter for parameter in parameters if parameter.requires_grad]
    results = in_order([partial(_differentiate, share, learnt) for share in shares])
    calls = []
    for number, parameter in enumerate(learnt):
        gradients = [each[number] for each, _ in results]
        if gradients[0] is not None:
            parameter.grad = torch.empty_like(parameter)
            size = parameter.numel()
            flat = [values.view(-1) for values in (parameter.grad, *gradients)]
            calls += [partial(_add, rows, *flat) for rows in cut_shares(size, -(-size // _BLOCK))]
    in_order(calls)
    return [other for _, other in results]


def _differentiate(share: LossOfShare, learnt: list[torch.nn.Parameter]) -> tuple[list[Any], Any]:
    """Returns the gradients of a share, None where its loss needs no parameter, and the rest."""
    loss, other = share()
    gradients = torch.autograd.grad(loss, learnt, allow_unused=True)
    return [each if each is None else each.contiguous() for each in gradients], other


def _add(rows: slice, total: torch.Tensor, first: torch.Tensor, *others: torch.Tensor) -> None:
    """Sums the rows of tensors in their order."""
    part = total[rows].copy_(first[rows])
    for other in others:
        part.add_(other[rows])
