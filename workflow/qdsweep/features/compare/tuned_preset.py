"""The setting that a sweep has chosen, as a preset of its algorithm, with its origin."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qdsweep.analysis.search_progress import read_search
from qdsweep.analysis.selection import compared_metric, read_tables
from qdsweep.analysis.tables.confirmed import winners
from qdsweep.analysis.tables.group_table import decimals_of
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.family import TunedBy
from qdsweep.config.files import PRESET_FOLDER, to_yaml
from qdsweep.config.keys import dotted, key_paths, resolve
from qdsweep.errors import BadInput
from qdsweep.features.compare.tuning import Tuning, choice_in
from qdsweep.files import write_text
from qdsweep.metrics import Metric
from qdsweep.records.dependencies import OUTDATED, WAYS_BACK
from qdsweep.records.paths import RunDir, SweepDir, is_imported
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.results import read_summary
from qdsweep.records.search_files import places_left
from qdsweep.records.status import read_attempts
from qdsweep.search.levels import whole_budget
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.groups import CHANGES, MEMBER
from qdsweep.text import listed, number, plural, seeds_text

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 10
_TITLE = " (tuned)"
# Columns of a sweep that are no setting, and the one that chooses the preset itself.
_NO_SETTING = ("seed", SAMPLE, MEMBER, CHANGES, "algorithm")
# The parts of an experiment that make a task, of which a sweep may have several.
_OF_TASKS = ("experiment", "domain", "archive")


class Winner(NamedTuple):
    """The setting that a sweep has chosen.

    Attributes:
        label: Its swept values.
        values: Swept parameter -> value.
        run: One of its runs.
        score: Its mean score, with the name of the metric.
        rule: How it was chosen.
    """

    label: str
    values: Mapping[str, Any]
    run: RunDir
    score: str
    rule: str

    @property
    def experiment(self) -> Experiment:
        """The experiment of that run."""
        return compose(str(self.run.config))


class TunedPreset(NamedTuple):
    """A preset of an algorithm.

    Attributes:
        text: The content of its file.
        about: The winner's swept values and score.
        further: Swept keys of the winner that no algorithm has, and their values.
        seeds: The seeds by which it was chosen.
    """

    text: str
    about: str
    further: dict[str, Any]
    seeds: list[int]

    def lines(self, out: Path) -> Iterator[str]:
        """Yields what a user reads once it is written."""
        yield f"{out}: {self.about}"
        if self.further:
            yield "No key of an algorithm, so the experiment must set:"
            yield to_yaml(self.further).rstrip()
        yield f"It was chosen with {seeds_text(self.seeds)}: give it other seeds in later sweeps"


def write_tuned(preset: TunedPreset, out: Path) -> None:
    """Writes the file of a preset; one with the same content stays.

    Raises:
        BadInput: The name is none of a preset, or is taken.
    """
    if out.suffix != ".yaml":
        raise BadInput(f"--out {out}: the name of a preset ends with .yaml, such as tuned.yaml")
    if out.exists():
        if out.is_file() and out.read_text(encoding="utf-8") == preset.text:
            return
        raise BadInput(f"--out {out}: it exists with another content; give another name")
    if (PRESET_FOLDER / "algorithms" / out.name).exists():
        raise BadInput(
            f"--out {out}: qdsweep has an algorithm {out.stem}, which sweeps would no longer find; "
            "give another name"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, preset.text)


def tuned_preset(sweep: SweepDir) -> TunedPreset:
    """Returns the preset of the setting that a sweep has chosen.

    A search with levels chooses by its own decisions: the best of its last level. Any other sweep
    chooses the group with the best mean of the metric that ranks, as `confirm` does.

    Args:
        sweep: The sweep's folder.

    Raises:
        BadInput: The sweep is not finished, has nothing to choose, or each of its tasks has another
            winner.
    """
    plan = read_plan(sweep)
    chosen = list(_of_search(sweep, plan) if plan.levels else _of_tables(sweep, plan))
    choice = choice_in(plan)
    if not chosen or choice is None:
        raise BadInput(
            f"the sweep {plan.name} has only one setting of each domain and archive, so it has "
            "chosen nothing: sweep a key of the algorithm"
        )
    further = [_further(winner) for winner in chosen]
    alike = {key: of for key, of in further[0].items() if all(o.get(key) == of for o in further)}
    others = {key for of in further for key in of} - alike.keys()
    bodies = {to_yaml(_settings(winner.experiment)) for winner in chosen}
    if len(bodies) > 1 or any(key.partition(".")[0] not in _OF_TASKS for key in others):
        each = "; ".join(f"{winner.label} ({winner.experiment.domain.name})" for winner in chosen)
        raise BadInput(
            f"the sweep {plan.name} has {len(chosen)} domains or archives with other winners: "
            f"{each}. Give each of them a sweep of its own"
        )
    return _preset(plan, sweep, chosen, choice, bodies.pop(), alike)


def _of_search(sweep: SweepDir, plan: Plan) -> Iterator[Winner]:
    """Yields the winner of a search with levels."""
    left, total = places_left(sweep, plan.levels)
    search = read_search(sweep, plan)
    if left or search is None or not plan.rows:
        raise BadInput(
            f"the search {plan.name} is not finished: {left} of {plural(total, 'place')} are left. "
            "Start the same command again"
        )
    best, metric = search.finalists[0], search.metric
    if best.score is None:
        raise BadInput(f"the search {plan.name} has no score: {metric.name} is nowhere defined")
    shown = number(search.shown(best.score), search.decimals)
    seeds = [int(seed) for seed in best.runs if seed]
    what = f" with {seeds_text(seeds)}" if seeds else ""
    most = f"{number(whole_budget(plan.levels))} {plan.unit}"
    yield Winner(
        search.label(best),
        dict(best.values),
        sweep.results.run(next(iter(best.runs.values()))),
        f"{metric.phrase} {shown}{what}, at {most}",
        f"the decisions of the search: {metric.extreme} mean {metric.phrase} of the last level",
    )


def _of_tables(sweep: SweepDir, plan: Plan) -> Iterator[Winner]:
    """Yields the winner of each domain and archive that has several groups."""
    tables = read_tables(sweep.path)
    own = tables.summary[~tables.summary["id"].map(is_imported)]
    if sorted({*own["id"]}) != sorted({row.run for row in plan.computed}):
        raise BadInput(f"{sweep.summary} is of other runs than the sweep has now: run `snakemake`")
    outdated = own["status"] == OUTDATED
    left = list(own["id"][(own["status"] != "finished") & ~outdated])
    if left:
        raise BadInput(
            f"{plural(len(left), 'run')} of the sweep {plan.name} not finished: "
            f"{listed(left, most=_SHOWN)}. Finish them (`snakemake`)"
        )
    if outdated.any():
        raise BadInput(
            f"the sweep {plan.name} has {plural(int(outdated.sum()), 'outdated run')}: "
            f"{listed(list(own['id'][outdated]), most=_SHOWN)}. {WAYS_BACK} to its start"
        )
    first = set(winners(tables, 1, plan.imported_groups))
    for groups in tables.score_scales.values():
        rivals = [group for group in groups if group not in plan.imported_groups]
        (best,) = [group for group in rivals if group in first] or [""]
        if len(rivals) < 2:
            continue
        metric = compared_metric(tables.rank, tables.summary, groups)
        row = plan.groups[best][0]
        yield Winner(
            best,
            row.typed,
            sweep.results.run(row.run),
            _score(tables.table, best, metric),
            f"{metric.extreme} mean {metric.phrase} of {plural(len(rivals), 'group')}",
        )


def _score(table: "pd.DataFrame", group: str, metric: Metric) -> str:
    row = table.set_index("group").loc[group]
    mean, n = float(row[f"{metric.column}_mean"]), int(row[f"{metric.column}_n"])
    if not n:
        raise BadInput(f"no group has a {metric.phrase} ({metric.name}), so none is the best")
    shown = number(mean, decimals_of(table, metric))
    return f"{metric.phrase} {shown} (mean of {plural(n, 'seed')})"


def _settings(experiment: Experiment) -> dict[str, Any]:
    """Returns the algorithm of an experiment as a preset has it: no defaults, and no name."""
    algorithm = experiment.algorithm
    left_out = {"name", "title", "tuned_by"}
    body = algorithm.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    title = (algorithm.title or algorithm.name).removesuffix(_TITLE)
    return {"title": title + _TITLE, **body}


def _further(winner: Winner) -> dict[str, Any]:
    """Returns the winner's swept keys that no algorithm has: key -> value."""
    experiment = winner.experiment
    data = experiment.model_dump(mode="json")
    paths = list(key_paths(Experiment, data))
    found: dict[str, Any] = {}
    for name, value in winner.values.items():
        if name in _NO_SETTING or value == "":
            continue
        if name in ("experiment", "domain"):
            found[name] = value
            continue
        path = resolve(name, paths, "")
        if path[0] != "algorithm":
            found[dotted(path)] = value
    if experiment.schedule and "schedule" not in found:  # of a population
        found["schedule"] = data["schedule"]
    return found


