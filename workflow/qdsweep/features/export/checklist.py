"""checklist.md of an exported sweep: a reviewer's questions, answered from the records.

Da Ros et al. (2026, arXiv 2602.07059) read 168 papers of GECCO with a checklist of reproducibility.
These questions are about the same matters, in our words. What no record has is left open.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qdsweep.analysis.page.methods import core_seconds, sweep_digest
from qdsweep.analysis.sheet import read_sheet
from qdsweep.config.compose import compose
from qdsweep.config.domain import Plugin
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.features.compare.tuning import choice_in, tuning_of
from qdsweep.features.export.crate import REVIEW
from qdsweep.files import read_csv
from qdsweep.records.dependencies import ACCEPTED, accepted_text
from qdsweep.records.paths import RunFiles, SweepDir
from qdsweep.records.plan import Plan, PlannedRun, read_confirm, read_plan_data
from qdsweep.records.results import read_config
from qdsweep.records.search_files import places_left
from qdsweep.text import core_time, listed, number, plural, seeds_text

OPEN = "open: "
"""The start of what the records do not know."""
_HEAD = """\
# Checklist of the sweep {name}

Every answer is computed from the records of the runs; "open" is what they do not have. The
questions are ours. They are about the matters of the checklist of Da Ros et al. (2026), Assessing
Reproducibility in Evolutionary Computation, arXiv:2602.07059.

| | Question | Answer |
|---|---|---|
"""
_LISTED = 5
# The tables whose notes say how groups are compared.
_NOTES = ("table", "comparisons", "over_tasks", "confirmed", "corrected", "importance")


@dataclass(frozen=True)
class ExportRecords:
    """What is known of an exported sweep.

    Attributes:
        sweep: Its folder.
        plan: The sweep.
        planned: Its runs.
        runs: Run -> its files, of those with results.
        summaries: The same runs -> summary.json.
        licence: The licence of the package; empty in a blind copy.
    """

    sweep: SweepDir
    plan: Plan
    planned: Mapping[str, PlannedRun]
    runs: Mapping[str, RunFiles]
    summaries: Mapping[str, dict[str, Any]]
    licence: str = ""

    @cached_property
    def own(self) -> dict[str, dict[str, Any]]:
        """The summaries of the runs that were computed here."""
        imported = {row.run for row in self.plan.rows if row.imported}
        return {run: about for run, about in self.summaries.items() if run not in imported}

    @cached_property
    def experiments(self) -> list[Experiment]:
        """The experiment of a run of each group."""
        firsts: dict[str, str] = {}
        for row in self.plan.computed:
            if row.run in self.runs:
                firsts.setdefault(row.group, row.run)
        return [compose(str(self.runs[run].config)) for run in firsts.values()]

    @cached_property
    def attempts(self) -> list[dict[str, Any]]:
        """The attempts at all runs."""
        return [each for about in self.own.values() for each in about.get("attempts", [])]

    @cached_property
    def seeds(self) -> dict[str, set[int]]:
        """Group -> the seeds of its own runs that have results."""
        seeds: dict[str, set[int]] = {}
        for row in self.plan.computed:
            seeds.setdefault(row.group, set()).update([_seed_of(row.run)] * (row.run in self.own))
        return seeds


def checklist(records: ExportRecords) -> str:
    """Returns checklist.md."""
    lines = [
        f"| {part} | {question} | {_cell(answer(records))} |\n"
        for part, questions in QUESTIONS.items()
        for question, answer in questions.items()
    ]
    return _HEAD.format(name=records.plan.name) + "".join(lines)


def _cell(text: str) -> str:
    """Returns a text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _seed_of(run: str) -> int:
    """Returns the seed in a run's id."""
    return int(run.rsplit("-", 2)[1].removeprefix("s"))


def _distinct(texts: Iterator[str], noun: str = "") -> str:
    known = list(dict.fromkeys(texts))
    return listed(known) if known else f"{OPEN}no run has {noun or 'it'}"


def _algorithms(records: ExportRecords) -> str:
    parts = (each.algorithm for each in records.experiments)
    names = (f"{part.title} ({part.name})" if part.title else part.name for part in parts)
    return f"{_distinct(names, 'an algorithm')}. All keys: runs/ID/config.yaml"


def _problems(records: ExportRecords) -> str:
    texts = []
    for experiment in records.experiments:
        domain = experiment.domain
        known = "its code is in config/plugins" if isinstance(domain, Plugin) else ""
        texts.append(f"{domain.name} ({domain.type}, {known or f'version {domain.version}'})")
    return _distinct(iter(texts), "a domain")


def _varied(records: ExportRecords) -> str:
    plan = records.plan
    groups = len({row.group for row in plan.computed})
    return (
        f"`{' '.join(plan.sweep.split())}`: {plural(groups, 'group')}, "
        f"{plural(len(plan.runs()), 'run')}"
    )


