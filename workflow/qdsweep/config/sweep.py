"""The sweep file: experiment, values, cluster and report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from qdsweep.config.keys import column_of
from qdsweep.config.model import Interval, Model
from qdsweep.config.search import Search
from qdsweep.errors import BadInput
from qdsweep.metrics import RANK

MOST_SEEDS = 1000
# The values of `outdated`.
RECOMPUTE, ACCEPT = "recompute", "accept"
# The shard of the runs that other starts have left.
REST = "rest"

# Columns of the table of groups in addition to swept parameters and metrics.
TABLE_COLUMNS = ("group", "n", "iqm")


def from_to(seeds: tuple[int, int]) -> tuple[int, int]:
    """Refuses a range of seeds that ends before it begins."""
    if not 0 <= seeds[0] <= seeds[1]:
        raise ValueError(
            f"first and last seed, 0 <= first <= last; {list(seeds)} is not such a range"
        )
    if seeds[1] - seeds[0] >= MOST_SEEDS or seeds[1] >= 2**63:
        raise ValueError(
            f"first and last seed, at most {MOST_SEEDS:,} seeds below 2^63; {list(seeds)} has more"
        )
    return seeds


def shard_parts(shard: str) -> tuple[int, int]:
    """Returns number and count of a shard such as 3/8."""
    number, slash, count = shard.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise ValueError(
        f"shard = {shard!r}: write NUMBER/COUNT with 1 <= NUMBER <= COUNT, such as 3/8, or {REST}"
    )


def _is_shard(shard: str) -> str:
    """Refuses a text that is not a shard."""
    if shard != REST:
        shard_parts(shard)
    return shard


class Published(Model):
    """A published value that a group of the sweep is compared with."""

    where: dict[str, Any] = Field(
        description="swept parameters and values that choose the group, such as algorithm: cma_me"
    )
    metric: str = Field(
        description=(
            "the published metric, as the search reports it: one that `rank` can name; coverage is "
            "a fraction"
        )
    )
    mean: float = Field(description="the published mean")
    margin: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description=(
            "the largest difference that does not matter, as a fraction of the published mean"
        ),
    )
    spread: float | None = Field(
        default=None,
        ge=0,
        description=(
            "the published standard deviation of a trial, in the metric's unit; null: that of your "
            "runs is taken"
        ),
    )
    trials: int | None = Field(
        default=None,
        ge=2,
        le=1_000_000,
        description="number of trials of the published mean; null: the number of your runs",
    )
    tolerance: float | None = Field(
        default=None, description="ignored; sweep files of earlier versions have it"
    )
    source: str = Field(description="where the value was published: paper and table")

    @model_validator(mode="after")
    def _check_margin(self) -> "Published":
        if not self.mean and self.tolerance is None:  # earlier files had such means
            raise ValueError("mean = 0: the margin is a fraction of it; compare another metric")
        return self

    @model_validator(mode="after")
    def _check_trials(self) -> "Published":
        if self.spread is not None and self.trials is None:
            raise ValueError("a spread needs trials, the number of trials of the published mean")
        return self

    @property
    def plain(self) -> dict[str, Any]:
        """It as plain data, with only the keys that were given."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Confirm(Model):
    """The winners of the sweep, computed again with held-out seeds."""

    top: int = Field(
        default=1,
        ge=1,
        description=(
            "number of groups of each domain and archive, by the mean of `rank`; ten held-out "
            "seeds suffice for one, and not for a choice among several"
        ),
    )
    seeds: Annotated[tuple[int, int], AfterValidator(from_to)] = Field(
        description="the first and the last of the held-out seeds, such as [101, 110]"
    )


class Reevaluate(Model):
    """Every elite of the final archives, evaluated again with fresh seeds."""

    times: int = Field(default=10, ge=1, le=10_000, description="evaluations of each elite")
    seed: int = Field(
        default=1_000_003, ge=0, lt=2**63, description="the seed of the fresh evaluation seeds"
    )
    common: bool = Field(
        default=False,
        description=(
            "whether all runs share their fresh seeds; results then hold for these seeds only, and "
            "groups are tested by pairs of runs"
        ),
    )

    @property
    def stem(self) -> str:
        """The name of its files in a run's folder; earlier releases had common seeds."""
        return f"reevaluated-{self.times}-{self.seed}{'' if self.common else '-own'}"


class Rollouts(Model):
    """Rendered episodes of chosen elites, for domains of gymnasium."""

    elites: list[Literal["best", "median", "corners"]] = Field(
        default=["best", "median", "corners"],
        description="the elites of each group's median run; corners: the extremes of the measures",
    )
    seconds: float = Field(default=6.0, gt=0, description="maximum length of an animation [s]")


