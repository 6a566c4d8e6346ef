"""The metrics of a run and the horizontal axes, each declared once.

A metric that an algorithm computes needs a row here. It then has a column in metrics.csv,
summary.csv and table.csv, and appears in tables and figures. `rank:` of a sweep file can choose it
if it may rank. Runs that did not measure it have empty cells. The user's metrics (`metrics:` of an
experiment) are added in each sweep.
"""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import cache

NORM_QD_SCORE = "norm_qd_score"
NORM_DELIVERED = "norm_delivered_qd_score"
# The delivered QD score per cell, divided by the width of the objective range.
DELIVERED_FRACTION = "delivered_qd_score_fraction"
# The metrics of every archive, in the order of metrics.csv.
ARCHIVE_METRICS = (
    *("num_elites", "coverage", "qd_score", NORM_QD_SCORE, "obj_max", "obj_mean", "restarts"),
)
# Those that are sums over elites.
_SUMS = ("qd_score", NORM_QD_SCORE, "obj_mean")
_SUM_TOLERANCE = 1e-9  # relative

# The phases of an iteration; their times add up to its wall time.
PHASES = ("ask", "evaluate", "tell", "reload")
SECONDS = tuple(f"seconds_{phase}" for phase in PHASES)
# The time of compilation, 0 in a fork of the warm process: it counts for no phase. In files of
# earlier releases it is part of ask and tell.
COMPILE = "seconds_compile"
# The time of the user's metrics; only where there are some.
OWN_SECONDS = "seconds_metrics"
# The user's metrics that other code than the current one measured. Only a table with such runs has
# the column.
OTHER_CODE = "other_code"
# The horizontal axes of curves in addition to evaluations.
PLACES = ("seconds", "steps", "core_seconds")


def agree(name: str, text: str, other: str) -> bool:
    """Returns whether two results have the same value of a metric.

    Earlier versions updated sums by differences, so that these have other last digits.

    Args:
        name: The metric's column.
        text: Its value, as metrics.csv has it.
        other: The value of the other result.
    """
    if text == other or name not in _SUMS:
        return text == other
    try:
        return math.isclose(float(text), float(other), rel_tol=_SUM_TOLERANCE)
    except ValueError:  # one of them is undefined
        return False


@dataclass(frozen=True)
class Metric:
    """A number that measures a run.

    Attributes:
        name: Its column in metrics.csv and summary.csv.
        label: Its name for readers, as a heading; empty if only files contain it.
        percent: Whether it is a fraction that readers see in percent.
        whole: Whether it is a whole number.
        ranks: Whether groups may be ranked by it.
        smaller: Whether smaller values are better; otherwise larger values are.
        main: Whether the table of runs has it, and other tables mark its best mean.
        curve: Whether its learning curve is drawn.
        from_zero: Whether the axis of that curve starts at zero.
        stairs: Whether that curve keeps each value until the next measurement.
        interval: Whether table.csv has its median and interquartile mean.
        cost: Whether it is a cost of a run.
        optional: Whether it is omitted if no run of a sweep has it.
        recorded: Whether metrics.csv has it; otherwise it is computed from metrics.csv.
        needs_cells: Whether it is undefined for an archive without cells.
        instead: The metric that replaces it for such an archive. It is this metric times a
            constant of the archive, so both rank equally.
        function: The user's `module:function` that measures it; empty for built-in metrics.
        about: What it is, after its label and a colon, where the label does not say it.
        course: The metric whose curve is drawn in its place, where that was recorded.
    """

    name: str
    label: str = ""
    percent: bool = False
    whole: bool = False
    ranks: bool = False
    smaller: bool = False
    main: bool = False
    curve: bool = False
    from_zero: bool = True
    stairs: bool = False
    interval: bool = False
    cost: bool = False
    optional: bool = False
    recorded: bool = True
    needs_cells: bool = False
    instead: str = ""
    function: str = ""
    about: str = ""
    course: str = ""

    @property
    def column(self) -> str:
        """Its column in tables for readers, where fractions are in percent."""
        return f"{self.name}_percent" if self.percent else self.name

    @property
    def heading(self) -> str:
        """Its heading for readers, with its unit."""
        return f"{self.label} (%)" if self.percent else self.label

    @property
    def factor(self) -> int:
        """The factor from the unit of metrics.csv to that for readers."""
        return 100 if self.percent else 1

    @property
    def sign(self) -> int:
        """The factor that makes larger values better."""
        return -1 if self.smaller else 1

    @property
    def extreme(self) -> str:
        """The word for the best mean: highest or lowest."""
        return "lowest" if self.smaller else "highest"

    @property
    def phrase(self) -> str:
        """Its name inside a sentence."""
        label = self.label.replace("/ cells", "per cell")
        keeps_capitals = label[:2].isupper()  # QD score
        return label if keeps_capitals else label[:1].lower() + label[1:]

    def with_value(self, value: float) -> str:
        """Returns its name and value in a line of text."""
        text = f"{100 * value:.2f} %" if self.percent else f"{value:.6g}"
        return f"{self.phrase} {text}"

    @property
    def always(self) -> "Metric":
        """The metric that gives the same ranks and needs no cells."""
        return BY_NAME[self.instead] if self.instead else self

    def drawn(self, *, has_cells: bool) -> "Metric":
        """Returns the metric whose curve explains the ranks of the runs.

        `has_cells`: whether all archives have cells.
        """
        metric = self if self.curve else RANK
        return metric if has_cells else metric.always

    def course_in(self, recorded: Container[str]) -> "Metric":
        """Returns the metric whose curve is drawn, where these names are recorded."""
        return BY_NAME[self.course] if self.course and self.course in recorded else self


