"""The `domain:` part of an experiment: the objective and the measures, as data."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, PrivateAttr, Tag, model_validator

from qdsweep.config.domain_keys import MLP, DomainConfig, Linear, Measure, PolicyDomain
from qdsweep.config.model import TARGET, Model, tagged
from qdsweep.features import modules
from qdsweep.versions import requirements

# Gymnasium's own environments with MuJoCo's physics.
_MUJOCO = re.compile(
    "(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher"
    r"|Reacher|Swimmer|Walker2d)-v\d+"
)
# Those with Box2D's.
_BOX2D = re.compile(r"(BipedalWalker|CarRacing|LunarLander).*-v\d+")
_PHYSICS = ("box2d", "mujoco", "pybullet")


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
        return "it is a function without episodes"


class LinearProjection(_Benchmark):
    """The linear projection benchmark: a function of many parameters, sums of them as measures."""

    code = "qdsweep.domains.linear_projection:LinearProjection"
    code_keys = ("function", "solution_dim", "num_measures")
    own_title = "the {self.function} function of the linear projection benchmark"
    solution_text = "in {solution_dim} dimensions"

    type: Literal["linear_projection"]
    function: Literal["sphere", "rastrigin", "plateau"] = Field(description="the objective")
    solution_dim: int = Field(
        default=100, ge=2, description="parameters of a solution, at least one for each measure"
    )
    num_measures: int = Field(
        default=2,
        ge=1,
        description=(
            "measures: each is the sum of one of as many groups of parameters, the halves for 2"
        ),
    )
    step: float = Field(
        default=0.5, gt=0, description="standard deviation of a typical mutation [parameter units]"
    )

    @property
    def measure_dim(self) -> int:
        """Number of measures."""
        return self.num_measures

    @model_validator(mode="after")
    def _check_groups(self) -> "LinearProjection":
        if self.num_measures > self.solution_dim:
            raise ValueError(
                f"num_measures = {self.num_measures}: solution_dim = {self.solution_dim} has too "
                "few parameters. Give at least one for each measure"
            )
        return self

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
    step: float = Field(
        default=0.1, gt=0, description="standard deviation of a typical mutation [rad]"
    )

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
    step: float = Field(
        default=1.0, gt=0, description="standard deviation of a typical mutation [weight units]"
    )
    evaluation_seed: (
        Literal["fixed", "iteration", "solution"] | Annotated[int, Field(ge=0, lt=2**32)]
    ) = Field(
        default="fixed",
        description=(
            "the seed of terrain and wind: fixed, iteration, solution, or a number (that seed for "
            "all evaluations; pyribs' example has 52)"
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
        """Its own code plays it, and is optimised for speed."""
        return (
            "it plays pyribs' example without a record of the steps. rl_lunar_lander, of type "
            "gymnasium, has a record, for learners of discrete actions"
        )


class Wrapper(Model):
    """A wrapper of an environment: `Class(env, **arguments)`."""

    type: str = Field(
        pattern=rf"{TARGET}|^[A-Z][A-Za-z0-9]*$",
        description="the name of one of gymnasium.wrappers, or your own `module:Class`",
    )
    arguments: dict[str, Any] = Field(default={}, description="its arguments after the environment")


class Gymnasium(PolicyDomain):
    """Any gymnasium environment; observations of spaces other than Box are flattened.

    An evaluation fails if the policy acted on an observation that is NaN, or the return is NaN.
    """

    code = "qdsweep.domains.gymnasium_task:GymnasiumTask"
    own_libraries = ("gymnasium", "box2d", "mujoco")
    own_title = "{self.env}"

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
    wrappers: list[Wrapper] = Field(
        default=[], description="wrappers of the environment, the innermost first"
    )
    max_episode_steps: int | None = Field(
        default=None,
        ge=1,
        description=(
            "maximum length of an episode; null: the environment's own limit, or, if it has none, "
            "failure of the evaluation after 100,000 steps of an episode [steps]"
        ),
    )
    episodes: int = Field(
        default=1, ge=1, description="episodes that an evaluation averages [episodes]"
    )
    policy: Annotated[Linear | MLP, Field(discriminator="type")] = Field(
        default=Linear(type="linear"), description="the policy, which maps observations to actions"
    )
    normalize_observations: bool = Field(
        default=False,
        description=(
            "normalise the observations by mean and standard deviation of all observations of the "
            "earlier batches, of a learner those of its exploring episodes. archive.npz has the "
            "statistics of each elite"
        ),
    )
    clip_actions: bool = Field(
        default=False,
        description=(
            "clip the components of an action that have only one bound. Needed where there are "
            "such components, and refused elsewhere: earlier releases did not clip them, so only "
            "these tasks have other run ids"
        ),
    )
    measures: list[Measure] = Field(min_length=1, description="the measures, in order")

    # Earlier releases added up squares of observations, which loses the deviation of large ones.
    _adds_squares: bool = PrivateAttr(default=False)

    @property
    def id_parts(self) -> dict[str, str]:
        """The statistics of observations, where it normalises them."""
        return {"observation_statistics": "moments"} if self.merges_moments else {}

    @property
    def former(self) -> "Gymnasium | None":
        """The task that normalises observations by sums of squares."""
        if not self.merges_moments:
            return None
        former = self.model_copy()
        former._adds_squares = True
        return former

    @property
    def merges_moments(self) -> bool:
        """Whether it normalises observations, and not as earlier releases did."""
        return self.normalize_observations and not self._adds_squares

    @property
    def libraries(self) -> tuple[str, ...]:
        """Gymnasium and its physics; of `module:Name-vN` also the module and what it requires."""
        return tuple(dict.fromkeys((*self.own_libraries, *self._of_module)))

    @property
    def used_libraries(self) -> tuple[str, ...]:
        """Gymnasium and the physics of this environment, and the module of `module:Name-vN`."""
        engines = (("mujoco", _MUJOCO), ("box2d", _BOX2D))
        physics = [name for name, environments in engines if environments.fullmatch(self.env)]
        module, *needed = self._of_module or ("",)
        further = (module, *(name for name in needed if name in _PHYSICS)) if module else ()
        return tuple(dict.fromkeys(("gymnasium", *physics, *further)))

    @property
    def _of_module(self) -> tuple[str, ...]:
        module = self.env.rpartition(":")[0].partition(".")[0]
        return (module, *requirements(module)) if module else ()

    @property
    def own_parts(self) -> dict[str, Any]:
        """The wrappers and the functions of measures that are the user's."""
        wrappers = {f"domain.wrappers.{n}": w for n, w in enumerate(self.wrappers) if ":" in w.type}
        return wrappers | super().own_parts

    @property
    def modules(self) -> tuple[str, ...]:
        """The module of `module:Name-vN`."""
        return (self.env.partition(":")[0],) if ":" in self.env else ()

    @property
    def packages(self) -> tuple[str, ...]:
        """The module of `module:Name-vN`, or MuJoCo."""
        if self.modules:
            return (self.env,)
        return ("mujoco",) if _MUJOCO.fullmatch(self.env) else ()

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers: Gymnasium's, the physics' if a measure needs it, `cite`'s."""
        physics = "coumans2016pybullet" if self.env.startswith("pybullet") else "todorov2012mujoco"
        touches = any(measure.measure == "contact" for measure in self.measures)
        robots = (physics,) if touches else ()
        return ("towers2024gymnasium", *robots, *self.cite)

    @property
    def why_no_replay(self) -> str:
        """A replay buffer would mix observations of several scales."""
        if self.normalize_observations:
            return "with normalize_observations, the scale of its observations changes"
        return ""


