"""The `algorithm:` part of an experiment: a composition of pyribs' parts, as data."""

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from qdsweep.config.base import Interval, Model
from qdsweep.config.files import nearest

# What each evolution strategy takes besides sigma0, dimension, batch size, seed and bounds.
ES_ARGUMENTS: dict[str, dict[str, type]] = {
    "cma_es": {},
    "sep_cma_es": {},
    "lm_ma_es": {"n_vectors": int},
    "openai_es": {
        "mirror_sampling": bool,
        **dict.fromkeys(("lr", "beta1", "beta2", "epsilon", "l2_coeff"), float),
    },
}
# What would break the promise "same experiment, same archive digest".
REFUSED = {
    "pycma_es": "pycma_es does not pickle, so a run could not be resumed; take cma_es",
    "bayesian_opt": (
        "the Bayesian-optimisation emitter gives two results for one seed, so a run could not be "
        "repeated; take evolution_strategy"
    ),
}

Ranker = Literal["imp", "2imp", "rd", "2rd", "obj", "2obj", "nov", "density"]
SelectionRule = Literal["mu", "filter"]
RestartRule = Literal["no_improvement", "basic"] | Annotated[int, Field(ge=1)]


class _Initial(Model):
    """What the emitters that mutate elites share."""

    initial_solutions: int = Field(
        default=0,
        ge=0,
        description=(
            "size of the first batch, drawn from N(x0, I); 0 mutates x0 as pyribs does by "
            "default [solutions an emitter]"
        ),
    )
    bounds: Interval | None = Field(
        default=None,
        description="lower and upper bound of every parameter, or null for none [parameter units]",
    )


class Gaussian(_Initial):
    """pyribs' GaussianEmitter: an elite plus Gaussian noise (MAP-Elites)."""

    type: Literal["gaussian"]
    sigma: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of the noise; null for the domain's `step` [parameter units]"
        ),
    )


class IsoLine(_Initial):
    """pyribs' IsoLineEmitter: isotropic noise plus noise along the line to another elite."""

    type: Literal["iso_line"]
    iso_sigma: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of the isotropic noise; null for the domain's `step` "
            "[parameter units]"
        ),
    )
    line_sigma: float = Field(
        default=0.2,
        ge=0,
        description="standard deviation of the noise along the line [fraction of the distance]",
    )


class _Adaptive(Model):
    """What the emitters around an evolution strategy share."""

    ranker: Ranker = Field(default="2imp", description="how solutions are ranked for the update")
    es: Literal["cma_es", "sep_cma_es", "lm_ma_es", "openai_es"] = Field(
        default="cma_es", description="the evolution strategy"
    )
    es_kwargs: dict[str, bool | int | float] = Field(
        default={},
        description=(
            "further arguments of the evolution strategy: n_vectors of lm_ma_es; mirror_sampling, "
            "lr, beta1, beta2, epsilon and l2_coeff of openai_es"
        ),
    )
    selection_rule: SelectionRule = Field(
        default="filter",
        description="parents of the update: the better half (mu) or the new elites (filter)",
    )
    restart_rule: RestartRule = Field(
        default="no_improvement",
        description=(
            "when the strategy restarts from an elite: no_improvement, basic, or a number "
            "[iterations]"
        ),
    )
    bounds: Interval | None = Field(
        default=None,
        description="lower and upper bound of every parameter, or null for none [parameter units]",
    )

    @field_validator("es", mode="before")
    @classmethod
    def _refuse_es(cls, value: object) -> object:
        if value in REFUSED:
            raise ValueError(REFUSED[str(value)])
        return value

    @field_validator("es_kwargs")
    @classmethod
    def _check_es_kwargs(
        cls, arguments: dict[str, bool | int | float], info: ValidationInfo
    ) -> dict[str, bool | int | float]:
        es = info.data.get("es")
        if es is None:  # wrong itself
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
        # 1 for 1.0 is the same run.
        return {name: known[name](value) for name, value in arguments.items()}


class EvolutionStrategy(_Adaptive):
    """pyribs' EvolutionStrategyEmitter (CMA-ME, CMA-MAE, and plain strategies with ranker obj)."""

    type: Literal["evolution_strategy"]
    sigma0: float | None = Field(
        default=None,
        gt=0,
        description="initial step size; null for the domain's `step` [parameter units]",
    )


class GradientArborescence(_Adaptive):
    """pyribs' GradientArborescenceEmitter (CMA-MEGA, CMA-MAEGA); needs the domain's jacobian."""

    type: Literal["gradient_arborescence"]
    sigma0: float = Field(
        default=10.0, gt=0, description="initial step size in the space of gradient coefficients"
    )
    lr: float = Field(default=1.0, gt=0, description="learning rate of the gradient optimiser")
    grad_opt: Literal["gradient_ascent", "adam"] = Field(
        default="gradient_ascent", description="the gradient optimiser"
    )
    normalize_grad: bool = Field(default=True, description="normalise gradients to unit length")


class GradientOperator(_Initial):
    """pyribs' GradientOperatorEmitter (OMG-MEGA and relatives); needs the domain's jacobian."""

    type: Literal["gradient_operator"]
    sigma: float | None = Field(
        default=None,
        gt=0,
        description=(
            "standard deviation of the noise before the gradient step; null for the domain's "
            "`step` [parameter units]"
        ),
    )
    sigma_g: float = Field(
        default=10.0, gt=0, description="standard deviation of the gradient coefficients"
    )
    line_sigma: float = Field(
        default=0.0,
        ge=0,
        description="standard deviation of the noise along the line [fraction of the distance]",
    )
    measure_gradients: bool = Field(
        default=True, description="follow the gradients of the measures too"
    )
    normalize_grad: bool = Field(default=True, description="normalise gradients to unit length")
    operator_type: Literal["isotropic", "iso_line_dd"] = Field(
        default="isotropic", description="the mutation before the gradient step"
    )