# In the order of summary.csv. A new metric comes after the last recorded one.
METRICS = (
    Metric("iteration", whole=True),
    Metric("evaluations", "Evaluations", whole=True, cost=True),
    Metric("num_elites", whole=True),
    Metric("qd_score", "QD score", ranks=True, curve=True),
    Metric(
        NORM_QD_SCORE, "QD score / cells", ranks=True, main=True, curve=True, interval=True,
        needs_cells=True, instead="qd_score",
    ),
    Metric(
        "coverage", "Coverage", percent=True, ranks=True, main=True, curve=True, needs_cells=True
    ),
    Metric("obj_max", "Best objective", ranks=True, main=True, curve=True, from_zero=False),
    Metric("obj_mean"),
    Metric("restarts", whole=True),
    Metric("steps", "Environment steps", whole=True, cost=True),
    Metric(
        "return", "Greedy return", ranks=True, main=True, curve=True, from_zero=False, stairs=True,
        optional=True, course="exploring_return",
        about="mean over the latest greedy episodes of the learner's policy, on seeds of their own",
    ),
    Metric(
        "exploring_return", "Exploring return", ranks=True, main=True, curve=True, from_zero=False,
        optional=True,
        about="mean over the last 100 training episodes, of the policy as it explores, not of the"
        " final one on fresh seeds",
    ),
    Metric("qd_auc", "Mean QD score", ranks=True, interval=True, recorded=False),
    Metric("core_seconds", "Core-seconds", cost=True, recorded=False),
)  # fmt: skip
# Of elites that were evaluated again at the end of their run (`reevaluate`), in the order of
# summary.csv. They have columns only where a sweep has that key.
REEVALUATED = (
    Metric("delivered_qd_score", "Delivered QD score", ranks=True, recorded=False, optional=True),
    Metric(
        NORM_DELIVERED, "Delivered QD score / cells", ranks=True, main=True, recorded=False,
        optional=True, needs_cells=True, instead="delivered_qd_score",
    ),
    Metric("corrected_qd_score", "Corrected QD score", recorded=False, optional=True),
    Metric(
        "norm_corrected_qd_score", "Corrected QD score / cells", recorded=False, optional=True,
        needs_cells=True, instead="corrected_qd_score",
    ),
    Metric("objective_loss", "Objective loss", smaller=True, recorded=False, optional=True),
    Metric("hit_rate", "Hit rate", percent=True, recorded=False, optional=True, needs_cells=True),
)  # fmt: skip
# The columns of summary.csv where a sweep has the key `reevaluate`.
OF_REEVALUATION = (*(metric.name for metric in REEVALUATED), DELIVERED_FRACTION)
BY_NAME = {metric.name: metric for metric in (*METRICS, *REEVALUATED)}


