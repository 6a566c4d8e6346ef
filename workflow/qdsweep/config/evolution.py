"""Families that evolve a population for the objective alone."""

from typing import Literal

from pydantic import Field

from qdsweep.config.base import NOW
from qdsweep.config.learning import Family


class GA(Family):
    """The genetic algorithm of Such et al. (2017): mutation, truncation, and one elite.

    A generation is the best solution of the one before and mutants of its better ones; the first
    one is mutants of `x0`. The archive only records what it finds.
    """

    code = "qdsweep.algorithms.learning.ga:GeneticAlgorithm"
    own_papers = ("such2017deep",)

    type: Literal["ga"]
    parents: int = Field(
        default=20,
        ge=1,
        description="the best solutions of a generation, of which the next one has mutants",
        json_schema_extra=NOW,
    )
    sigma: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of a mutation; null for the domain's `step` [parameter units]"
        ),
        json_schema_extra=NOW,
    )
