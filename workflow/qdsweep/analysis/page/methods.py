"""The methods paragraph of a sweep, ready to paste, with the BibTeX of what it cites."""

import hashlib
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.noise import DELIVERED_TEXT, LUCKY
from qdsweep.analysis.page import descriptions
from qdsweep.analysis.page.descriptions import bibtex, cite, latex, plain_citations
from qdsweep.analysis.page.search_section import how_searched
from qdsweep.analysis.selection import SweepTables, largest_budgets, task_score
from qdsweep.analysis.statistics import ENOUGH_SEEDS, MEAN_TEXT
from qdsweep.analysis.tables.comparisons import WELCH
from qdsweep.analysis.tables.group_table import BUDGET_UNITS
from qdsweep.config.cluster import LIBRARIES
from qdsweep.config.compose import read_part
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.keys import schedule_text
from qdsweep.elites.reevaluation import core_seconds_of
from qdsweep.host.machine import processor
from qdsweep.metrics import NORM_QD_SCORE, RANK, RETURNS
from qdsweep.records.plan import PlannedRow
from qdsweep.records.results import read_config, read_summary
from qdsweep.records.sums import read_checked
from qdsweep.runs.load import Run
from qdsweep.sweep.groups import IMPORTED_MARK
from qdsweep.text import core_time, listed, number, plural, seeds_text
from qdsweep.versions import installed_versions

# Distribution -> its name in a paper and what to cite for it, if the domain does not cite it.
_TITLES: dict[str, tuple[str, list[str]]] = {
    "ribs": ("pyribs", ["tjanaka2023pyribs"]),
    "dask": ("Dask", ["rocklin2015dask"]),
    "ray": ("Ray", []),
    "mpi4py": ("mpi4py", []),
    "gymnasium": ("Gymnasium", []),
    "box2d": ("Box2D", []),
    "mujoco": ("MuJoCo", []),
    "pybullet": ("PyBullet", []),
    "ale-py": ("the Arcade Learning Environment", []),
    "torch": ("PyTorch", []),
    "stable-baselines3": ("Stable-Baselines3", ["raffin2021stable"]),
    "scikit-learn": ("scikit-learn", []),
    "numpy": ("NumPy", []),
    "scipy": ("SciPy", []),
    "python": ("Python", []),
}
_OF_ALL = ("ribs", "numpy", "scipy", "python")  # every run uses them

_UNITS = {"steps": "environment steps"}
_OF_REEVALUATION = {
    "delivered_qd_score": f"the delivered QD score ({DELIVERED_TEXT})",
    "corrected_qd_score": "the corrected QD score (that of the corrected archive)",
    "objective_loss": "the objective loss (reported minus mean objective)",
    "hit_rate": "the hit rate (the share in the elite's own cell)",
}


