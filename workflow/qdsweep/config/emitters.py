"""Emitters: their keys, facts about them, and checks of their sizes."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator, model_validator

from qdsweep.config.model import NOW, RESTART, TARGET, FromZero, Interval, Model, own_or_type
from qdsweep.config.refused import EMITTERS
from qdsweep.text import nearest

# Evolution strategy -> its name in a text, and its paper (a key of config/references.bib).
STRATEGIES = {
    "cma_es": ("CMA-ES", "hansen2016cma"),
    "sep_cma_es": ("sep-CMA-ES", "ros2008simple"),
    "lm_ma_es": ("LM-MA-ES", "loshchilov2019large"),
    "openai_es": ("OpenAI-ES", "salimans2017evolution"),
}
# Further arguments of each evolution strategy, after sigma0, dimension, batch size, seed and
# bounds.
ES_ARGUMENTS: dict[str, dict[str, type]] = {
    "cma_es": {},
    "sep_cma_es": {},
    "lm_ma_es": {"n_vectors": int},
    "openai_es": {
        "mirror_sampling": bool,
        **dict.fromkeys(("lr", "beta1", "beta2", "epsilon", "l2_coeff"), float),
    },
}

Ranker = Literal[
    "imp", "2imp", "rd", "2rd", "obj", "2obj", "nov", "nslc", "nslc_classic", "density"
]
_RANKER_PAPERS = {
    "nov": ("lee2024density",),
    "nslc": ("lehman2011evolving",),
    "nslc_classic": ("lehman2011evolving",),
}
SelectionRule = Literal["mu", "filter"]
RestartRule = Literal["no_improvement", "basic"] | Annotated[int, Field(ge=1)]


class EmitterKind(Model):
    """Facts about an emitter kind."""

    fixed = "the emitter is made with it"
    # Whether it asks for the gradients of solutions.
    needs_jacobian: ClassVar[bool] = False
    # Whether its first batch can be random solutions.
    draws_first: ClassVar[bool] = False
    # The name of such emitters in a text, and the papers of the kind: keys of references.bib.
    title: ClassVar[str]
    cite: ClassVar[tuple[str, ...]] = ()

    type: str = Field(description="which kind")

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers, in the order of a citation."""
        return self.cite

    @property
    def reads_insertions(self) -> bool:
        """Whether it depends on what the archive reports of new solutions, such as improvement."""
        return False

    @property
    def fixed_batch(self) -> str:
        """Why its batch size cannot change while a run lasts; empty where it can."""
        return ""

    def first_batch(self, batch_size: int) -> int:
        """Returns the number of its solutions in the first iteration."""
        return batch_size

    def begins_at_random(self, drawn: int | None) -> bool:
        """Returns whether its first batch is random; `drawn` is the experiment's `first_batch`."""
        return False

    def check_start(self, at_random: bool) -> None:
        """Refuses a first batch, random or not, that the emitter cannot begin with.

        Raises:
            ValueError: It cannot.
        """

    def check_sizes(self, batch_size: int, solution_dim: int | None) -> None:
        """Refuses sizes that the emitter cannot work with.

        Args:
            batch_size: Solutions of the emitter in an iteration.
            solution_dim: Parameters of a solution; None where only the domain's code knows.

        Raises:
            ValueError: The sizes do not fit.
        """


class _Initial(EmitterKind):
    """An emitter that mutates elites."""

    draws_first = True

    initial_solutions: int = Field(
        title="... random initial solutions per emitter",
        default=0,
        ge=0,
        description=(
            "size of the first batch, drawn from N(x0, I), which counts towards the budget; 0: "
            "mutants of x0, pyribs' default. `first_batch` is the size for all emitters together "
            "[solutions per emitter]"
        ),
    )
    bounds: Interval | None = Field(
        default=None,
        description="lower and upper bound of every parameter; null: none [parameter units]",
    )

    def first_batch(self, batch_size: int) -> int:
        """Returns the number of its solutions in the first iteration."""
        return self.initial_solutions or batch_size

    def begins_at_random(self, drawn: int | None) -> bool:
        """Returns whether its first batch is random; `drawn` is the experiment's `first_batch`."""
        return bool(drawn or self.initial_solutions)


class Gaussian(_Initial):
    """pyribs' GaussianEmitter: an elite plus Gaussian noise (MAP-Elites)."""

    title = "Gaussian emitters"
    cite = ("mouret2015illuminating",)

    type: Literal["gaussian"]
    sigma: float | None = Field(
        title="mutation scale",
        default=None,
        gt=0,
        description=(
            "standard deviation of the noise; null: the domain's `mutation_scale` [parameter units]"
        ),
        json_schema_extra=NOW,
    )


class IsoLine(_Initial):
    """pyribs' IsoLineEmitter: isotropic noise plus noise along the line to another elite."""

    title = "line emitters"
    cite = ("vassiliades2018discovering", "mouret2015illuminating")

    type: Literal["iso_line"]
    iso_sigma: float | None = Field(
        title="isotropic mutation scale",
        default=None,
        gt=0,
        description=(
            "standard deviation of the isotropic noise; null: the domain's `mutation_scale` "
            "[parameter units]"
        ),
        json_schema_extra=NOW,
    )
    line_sigma: float = Field(
        title="line mutation scale",
        default=0.2,
        ge=0,
        description="standard deviation of the noise along the line [fraction of the distance]",
        json_schema_extra=NOW,
    )


