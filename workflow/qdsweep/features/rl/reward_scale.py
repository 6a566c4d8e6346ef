"""The scale of rewards, as stable-baselines3's VecNormalize computes it."""

import numpy as np

from qdsweep.domains.base import GOES_ON, Floats, Record
from qdsweep.domains.normalizer import CLIP, Normalizer, merge, tally


class RewardScale:
    """Divides rewards by the standard deviation of all discounted returns so far.

    The return of a step is the discounted sum of its episode's rewards up to it. All returns of a
    batch are counted before its rewards are divided. VecNormalize counts step by step.

    Attributes:
        moments: ``(3,)`` number, mean and sum of squared deviations of the returns.
        returns: The latest return of each row whose episode continues; 0 for the others.

    Example:
        Returns of 1, 2, 3 and 4 have a standard deviation of 1.118:

        >>> import numpy as np
        >>> from qdsweep.domains.base import CUT, GOES_ON, Record
        >>> from qdsweep.features.rl.reward_scale import RewardScale
        >>> none, ends = np.zeros((4, 1), np.float32), np.array([GOES_ON] * 3 + [CUT], np.uint8)
        >>> record = Record(none, none, np.ones(4, np.float32), ends)
        >>> [scaled] = RewardScale().scale([record], continues=[False], gamma=1.0)
        >>> [round(reward, 3) for reward in scaled.rewards.tolist()]
        [0.894, 0.894, 0.894, 0.894]
    """

    def __init__(self) -> None:
        self.moments: Floats = np.zeros(3)
        self.returns: list[float] = []

    def scale(
        self, records: list[Record | None], continues: list[bool], gamma: float
    ) -> list[Record | None]:
        """Counts the returns of a batch in the order of its rows, and scales its rewards.

        Args:
            records: The record of each row; None for a failed row, which adds nothing.
            continues: Whether the last episode of each row continues in the next batch.
            gamma: The discount of later rewards.

        Returns:
            The records with scaled rewards.
        """
        count = len(records)
        before = [*self.returns, *[0.0] * count][:count]  # the batch size may have changed
        after = []
        for record, latest, resumes in zip(records, before, continues, strict=True):
            if record is not None:
                returns = discounted_sums(record, latest, gamma)
                self.moments = merge(self.moments, tally(returns[:, np.newaxis]))
                latest = float(returns[-1])
            after.append(latest if resumes else 0.0)
        self.returns = after
        (deviation,) = Normalizer(self.moments).std
        return [
            record
            and record._replace(
                rewards=np.clip(record.rewards / deviation, -CLIP, CLIP).astype(np.float32)
            )
            for record in records
        ]


def discounted_sums(record: Record, before: float, gamma: float) -> Floats:
    """Returns the sum ``(t,)`` of the discounted rewards of an episode up to each of its steps.

    Args:
        record: The record.
        before: The sum before its first step.
        gamma: The discount.
    """
    sums = np.empty(len(record.rewards))
    for step, (reward, end) in enumerate(
        zip(record.rewards.tolist(), record.ends.tolist(), strict=True)
    ):
        sums[step] = before = before * gamma + reward
        if end != GOES_ON:
            before = 0.0
    return sums
