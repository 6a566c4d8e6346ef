"""The experiment: what is computed. The cluster decides where it is computed."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, Tag, model_validator

from qdsweep.config.domain import DomainSettings
from qdsweep.config.families import AlgorithmSettings
from qdsweep.config.keys import Schedule
from qdsweep.config.model import NOW, Model, tagged, value_text
from qdsweep.config.own_metric import OwnMetricSettings, own_metrics
from qdsweep.config.resampling import NoResampling, Resampling
from qdsweep.errors import BadInput
from qdsweep.features import modules

# Part of every run id; raised when a default or the meaning of a key changes.
MODEL_VERSION = 1


# The keys of the budget. An experiment has exactly one of them.
BUDGETS = ("iterations", "evaluations", "steps")
SEEDS = range(2**63)
# Their names in a sweep.
BUDGET_NAMES = (*BUDGETS, "env_steps")


def _way(value: Any) -> str:
    """Returns the tag of a way to evaluate again: its type, or "null"."""
    way = value.get("type", "") if isinstance(value, dict) else getattr(value, "type", "")
    return "null" if way is None else str(way)


if TYPE_CHECKING:
    ResamplingSettings = Resampling
else:
    ResamplingSettings = Annotated[
        Union[
            Annotated[NoResampling, Tag("null")],
            *(
                tagged(model)
                for feature in modules("settings")
                for model in getattr(feature, "RESAMPLING", ())
            ),
        ],
        Discriminator(_way),
    ]


class ArchiveSize(Model):
    """How many cells the measure space is cut into: exactly one of the two keys."""

    fixed = "the cells of an archive never change"
    dims: list[int] | None = Field(
        default=None,
        min_length=1,
        description="cells along each measure (a cvt or dns archive takes their product) [cells]",
    )
    cells: int | None = Field(
        default=None, ge=1, description="number of cells of a cvt or dns archive [cells]"
    )

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.dims) if self.dims is not None else self.cells or 0

    @model_validator(mode="after")
    def _check(self) -> "ArchiveSize":
        if (self.dims is None) == (self.cells is None):
            raise ValueError("give exactly one of archive.dims and archive.cells")
        if self.dims is not None and min(self.dims) < 1:
            raise ValueError(f"archive.dims = {self.dims}: every number must be at least 1")
        return self


class OnFailure(Model):
    """The score of a solution whose evaluation fails; without it the run stops."""

    objective: float = Field(
        description=(
            "the objective of such a solution; its measures are the lower ends of their ranges "
            "[objective units]"
        )
    )


class ReloadFile(Model):
    """How often the reload file is written. It never changes a result."""

    max_cost: float = Field(
        default=0.01,
        gt=0,
        le=1,
        description="share of the run's time that saving may take [fraction]",
    )
    min_seconds: float = Field(default=1.0, ge=0, description="minimum time between two saves [s]")
    max_seconds: float = Field(
        default=600.0,
        gt=0,
        description="maximum time between two saves, and so the most that a kill can lose [s]",
    )

    @model_validator(mode="after")
    def _check(self) -> "ReloadFile":
        if self.min_seconds > self.max_seconds:
            raise ValueError(
                f"reload.min_seconds = {self.min_seconds} is above reload.max_seconds = "
                f"{self.max_seconds}"
            )
        return self


class Experiment(Model):
    """One fully resolved run: domain, archive, algorithm, budget and seed.

    Example:
        >>> from qdsweep.config.compose import compose
        >>> experiment = compose("arm", {"iterations": 20, "schedule": "10 batch_size=60"})
        >>> experiment.budget, experiment.evaluations_after(20)
        ({'iterations': 20}, 14400)
        >>> experiment.changes_after(10)
        {'batch_size': 60}
    """

    domain: DomainSettings = Field(description="the objective and the measures")
    algorithm: AlgorithmSettings = Field(description="archive, emitters and scheduler")
    archive: ArchiveSize = Field(description="the number of cells")
    num_emitters: int = Field(
        title="... emitters", default=5, ge=1, description="number of emitters [emitters]"
    )
    batch_size: int = Field(
        title="batch size",
        default=30,
        ge=1,
        description=(
            "solutions of each emitter in an iteration, gradient steps included [solutions]"
        ),
        json_schema_extra=NOW,
    )
    first_batch: int | None = Field(
        title="... random initial solutions in all",
        default=None,
        ge=1,
        description=(
            "random solutions of the first iteration, drawn from N(x0, I) and shared among the "
            "emitters with the key `initial_solutions`, which it replaces. Other algorithms "
            "ignore it [solutions]"
        ),
    )
    iterations: int | None = Field(
        default=None,
        ge=1,
        description="the budget in iterations, each of ask, evaluate and tell [iterations]",
    )
    evaluations: int | None = Field(
        default=None,
        ge=1,
        description=(
            "the budget in evaluations: the run ends with the first iteration that reaches it "
            "[evaluations]"
        ),
    )
    steps: int | None = Field(
        default=None,
        ge=1,
        description=(
            "the budget in environment steps: the run ends with the first iteration that reaches "
            "it [steps]"
        ),
    )
    resampling: ResamplingSettings = Field(
        default=NoResampling(),
        description=(
            "how the run evaluates solutions again where results depend on the evaluation's seed. "
            "Every evaluation counts in the budget; `type: null`: each solution once"
        ),
    )
    seed: int = Field(
        default=0,
        ge=SEEDS.start,
        lt=SEEDS.stop,
        description="the seed of all randomness of the run",
    )
    cpu_baseline: Literal["avx2", "native"] = Field(
        default="avx2",
        description=(
            "avx2: the same bits on every x86-64 machine with AVX2; native: all instructions of "
            "the CPU, repeatable only on equal machines"
        ),
    )
    on_failure: OnFailure | None = Field(
        default=None,
        description=(
            "score a solution whose evaluation fails (exception, NaN, wrong shape), and continue; "
            "null: stop the run and report the solution. A lack of memory, disk space, file "
            "handles or threads never scores one"
        ),
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        description=(
            "stop the run if no evaluation has finished for this time. A slow solution never gets "
            "a score for being slow [s]"
        ),
    )
    reload: ReloadFile = Field(
        default=ReloadFile(), description="when reload files (checkpoints of the run) are written"
    )
    metrics: OwnMetricSettings = Field(
        default=[],
        description=(
            "your own metrics: each is a `module:function`, or a mapping with further keys. They "
            "never change a result"
        ),
    )

    schedule: Schedule = Field(
        default=[],
        description=(
            "changes of keys during the run; also as a text, `1000 sigma=0.05; 2000 sigma=0.01`"
        ),
    )

    @property
    def setting(self) -> tuple[int, ...]:
        """A key that copies of an experiment with other seeds share, as long as one exists."""
        return tuple(id(value) for name, value in vars(self).items() if name != "seed")

    @property
    def budget(self) -> dict[str, int]:
        """The budget: the one key of it that is set, and its value."""
        return {unit: amount for unit in BUDGETS if (amount := getattr(self, unit)) is not None}

    @property
    def first_iteration(self) -> int:
        """Evaluations of the first iteration, which count towards the budget as all do."""
        return self.resampling.evaluations(self._first_solutions, first=True)

    @property
    def _first_solutions(self) -> int:
        sizes = self.num_emitters, self.batch_size, self.first_batch
        return self.algorithm.first_iteration(*sizes)

    @property
    def draws_as_later(self) -> bool:
        """Whether the first iteration has as many new solutions as a later one."""
        return self._first_solutions == self.num_emitters * self.batch_size

    @property
    def later_iteration(self) -> int:
        """Evaluations of a later iteration, or the least number of them."""
        return self._evaluations(self.batch_size)

    def _evaluations(self, batch_size: int) -> int:
        return self.resampling.evaluations(self.num_emitters * batch_size, first=False)

    @property
    def own_parts(self) -> dict[str, Any]:
        """The models of those parts that are the user's and decide its result, by their key."""
        return self.domain.own_parts | self.algorithm.own_parts

    @property
    def plugins(self) -> list[str]:
        """The `module:Class` of each of these parts."""
        return list(dict.fromkeys(part.type for part in self.own_parts.values()))

    @property
    def own_code(self) -> list[str]:
        """The `module:NAME` of all user code, including metrics."""
        metrics = (metric.function for metric in own_metrics(self.metrics))
        return list(dict.fromkeys([*self.plugins, *metrics]))

    @property
    def has_seen_seed(self) -> bool:
        """Whether its algorithm was tuned by runs with its seed on its domain."""
        by = self.algorithm.tuned_by
        return by is not None and self.domain.name in by["domains"] and self.seed in by["seeds"]

    @property
    def has_own_modules(self) -> bool:
        """Whether its results may depend on the user's modules that its id does not cover."""
        return bool(self.plugins or self.domain.modules)

    @property
    def has_history(self) -> bool:
        """Whether its runs write history.npz, which needs cells that never move."""
        return self.algorithm.reported_archive.has_fixed_cells

    @property
    def keeps_best(self) -> bool:
        """Whether its archive never loses its best elite, also after changes of the schedule."""
        archive = self.algorithm.reported_archive
        changed = {key.rpartition(".")[2] for change in self.schedule for key in change.set}
        has_thresholds = getattr(archive, "learning_rate", None) is not None
        return archive.keeps_best and not (has_thresholds and "learning_rate" in changed)

    @property
    def donor(self) -> "Experiment | None":
        """The experiment without its last change: it is the same up to there."""
        if not self.schedule:
            return None
        return self.model_copy(update={"schedule": self.schedule[:-1]})

    @property
    def late_changes(self) -> list[int]:
        """The iterations of scheduled changes that the budget does not reach.

        They are unknown for a budget in steps, and where only the algorithm knows its batches.
        """
        return [change.at for change in self.schedule if self._ends_by(change.at)]

    @property
    def may_evaluate_more(self) -> bool:
        """Whether an iteration may have more evaluations than `evaluations_after` counts.

        A learner plays batches until it has enough steps, and greedy episodes at intervals.
        """
        more = self.algorithm.explores or self.resampling.may_evaluate_more
        return self.evaluations is None and more

    @property
    def judges_its_first_policy_alone(self) -> bool:
        """Whether the budget ends before the second greedy episodes."""
        every = self.algorithm.greedy_every(self.batch_size)
        if every is None:
            return False
        iterations, decisions = every
        if self.steps is not None:
            return iterations * decisions * getattr(self.domain, "frame_skip", 1) >= self.steps
        return self._ends_by(iterations)

    def _ends_by(self, iteration: int) -> bool:
        if self.iterations is not None:
            return iteration >= self.iterations
        if self.evaluations is not None and self.algorithm.batch_is_known:
            return self.evaluations_after(iteration) >= self.evaluations
        return False

    def evaluations_after(self, iterations: int) -> int:
        """Returns the evaluations of `iterations`, at least one (of a bandit, on average)."""
        evaluations, done, batch_size = self.first_iteration, 1, self.batch_size
        for change in self.schedule:
            at = min(change.at, iterations)
            evaluations += (at - done) * self._evaluations(batch_size)
            done, batch_size = at, change.set.get("batch_size", batch_size)
        return evaluations + (iterations - done) * self._evaluations(batch_size)

    def changes_after(self, iteration: int) -> dict[str, Any]:
        """Returns what changes between an iteration and the next: dotted key -> new value."""
        return next((change.set for change in self.schedule if change.at == iteration), {})

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields keys without effect, also after all scheduled changes; see `Model`."""
        found = dict(self.idle_in("domain", "algorithm", "resampling"))
        if found and self.schedule:
            data = self.model_dump(mode="json", exclude={"schedule"})
            for change in self.schedule:
                _apply(change.set, data)
                then = dict(type(self).model_validate_json(json.dumps(data)).idle())
                found = {key: why for key, why in found.items() if key in then}
        yield from found.items()

    def why_fixed(self, key: str) -> str:
        """Returns why a key cannot change while a run lasts; empty where it can."""
        return (key == "batch_size" and self.algorithm.fixed_batch) or super().why_fixed(key)

    @model_validator(mode="after")
    def _check_schedule(self) -> "Experiment":
        times = [change.at for change in self.schedule]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise ValueError(
                f"schedule: at = {', '.join(map(str, times))}: the iterations must rise. Put all "
                "changes of one iteration into one `set`"
            )
        return self

    @model_validator(mode="after")
    def _check_budget(self) -> "Experiment":
        if len(self.budget) != 1:
            raise ValueError(
                "give the budget: exactly one of iterations, evaluations and env_steps"
            )
        if self.steps is not None and not self.domain.counts_steps:
            name = self.domain.name or self.domain.type
            raise ValueError(
                f"env_steps = {self.steps}: the domain {name} does not count environment steps, as "
                "domains of type gymnasium do. Give evaluations or iterations"
            )
        return self

    @model_validator(mode="after")
    def _check_archive(self) -> "Experiment":
        dims = self.archive.dims
        if self.algorithm.has_grid and dims is None:
            raise ValueError(
                f"algorithm {self.algorithm.name} has a grid and needs archive.dims, the cells "
                "along each measure. archive.cells is for cvt and dns"
            )
        measures = self.domain.measure_dim
        if dims is not None and measures is not None and len(dims) != measures:
            raise ValueError(
                f"archive.dims = {dims} has {len(dims)} entries, but the domain "
                f"{self.domain.name} has {measures} measures: give as many numbers"
            )
        return self

    @model_validator(mode="after")
    def _check_algorithm(self) -> "Experiment":
        if self.algorithm.needs_experience and self.domain.why_no_experience:
            raise ValueError(
                f"algorithm {self.algorithm.name} learns from the steps of episodes, which it "
                f"cannot do on the domain {self.domain.name}: {self.domain.why_no_experience}. Use "
                "an algorithm that needs only the scores, such as map_elites_line"
            )
        if self.algorithm.replays and self.domain.why_no_replay:
            raise ValueError(
                f"algorithm {self.algorithm.name} keeps the steps of episodes in a replay buffer, "
                f"which it cannot do on the domain {self.domain.name}: "
                f"{self.domain.why_no_replay}. Set "
                "normalize_observations: false, or use a learner without such a buffer (ppo, a2c, "
                "impala), or an algorithm that needs only the scores, such as map_elites_line"
            )
        if self.algorithm.explores and self.domain.evaluation_seed != "solution":
            raise ValueError(
                f"domain.evaluation_seed = {self.domain.evaluation_seed}: algorithm "
                f"{self.algorithm.name} plays one policy many times, and all episodes of a seed "
                "would be equal. Set evaluation_seed: solution"
            )
        dim = self.domain.known_solution_dim
        self.algorithm.check_sizes(self.num_emitters, self.batch_size, dim)
        self.algorithm.check_first_batch(self.num_emitters, self.first_batch)
        if self.algorithm.needs_jacobian and self.domain.has_jacobian is False:
            raise ValueError(
                f"algorithm {self.algorithm.name} needs gradients, but the domain "
                f"{self.domain.name} has no jacobian. Use an algorithm without gradients, such as "
                "cma_me"
            )
        self.resampling.check(self.algorithm, self.domain)
        return self


def _apply(changes: dict[str, Any], data: Any) -> None:
    """Sets the dotted keys of a scheduled change in the data of an experiment."""
    for key, value in changes.items():
        *above, last = (int(part) if part.isdecimal() else part for part in key.split("."))
        node = data
        for part in above:
            node = node[part]
        node[last] = value


def refuse_idle(experiment: Experiment) -> None:
    """Refuses keys without effect, because they would give one result a second run id.

    Raises:
        BadInput: The message names the key, its value, the reason and the remedy.
    """
    for key, why in experiment.idle():
        owner: Any = experiment
        *above, name = key.split(".")
        for part in above:
            owner = owner[int(part)] if part.isdecimal() else getattr(owner, part)
        field, value = type(owner).model_fields[name], getattr(owner, name)
        out = "Leave it out"
        if not field.is_required():  # a preset may have set it
            out += f", or set its default, {value_text(field.default)}"
        raise BadInput(
            f"{key} = {value_text(value)} has no effect, but would make a new run: {why}. {out}"
        )