class _Adaptive(EmitterKind):
    """An emitter around an evolution strategy."""

    ranker: Ranker = Field(
        title="... ranking",
        default="2imp",
        description=(
            "how solutions are ranked for the update. nov and nslc need a proximity archive, "
            "density needs a density archive, and nslc_classic also needs the domain's field "
            "`genotypic_diversity`"
        ),
        json_schema_extra=NOW,
    )
    es: Literal["cma_es", "sep_cma_es", "lm_ma_es", "openai_es"] = Field(
        title="... as evolution strategy", default="cma_es", description="the evolution strategy"
    )
    es_kwargs: dict[str, bool | int | float] = Field(
        default={},
        description=(
            "further arguments of the evolution strategy: n_vectors of lm_ma_es; mirror_sampling, "
            "lr, beta1, beta2, epsilon and l2_coeff of openai_es"
        ),
    )
    selection_rule: SelectionRule = Field(
        title="... selection",
        default="filter",
        description="parents of the update: the better half (mu) or the new elites (filter)",
        json_schema_extra=NOW,
    )
    restart_rule: RestartRule = Field(
        title="restart rule",
        default="no_improvement",
        description=(
            "when the strategy restarts from an elite (from x0 while the archive is empty): "
            "no_improvement, basic, or a number [iterations]"
        ),
        json_schema_extra=NOW,
    )
    bounds: Interval | None = Field(
        default=None,
        description="lower and upper bound of every parameter; null: none [parameter units]",
    )

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of its papers, in the order of a citation."""
        return (*self.cite, *_RANKER_PAPERS.get(self.ranker, ()), STRATEGIES[self.es][1])

    @property
    def fixed_batch(self) -> str:
        """Why its batch size cannot change while a run lasts; empty where it can."""
        return "the vectors of lm_ma_es depend on it" if self.es == "lm_ma_es" else ""

    @property
    def reads_insertions(self) -> bool:
        """Whether it depends on what the archive reports of new solutions, such as improvement."""
        chooses = self.selection_rule == "filter" or self.restart_rule == "no_improvement"
        return self.ranker != "obj" or chooses

    @field_validator("es", "ranker", mode="before")
    @classmethod
    def _refuse_part(cls, value: object) -> object:
        if isinstance(value, str) and value in EMITTERS:
            raise ValueError(EMITTERS[value])
        return value

    @field_validator("es_kwargs")
    @classmethod
    def _check_es_kwargs(
        cls, arguments: dict[str, bool | int | float], info: ValidationInfo
    ) -> dict[str, bool | int | float]:
        es = info.data.get("es")
        if es is None:  # `es` is wrong, and its error is reported
            return arguments
        known = ES_ARGUMENTS[es]
        for name, value in arguments.items():
            if name not in known:
                raise ValueError(
                    f"{es} has no argument {name!r}; {nearest(name, known)}"
                    f"it has: {', '.join(known) or 'none'}"
                )
            allowed = (int, float) if known[name] is float else (known[name],)
            if type(value) not in allowed:
                raise ValueError(f"{name} = {value!r}: should be of type {known[name].__name__}")
        # As the argument's type: 1 and 1.0 must give the same run id.
        return {name: known[name](value) for name, value in arguments.items()}


class EvolutionStrategy(_Adaptive):
    """pyribs' EvolutionStrategyEmitter (CMA-ME, CMA-MAE, and plain strategies with ranker obj)."""

    title = "evolution-strategy emitters"

    type: Literal["evolution_strategy"]
    sigma0: float | None = Field(
        title="initial step size",
        default=None,
        gt=0,
        description="initial step size; null: the domain's `mutation_scale` [parameter units]",
        json_schema_extra=RESTART,
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> "EvolutionStrategy":
        mirror = self.es_kwargs.get("mirror_sampling", True)
        if self.bounds is not None and self.es == "openai_es" and mirror:
            raise ValueError(
                f"bounds = {list(self.bounds)}: openai_es has none with mirror_sampling. Set "
                "es_kwargs: {mirror_sampling: false}, or use cma_es"
            )
        return self

    def check_sizes(self, batch_size: int, solution_dim: int | None) -> None:
        """Refuses sizes that the evolution strategy cannot work with; see `EmitterKind`."""
        if batch_size < 2:
            raise ValueError(f"batch_size = {batch_size}: an evolution strategy needs at least 2")
        mirror = self.es_kwargs.get("mirror_sampling", True)
        if self.es == "openai_es" and mirror and batch_size % 2:
            raise ValueError(
                f"batch_size = {batch_size}: openai_es with mirror_sampling needs an even number"
            )
        if solution_dim is None:
            return
        if solution_dim < 2:
            raise ValueError(
                f"{self.es} cannot adapt a solution of {solution_dim} parameter. Use emitters of "
                "type gaussian (algorithm map_elites)"
            )
        if self.es == "lm_ma_es" and batch_size > solution_dim:
            raise ValueError(
                f"batch_size = {batch_size}: lm_ma_es needs at most solution_dim = {solution_dim}"
            )


class GradientArborescence(_Adaptive):
    """pyribs' GradientArborescenceEmitter (CMA-MEGA, CMA-MAEGA); needs the domain's jacobian."""

    title = "gradient-arborescence emitters"
    needs_jacobian = True
    cite = ("fontaine2021differentiable",)

    type: Literal["gradient_arborescence"]
    sigma0: float = Field(
        title="initial step size",
        default=10.0,
        gt=0,
        description="initial step size in the space of gradient coefficients",
        json_schema_extra=RESTART,
    )
    lr: float = Field(
        title="gradient learning rate",
        default=1.0,
        gt=0,
        description="learning rate of the gradient optimiser",
        json_schema_extra=NOW,
    )
    grad_opt: Literal["gradient_ascent", "adam"] = Field(
        default="gradient_ascent", description="the gradient optimiser"
    )
    normalize_grad: bool = Field(
        default=True, description="normalise gradients to unit length", json_schema_extra=NOW
    )

    @field_validator("bounds")
    @classmethod
    def _check_bounds(cls, bounds: Interval | None) -> Interval | None:
        if bounds is not None:
            raise ValueError("gradient_arborescence has no bounds in pyribs. Leave them out")
        return bounds

    def check_sizes(self, batch_size: int, solution_dim: int | None) -> None:
        """Refuses a batch that is too small for a gradient step; see `EmitterKind`."""
        if batch_size < 3:
            raise ValueError(
                f"batch_size = {batch_size}: gradient_arborescence needs at least 3, "
                "one of them for the gradient"
            )


class GradientOperator(_Initial):
    """pyribs' GradientOperatorEmitter (OMG-MEGA and relatives); needs the domain's jacobian."""

    title = "gradient-operator emitters"
    needs_jacobian = True
    cite = ("fontaine2021differentiable",)

    type: Literal["gradient_operator"]
    sigma: float | None = Field(
        title="mutation scale",
        default=None,
        ge=0,
        description=(
            "standard deviation of the noise before the gradient step, 0: no noise; null: the "
            "domain's `mutation_scale` [parameter units]"
        ),
        json_schema_extra=NOW,
    )
    sigma_g: float = Field(
        default=10.0,
        gt=0,
        description="standard deviation of the gradient coefficients",
        json_schema_extra=NOW,
    )
    line_sigma: FromZero = Field(
        title="line mutation scale",
        default=0.0,
        ge=0,
        description="standard deviation of the noise along the line [fraction of the distance]",
        json_schema_extra=NOW,
    )
    measure_gradients: bool = Field(
        default=True,
        description="follow the gradients of the measures too",
        json_schema_extra=NOW,
    )
    normalize_grad: bool = Field(
        default=True, description="normalise gradients to unit length", json_schema_extra=NOW
    )
    operator_type: Literal["isotropic", "iso_line_dd"] = Field(
        default="isotropic", description="the mutation before the gradient step"
    )

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields the scale of the other mutation; see `Model`."""
        if self.operator_type == "isotropic":
            yield from self.set_keys("operator_type is isotropic", "line_sigma")

    def check_start(self, at_random: bool) -> None:
        """Refuses to mix two elites where there are none; see `EmitterKind`."""
        if self.operator_type == "iso_line_dd" and not at_random:
            raise ValueError(
                "operator_type iso_line_dd mixes two elites, and the first iteration has none. "
                "Give a random first batch (initial_solutions, or first_batch)"
            )

    def check_sizes(self, batch_size: int, solution_dim: int | None) -> None:
        """Refuses a batch that cannot be halved for the gradients; see `EmitterKind`."""
        if batch_size % 2:
            raise ValueError(
                f"batch_size = {batch_size}: gradient_operator needs an even number, "
                "half of it for the gradients"
            )


class PluginEmitter(EmitterKind):
    """Your own emitter: `Class(archive, x0=..., batch_size=..., seed=..., **arguments)`."""

    title = "emitters of the class"

    type: str = Field(
        title="emitters of the class",
        pattern=TARGET,
        description="`module:Class`, from config/plugins/ or any importable module",
    )
    arguments: dict[str, Any] = Field(
        default={},
        description="further arguments of the class; they may also be next to `type`",
        json_schema_extra=NOW,
    )

    @property
    def fixed_batch(self) -> str:
        """Why its batch size cannot change while a run lasts."""
        return f"{self.type} is made with it"


Emitter = Annotated[
    Annotated[Gaussian, Tag("gaussian")]
    | Annotated[IsoLine, Tag("iso_line")]
    | Annotated[EvolutionStrategy, Tag("evolution_strategy")]
    | Annotated[GradientArborescence, Tag("gradient_arborescence")]
    | Annotated[GradientOperator, Tag("gradient_operator")]
    | Annotated[PluginEmitter, Tag("plugin")],
    Discriminator(own_or_type),
]