def _tuning(records: ExportRecords) -> str:
    plan = records.plan
    tuning = tuning_of(plan, read_plan_data(records.sweep))
    known = (each.algorithm.tuned_by for each in records.experiments)
    texts = [
        f"{by['cost']} in the sweep {by['sweep']}, with {seeds_text(by['seeds'])}"
        for by in known
        if by is not None
    ]
    if tuning is not None:
        seeds = {_seed_of(run) for run in tuning.runs}
        texts.append(f"{tuning.text} of a search in this sweep, with {seeds_text(seeds)}")
    if plan.untested:
        texts.append(f"not tested for that reason: {'; '.join(plan.untested)}")
    if texts:
        return "; ".join(dict.fromkeys(texts))
    choice = choice_in(plan)
    shown = f"; the tables have all groups of this sweep ({choice.text})" if choice else ""
    return f"no search is recorded{shown}. {OPEN}what was tried elsewhere"


def _runs(records: ExportRecords) -> str:
    counts = sorted({len(of) for of in records.seeds.values()})
    if not counts:
        return f"{OPEN}no run was computed here"
    each = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    every = {seed for of in records.seeds.values() for seed in of}
    return f"{each} of each group ({seeds_text(every)})"


def _held_out(records: ExportRecords) -> str:
    seeds = {row["values"]["seed"] for row in read_confirm(records.sweep)}
    return f"the winners, with the held-out {seeds_text(seeds)}" if seeds else "no"


def _chance(records: ExportRecords) -> str:
    known: dict[str, int] = {}
    words = {"True": "depend on their seed", "False": "do not depend on a seed"}
    for about in records.own.values():
        text = words.get(str(about.get("stochastic")), f"{OPEN}unknown")
        known[text] = known.get(text, 0) + 1
    texts = [f"{plural(count, 'run')}: evaluations {text}" for text, count in known.items()]
    keys = {str(each.domain.evaluation_seed) for each in records.experiments}
    rule = f". Seeds of evaluations (evaluation_seed): {listed(sorted(keys))}" if keys else ""
    again = records.plan.reevaluate
    then = f". Elites were evaluated {again.times} more times with fresh seeds" if again else ""
    return f"{_distinct(iter(texts), 'evaluations')}{rule}{then}"


def _budgets(records: ExportRecords) -> str:
    amounts: dict[str, set[int]] = {}
    for run in records.planned.values():
        if run.id in records.own or run.id not in records.summaries:
            amounts.setdefault(run.unit, set()).add(run.budget)
    texts = [
        f"{listed([number(amount) for amount in sorted(amounts[unit])], 'or')} {unit}"
        for unit in BUDGETS
        if unit in amounts
    ]
    done = [about["evaluations"] for about in records.own.values() if about.get("evaluations")]
    used = f", in all {number(sum(done))} evaluations" if done else ""
    return f"{listed(texts, 'or')} a run{used}. A run ends with the iteration that reaches it"


def _compute(records: ExportRecords) -> str:
    known = [core_seconds(about) for about in records.own.values() if about.get("timings")]
    if not known:
        return f"{OPEN}no run has its time"
    text = f"{core_time(sum(known))} (time of the runs x workers) for {plural(len(known), 'run')}"
    left = [f"{OPEN}CPU time"]
    if records.plan.levels:
        left.append("runs that the search stopped early")
    return f"{text}. {', '.join(left)}"


def _hardware(records: ExportRecords) -> str:
    models = sorted({str(each["cpu"]) for each in records.attempts if each.get("cpu")})
    known = (about.get("versions", {}).get("GPU") for about in records.own.values())
    gpus = sorted({name for name in known if name})
    workers = sorted({int(about.get("workers") or 1) for about in records.own.values()})
    hosts = {each["host"] for each in records.attempts if each.get("host")}
    text = listed([*models, *gpus]) if models else f"{OPEN}the CPU"
    text += f"; {plural(len(hosts), 'machine')}" if hosts else ""
    text += f"; workers of a run: {listed([str(n) for n in workers], 'or')}" if workers else ""
    return f"{text}. {OPEN}memory"


def _versions(records: ExportRecords) -> str:
    known: dict[str, set[str]] = {}
    for about in records.own.values():
        for name, version in about.get("versions", {}).items():
            known.setdefault(name, set()).add(version)
    texts = [f"{name} {' or '.join(sorted(of))}" for name, of in sorted(known.items())]
    return f"{', '.join(texts) or f'{OPEN}no run has them'}. {OPEN}operating system"


def _numerics(records: ExportRecords) -> str:
    known = sorted({str(about.get("cpu_baseline")) for about in records.own.values()})
    if known == ["avx2"]:
        return "avx2: equal bits on every x86-64 CPU with AVX2, with equal versions"
    return f"{listed(known)}: {OPEN}bits on other CPUs" if known else f"{OPEN}no run was computed"


def _engines(records: ExportRecords) -> str:
    known = sorted({str(about.get("engine")) for about in records.own.values()})
    return f"{listed(known)}; results do not depend on it" if known else f"{OPEN}none was used"


