"""How a run evaluates its solutions again: the base of such settings, and none of them."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from qdsweep.config.domain_keys import DomainConfig
from qdsweep.config.family import AlgorithmConfig
from qdsweep.config.model import Model


class Resampling(Model):
    """Facts about a way to evaluate solutions again."""

    fixed = "the archive is made with it"
    # `module:function`, which makes the algorithm from experiment, domain and shared folder; empty
    # for the algorithm's own.
    code: ClassVar[str]
    # Its papers (keys of config/references.bib).
    cite: ClassVar[tuple[str, ...]] = ()
    # Whether an iteration may have more evaluations than `evaluations` returns.
    may_evaluate_more: ClassVar[bool] = False

    type: Any = Field(title="resampling", description="which kind")

    def evaluations(self, solutions: int, *, first: bool) -> int:
        """Returns the evaluations of an iteration, or the least number of them.

        Args:
            solutions: Its new solutions.
            first: Whether it is the first iteration, before which no elites are known.
        """
        return solutions

    def check(self, algorithm: AlgorithmConfig, domain: DomainConfig) -> None:
        """Refuses an algorithm or a domain that does not go with it.

        Raises:
            ValueError: It does not; the message has the reason and the remedy.
        """


class NoResampling(Resampling):
    """Each solution is evaluated once."""

    code = ""

    type: Literal[None] = Field(default=None, title="resampling", description="which kind")
