"""What a sweep file expands to: its runs, those that confirm them, and the plan."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.explain import naming_file
from qdsweep.config.keys import Path
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.features import member, require_feature
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_confirm, read_plan
from qdsweep.records.search_files import read_search_rows
from qdsweep.records.sources import finder, sources_of
from qdsweep.search.levels import samples_of
from qdsweep.search.search_plan import SearchPlan
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.groups import CHANGES, MEMBER, group_labels
from qdsweep.sweep.runs import Sweep, table_of_runs
from qdsweep.text import seeds_text

# With one of these drawn, iterations do not measure work.
_BATCHES = ("batch_size", "num_emitters")

# Further keys of the sweep file that features of these names serve.
_OF_FEATURES = ("published", "rollouts")

NO_RUNS = Sweep((), (), {})
"""A sweep without runs."""


def sweep_of(
    settings: SweepFile, results: Results, sources: Mapping[Path, str] = MappingProxyType({})
) -> Sweep:
    """Expands a sweep file.

    Args:
        settings: The sweep file.
        results: The folder results/: a run may have an earlier id there.
        sources: The file or option of each key, from `key_sources`.

    Raises:
        BadInput: The sweep or one of its experiments is wrong, or its samples would replace those
            that it had before.
    """
    search, draw = settings.search, None
    if search and samples_of(search):
        from qdsweep.search.draws import drawn_by

        draw = drawn_by(search)
    try:
        sweep = table_of_runs(
            settings.experiment,
            settings.sweep,
            find=finder(results),
            draw=draw,
            excluded=settings.exclude,
        )
    except BadInput as error:
        with naming_file(sources, "sweep" if str(error).startswith("sweep") else "experiment"):
            raise
    with naming_file(sources, "search"):
        _check_samples(settings, sweep, results)
    for feature in _OF_FEATURES:
        if getattr(settings, feature):
            with naming_file(sources, feature):
                require_feature(feature, feature)
    if not settings.imported:
        return sweep
    with naming_file(sources, "imported"):
        read_all = member("imported.description:read_all", "imported")
        return replace(sweep, imported=read_all(settings.imported))


def _check_samples(settings: SweepFile, sweep: Sweep, results: Results) -> None:
    """Refuses budgets that no two samples can share, and samples that would replace others."""
    search = settings.search
    if search is None or SAMPLE not in sweep.columns:
        return
    drawn = [name for name in sweep.columns if name.split(".")[-1] in _BATCHES]
    for name in drawn if any(run.iterations for run in sweep.runs.values()) else ():
        if sweep.columns.index(name) > sweep.columns.index(SAMPLE):
            if search.pbt is not None:  # which needs a budget in iterations
                raise BadInput(
                    f"sweep: {name} is drawn, so members of the population would have other "
                    "numbers of evaluations: leave it out of the drawn values"
                )
            raise BadInput(
                f"sweep: {name} is drawn, so a budget in iterations gives each sample another "
                "number of evaluations: write evaluations: N in the experiment"
            )
    plan = results.sweep(settings.name).plan
    before = read_json_if_whole(plan).get("search")
    if search.sampling != "lhs" or not isinstance(before, dict):
        return
    samples = before.get("samples")
    if before | {"samples": search.samples} == search.plain != before:
        raise BadInput(
            f"search: samples = {search.samples}: a Latin hypercube of another size shares no "
            f"sample with the {samples} of {plan}: draw with sampling: sobol, halton or random, "
            "or give the sweep another name"
        )


def confirming(settings: SweepFile, sweep: Sweep, results: Results) -> Sweep:
    """Returns the runs known to confirm a sweep, each once, with its largest budget.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        results: The folder results/.

    Raises:
        BadInput: confirm.json is damaged.
    """
    runs, fingerprints = dict[str, Experiment](), dict[str, str]()
    folder, find = results.sweep(settings.name), finder(results)
    rows = read_confirm(folder) if settings.confirm else []
    chosen = {row["id"] for row in read_search_rows(folder)} if settings.staged_search else set()
    for row in rows:
        like = sweep.runs.get(row["like"])
        if like is None and row["like"] in chosen:  # on the way of a search
            like = compose(str(results.run(row["like"]).state.config))
        if like is None:
            continue  # from an earlier version of the sweep: its winners will be chosen again
        changes = {name: row.get(name) for name in BUDGETS}
        changes["seed"] = row["values"]["seed"]
        experiment = like.model_copy(update=changes)
        known = runs.get(row["id"])
        if known is None or [*known.budget.values()] < [*experiment.budget.values()]:
            runs[row["id"]] = experiment
        identity = find(experiment)
        if identity.id == row["id"]:
            fingerprints[identity.id] = identity.fingerprint
    return Sweep((), (), runs, fingerprints=fingerprints)


def plan_data(
    settings: SweepFile, sweep: Sweep, search: SearchPlan | None = None
) -> dict[str, Any]:
    """Returns a sweep as plain data, as in plan.json."""
    about = {"name": settings.name, "experiment": settings.title, "sweep": settings.sweep}
    metrics = [metric.function for metric in sweep.own_metrics.values()]
    measured = {"sources": sources_of(metrics)} if metrics else {}
    plan = sweep.plan(**about, **settings.drawing, **settings.reporting, **measured)
    if search is None:
        untested = _untested(sweep, settings.title)
        return {**plan, "untested": untested} if untested else plan
    if settings.search and settings.search.pbt:
        plan["columns"] = [MEMBER, *sweep.columns, CHANGES]
    # Its rows are known at its end; until then there is what they are chosen from.
    return {**plan, "rows": [], "base": settings.experiment, **search.entries}


def seen_seeds(runs: Iterable[Experiment]) -> dict[str, str]:
    """Returns tuned algorithm -> the choice by seeds that it has again here, and the remedy.

    The score of the best of many settings is too high on the seeds that chose it: see
    `analysis.tables.confirmed`.
    """
    tuned: dict[str, list[Experiment]] = {}
    for run in runs:
        if run.algorithm.tuned_by is not None:
            tuned.setdefault(run.algorithm.name, []).append(run)
    texts = {}
    for name, own in tuned.items():
        by, seen = own[0].algorithm.tuned_by, {run.seed for run in own if run.has_seen_seed}
        if by is not None and seen:
            first, count = max(by["seeds"]) + 1, len({run.seed for run in own})
            fresh = seeds_text(range(first, first + count))
            texts[name] = (
                f"chosen by the sweep {by['sweep']} with {seeds_text(seen)}, so that its scores "
                f"with these tend to be too high. Give it fresh ones: {fresh}"
            )
    return texts


def _untested(sweep: Sweep, title: str) -> dict[str, str]:
    """Returns the groups with runs by whose seeds their algorithm was tuned: group -> why."""
    texts = seen_seeds(row.experiment for row in sweep.rows)
    if not texts:
        return {}
    labels = group_labels(sweep.columns, sweep.texts, title)
    return {
        label: texts[row.experiment.algorithm.name]
        for label, row in zip(labels, sweep.rows, strict=True)
        if row.experiment.has_seen_seed
    }


def planned_budget(sweep: SweepDir, run: str) -> dict[str, int]:
    """Returns the largest budget that a sweep's plan gives a run, as `Experiment.budget` has it.

    Args:
        sweep: The sweep's folder.
        run: The run, of the sweep or of its confirmation.

    Raises:
        BadInput: The plan is missing or damaged, or does not have this run.
    """
    runs = read_plan(sweep, run).runs() or read_plan(sweep).runs(read_confirm(sweep))
    for planned in runs:
        if planned.id == run:
            return {planned.unit: planned.budget}
    raise BadInput(
        f"{sweep.plan} does not have the run {run}: start snakemake with that sweep again: it "
        "writes the file again"
    )
