"""The methods paragraph of a sweep, ready to paste, with the BibTeX of what it cites."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.page import descriptions, provenance
from qdsweep.analysis.page.follow_ups import (
    confirmation,
    correction,
    imported,
    read_summaries,
)
from qdsweep.analysis.page.references import bibtex, cite, latex, plain
from qdsweep.analysis.page.words import seeds_text
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.tables.over_tasks import task_score
from qdsweep.analysis.tables.statistics import ENOUGH_SEEDS
from qdsweep.analysis.text import listed, number, plural
from qdsweep.experiment.load import Run
from qdsweep.metrics import RANK
from qdsweep.records.plan import Plan


@dataclass(frozen=True)
class Methods:
    """The paragraph as plain text and as LaTeX, and the BibTeX of what it cites."""

    text: str
    latex: str
    bibtex: str


def methods(
    plan: Plan,
    tables: Tables,
    runs: dict[str, Run],
    sweep_dir: Path,
    runs_dir: Path,
    shown: set[str],
    titles: Mapping[str, str],
    search: str = "",
) -> Methods:
    """Writes the paragraph from the resolved configs and the summaries of the runs.

    Args:
        plan: The sweep.
        tables: Its tables.
        runs: A run of each group of its own.
        sweep_dir: `results/sweeps/NAME`.
        runs_dir: `results/runs`.
        shown: Names of the sheets with values, which tell what statistics were used.
        titles: Algorithm -> what the report calls it, where it has a name of its own.
        search: What was searched and how; empty where nothing was.
    """
    others = [row for row in plan.rows if row.imported]
    tables = tables.of(group for group in tables.series if group not in plan.imported_groups)
    done = tables.with_results.drop_duplicates("id")
    summaries = read_summaries(runs_dir, done["id"])
    confirmed, corrected, seconds = "", "", 0.0
    confirming: list[dict[str, Any]] = []
    if "confirmed" in shown:
        confirmed, confirming = confirmation(sweep_dir, runs_dir, len(tables.score_scales))
    if "corrected" in shown:
        corrected, seconds = correction(sweep_dir, runs_dir, done["id"])
    spent = {
        "the unseen seeds": sum(map(provenance.core_seconds, confirming)),
        "the corrected archives": seconds,
    }
    domains = [descriptions.domain_of(run.config) for run in runs.values()]
    sentences = [
        _tasks(runs),
        f"Elites are kept in {listed(_distinct(runs, descriptions.archive), 'or')}.",
        *_algorithms(runs, titles),
        *filter(None, (search,)),
        _budget(plan, tables, runs),
        _figures_of_merit(tables),
        *_statistics(tables, shown),
        *filter(None, (confirmed, corrected, imported(others, runs_dir))),
        provenance.software(
            summaries + confirming, {name for domain in domains for name in domain.libraries}
        ),
        provenance.hardware(summaries + confirming, float(done["core_seconds"].sum()), spent),
        "The SHA-256 over the sorted ids and archive digests of the runs is"
        f" {provenance.sweep_digest(summaries)}.",
    ]
    text = " ".join(sentences)
    return Methods(plain(text), latex(text) + "\n", bibtex(text))


def _tasks(runs: dict[str, Run]) -> str:
    tasks = _distinct(runs, descriptions.task)
    return f"The task{' is' if len(tasks) == 1 else 's are:'} {'; '.join(tasks)}."


def _algorithms(runs: dict[str, Run], titles: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each algorithm."""
    configs: dict[str, list[dict[str, Any]]] = {}
    for run in runs.values():
        configs.setdefault(str(run.config["algorithm"]["name"]), []).append(_resolved(run))
    return [
        descriptions.algorithm(name, found, titles.get(name)) for name, found in configs.items()
    ]


def _resolved(run: Run) -> dict[str, Any]:
    """Returns a run's config with the mutation scale that an object of a user's domain has said."""
    domain, step = run.config["domain"], run.summary.get("step")
    if step is None or domain.get("step") is not None:
        return run.config
    return run.config | {"domain": domain | {"step": step}}


def _budget(plan: Plan, tables: Tables, runs: dict[str, Run]) -> str:
    """Returns a sentence on the budget, the number of runs of a group, and their seeds."""
    iterations = sorted({row.iterations for row in plan.rows if row.iterations is not None})
    used = tables.with_results["evaluations"]
    low, high = number(used.min()), number(used.max())
    budget = f"{low if low == high else f'{low} to {high}'} evaluations"
    if iterations:
        budget = f"{listed([number(n) for n in iterations], 'or')} iterations ({budget})"
    counts = tables.counts(list(tables.series))
    few, many = min(counts), max(counts)
    repeats = plural(many, "run") if few == many else f"{few} to {plural(many, 'run')}"
    seeds = {row.values.get("seed", "") for row in plan.rows} - {""}
    seeds = seeds or {str(run.config["seed"]) for run in runs.values()}
    groups = f"each of the {len(counts)} groups" if len(counts) > 1 else "the group"
    return f"Each run had {budget}, and {groups} had {repeats} ({seeds_text(seeds)})."


def _figures_of_merit(tables: Tables) -> str:
    score = f"the QD score{cite(['pugh2016quality'])} (the sum, over all elites, of the"
    score += " objective minus the lower end of its nominal range"
    if tables.table["norm_qd_score_n"].any():
        score += "; normalised: divided by the number of cells), coverage"
    else:
        score += ")"
    return (
        f"We report {score} and the best objective, as mean ± standard error over the seeds,"
        " which are the unit of replication."
        + ("" if tables.rank is RANK else f" Groups are ranked by the {tables.rank.phrase}.")
    )


def _statistics(tables: Tables, shown: set[str]) -> list[str]:
    """Returns what the tables of the sweep have besides means and standard errors."""
    agarwal, newcombe = cite(["agarwal2021deep"]), cite(["newcombe2006confidence"])
    welch, holm = cite(["welch1947generalization"]), cite(["holm1979simple"])
    tukey, mann = cite(["tukey1963less"]), cite(["mann1947test"])
    ped, fanova = cite(["watanabe2023pedanova"]), cite(["hutter2014efficient"])
    # The tables give intervals of groups that have enough seeds, and of pairs of these.
    enough = sum(n >= ENOUGH_SEEDS for n in tables.counts(list(tables.series)))
    interval = f" with Newcombe's 95 % interval{newcombe}" if enough > 1 else ""
    sentences = {
        "comparisons": f"Groups were compared in pairs by Welch's t test{welch} with Holm's"
        f" correction{holm}, by the Mann-Whitney U test{mann} without a correction, and by the"
        f" probability of improvement{agarwal}{interval}.",
        "over_tasks": f"Over all tasks we report the interquartile mean{agarwal} of"
        f" {task_score(tables.rank).phrase}, the tasks being strata.",
        "importance": f"How much each swept value matters was asked by PED-ANOVA{ped} and"
        f" fANOVA{fanova}, as Optuna{cite(['akiba2019optuna'])} has them, beside shuffled scores.",
    }
    intervals = (
        f"Interquartile means{agarwal} have 95 % intervals of Student's t with a winsorised"
        f" standard error{tukey}."
    )
    known = enough and tables.table[f"{tables.rank.column}_iqm_low"].notna().any()
    found = [text for name, text in sentences.items() if name in shown]
    return [intervals, *found] if known else found


def _distinct(runs: dict[str, Run], say: Callable[[Run], str]) -> list[str]:
    return list(dict.fromkeys(say(run) for run in runs.values()))