def _measures(records: ExportRecords) -> str:
    plan = records.plan
    names = [metric.name for metric in plan.own]
    own = f"; own metrics: {listed(names)}" if names else ""
    return f"ranked by the {plan.rank.phrase} ({plan.rank.name}){own}. All: tables/summary.csv"


def _statistics(records: ExportRecords) -> str:
    paths = {name: records.sweep.tables / f"{name}.json" for name in _NOTES}
    paths["table"] = records.sweep.table
    notes = [
        f"tables/{name}: {read_sheet(path).note}" for name, path in paths.items() if path.exists()
    ]
    return " ".join(notes) or f"{OPEN}no table has a note"


def _failures(records: ExportRecords) -> str:
    table = read_csv(records.sweep.summary, "Run `snakemake`.", usecols=["id", "status"], dtype=str)
    rows = zip(table["id"], table["status"], strict=True)
    states = {run: status for run, status in rows if status != "finished"}
    states |= {run: "missing" for run in records.planned if run not in {*records.runs, *states}}
    shown = [f"{run} ({state})" for run, state in sorted(states.items())]
    runs = listed(shown, most=_LISTED) if shown else "every run is finished"
    if len(shown) > _LISTED:
        runs = f"{len(shown)} of {plural(len(records.planned), 'run')}: {runs}"
    failed = sum(int(about.get("failures") or 0) for about in records.own.values())
    again = sum(each.get("how") != "finished" for each in records.attempts)
    text = f"{runs}; {plural(failed, 'failed evaluation')}"
    text += f"; {plural(again, 'interruption')}"
    if taken := sum(bool(about.get(ACCEPTED)) for about in records.own.values()):
        text += f"; {accepted_text(taken)}"
    if records.plan.levels:
        left, total = places_left(records.sweep, records.plan.levels)
        text += f"; {left} of {plural(total, 'place')} of the search are left"
    return text


def _imported(records: ExportRecords) -> str:
    sources: dict[str, str] = {}
    for row in records.plan.rows:
        if row.imported and row.run in records.runs:
            about = read_config(records.runs[row.run].config).get("imported", {})
            sources.setdefault(row.group, about.get("source") or f"{OPEN}their source")
    return "; ".join(f"{group}: {text}" for group, text in sources.items()) or "none"


def _code(records: ExportRecords) -> str:
    names = sorted({name for each in records.experiments for name in each.own_code})
    metrics = [path for path in records.plan.sources if path not in names]
    own = f"of the authors: {listed([*names, *metrics])} (config/plugins)" if names else ""
    versions = {about.get("versions", {}).get("qdsweep") for about in records.own.values()}
    tools = listed(sorted(version for version in versions if version))
    return f"{own or 'none of the authors'}; qdsweep {tools or f'({OPEN}its version)'}"


def _environment(records: ExportRecords) -> str:
    images = [about["image"] for about in records.own.values() if about.get("image")]
    digests = sorted({str(image.get("sha256") or "unknown") for image in images})
    used = f"{plural(len(images), 'run')} in the image {listed(digests)}" if images else "no image"
    return f"requirements.lock (with hashes), containers (the recipe of an image); used: {used}"


def _data(records: ExportRecords) -> str:
    summaries = list(records.summaries.values())
    return (
        f"config, metrics and archive of {plural(len(summaries), 'run')} (runs/ID). SHA-256 over "
        f"the sorted ids and archive digests: {sweep_digest(summaries)}"
    )


def _check(_: ExportRecords) -> str:
    return f"`sha256sum -c SHA256SUMS`, then `{REVIEW}` in this folder"


def _licence(records: ExportRecords) -> str:
    return records.licence or f"{OPEN}a blind copy has none; the authors name it when they publish"


def _paper(_: ExportRecords) -> str:
    return f"{OPEN}question, claims, limits, and a lasting address (DOI) of this package"


QUESTIONS: dict[str, dict[str, Callable[[ExportRecords], str]]] = {
    "Method": {
        "Which algorithms?": _algorithms,
        "Which problems, in which version?": _problems,
        "What was varied?": _varied,
        "What did the choice of settings cost?": _tuning,
    },
    "Set-up": {
        "How many runs, with which seeds?": _runs,
        "Was the winner computed again with held-out seeds?": _held_out,
        "Does an evaluation depend on chance?": _chance,
        "When did a run end?": _budgets,
        "How much was computed?": _compute,
        "On which hardware?": _hardware,
        "With which software?": _versions,
        "On which CPUs are the bits equal?": _numerics,
        "How were evaluations distributed?": _engines,
    },
    "Results": {
        "What was measured?": _measures,
        "Which intervals and tests?": _statistics,
        "What failed or is missing?": _failures,
        "Which results are not ours?": _imported,
    },
    "Artifacts": {
        "Where is the code?": _code,
        "Where is the environment?": _environment,
        "Where are the data?": _data,
        "How is all this checked?": _check,
        "Under which licence?": _licence,
        "What does only the paper say?": _paper,
    },
}
"""Part of the checklist -> its questions, each with the function that answers it."""
