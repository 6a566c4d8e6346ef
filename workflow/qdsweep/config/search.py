"""How a sweep draws its settings."""

from typing import Literal

from pydantic import Field

from qdsweep.config.base import Model


class Search(Model):
    """The values of `:::~` sources."""

    samples: int = Field(ge=1, le=100_000, description="how many settings are drawn")
    sampling: Literal["random", "sobol", "halton", "lhs"] = Field(
        default="random",
        description=(
            "random: independent; sobol, halton: evenly spread, and more samples keep the first "
            "ones; lhs: a Latin hypercube, whose samples change with their number"
        ),
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="of the draws, not of the runs")
