"""The keys and facts that several types of domains share: of all, and of those with episodes."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from qdsweep.config.model import TARGET, Interval, Model
from qdsweep.errors import BadInput

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


class Measure(Model):
    """A measure of an episode. Only your own function gets the observation of `reset`."""

    # Every part of the user's has a `type` and `arguments`. A function gets only the episode.
    arguments: ClassVar[dict[str, Any]] = {}

    measure: (
        Literal[
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
        ]
        | Annotated[str, Field(pattern=TARGET)]
    ) = Field(
        description=(
            "the measured quantity. `fraction_above` is the share of steps with the component "
            "above `threshold`. `contact` (MuJoCo, PyBullet) is the share of steps at whose end "
            "`geom` touches the floor. `episode_length` is the number of steps (Atari: frames). "
            "`module:function` is your own function of an Episode, which returns one number"
        )
    )
    component: int | None = Field(
        default=None,
        ge=0,
        description=(
            "the component of the observation or action. For discrete actions: the number of an "
            "action, whose mean is the share of steps that take it"
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
        default=None,
        min_length=1,
        description=(
            "the label in tables and figures, which is part of the run id; null: an automatic one"
        ),
    )

    @property
    def is_own(self) -> bool:
        """Whether it is a function of the user's."""
        return ":" in self.measure

    @property
    def type(self) -> str:
        """The `module:function` of such a function."""
        return self.measure

    @property
    def label(self) -> str:
        """The measure's name in tables and on axes."""
        if self.is_own:
            return self.name or self.measure.partition(":")[2].replace("_", " ")
        return self.name or _LABELS[self.measure].format(
            component=self.component, threshold=self.threshold, geom=self.geom
        )

    @model_validator(mode="after")
    def _check_arguments(self) -> "Measure":
        for key, needed in (
            (
                "component",
                not self.is_own and self.measure not in ("episode_length", "contact"),
            ),
            ("threshold", self.measure == "fraction_above"),
            ("geom", self.measure == "contact"),
        ):
            if (getattr(self, key) is not None) != needed:
                raise ValueError(f"{self.measure} {'needs a' if needed else 'has no'} {key}")
        return self


