"""The `domain:` part of an experiment: the objective and the measures, as data."""

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from qdsweep.config.base import Interval, Model


class DomainConfig(Model):
    """What every domain has. `None` stands for the domain's own value."""

    # Raised when the results of the domain's code change: it is part of every run id.
    version: ClassVar[int] = 1
    # Distributions that the results depend on, besides those of every run.
    libraries: ClassVar[tuple[str, ...]] = ()

    type: str = Field(description="which domain: a built-in one or a `module:Class` of yours")
    name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    ranges: list[Interval] | None = Field(
        default=None,
        description=(
            "lower and upper end of each measure, in order; null for the domain's own "
            "[measure units]"
        ),
    )
    objective_range: Interval | None = Field(
        default=None,
        description=(
            "lowest and best objective; the lowest gives the QD-score offset; null for the "
            "domain's own [objective units]"
        ),
    )
    x0: float | list[float] | None = Field(
        default=None,
        description=(
            "where a search starts: one value for every parameter, or a list of them; null for "
            "the domain's own, 0 unless it says otherwise [parameter units]"
        ),
    )
    step: float | None = Field(
        default=None,
        gt=0,
        description=(
            "natural mutation scale, the default of sigma, sigma0 and iso_sigma; null for the "
            "domain's own [parameter units]"
        ),
    )
    evaluation_seed: (
        Literal["fixed", "iteration", "solution"] | Annotated[int, Field(ge=0, lt=2**32)]
    ) = Field(
        default="solution",
        description=(
            "the seeds of the evaluations: fixed (one for the whole run, from the run's seed), "
            "iteration (a new one each iteration), solution (each its own), or a number (that "
            "very seed for all)"
        ),
    )

    @property
    def measure_dim(self) -> int | None:
        """Number of measures, or None where only the user's code knows."""
        return None

    @property
    def known_solution_dim(self) -> int | None:
        """Number of parameters, or None where only the environment or the user's code knows."""
        return None

    @property
    def has_jacobian(self) -> bool | None:
        """Whether gradient emitters can work, or None where only the user's code knows."""
        return None

    @model_validator(mode="after")
    def _check_lengths(self) -> "DomainConfig":
        measures, parameters = self.measure_dim, self.known_solution_dim
        if self.ranges is not None and measures not in (None, len(self.ranges)):
            raise ValueError(
                f"ranges has {len(self.ranges)} entries, but {self.type} has {measures} measures"
            )
        if isinstance(self.x0, list) and parameters not in (None, len(self.x0)):
            raise ValueError(
                f"x0 has {len(self.x0)} entries, but a solution of {self.type} has {parameters} "
                "parameters"
            )
        return self


class _Benchmark(DomainConfig):
    """What the benchmark functions share: two measures, known gradients."""

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return 2

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return True


class LinearProjection(_Benchmark):
    """The linear projection benchmark: a function of many parameters, two sums as measures."""

    type: Literal["linear_projection"]
    function: Literal["sphere", "rastrigin", "plateau"] = Field(description="the objective")
    solution_dim: int = Field(
        default=100, ge=2, description="parameters of a solution, at least one for each half"
    )
    step: float = Field(default=0.5, gt=0, description="natural mutation scale [parameter units]")

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters."""
        return self.solution_dim


class Arm(_Benchmark):
    """A planar arm that should reach everywhere with nearly equal joint angles."""

    type: Literal["arm"]
    solution_dim: int = Field(default=100, ge=1, description="joints, each with a unit link")
    step: float = Field(default=0.1, gt=0, description="natural mutation scale [rad]")

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters."""
        return self.solution_dim


class LunarLander(DomainConfig):
    """LunarLander-v3 with a linear policy, as in pyribs' example."""

    libraries: ClassVar[tuple[str, ...]] = ("gymnasium", "box2d")

    type: Literal["lunar_lander"]
    episodes: int = Field(
        default=1, ge=1, description="landings that an evaluation averages [episodes]"
    )
    step: float = Field(default=1.0, gt=0, description="natural mutation scale [weight units]")
    evaluation_seed: (
        Literal["fixed", "iteration", "solution"] | Annotated[int, Field(ge=0, lt=2**32)]
    ) = Field(
        default="fixed",
        description=(
            "the terrain and the wind's seed: fixed, iteration, solution, or a number (that very "
            "seed for all; pyribs' example has 52)"
        ),
    )

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return 2

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters: 4 actions times 8 observations."""
        return 32

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return False


class Linear(Model):
    """A policy without hidden layers or biases: W times the observation."""

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
    """A measure of an episode. The observation that `reset` returns does not count."""

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
            "above `threshold`, contact (MuJoCo) the share of steps at whose end `geom` touches "
            "the floor, episode_length counts steps"
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
        default=None, min_length=1, description="the body's part of contact, as the model names it"
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


class Gymnasium(DomainConfig):
    """Any gymnasium environment with 1-D Box observations and Box or Discrete actions."""

    libraries: ClassVar[tuple[str, ...]] = ("gymnasium", "box2d", "mujoco")

    type: Literal["gymnasium"]
    env: str = Field(
        min_length=1, description="the environment's id with its version, such as CartPole-v1"
    )
    env_kwargs: dict[str, Any] = Field(
        default={}, description="arguments of the environment, as for gymnasium.make"
    )
    max_episode_steps: int | None = Field(
        default=None,
        ge=1,
        description="the longest episode; null for the environment's own limit [steps]",
    )
    episodes: int = Field(
        default=1, ge=1, description="episodes that an evaluation averages [episodes]"
    )
    policy: Annotated[Linear | MLP, Field(discriminator="type")] = Field(
        default=Linear(type="linear"), description="what maps observations to actions"
    )
    normalize_observations: bool = Field(
        default=False,
        description="normalise what the policy sees by mean and standard deviation of all "
        "observations of the earlier iterations; archive.npz has an elite's own",
    )
    measures: list[Measure] = Field(min_length=1, description="the measures, in order")
    objective_range: Interval = Field(
        description="lowest and best return; the lowest gives the QD-score offset [return]"
    )
    step: float = Field(default=0.5, gt=0, description="natural mutation scale [weight units]")

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return len(self.measures)

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return False

    @field_validator("measures")
    @classmethod
    def _check_labels(cls, measures: list[Measure]) -> list[Measure]:
        label, count = Counter(measure.label for measure in measures).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{count} measures have the name {label!r}; give each its own name")
        return measures


class Plugin(DomainConfig):
    """A domain of yours: `Class(**arguments)`, an object with the attributes of a Domain."""

    type: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="`module:Class`, from config/plugins/ or any importable module",
    )
    arguments: dict[str, Any] = Field(default={}, description="arguments of the class")


def _tag(value: Any) -> str | None:
    """The tag of a domain: its `type`; of a user's class, what stands for all of them."""
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "module:Class" if isinstance(kind, str) and ":" in kind else kind


# No BeforeValidator around this, however welcome its message: the union would then see Python
# objects in the place of JSON, and strict mode takes a list for a tuple only in JSON.
Domain = Annotated[
    Annotated[LinearProjection, Tag("linear_projection")]
    | Annotated[Arm, Tag("arm")]
    | Annotated[LunarLander, Tag("lunar_lander")]
    | Annotated[Gymnasium, Tag("gymnasium")]
    | Annotated[Plugin, Tag("module:Class")],
    Discriminator(_tag),
]
