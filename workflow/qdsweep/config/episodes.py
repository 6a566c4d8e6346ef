"""Episodes: the policy that acts in them, and their measures."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from qdsweep.config.base import Interval, Model


class Linear(Model):
    """A policy without hidden layers or biases: W times the observation."""

    title: ClassVar[str] = "a linear policy"

    type: Literal["linear"]


class MLP(Model):
    """A multi-layer perceptron with biases."""

    type: Literal["mlp"]
    hidden: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description="sizes of the hidden layers [units]"
    )
    activation: Literal["tanh", "relu"] = Field(
        default="tanh", description="activation of the hidden layers"
    )

    @property
    def title(self) -> str:
        """Its name in a text."""
        layers = " and ".join(map(str, self.hidden))
        return f"a multi-layer perceptron ({self.activation}, hidden layers of {layers} units)"


# Measure -> its label, where {component} and {threshold} are filled in.
_LABELS = {
    "mean_observation": "mean of observation {component}",
    "min_observation": "minimum of observation {component}",
    "max_observation": "maximum of observation {component}",
    "range_observation": "range of observation {component}",
    "final_observation": "final observation {component}",
    "fraction_above": "share of time with observation {component} above {threshold:g}",
    "contact": "share of time with {geom} on the ground",
    "mean_action": "mean of action {component}",
    "mean_abs_action": "mean magnitude of action {component}",
    "episode_length": "episode length",
}


class Measure(Model):
    """A measure of an episode. It leaves out the observation that `reset` returns."""

    measure: Literal[
        "mean_observation",
        "min_observation",
        "max_observation",
        "range_observation",
        "final_observation",
        "fraction_above",
        "contact",
        "mean_action",
        "mean_abs_action",
        "episode_length",
    ] = Field(
        description=(
            "what is measured; fraction_above is the share of steps in which the component is "
            "above `threshold`, contact (MuJoCo, PyBullet) the share of steps at whose end `geom` "
            "touches the floor, episode_length counts steps (Atari: frames)"
        )
    )
    component: int | None = Field(
        default=None,
        ge=0,
        description=(
            "which component of the observation or action; of a discrete action, the action "
            "itself, and its mean is the share of steps that take it"
        ),
    )
    threshold: float | None = Field(
        default=None, description="the bound of fraction_above [observation units]"
    )
    geom: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "the body's part of contact: a geom of MuJoCo's model, a name of robot.foot_list in "
            "PyBullet"
        ),
    )
    range: Interval = Field(description="lower and upper end [measure units]")
    name: str | None = Field(
        default=None, min_length=1, description="the label in tables and figures; null for its own"
    )

    @property
    def label(self) -> str:
        """The measure's name in tables and on axes."""
        return self.name or _LABELS[self.measure].format(
            component=self.component, threshold=self.threshold, geom=self.geom
        )

    @model_validator(mode="after")
    def _check_arguments(self) -> "Measure":
        for key, needed in (
            ("component", self.measure not in ("episode_length", "contact")),
            ("threshold", self.measure == "fraction_above"),
            ("geom", self.measure == "contact"),
        ):
            if (getattr(self, key) is not None) != needed:
                raise ValueError(f"{self.measure} {'needs a' if needed else 'has no'} {key}")
        return self
