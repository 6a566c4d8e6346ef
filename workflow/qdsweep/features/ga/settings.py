"""The settings of the genetic algorithm."""

from typing import Literal

from pydantic import Field

from qdsweep.config.family import Family
from qdsweep.config.model import NOW

# For reload files: what may be named, and former names -> the names now.
PICKLED = (f"{__package__}.ga",)
MOVED = {
    "qdsweep.algorithms.learning.ga": f"{__package__}.ga",
    "qdsweep.config.evolution:GA": f"{__name__}:GA",
    "qdsweep.config.learning:GA": f"{__name__}:GA",
}


class GA(Family):
    """The genetic algorithm of Such et al. (2017): mutation, truncation, and one elite.

    A generation has the best solution of the previous one, and mutants of its better ones. The
    first generation has mutants of `x0`. The archive only records what it finds.
    """

    code = "qdsweep.features.ga.ga:GeneticAlgorithm"
    own_papers = ("such2017deep",)

    type: Literal["ga"]
    parents: int = Field(
        default=20,
        ge=1,
        description="number of best solutions of a generation, which the next generation mutates",
        json_schema_extra=NOW,
    )
    sigma: float | None = Field(
        title="noise of standard deviation ... on solutions",
        default=None,
        gt=0,
        description=(
            "standard deviation of a mutation; null: the domain's `mutation_scale` [parameter "
            "units]"
        ),
        json_schema_extra=NOW,
    )


FAMILIES = (GA,)