@cache
def measures(*, best_ever: bool) -> tuple[Metric, ...]:
    """Returns the metrics as a sweep labels them.

    Args:
        best_ever: Whether an archive of the sweep may lose its best elite. `obj_max` is then the
            best objective that was ever inserted, as in pyribs.
    """
    if not best_ever:
        return METRICS
    best = BY_NAME["obj_max"]
    ever = replace(best, label=f"{best.label} ever")
    return tuple(ever if metric is best else metric for metric in METRICS)


RECORDED = tuple(metric for metric in METRICS if metric.recorded)
RANK = BY_NAME[NORM_QD_SCORE]
# The return of a learner's current policy in greedy episodes. `obj_max` is that of the whole run.
RETURN = BY_NAME["return"]
# The return of its policy as it explores. Runs of earlier releases have none.
EXPLORING_RETURN = BY_NAME["exploring_return"]
# Both, the one whose curve comes first.
RETURNS = (EXPLORING_RETURN, RETURN)


# The columns of summary.csv between those that name a run and the user's metrics.
RESULTS = (
    "status",
    *(metric.name for metric in RECORDED),
    "qd_auc",
    "qd_score_fraction",
    *SECONDS,
    COMPILE,
    "wall_seconds",
    "core_seconds",
    "engine",
    "workers",
    "total_evaluations",
    "elites_below_range",
    "scale",
)


def curves_of(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Returns the metrics whose learning curves are drawn."""
    return tuple(metric for metric in metrics if metric.curve)


def meanings(metrics: Iterable[Metric]) -> str:
    """Returns a sentence on each of some metrics whose label does not say what it is."""
    return "".join(f" {each.label}: {each.about}." for each in dict.fromkeys(metrics) if each.about)


def drawn_of(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Returns the metrics of printed curves, without those that another metric replaces."""
    return tuple(metric for metric in curves_of(metrics) if not metric.instead)


CURVES = curves_of(METRICS)
DRAWN = drawn_of(METRICS)


def shown_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """Returns the metrics for readers: the main ones first, and costs last."""
    labelled = [metric for metric in metrics if metric.label]
    return sorted(labelled, key=lambda metric: (metric.cost, not metric.main))


@dataclass(frozen=True)
class XAxis:
    """A horizontal axis of learning curves.

    Attributes:
        name: Its column in curves.csv.
        label: Its name for readers.
        unit: The unit of single values.
        sizes: (smallest value, unit, its size) of the units that a printed axis may have, the
            largest first. It is empty if there is only one unit.
        whole: Whether it is a count, whose label contains the unit.
    """

    name: str
    label: str
    unit: str
    sizes: tuple[tuple[float, str, float], ...] = ()
    whole: bool = False

    def title(self, unit: str = "") -> str:
        """Returns the label with a unit, by default its own."""
        return self.label if self.whole else f"{self.label} ({unit or self.unit})"

    def unit_for(self, longest: float) -> tuple[str, float]:
        """Returns the unit that suits values up to `longest`, and its size."""
        fitting = ((unit, size) for least, unit, size in self.sizes if longest >= least)
        return next(fitting, (self.unit, 1.0))


EVALUATIONS = XAxis("evaluations", "Evaluations", "evaluations", whole=True)
STEPS = XAxis("steps_mean", "Environment steps", "steps", whole=True)
WALL_TIME = XAxis(
    "seconds_mean", "Wall time", "s", sizes=((7200, "h", 3600), (300, "min", 60), (0, "s", 1))
)
CORE_SECONDS = XAxis("core_seconds_mean", "Core-seconds", "core-seconds", whole=True)
