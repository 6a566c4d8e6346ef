"""The methods paragraph of a sweep, ready to paste, with the BibTeX of what it cites."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.files import read_json
from qdsweep.analysis.load import Run
from qdsweep.analysis.page import described, provenance
from qdsweep.analysis.page.references import bibtex, cite, latex, plain
from qdsweep.analysis.page.words import listed, spans
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.plan import Plan
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.text import number, plural


@dataclass(frozen=True)
class Methods:
    """The paragraph as plain text and as LaTeX, and the BibTeX of what it cites."""

    text: str
    latex: str
    bibtex: str


def methods(
    plan: Plan, tables: Tables, runs: dict[str, Run], runs_dir: Path, shown: set[str]
) -> Methods:
    """Writes the paragraph from the resolved configs and the summaries of the runs.

    Args:
        plan: The sweep.
        tables: Its tables.
        runs: A run of each group, as `median_runs` gives them.
        runs_dir: `results/runs`.
        shown: Names of the sheets with values, which tell what statistics were used.
    """
    done = tables.with_results.drop_duplicates("id")
    summaries = [
        read_json(results_of(runs_dir / run) / "summary.json", "Run `snakemake` again.")
        for run in done["id"]
    ]
    types = {str(run.config["domain"].get("type")) for run in runs.values()}
    sentences = [
        _tasks(runs),
        f"Elites are kept in {listed(_distinct(runs, described.archive), 'or')}.",
        *_algorithms(runs),
        _budget(plan, tables, runs),
        _figures_of_merit(tables),
        *_statistics(tables, shown),
        provenance.software(summaries, types),
        provenance.hardware(summaries, float(done["core_seconds"].sum())),
        "The SHA-256 over the sorted ids and archive digests of the runs is"
        f" {provenance.sweep_digest(summaries)}.",
    ]
    text = " ".join(sentences)
    return Methods(plain(text), latex(text) + "\n", bibtex(text))


def _tasks(runs: dict[str, Run]) -> str:
    tasks = _distinct(runs, described.task)
    if len(tasks) == 1:
        return f"The task is {tasks[0]}."
    return f"The tasks are: {'; '.join(tasks)}."


def _algorithms(runs: dict[str, Run]) -> list[str]:
    """A sentence an algorithm."""
    configs: dict[str, list[dict[str, Any]]] = {}
    for run in runs.values():
        configs.setdefault(str(run.config["algorithm"]["name"]), []).append(run.config)
    return [described.algorithm(name, found) for name, found in configs.items()]


def _budget(plan: Plan, tables: Tables, runs: dict[str, Run]) -> str:
    """The budget, the number of runs of a group, and their seeds."""
    iterations = sorted({row.iterations for row in plan.rows if row.iterations is not None})
    used = tables.with_results["evaluations"]
    low, high = number(used.min()), number(used.max())
    budget = f"{low if low == high else f'{low} to {high}'} evaluations"
    if iterations:
        budget = f"{listed([number(n) for n in iterations], 'or')} iterations ({budget})"
    counts = tables.counts(list(tables.position))
    few, many = min(counts), max(counts)
    repeats = plural(many, "run") if few == many else f"{few} to {plural(many, 'run')}"
    seeds = {row.values.get("seed", "") for row in plan.rows} - {""}
    seeds = seeds or {str(run.config["seed"]) for run in runs.values()}
    word = "seed" if len(seeds) == 1 else "seeds"
    return (
        f"Each run had {budget}, and each of the {plural(len(counts), 'group')} had {repeats}"
        f" ({word} {spans(sorted(map(int, seeds)))})."
    )


def _figures_of_merit(tables: Tables) -> str:
    score = f"the QD score{cite(['pugh2016quality'])} (the sum, over all elites, of the"
    score += " objective minus its lower bound"
    if tables.table["norm_qd_score_n"].any():
        score += "; normalised: divided by the number of cells), coverage"
    else:
        score += ")"
    return (
        f"We report {score} and the best objective, as mean ± standard error over the seeds,"
        " which are the unit of replication."
    )


def _statistics(tables: Tables, shown: set[str]) -> list[str]:
    """What the tables of the sweep have besides means and standard errors."""
    agarwal, newcombe = cite(["agarwal2021deep"]), cite(["newcombe2006confidence"])
    welch, holm = cite(["welch1947generalization"]), cite(["holm1979simple"])
    tukey = cite(["tukey1963less"])
    sentences = {
        "comparisons": f"Groups were compared in pairs by Welch's t test{welch} with Holm's"
        f" correction{holm}, and by the probability of improvement{agarwal} with Newcombe's 95 %"
        f" interval{newcombe}.",
        "over_tasks": f"Over all tasks we report the interquartile mean{agarwal} of scores that are"
        " normalised by the range of objectives, the tasks being strata.",
        "confirmed": "What came out best was run again with unseen seeds, which takes the bias of"
        f" its selection out{cite(['cawley2010overfitting'])}.",
        "corrected": "Corrected archives are made of the elites by the mean objective and measures"
        f" of new evaluations under fresh seeds{cite(['flageat2024uncertain'])}; where several"
        " fall into one cell, the best stays.",
    }
    found = [text for name, text in sentences.items() if name in shown]
    if tables.table["norm_qd_score_iqm_low"].notna().any():
        mean = (
            f"Interquartile means{agarwal} have 95 % intervals of Student's t with a winsorised"
            f" standard error{tukey}."
        )
        found.insert(0, mean)
    return found


def _distinct(runs: dict[str, Run], say: Callable[[Run], str]) -> list[str]:
    return list(dict.fromkeys(say(run) for run in runs.values()))