class DomainConfig(Model):
    """Keys and facts of every domain. None is the domain's own value."""

    fixed = "the domain is made with it"
    # Part of every run id. It is raised when the domain's code gives other results.
    version: ClassVar[int] = 1
    # The class or function that makes the domain, `module:name`, and the keys that it is called
    # with. No keys: it is called with this model.
    code: ClassVar[str]
    code_keys: ClassVar[tuple[str, ...]] = ()
    # Installed packages that the results depend on, in addition to those of every run.
    own_libraries: ClassVar[tuple[str, ...]] = ()
    # Whether an evaluation gives the same result with every seed.
    is_deterministic: ClassVar[bool] = False
    # Whether an evaluation can be rendered: it plays episodes of gymnasium. (A user's code may.)
    has_episodes: ClassVar[bool] = False
    # Whether the steps of the environment are counted. (A user's code may.)
    counts_steps: ClassVar[bool] = False
    # Texts of the methods paragraph, with {self} for this model: the name of a domain without a
    # `title`, its solutions, and the papers of the type (keys of config/references.bib).
    own_title: ClassVar[str] = "{self.name}"
    solution_text: ClassVar[str] = "with {solution_dim} parameters"
    own_papers: ClassVar[tuple[str, ...]] = ()

    type: str = Field(description="the domain: a built-in one or your own `module:Class`")
    name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    title: str = Field(
        default="",
        description="its name in the methods paragraph; empty: the words of its type, or its name",
    )
    cite: list[str] = Field(
        default=[],
        description=(
            "its papers in addition to those of its type, for the methods paragraph: keys of "
            "references.bib"
        ),
    )
    ranges: list[Interval] | None = Field(
        default=None,
        description=(
            "lower and upper end of each measure, in order; null: the domain's own [measure units]"
        ),
    )
    objective_range: Interval | None = Field(
        default=None,
        description=(
            "lowest and best objective; the lowest is the QD-score offset; null: the domain's own "
            "[objective units]"
        ),
    )
    x0: float | list[float] | None = Field(
        default=None,
        description=(
            "the start of the search: one value for all parameters, or a list with one value "
            "each; null: the domain's own, usually 0 [parameter units]"
        ),
    )
    step: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of a typical mutation, the default of sigma, sigma0 and "
            "iso_sigma; null: the domain's own [parameter units]"
        ),
    )
    evaluation_seed: (
        Literal["fixed", "iteration", "solution"] | Annotated[int, Field(ge=0, lt=2**32)]
    ) = Field(
        default="solution",
        description=(
            "the seeds of the evaluations. `fixed` is one seed for the run, derived from the "
            "run's seed. `iteration` and `solution` are a new seed for each of them. A number is "
            "the seed of all evaluations"
        ),
    )

    @property
    def own_parts(self) -> dict[str, Any]:
        """The models of those parts that are the user's, by their key in the experiment."""
        return {}

    @property
    def id_parts(self) -> dict[str, str]:
        """What a run's id has of its code, in addition to `version`."""
        return {}

    @property
    def former(self) -> "DomainConfig | None":
        """The domain as earlier releases computed it, under other ids; None where it is equal."""
        return None

    @property
    def merges_moments(self) -> bool:
        """Whether its tallies are numbers, means and squared deviations, which are no sums."""
        return False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it imports by name and that no id covers."""
        return ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """The distributions that its results depend on, in addition to those of every run."""
        return self.own_libraries

    @property
    def used_libraries(self) -> tuple[str, ...]:
        """Those of `libraries` that its evaluations use, for the methods paragraph."""
        return self.libraries

    @property
    def packages(self) -> tuple[str, ...]:
        """What it needs that not every installation has, as `config.extras` takes it."""
        return ()

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite` first, then those of the type."""
        return (*self.cite, *self.own_papers)

    def phrase(self, source: str, solution_dim: int | None) -> str:
        """Returns the domain in words, such as "a planar arm with 100 joints".

        Args:
            source: The citation of its papers. It follows the title.
            solution_dim: Parameters of a solution.
        """
        title = self.title or self.own_title.format(self=self)
        return f"{title}{source} {self.solution_text.format(self=self, solution_dim=solution_dim)}"

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

    @property
    def why_no_experience(self) -> str:
        """Why nothing can learn from its steps; empty where it can, or only the code knows."""
        return ""

    @property
    def why_no_replay(self) -> str:
        """Why nothing can learn from its earlier steps once more; empty where it can."""
        return ""

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the seeds of evaluations without randomness; see `Model`."""
        if self.is_deterministic:
            why = f"evaluations of {self.name or self.type} do not depend on a seed"
            yield from self.set_keys(why, "evaluation_seed")

    @property
    def observation_bytes(self) -> int:
        """Size of a recorded observation where it is known; 0 where only the code knows."""
        return 0

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


class PolicyDomain(DomainConfig):
    """A domain whose solutions are the weights of a policy that plays episodes.

    A subclass has the keys `policy`, `measures` and `episodes`.
    """

    has_episodes = True
    counts_steps = True
    solution_text = "with {self.policy.title} of {solution_dim} weights"

    objective_range: Interval = Field(
        description="lowest and best return; the lowest is the QD-score offset [return]"
    )
    # It allows more than that of other domains, which have no network.
    x0: float | list[float] | Literal["xavier"] | None = Field(  # type: ignore[assignment]
        default=None,
        description=(
            "the start of the search: one value for all weights, or a list with one value each; "
            "null: 0. `xavier` is a random network of Glorot & Bengio (2010) without biases, "
            "drawn from the seed of the run [weight units]"
        ),
    )
    step: float = Field(
        default=0.5, gt=0, description="standard deviation of a typical mutation [weight units]"
    )

    @property
    def own_parts(self) -> dict[str, Any]:
        """The measures that are functions of the user's."""
        measures: list[Measure] = self.measures  # type: ignore[attr-defined]
        return {f"domain.measures.{n}": own for n, own in enumerate(measures) if own.is_own}

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return len(self.measures)  # type: ignore[attr-defined]

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return False

    @field_validator("measures", check_fields=False)
    @classmethod
    def _check_labels(cls, measures: list[Measure]) -> list[Measure]:
        label, count = Counter(measure.label for measure in measures).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{count} measures have the name {label!r}; give each its own name")
        return measures


def require_episodes(domain: DomainConfig) -> None:
    """Refuses a domain that does not play episodes, which could be rendered.

    Raises:
        BadInput: The message names the domain.
    """
    if not domain.has_episodes:
        raise BadInput(
            f"the domain {domain.name or domain.type} (type {domain.type}) has no episodes to "
            "render. The types gymnasium, atari and lunar_lander have episodes. Your own class "
            "has them if it uses an environment of gymnasium.make, or has a method "
            "render(solution, seed)"
        )