class Plugin(DomainConfig):
    """Your own domain: `Class(**arguments)`, an object with the attributes of a Domain."""

    code = "qdsweep.domains.plugin:make_plugin"
    has_episodes = True
    counts_steps = True

    type: str = Field(
        pattern=TARGET,
        description="`module:Class`, from config/plugins/ or any importable module",
    )
    arguments: dict[str, Any] = Field(default={}, description="arguments of the class")

    @property
    def own_parts(self) -> dict[str, Any]:
        """The class itself."""
        return {"domain": self}


def _tag(value: Any) -> str | None:
    """Returns the tag of a domain: its `type`, or "module:Class" for any class of a user."""
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "module:Class" if isinstance(kind, str) and ":" in kind else kind


if TYPE_CHECKING:
    DomainSettings = DomainConfig
else:
    # A BeforeValidator around this could give a better message. But the union would then be checked
    # as Python objects and no longer as JSON, and strict mode accepts a list as a tuple only in
    # JSON.
    DomainSettings = Annotated[
        Union[
            Annotated[LinearProjection, Tag("linear_projection")],
            Annotated[Arm, Tag("arm")],
            Annotated[LunarLander, Tag("lunar_lander")],
            Annotated[Gymnasium, Tag("gymnasium")],
            *(tagged(model) for feature in modules("domains") for model in feature.DOMAINS),
            Annotated[Plugin, Tag("module:Class")],
        ],
        Discriminator(_tag),
    ]
