"""The `domain:` part of an experiment: the objective and the measures, as data."""

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from qdsweep.config.base import TARGET, Interval, Model
from qdsweep.config.episodes import MLP, Linear, Measure
from qdsweep.errors import BadInput
from qdsweep.versions import requirements


class DomainConfig(Model):
    """Keys and facts of every domain. The value None stands for the domain's own value."""

    fixed = "the domain is made with it"
    # Part of every run id. It is raised when the domain's code gives other results.
    version: ClassVar[int] = 1
    # The class or function that makes the domain, `module:name`, and the keys that it is called
    # with. No keys: it is called with this model.
    code: ClassVar[str]
    code_keys: ClassVar[tuple[str, ...]] = ()
    # Installed packages that the results depend on, besides those of every run.
    own_libraries: ClassVar[tuple[str, ...]] = ()
    # Whether an evaluation gives the same result with every seed.
    is_deterministic: ClassVar[bool] = False
    # Whether an evaluation can be rendered: it plays episodes of gymnasium. (A user's code may.)
    has_episodes: ClassVar[bool] = False
    # Whether the steps of the environment are counted. (A user's code may.)
    counts_steps: ClassVar[bool] = False
    # For the methods paragraph, with {self} for this model: what to call a domain without a
    # `title`, what its solutions are, and the papers of the type (keys of config/references.bib).
    own_title: ClassVar[str] = "{self.name}"
    solution_text: ClassVar[str] = "with {solution_dim} parameters"
    own_papers: ClassVar[tuple[str, ...]] = ()

    type: str = Field(description="which domain: a built-in one or a `module:Class` of yours")
    name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    title: str = Field(
        default="",
        description="what the methods paragraph calls it; empty for words of the type, or the name",
    )
    cite: list[str] = Field(
        default=[],
        description=(
            "its papers besides those of its type, for the methods paragraph: keys of "
            "references.bib"
        ),
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
    def libraries(self) -> tuple[str, ...]:
        """The distributions that its results depend on, besides those of every run."""
        return self.own_libraries

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
            source: The citation of its papers. It stands behind the title.
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
    """A benchmark function: nothing is random, it has two measures and known gradients."""

    is_deterministic = True

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return 2

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return True

    @property
    def why_no_experience(self) -> str:
        """Nothing is played."""
        return "it is a function, which plays no episodes"


class LinearProjection(_Benchmark):
    """The linear projection benchmark: a function of many parameters, two sums as measures."""

    code = "qdsweep.domains.linear_projection:LinearProjection"
    code_keys = ("function", "solution_dim")
    own_title = "the {self.function} function of the linear projection benchmark"
    solution_text = "in {solution_dim} dimensions"

    type: Literal["linear_projection"]
    function: Literal["sphere", "rastrigin", "plateau"] = Field(description="the objective")
    solution_dim: int = Field(
        default=100, ge=2, description="parameters of a solution, at least one for each half"
    )
    step: float = Field(default=0.5, gt=0, description="natural mutation scale [parameter units]")

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: those of `cite`, then the paper with this function."""
        plateau = self.function == "plateau"
        return (*self.cite, "fontaine2023covariance" if plateau else "fontaine2020covariance")

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters."""
        return self.solution_dim


class Arm(_Benchmark):
    """A planar arm that should reach everywhere with nearly equal joint angles."""

    code = "qdsweep.domains.arm:Arm"
    code_keys = ("solution_dim",)
    own_title = "a planar arm"
    solution_text = "with {solution_dim} joints"
    own_papers = ("vassiliades2018discovering", "fontaine2023covariance")

    type: Literal["arm"]
    solution_dim: int = Field(default=100, ge=1, description="joints, each with a unit link")
    step: float = Field(default=0.1, gt=0, description="natural mutation scale [rad]")

    @property
    def known_solution_dim(self) -> int:
        """Number of parameters."""
        return self.solution_dim


class LunarLander(DomainConfig):
    """LunarLander-v3 with a linear policy, as in pyribs' example."""

    code = "qdsweep.domains.lunar_lander:LunarLander"
    code_keys = ("episodes",)
    own_libraries = ("gymnasium", "box2d")
    has_episodes = True
    own_title = "LunarLander-v3"
    solution_text = "with a linear policy of {solution_dim} weights"
    own_papers = ("towers2024gymnasium", "tjanaka2021using")

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

    @property
    def why_no_experience(self) -> str:
        """Its four engines are on or off."""
        return "its actions are discrete, and TD3 needs continuous ones"


class Gymnasium(DomainConfig):
    """Any gymnasium environment with 1-D Box observations and Box or Discrete actions."""

    code = "qdsweep.domains.gymnasium_task:GymnasiumTask"
    own_libraries = ("gymnasium", "box2d", "mujoco")
    has_episodes = True
    counts_steps = True
    own_title = "{self.env}"
    solution_text = "with {self.policy.title} of {solution_dim} weights"

    type: Literal["gymnasium"]
    env: str = Field(
        min_length=1,
        description=(
            "the environment's id with its version, such as CartPole-v1; `module:Name-vN` where "
            "importing the module registers it"
        ),
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
    # Wider than that of other domains, which have no network.
    x0: float | list[float] | Literal["xavier"] | None = Field(  # type: ignore[assignment]
        default=None,
        description=(
            "where a search starts: one value for every weight, or a list of them; xavier for a "
            "random network of Glorot & Bengio (2010) without biases, one for each run, drawn from "
            "its seed; null for 0 [weight units]"
        ),
    )
    step: float = Field(default=0.5, gt=0, description="natural mutation scale [weight units]")

    @property
    def libraries(self) -> tuple[str, ...]:
        """Gymnasium and its physics; of `module:Name-vN` also the module and what it requires."""
        module = self.env.rpartition(":")[0].partition(".")[0]
        further = (module, *requirements(module)) if module else ()
        return tuple(dict.fromkeys((*self.own_libraries, *further)))

    @property
    def packages(self) -> tuple[str, ...]:
        """The module of `module:Name-vN`."""
        return (self.env,) if ":" in self.env else ()

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: Gymnasium's, the physics' if a measure needs it, `cite`'s."""
        physics = "coumans2016pybullet" if self.env.startswith("pybullet") else "todorov2012mujoco"
        touches = any(measure.measure == "contact" for measure in self.measures)
        robots = (physics,) if touches else ()
        return ("towers2024gymnasium", *robots, *self.cite)

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return len(self.measures)

    @property
    def has_jacobian(self) -> bool:
        """Whether gradient emitters can work."""
        return False

    @property
    def why_no_experience(self) -> str:
        """What a policy sees must stay the same as long as something learns from it."""
        if self.normalize_observations:
            return "normalize_observations changes what its policies see all the time"
        return ""

    @field_validator("measures")
    @classmethod
    def _check_labels(cls, measures: list[Measure]) -> list[Measure]:
        label, count = Counter(measure.label for measure in measures).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{count} measures have the name {label!r}; give each its own name")
        return measures


class Plugin(DomainConfig):
    """A domain of yours: `Class(**arguments)`, an object with the attributes of a Domain."""

    code = "qdsweep.domains.plugin:make_plugin"
    has_episodes = True
    counts_steps = True

    type: str = Field(
        pattern=TARGET,
        description="`module:Class`, from config/plugins/ or any importable module",
    )
    arguments: dict[str, Any] = Field(default={}, description="arguments of the class")


def _tag(value: Any) -> str | None:
    """Returns the tag of a domain: its `type`, or "module:Class" for any class of a user."""
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "module:Class" if isinstance(kind, str) and ":" in kind else kind


# A BeforeValidator around this could give a better message, but the union would then be checked
# as Python objects and no longer as JSON, and strict mode accepts a list as a tuple only in JSON.
Domain = Annotated[
    Annotated[LinearProjection, Tag("linear_projection")]
    | Annotated[Arm, Tag("arm")]
    | Annotated[LunarLander, Tag("lunar_lander")]
    | Annotated[Gymnasium, Tag("gymnasium")]
    | Annotated[Plugin, Tag("module:Class")],
    Discriminator(_tag),
]


def require_episodes(domain: DomainConfig) -> None:
    """Refuses a domain that does not play episodes, which could be rendered.

    Raises:
        BadInput: The message names the domain.
    """
    if not domain.has_episodes:
        raise BadInput(
            f"the domain {domain.name or domain.type} (type {domain.type}) has no episodes that "
            "could be rendered; the types gymnasium and lunar_lander do, and a class of yours that "
            "plays in what gymnasium.make makes, or has render(solution, seed)"
        )