class Encode(Model):
    """How figures show swept parameters. Parameters without an entry get the remaining traits."""

    color: str | None = Field(default=None, description="a swept parameter: one colour per value")
    dash: str | None = Field(
        default=None, description="a swept parameter: one dash pattern per value"
    )
    marker: str | None = Field(default=None, description="a swept parameter: one marker per value")
    facets: str | None = Field(
        default=None, description="a swept parameter, as in `figures.facets`"
    )


class Figures(Model):
    """Labels of the groups in the report, and the look of figures. CSV files keep the values."""

    labels: dict[str, str] = Field(
        default={}, description="group, or swept value -> its label in tables, figures and text"
    )
    names: dict[str, str] = Field(
        default={}, description="swept parameter -> its label in columns, axes and legends"
    )
    order: list[str] = Field(
        default=[], description="groups in the order of tables and figures; others follow"
    )
    colors: dict[str, str] = Field(
        default={},
        description="group, or value shown by colour -> colour, such as #0072B2 or black",
    )
    encode: Encode = Field(
        default=Encode(),
        description=(
            "how figures show swept parameters; by default the algorithm has the colour, the next "
            "parameter the dashes, and tasks and further parameters have panels"
        ),
    )
    band: Literal["error", "interval", "quartiles", "seeds"] = Field(
        default="interval",
        description=(
            "lines and bands of curves. interval: mean with its pointwise 95 % interval; error: "
            "mean ± standard error; quartiles: median with quartiles; seeds: mean, and each seed "
            "as a thin line"
        ),
    )
    column_width: float | None = Field(
        default=None,
        ge=30,
        le=600,
        description="width of a figure in print; null: the default width [mm]",
    )
    color_range: Interval | None = Field(
        default=None,
        description=(
            "objectives at the ends of the colours of archives, such as [0, 300]; null: the range "
            "of the elites without far outliers"
        ),
    )
    facets: str | None = Field(
        default=None, description="a swept parameter: learning curves have one panel per value"
    )


class Tables(Model):
    """The columns of the table of groups. Its CSV file has all."""

    columns: list[str] = Field(
        default=[],
        description=(
            "swept parameters, metrics, group, n, iqm, in this order, parameters first; []: all "
            "columns that do not repeat others"
        ),
    )