def _preset(
    plan: Plan,
    sweep: SweepDir,
    chosen: list[Winner],
    choice: Tuning,
    body: str,
    further: dict[str, Any],
) -> TunedPreset:
    """Returns the preset with its origin: comments for a reader, `tuned_by` for later sweeps."""
    experiments = [winner.experiment for winner in chosen]
    domains = {experiment.domain.name for experiment in experiments}
    seeds = {int(run.rsplit("-", 2)[1].removeprefix("s")) for run in choice.runs}
    cost, before = choice.text, experiments[0].algorithm.tuned_by
    if before is not None:  # a choice that refines an earlier one
        domains, seeds = domains | {*before["domains"]}, seeds | {*before["seeds"]}
        cost += f", after {before['cost']} in the sweep {before['sweep']}"
    origin: TunedBy = {
        "sweep": plan.name,
        "domains": sorted(domains),
        "seeds": sorted(seeds),
        "cost": cost,
    }
    budgets = {run.budget: run.unit for run in plan.runs()}
    each = listed([f"{number(amount)} {unit}" for amount, unit in sorted(budgets.items())], "or")
    label = "; ".join(winner.label for winner in chosen)
    score = "; ".join(winner.score for winner in chosen)
    lines = [
        f"The setting that the sweep {plan.name} chose: {label}.",
        f"Rule: {'; '.join(dict.fromkeys(winner.rule for winner in chosen))}.",
        f"Score: {score}.",
        f"Chosen with {seeds_text(seeds)}. Each run had {each}.",
        f"Cost: {cost}.",
        f"Last run: {_last_day(sweep, choice)}.",
        f"Versions: {_versions(chosen[0].run)}.",
    ]
    if further:
        lines += ["No key of an algorithm, so the experiment must set:"]
        lines += [f"  {line}" for line in to_yaml(further).splitlines()]
    comments = "".join(f"# {line}\n" for line in lines)
    text = comments + body + to_yaml({"tuned_by": origin})
    return TunedPreset(text, f"{label}, {score}", further, sorted(seeds))


def _last_day(sweep: SweepDir, choice: Tuning) -> str:
    """Returns the day on which the last of the runs ended."""
    runs = map(sweep.results.run, choice.runs)
    attempts = (attempt for run in runs for attempt in read_attempts(run.state.status))
    return max((attempt["ended"][:10] for attempt in attempts if attempt.get("ended")), default="?")


def _versions(run: RunDir) -> str:
    versions = read_summary(run.results).get("versions", {})
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
