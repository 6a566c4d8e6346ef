"""What follows for a ranking where evaluations depend on their seed.

A search keeps each elite for one lucky evaluation there, so its own scores are too high, and more
so for groups that re-evaluate less (Flageat and Cully, Uncertain Quality-Diversity,
arXiv:2302.00463). Groups are then ranked by the delivered QD score, or not at all.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from qdsweep.config.compose import read_part
from qdsweep.errors import BadInput
from qdsweep.metrics import (
    BY_NAME,
    NORM_DELIVERED,
    NORM_QD_SCORE,
    RANK,
    REEVALUATED,
    RETURNS,
    Metric,
)
from qdsweep.records.paths import RunDir, RunFiles, is_imported
from qdsweep.records.plan import Plan
from qdsweep.records.results import UNKNOWN, read_config, stochastic_of
from qdsweep.text import number, plural

if TYPE_CHECKING:
    import pandas as pd

# The column of table.csv, and its words, the one that decides for several runs first.
COLUMN = "stochastic"
LUCKY, ONE_SEED, NOT_KNOWN, CERTAIN = "yes", "one seed", UNKNOWN, "no"
_WORDS = (LUCKY, ONE_SEED, NOT_KNOWN, CERTAIN)
_TIMES = 10
# The scores of archives as the search reports them.
_SCORES = ("qd_score", NORM_QD_SCORE, "qd_auc")
# What the delivered QD score is.
DELIVERED_TEXT = (
    "the elite of each filled cell is played once, and its objective minus the offset counts if the"
    " outcome falls into that cell, otherwise 0; mean over the re-evaluations"
)

_Groups = TypeVar("_Groups")


def noise_of(files: RunFiles, summary: Mapping[str, Any]) -> str:
    """Returns whether evaluations of a run depend on their seed, one of the words.

    One seed: they do, and all evaluations of the run had one.

    Raises:
        BadInput: A file of the run is damaged.
    """
    if is_imported(str(summary.get("id", ""))):
        return NOT_KNOWN
    found = stochastic_of(RunDir(files.path).state, summary)
    if found is False:
        return CERTAIN
    domain = read_config(files.config).get("domain", {})
    if found == UNKNOWN:
        with suppress(BadInput):
            return CERTAIN if read_part("domain", domain).is_deterministic else NOT_KNOWN
        return NOT_KNOWN
    return LUCKY if domain.get("evaluation_seed") in ("solution", "iteration") else ONE_SEED


def most_uncertain(words: Iterable[str]) -> str:
    """Returns the word that holds for all of some runs; that nothing is known where it is empty."""
    there = set(words)
    return next((word for word in _WORDS if word in there), NOT_KNOWN)


def with_noise(plan: Plan, words: Iterable[tuple[str, str]]) -> Plan:
    """Returns a plan with the word of each scale, and the metric that ranks there.

    Where scores are lucky, groups are ranked by the delivered QD score instead of the default
    metric, if the sweep file has `reevaluate`.

    Args:
        plan: The sweep.
        words: The scale and the word of each run, or of each group.
    """
    by_scale: dict[str, list[str]] = {}
    for scale, word in words:
        by_scale.setdefault(scale, []).append(word)
    noise = {scale: most_uncertain(several) for scale, several in by_scale.items()}
    rank = plan.rank
    if LUCKY in noise.values() and plan.reevaluate and rank is RANK:
        rank = BY_NAME[NORM_DELIVERED]
    common = plan.reevaluate is not None and plan.reevaluate.common
    tests = "paired" if rank in REEVALUATED and common else plan.tests
    return replace(plan, noise=noise, rank=rank, tests=tests)


def is_lucky(plan: Plan, scale: str, metric: Metric) -> bool:
    """Returns whether a metric counts lucky evaluations on a scale.

    Returns of a learner do not: they are means of all its episodes, and none is kept for its score.
    """
    return plan.noise.get(scale) == LUCKY and metric not in (*REEVALUATED, *RETURNS)


def as_reported(plan: Plan, metric: Metric) -> str:
    """Returns what follows the heading of a score that counts lucky evaluations; else empty."""
    return ", as reported" if LUCKY in plan.noise.values() and metric.name in _SCORES else ""


def reported_text(plan: Plan) -> str:
    """Returns a warning for figures of objectives as reported; empty where none are lucky."""
    words = set(plan.noise.values())
    if LUCKY not in words:
        return ""
    where = "Objectives here"
    if len(words) > 1:
        where = "Where evaluations depend on their seed, objectives"
    text = (
        f" {where} are as reported by the search, of lucky evaluations: do not compare groups by"
        " them."
    )
    if plan.rank in REEVALUATED:
        text += f" Groups are ranked by the {plan.rank.phrase}."
    return text


def tested_scales(
    plan: Plan, scales: Mapping[str, _Groups], metric: Metric | None = None
) -> dict[str, _Groups]:
    """Returns those of some scales whose groups may be tested.

    Args:
        plan: The sweep.
        scales: Scale -> anything.
        metric: What they are tested in; None: the metric that ranks.
    """
    compared = metric or plan.rank
    return {scale: of for scale, of in scales.items() if not is_lucky(plan, scale, compared)}


def ranked_scales(
    plan: Plan, scales: Mapping[str, _Groups], metric: Metric | None = None
) -> dict[str, _Groups]:
    """Returns those whose groups are ranked: also lucky ones by the metric of the key `rank`."""
    asked = plan.rank is not RANK and metric in (None, plan.rank)
    return dict(scales) if asked else tested_scales(plan, scales, metric)


def noise_text(plan: Plan, summary: "pd.DataFrame", table: "pd.DataFrame | None" = None) -> str:
    """Returns sentences on what the ranking holds for; empty where no evaluation depends on a seed.

    Args:
        plan: The sweep, of `with_noise`.
        summary: The runs, each once, with their largest budgets.
        table: table.csv, which has the word of each group.
    """
    words, rank, text = set(plan.noise.values()), plan.rank, ""
    if LUCKY in words and rank in REEVALUATED:
        text = (
            " Evaluations of this task depend on their seed. Groups are ranked by what the archive"
            f" delivers: {DELIVERED_TEXT}."
        )
        if plan.tests == "paired" and plan.reevaluate and plan.reevaluate.common:
            text += " All runs have common fresh seeds, so this holds for these seeds only."
        if any(name.rpartition(".")[2] == "episodes" for name in plan.group_columns):
            text += " Groups differ in episodes, so an evaluation is not the same for all of them."
        scores = summary[[rank.column, rank.always.column]]
        if lacking := int(scores.isna().all(axis=1).sum()):
            text += (
                f" No such score is known for {plural(lacking, 'run')}: the archive is empty, or"
                " another sweep has extended the run beyond this budget."
            )
    elif LUCKY in words and rank in RETURNS:
        text = (
            " Evaluations of this task depend on their seed. The elites of an archive were kept for"
            f" lucky ones, but the {rank.phrase} is a mean of all episodes that it counts."
        )
    elif LUCKY in words:
        text = (
            " Evaluations of this task depend on their seed. Each elite was kept for one lucky"
            " evaluation, so these scores are too high, and more so for groups that re-evaluate"
            " less. "
        )
        if rank is RANK:
            text += f"Groups are not ranked.{_remedy(plan, summary)}"
        else:
            text += f"The {rank.phrase} counts such evaluations, so groups are not tested."
    if ONE_SEED in words:
        text += (
            " Evaluations depend on their seed, and all of a run have the same one: one instance"
            " per seed. Scores hold for that evaluation seed only."
        )
    if NOT_KNOWN in words:
        text += _not_known(plan, table)
    return text


def _not_known(plan: Plan, table: "pd.DataFrame | None") -> str:
    groups = set()
    if table is not None and COLUMN in table:
        groups = set(table.loc[table[COLUMN] == NOT_KNOWN, "group"])
    if groups and groups <= plan.imported_groups:
        return " Whether evaluations of imported runs depend on their seed is not known."
    return " Whether evaluations depend on their seed is not known: `qdsweep reevaluate` finds out."


def _remedy(plan: Plan, summary: "pd.DataFrame") -> str:
    if plan.levels:
        return (
            f" Put the best settings into a sweep of their own, with `reevaluate: {{times:"
            f" {_TIMES}}}`."
        )
    count = _TIMES * float(summary["num_elites"].sum())
    share = 100 * count / max(float(summary["evaluations"].sum()), 1.0)
    return (
        f" Add `reevaluate: {{times: {_TIMES}}}` to the sweep file"
        f" ({plural(round(count), 'evaluation')}, {number(share, 0 if share >= 10 else 1)} % of the"
        " sweep)."
    )