class SweepFile(Model):
    """The keys of `config/config.yaml`, `--configfile` and `--config`."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$",
        max_length=100,
        description="the sweep's name, a folder of results/sweeps/",
    )
    experiment: str | dict[str, Any] = Field(
        description="a preset of config/experiments/, a YAML file, or the experiment itself"
    )
    sweep: str = Field(
        default="",
        description="the values, in GNU parallel's grammar; empty: only the experiment",
    )
    search: Search | None = Field(
        default=None,
        description="number and method of the draws of `:::~` sources; the search; null: neither",
    )
    exclude: list[str] = Field(
        default=[],
        description="rows to leave out, each NAME=VALUE,... such as algorithm=cma_me,sigma0=5",
    )
    cluster: str = Field(
        default="auto",
        description=(
            "a preset of config/clusters/, or a YAML file; auto: slurm with `--executor slurm`, "
            "else local"
        ),
    )
    partial: bool = Field(
        default=False,
        description=(
            "make tables, figures and report of the existing runs, finished or not, and start no "
            "run"
        ),
    )
    outdated: Literal["recompute", "accept"] | None = Field(
        default=None,
        description=(
            "what becomes of outdated runs. recompute: they move to results/outdated/ and are "
            "computed again; accept: their results count as those of the current code; null: they "
            "stay, and no test has them"
        ),
    )
    shard: Annotated[str, AfterValidator(_is_shard)] | None = Field(
        default=None,
        description=(
            "compute only this part of the runs, such as 3/8, without tables; run ids decide which "
            "runs it has; rest: those that no process computes now and that have not failed; null: "
            "all runs"
        ),
    )

    rank: str = Field(
        default=RANK.name,
        description=(
            "the metric that ranks the groups, such as coverage or qd_auc; norm_qd_score: "
            "qd_score for archives without cells, and norm_delivered_qd_score (with `reevaluate`) "
            "where evaluations depend on their seed"
        ),
    )
    tests: Literal["welch", "paired"] = Field(
        default="welch",
        description=(
            "the tests between groups. paired: on the differences of runs of one seed, where "
            "evaluation_seed (fixed, or a number) makes the seed an instance of the task"
        ),
    )
    compare_at: Literal["evaluations", "steps"] | None = Field(
        default=None,
        description=(
            "tables and tests at the largest number of evaluations, or of environment steps, that "
            "all runs of a task have reached; null: each run at its own budget"
        ),
    )
    figures: Figures = Field(
        default=Figures(), description="names and order of groups, look of figures"
    )
    tables: Tables = Field(default=Tables(), description="columns of the table of groups")
    reevaluate: Reevaluate | None = Field(
        default=None,
        description=(
            "every elite evaluated again at the end: delivered and corrected scores, hit rates; "
            "null: none"
        ),
    )
    rollouts: Rollouts | None = Field(
        default=None, description="animations of elites at their task; null: none"
    )
    confirm: Confirm | None = Field(
        default=None, description="runs of the winners with held-out seeds; null: none"
    )
    published: list[Published] = Field(default=[], description="published values to compare with")
    imported: list[str] = Field(
        default=[],
        description=(
            "descriptions of external results (YAML files, see `qdsweep import --help`), which "
            "tables and figures show next to the runs of the sweep"
        ),
    )

    def with_columns(self, columns: Sequence[str]) -> "SweepFile":
        """Returns a copy that names swept parameters as the sweep does, and not by other names."""

        def swept(name: str) -> str:
            """Returns the column, also of an argument whose column is its dotted path."""
            known = column_of(name, columns)
            arguments = [column for column in columns if column.endswith(f".arguments.{name}")]
            return arguments[0] if known not in columns and len(arguments) == 1 else known

        def named(values: Mapping[str, Any]) -> dict[str, Any]:
            return {swept(name): value for name, value in values.items()}

        def column(name: str | None) -> str | None:
            return name and swept(name)

        figures = {
            "names": named(self.figures.names),
            "encode": Encode(**{key: column(name) for key, name in self.figures.encode}),
            "facets": column(self.figures.facets),
        }
        update = {
            "figures": self.figures.model_copy(update=figures),
            "tables": Tables(columns=[column_of(name, columns) for name in self.tables.columns]),
            "published": [
                entry.model_copy(update={"where": named(entry.where)}) for entry in self.published
            ],
        }
        return self.model_copy(update=update)

    @property
    def staged_search(self) -> Search | None:
        """The search, where results decide what is computed next; else None."""
        return self.search if self.search and self.search.is_staged else None

    @property
    def drawing(self) -> dict[str, Any]:
        """How the rows were drawn, as plain data; nothing where they were not."""
        return {"search": self.search.plain} if self.search else {}

    @property
    def reporting(self) -> dict[str, Any]:
        """The keys that only the stages after the runs need, as plain data."""
        keys = {"figures", "reevaluate", "rollouts", "confirm", "published"}
        if self.rank != RANK.name:  # else the tables of earlier starts would be rebuilt
            keys.add("rank")
        for key in ("tables", "tests", "compare_at"):
            if getattr(self, key) != SweepFile.model_fields[key].default:
                keys.add(key)
        data = self.model_dump(mode="json", include=keys)
        data["published"] = [entry.plain for entry in self.published]
        for key in ("names", "encode", "band"):  # for the same reason
            if getattr(self.figures, key) == Figures.model_fields[key].default:
                del data["figures"][key]
        return data

    @property
    def title(self) -> str:
        """The experiment's name, for reports; its domain's or the sweep's if it has none."""
        if isinstance(self.experiment, str):
            return Path(self.experiment).stem
        domain = self.experiment.get("domain")
        if isinstance(domain, dict):
            domain = domain.get("name") or domain.get("preset")
        return Path(domain).stem if isinstance(domain, str) else self.name


def require_drawable(figures: Figures) -> None:
    """Refuses labels, names and colours of groups that matplotlib cannot draw.

    Raises:
        BadInput: The message names the key and the value.
    """
    _require_labels("labels", figures.labels)
    _require_labels("names", figures.names)
    _require_colors(figures.colors)


def _require_labels(key: str, labels: Mapping[str, str]) -> None:
    for name, label in labels.items():
        wrong = "" if label.strip() and not label.startswith("_") else "it would not be shown"
        if not label.isprintable():
            wrong = "it has a line break or another character that cannot be drawn"
        if label.count("$") > 1:  # a single one is a dollar sign
            from matplotlib.cbook import is_math_text
            from matplotlib.mathtext import MathTextParser

            try:
                if is_math_text(label):
                    MathTextParser("path").parse(label)
            except ValueError as error:
                wrong = f"it is not a matplotlib formula ({str(error).splitlines()[-1].strip()})"
        if wrong:
            raise BadInput(f"figures: {key}: {name}: {label!r}: {wrong}; write another label")


def _require_colors(colors: Mapping[str, str]) -> None:
    if not colors:
        return
    from matplotlib.colors import is_color_like

    for group, color in colors.items():
        if color.lower() == "none" or not is_color_like(color):
            raise BadInput(
                f"figures: colors: {group}: {color!r} is not a colour; write it as "
                "#0072B2, or as a CSS name such as black"
            )