class PluginEmitter(Model):
    """An emitter of yours: `Class(archive, x0=..., batch_size=..., seed=..., **arguments)`."""

    type: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="`module:Class`, from config/plugins/ or any importable module",
    )
    arguments: dict[str, Any] = Field(default={}, description="further arguments of the class")


class GridArchive(Model):
    """pyribs' GridArchive: the measure space cut in `archive.dims` boxes."""

    type: Literal["grid"]
    learning_rate: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="CMA-MAE's threshold update; null for plain elitism",
    )
    threshold_min: float | None = Field(
        default=None,
        description=(
            "CMA-MAE's first threshold; null for the lowest objective of the domain "
            "[objective units]"
        ),
    )


class CVTArchive(Model):
    """pyribs' CVTArchive: `archive.cells` cells around k-means centroids."""

    type: Literal["cvt"]
    learning_rate: float | None = Field(
        default=None, ge=0, le=1, description="CMA-MAE's threshold update; null for plain elitism"
    )
    threshold_min: float | None = Field(
        default=None,
        description=(
            "CMA-MAE's first threshold; null for the lowest objective of the domain "
            "[objective units]"
        ),
    )
    samples: int = Field(
        default=100_000, ge=1, description="points for the k-means centroids [points]"
    )
    centroids_seed: int = Field(
        default=0, ge=0, description="seed of the centroids, the same for every run of a sweep"
    )


class SlidingBoundariesArchive(Model):
    """pyribs' SlidingBoundariesArchive: a grid whose boundaries follow the solutions."""

    type: Literal["sliding_boundaries"]
    remap_frequency: int = Field(
        default=100, ge=1, description="insertions between two moves of the boundaries [solutions]"
    )
    buffer_capacity: int = Field(
        default=1000, ge=1, description="latest solutions that decide the boundaries [solutions]"
    )


class ProximityArchive(Model):
    """pyribs' ProximityArchive: an unstructured archive of novel solutions (novelty search)."""

    type: Literal["proximity"]
    k_neighbors: int = Field(default=15, ge=1, description="neighbours that decide novelty")
    novelty_threshold: float = Field(
        default=1.0, ge=0, description="least mean distance to the neighbours [measure units]"
    )
    local_competition: bool = Field(
        default=False, description="replace a near elite when the objective is better"
    )


class DNSArchive(Model):
    """pyribs' DNSArchive: `archive.cells` elites kept by dominated novelty search."""

    type: Literal["dns"]
    k_neighbors: int = Field(default=3, ge=1, description="fitter neighbours that decide novelty")


class Bandit(Model):
    """pyribs' BanditScheduler: the groups of emitters compete for the evaluations (UCB1).

    `num_emitters` are active at a time, from a pool that holds as many of every group.
    """

    type: Literal["bandit"]
    reselect: Literal["terminated", "all"] = Field(
        default="terminated", description="which emitters are chosen anew after an iteration"
    )
    zeta: float = Field(default=0.05, ge=0, description="weight of exploration in UCB1")


class RoundRobin(Model):
    """pyribs' Scheduler: every emitter in every iteration."""

    type: Literal["all"]


def _tag(value: Any) -> str:
    """The tag of a part: its `type`, or "plugin" for a module:Class."""
    name = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "plugin" if isinstance(name, str) and ":" in name else str(name)


Emitter = Annotated[
    Annotated[Gaussian, Tag("gaussian")]
    | Annotated[IsoLine, Tag("iso_line")]
    | Annotated[EvolutionStrategy, Tag("evolution_strategy")]
    | Annotated[GradientArborescence, Tag("gradient_arborescence")]
    | Annotated[GradientOperator, Tag("gradient_operator")]
    | Annotated[PluginEmitter, Tag("plugin")],
    Discriminator(_tag),
]
Archive = Annotated[
    GridArchive | CVTArchive | SlidingBoundariesArchive | ProximityArchive | DNSArchive,
    Field(discriminator="type"),
]
Scheduler = Annotated[RoundRobin | Bandit, Field(discriminator="type")]


class Algorithm(Model):
    """An archive, groups of emitters and a scheduler, as pyribs composes them."""

    name: str = Field(
        default="custom",
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="the preset's name; shown in run ids and figures",
    )
    archive: Archive = Field(description="the archive that the emitters search with")
    result_archive: bool = Field(
        default=False,
        description=(
            "keep the best solutions in a second, elitist archive of the same cells (a grid for a "
            "proximity archive); metrics and results are then of that one (CMA-MAE)"
        ),
    )
    emitters: list[Emitter] = Field(
        min_length=1,
        description="groups of emitters; `num_emitters` is divided equally among them",
    )
    scheduler: Scheduler = Field(
        default=RoundRobin(type="all"), description="which emitters work in an iteration"
    )
    add_mode: Literal["batch", "single"] = Field(
        default="batch", description="insert the solutions of an iteration at once or one by one"
    )

    @property
    def needs_jacobian(self) -> bool:
        """Whether an emitter asks for gradients."""
        return any(isinstance(e, GradientArborescence | GradientOperator) for e in self.emitters)

    @model_validator(mode="after")
    def _check_parts(self) -> "Algorithm":
        if isinstance(self.scheduler, Bandit) and self.needs_jacobian:
            raise ValueError("the bandit scheduler cannot ask for gradients; take scheduler all")
        if self.result_archive and isinstance(self.archive, DNSArchive):
            raise ValueError("a dns archive keeps its elites itself; set result_archive: false")
        return self