def sweep_digest(summaries: Iterable[dict[str, Any]]) -> str:
    """Returns the SHA-256 over the sorted ids and archive digests: equal for equal results."""
    lines = sorted(f"{summary['id']} {summary.get('archive_digest')}\n" for summary in summaries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def software(summaries: list[dict[str, Any]], libraries: set[str]) -> str:
    """Returns a sentence on the versions of what runs used.

    `libraries`: those of their domains and algorithms.
    """
    versions: dict[str, list[str]] = {}
    for summary in summaries:
        for name, version in summary.get("versions", {}).items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    engines = {str(summary.get("engine")) for summary in summaries}
    used = {*_OF_ALL, *libraries, *(LIBRARIES.get(engine, engine) for engine in engines)}
    titles = _TITLES | {name: (name, []) for name in sorted(libraries) if name not in _TITLES}
    named = [
        f"{title} {listed(versions[name])}{cite(sources)}"
        for name, (title, sources) in titles.items()
        if name in versions and name in used
    ]
    own = listed(versions.get("qdsweep", ["of an unknown version"]))
    workflow = " ".join(["Snakemake", *installed_versions(["snakemake"]).values()])
    workflow += cite(["moelder2021sustainable"])
    return (
        f"Runs were computed by qdsweep {own}{cite(['qdsweep'])} with {listed([workflow, *named])}."
    )


def core_seconds(summary: dict[str, Any]) -> float:
    """Returns the core-seconds of a run."""
    return float(summary.get("timings", {}).get("total", 0.0)) * int(summary.get("workers") or 1)


def hardware(
    summaries: list[dict[str, Any]],
    core_seconds: float,
    further: Mapping[str, float],
    whose: str = "All runs together",
) -> str:
    """Returns a sentence on where the runs were computed, without any name of a machine.

    `further`: further computations, apart from the runs of the sweep -> core-seconds; `whose`: the
    runs with these core-seconds.
    """
    hosts = {attempt["host"] for summary in summaries for attempt in summary.get("attempts", [])}
    workers = sorted({int(summary.get("workers") or 1) for summary in summaries})
    noun = "process" if workers == [1] else "processes"
    text = f"Each run used {listed([str(n) for n in workers], 'or')} worker {noun}."
    text += f" {whose} took {core_time(core_seconds + sum(further.values()))}"
    parts = [f"{core_time(spent)} of it for {what}" for what, spent in further.items() if spent]
    if parts:
        text += f" ({listed(parts)})"
    if hosts:
        text += f" on {plural(len(hosts), 'machine')}"
    if hosts == {socket.gethostname()}:
        text += f" ({_processor()})"
    if {summary.get("cpu_baseline") for summary in summaries} == {"avx2"}:
        text += ", without instructions beyond AVX2"
    return f"{text}."


def _processor() -> str:
    """Returns the processor of this machine and its memory."""
    import psutil

    memory = psutil.virtual_memory().total / 2**30
    return f"{processor()}, {plural(psutil.cpu_count() or 1, 'logical core')}, {memory:.0f} GiB"


def confirmation(data: SweepData) -> tuple[str, list[dict[str, Any]]]:
    """Returns a sentence on the winners of each task on held-out seeds, and their summary.json."""
    rows = data.confirming
    groups = len({row["group"] for row in rows})
    which = "The best group was" if groups == 1 else f"The best {groups} groups were"
    if len(data.score_scales) > 1:
        which = f"The best groups of each task, {groups} in all, were"
    seeds = seeds_text(row["values"]["seed"] for row in rows)
    sentence = (
        f"{which} run again with the held-out {seeds}, which had no part in the"
        f" choice{cite(['cawley2010overfitting'])}."
    )
    return sentence, read_summaries(data, dict.fromkeys(row["id"] for row in rows))


def correction(data: SweepData) -> tuple[str, float]:
    """Returns a sentence on the corrected archives of the runs, and their core-seconds."""
    settings = data.plan.reevaluate
    if settings is None:
        return "", 0.0
    folders = map(data.run, data.with_results["id"].unique())
    corrected = [folder for folder in folders if folder.corrected(settings.stem).exists()]
    elites = sum(read_checked(run.corrected(settings.stem))["elites"] for run in corrected)
    times = settings.times
    what = f"means of {times} new evaluations" if times > 1 else "values of one new evaluation"
    sentence = (
        f"Corrected archives{cite(['flageat2024uncertain'])} contain the elites with the {what} of"
        f" each ({number(times * elites)} evaluations in all, with fresh seeds drawn from seed"
        f" {settings.seed}). If several elites fall into one cell, the best one is kept."
    )
    known = [
        text
        for name, text in _OF_REEVALUATION.items()
        if name in data.summary and data.summary[name].notna().any()
    ]
    if known:
        sentence += f" Of these evaluations we also report {listed(known)}."
    return sentence, sum(core_seconds_of(run, settings) for run in corrected)


def read_summaries(data: SweepData, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Reads summary.json of some runs."""
    return [read_summary(data.run(run).results) for run in ids]


def imported(rows: Iterable[PlannedRow], data: SweepData) -> str:
    """Returns a sentence on imported runs; empty if there are none."""
    configs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        config = read_config(data.run(row.run).config)
        configs.setdefault(row.group, []).append(config["imported"])
    if not configs:
        return ""
    parts = [
        f"{group.removesuffix(IMPORTED_MARK)} ({plural(len(sources), 'run')}"
        + (f"; {sources[0]['source']})" if sources[0].get("source") else ")")
        for group, sources in configs.items()
    ]
    return (
        f"Results of {listed(parts)} were computed elsewhere. Their elites were imported and"
        " measured in the same way."
    )


@dataclass(frozen=True)
class Methods:
    """The paragraph as plain text and as LaTeX, and the BibTeX of its citations."""

    text: str
    latex: str
    bibtex: str


def methods(data: SweepData, shown: set[str]) -> Methods:
    """Writes the paragraph from the resolved configs and the summaries of the runs.

    Args:
        data: The sweep.
        shown: Names of the tables with values. They show which statistics were used.
    """
    others, runs = [row for row in data.plan.rows if row.imported], data.median_runs
    own = data.of(group for group in data.series if group not in data.plan.imported_groups)
    done = largest_budgets(own.with_results)
    summaries = read_summaries(own, done["id"])
    confirmed, corrected, seconds = "", "", 0.0
    confirming: list[dict[str, Any]] = []
    if "confirmed" in shown:
        confirmed, confirming = confirmation(own)
    if "corrected" in shown:
        corrected, seconds = correction(own)
    spent = {
        "the held-out seeds": sum(map(core_seconds, confirming)),
        "the corrected archives": seconds,
    }
    whose = "All runs together"
    if data.search is not None and len(data.search.last) > len(data.search.finalists):
        whose = "Without settings of the search that stopped earlier, the runs"
    sentences = [
        _tasks(runs),
        f"Elites were stored in {listed(_distinct(runs, descriptions.archive), 'or')}.",
        *_algorithms(runs, data.called.labels),
        _further(runs),
        how_searched(data) or _schedules(runs),
        _budget(own),
        _figures_of_merit(own),
        *_statistics(own, shown),
        *(confirmed, corrected, imported(others, data)),
        software(summaries + confirming, _libraries(runs)),
        hardware(summaries + confirming, float(done["core_seconds"].sum()), spent, whose),
        _digest(own, summaries),
    ]
    text = " ".join(filter(None, sentences))
    return Methods(plain_citations(text), latex(text) + "\n", bibtex(text))


def _digest(tables: SweepTables, summaries: list[dict[str, Any]]) -> str:
    """Returns a sentence with the digest; empty if a run went further than the tables."""
    rows = largest_budgets(tables.with_results)
    if (rows["total_evaluations"] > rows["evaluations"]).any():
        return ""
    digest = sweep_digest(summaries)
    return f"The SHA-256 over the sorted ids and archive digests of the runs is {digest}."


def _tasks(runs: dict[str, Run]) -> str:
    tasks = _distinct(runs, descriptions.task)
    return f"The task{' was' if len(tasks) == 1 else 's were:'} {'; '.join(tasks)}."


def _algorithms(runs: dict[str, Run], titles: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each algorithm."""
    configs: dict[str, list[dict[str, Any]]] = {}
    for run in runs.values():
        name = str(run.config["algorithm"]["name"])
        configs.setdefault(name, []).extend(descriptions.moments(run))
    return [descriptions.algorithm(name, used, titles.get(name)) for name, used in configs.items()]


def _further(runs: dict[str, Run]) -> str:
    keys = descriptions.further_keys([descriptions.with_step(run) for run in runs.values()])
    return f"The groups also differed in {listed(keys)}." if keys else ""


def _schedules(runs: dict[str, Run]) -> str:
    """Returns a sentence on changes during runs; empty if there are none."""
    every = [run.config.get("schedule", ()) for run in runs.values()]
    texts = [schedule_text([(each["at"], each["set"]) for each in changes]) for changes in every]
    known = list(dict.fromkeys(text or "none" for text in texts))
    if known == ["none"]:
        return ""
    return f"Keys changed during the runs, after these iterations: {listed(known, 'or')}."


def _libraries(runs: dict[str, Run]) -> set[str]:
    """Returns the distributions that the domains and algorithms of runs use."""
    parts = [
        *(descriptions.domain_of(run.config).used_libraries for run in runs.values()),
        *(read_part("algorithm", run.config["algorithm"]).libraries for run in runs.values()),
    ]
    return {name for part in parts for name in part}


def _budget(data: SweepData) -> str:
    """Returns a sentence on the budget, the number of runs of a group, and their seeds."""
    rows = data.plan.computed
    used = data.with_results["evaluations"]
    low, high = number(used.min()), number(used.max())
    budget = f"{low if low == high else f'{low} to {high}'} evaluations"
    amounts = {unit: sorted({getattr(row, unit) or 0 for row in rows} - {0}) for unit in BUDGETS}
    asked = [
        f"{listed([number(n) for n in of], 'or')} {_UNITS.get(unit, unit)}"
        for unit, of in amounts.items()
        if of
    ]
    if len(asked) > 1 or (asked and len(amounts["evaluations"]) != 1):
        budget = f"{listed(asked, 'or')} ({budget})"
    counts = data.run_counts(list(data.series))
    few, many = min(counts), max(counts)
    repeats = plural(many, "run") if few == many else f"{few} to {plural(many, 'run')}"
    seeds = {row.values.get("seed", "") for row in rows} - {""}
    seeds = seeds or {str(run.config["seed"]) for run in data.median_runs.values()}
    groups = f"each of the {len(counts)} groups" if len(counts) > 1 else "the group"
    text = f"Each run used {budget}, and {groups} had {repeats} ({seeds_text(seeds)})."
    if data.plan.compare_at:
        text += (
            f" Runs are compared at the largest number of {BUDGET_UNITS[data.plan.compare_at]} that"
            " all runs of a task have reached."
        )
    return text


def _figures_of_merit(tables: SweepTables) -> str:
    score = f"the QD score{cite(['pugh2016quality'])} (the sum, over all elites, of the"
    score += " objective minus the lower end of its nominal range)"
    have_cells = tables.table[f"{NORM_QD_SCORE}_n"] > 0
    if have_cells.all():
        score += " divided by the number of cells, coverage"
    elif have_cells.any():
        score += ", divided by the number of cells where there are some, coverage of these archives"
    lost = " (also of solutions that are no longer elites)" if tables.plan.best_ever else ""
    best = f" and the {tables.metric('obj_max').phrase}{lost}"
    if LUCKY in tables.plan.noise.values():  # no table has the luckiest of all evaluations
        score, best = score.replace(", coverage", " and coverage"), ""
    returns = [
        f"the {metric.phrase} ({metric.about})"
        for metric in RETURNS[::-1]
        if tables.table[f"{metric.column}_n"].any()
    ]
    learners = f" Of learners we also report {listed(returns)}." if returns else ""
    return (
        f"We report {score}{best}, as {MEAN_TEXT} over seeds. The seed is the unit of"
        f" replication.{learners}"
        + ("" if tables.rank is RANK else f" Groups are ranked by the {tables.rank.phrase}.")
    )


def _statistics(tables: SweepTables, shown: set[str]) -> list[str]:
    """Returns sentences on the statistics other than means and their intervals."""
    agarwal, newcombe = cite(["agarwal2021deep"]), cite(["newcombe2006confidence"])
    welch, holm = cite(["welch1947generalization"]), cite(["holm1979simple"])
    tukey, mann = cite(["tukey1963less"]), cite(["mann1947test"])
    gupta, hsu = cite(["gupta1965some"]), cite(["hsu1984constrained"])
    vargha, clopper = cite(["vargha2000critique"]), cite(["clopper1934use"])
    ped, fanova = cite(["watanabe2023pedanova"]), cite(["hutter2014efficient"])
    enough = any(n >= ENOUGH_SEEDS for n in tables.counts(list(tables.series)))
    test, ranks = f"Welch's t-test{welch}", f" the Mann-Whitney U test{mann}, both"
    if tables.plan.tests != WELCH:
        test, ranks = "Student's t-test of the differences of runs of one seed", ""
    sentences = {
        "comparisons": f"A group may be the best{gupta}{hsu} unless another one is better by a"
        f" one-sided {test}, at 5 % divided by the numbers of groups and tasks. Pairs of groups"
        f" were compared by the two-sided test{' and' if ranks else ''}{ranks} with Holm's"
        f" correction{holm}, and by Vargha and Delaney's A{vargha} with Newcombe's 95 %"
        f" interval{newcombe}. Intervals of differences are simultaneous.",
        "over_tasks": f"Over all tasks we report the interquartile mean{agarwal} of"
        f" {task_score(tables.rank).phrase}, the tasks being strata, and performance profiles with"
        f" pointwise 95 % intervals of Clopper and Pearson{clopper}.",
        "importance": f"The importance of each swept parameter was computed by PED-ANOVA{ped} and"
        f" fANOVA{fanova} in Optuna{cite(['akiba2019optuna'])}, and compared with shuffled scores.",
    }
    intervals = (
        f"Interquartile means{agarwal} have pointwise 95 % intervals by Student's t with a"
        f" winsorised standard error{tukey}."
    )
    known = enough and tables.table[f"{tables.rank.column}_iqm_low"].notna().any()
    further = [text for name, text in sentences.items() if name in shown]
    return [intervals, *further] if known else further


def _distinct(runs: dict[str, Run], say: Callable[[Run], str]) -> list[str]:
    return list(dict.fromkeys(say(run) for run in runs.values()))
