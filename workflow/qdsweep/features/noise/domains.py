"""Arms with noise, as data."""

from typing import Literal

from pydantic import Field

from qdsweep.config.domain_keys import DomainConfig


class NoisyArm(DomainConfig):
    """A planar arm whose evaluations have noise, of six kinds.

    They are tasks of Flageat, Grillotti and Cully (2023), arXiv:2304.12454, with the scales of
    adaptive-intelligent-robotics/Uncertain_Quality_Diversity. `joint` and `two_spreads` have an
    objective of 0 there; here, they have that of the arm.
    """

    code = "qdsweep.features.noise.noisy_arm:ArmWithNoise"
    code_keys = ("noise", "solution_dim")
    own_title = "a planar arm with noise ({self.noise})"
    solution_text = "with {solution_dim} joints"
    own_papers = ("flageat2023benchmark",)

    type: Literal["noisy_arm"]
    noise: Literal[
        "objective",
        "measures",
        "bimodal_objective",
        "bimodal_measures",
        "joint",
        "two_spreads",
    ] = Field(
        description=(
            "what is random. `objective` and `measures`: Gaussian noise on them. `bimodal_...`: in "
            "15 % of the evaluations, they are also off by 1. `joint`: the angle of the last joint "
            "but one. `two_spreads`: the measures, with ten times the spread in half of the space"
        )
    )
    solution_dim: int = Field(
        default=8, ge=2, description="joints, each with an angle of 0 to 1 (a whole turn)"
    )
    step: float = Field(
        default=0.01, gt=0, description="standard deviation of a typical mutation [turns]"
    )

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return 2

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters."""
        return self.solution_dim

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return False

    @property
    def why_no_experience(self) -> str:
        """Nothing is played."""
        return "it is a function without episodes"


DOMAINS = (NoisyArm,)
