"""The start of a sweep: it reads, checks, forecasts and prints. Rules and `plan` use it."""

import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from qdsweep.config.base import typed
from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.explain import explain, naming_file
from qdsweep.config.files import read_text_value, read_yaml, require_text, shown
from qdsweep.config.imported import read_all
from qdsweep.config.keys import Path
from qdsweep.config.memory import require_memory_of
from qdsweep.config.sweep import REST, SweepFile, shard_parts
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole, signature
from qdsweep.host.lock import is_alive
from qdsweep.planning.checks import (
    check_effects,
    check_fit,
    check_packages,
    check_sweep,
    require_folders,
)
from qdsweep.planning.console import Progress
from qdsweep.planning.jobs import (
    REQUESTED,
    Settled,
    launch_budget,
    memory_mb,
    planned_budget,
    settled,
    slurm_request,
)
from qdsweep.planning.outlook import (
    Change,
    Forecast,
    confirm_line,
    find_changes,
    forecast,
    outlook,
    renamed,
    unfinished,
)
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import Plan, read_confirm, read_plan, write_plan
from qdsweep.records.progress import Standing, read_finished, read_standings
from qdsweep.records.search import Level, places_left, read_search_rows
from qdsweep.records.sources import finder, sources_of
from qdsweep.records.status import (
    Status,
    fingerprint_of,
    is_too_short,
    name_fingerprint,
    read_status,
    require_fingerprint,
)
from qdsweep.search.decide import run_of_place
from qdsweep.search.draws import drawn_by
from qdsweep.search.levels import count_finalists, samples_of
from qdsweep.search.pbt import with_changes
from qdsweep.search.plan import (
    SearchPlan,
    basis,
    decided_by,
    decision_of,
    search_outlook,
    search_plan,
    spoiled,
)
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.grammar import recover
from qdsweep.sweep.groups import CHANGES, MEMBER
from qdsweep.sweep.ids import adhoc_name
from qdsweep.sweep.runs import Sweep, table_of_runs
from qdsweep.text import listed, nearest, plural


class Given(NamedTuple):
    """The config of a sweep, as Snakemake made it of files and command line.

    Attributes:
        config: Snakemake's config.
        command_line: The `KEY=VALUE` of `--config` as they were typed.
        files: The config files, later ones over earlier ones.
        where: The name of the config in messages if there are no files.
    """

    config: Mapping[str, Any]
    command_line: Iterable[str] = ()
    files: Iterable[str | os.PathLike[str]] = ()
    where: str = "--config"


class Start:
    """A start of a sweep.

    Args:
        results: The folder results/.
        given: The config of the sweep.
        is_job: Whether this is the Snakemake of a job on a run: it needs only the run's plan, so
            nothing is expanded, composed and hashed.
        is_main: Whether this is the main Snakemake, which decides what has a job.

    Raises:
        BadInput: A file, a key or a value is wrong, or the keys do not fit together.

    Attributes:
        settings: The sweep file.
        sources: The file or option of each key, for messages.
        folder: The sweep's folder.
        sweep: Its runs; none in a job, and only those of the shard where there is one.
        whole: Its runs, in all shards.
        search: The plan of a search; None where all runs are computed whole.
        confirming: The runs that confirm it, as far as an earlier start has chosen them.
        clusters: Name -> cluster config: both that `auto` may become.
        plan: The sweep as plain data, as in plan.json: of all shards.
    """

    def __init__(
        self, results: Results, given: Given, *, is_job: bool = False, is_main: bool = True
    ) -> None:
        self.results = results
        self.settings = read_sweep(*given)
        self.sources = key_sources(*given[1:])
        self.folder = results.sweep(self.settings.name)
        require_folders(self.folder)
        self.sweep = self.confirming = Sweep((), (), {})
        self.search: SearchPlan | None = None
        self._is_job, self._is_main = is_job, is_main
        if not is_job:
            self.sweep = sweep_of(self.settings, results, self.sources)
            self.settings = self.settings.with_columns(self.sweep.columns)
            check_sweep(self.settings, self.sweep, self.sources)
            with naming_file(self.sources, "experiment"):
                check_effects(self.sweep.runs, results)
            self.search = search_plan(self.settings, self.sweep, self.sources)
            self.confirming = self.confirming_now()
        self.clusters = clusters_of(self.settings, self.sources)
        if self.settings.cluster != "auto":  # else it is not known before the executor is
            self.check_fit(self.settings.cluster)
        self.plan = plan_data(self.settings, self.sweep, self.search)
        self.whole = self.sweep
        if self.settings.shard:
            self.confirming = Sweep((), (), {})
            if self.settings.shard != REST:
                self.sweep = self.sweep.shard(*shard_parts(self.settings.shard))

    @cached_property
    def runs(self) -> dict[str, Experiment]:
        """The runs of the sweep, and those known to confirm it: id -> experiment."""
        return dict(self.sweep.runs | self.confirming.runs)

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The levels of a search; none where there is no search."""
        if not self.settings.staged_search:
            return {}
        return {level.name: level for level in self._searched.levels}

    @cached_property
    def candidates(self) -> Sequence[Mapping[str, Any]]:
        """The candidates that are known before a search starts."""
        return self._searched.candidates

    @cached_property
    def _searched(self) -> Plan:
        """The plan of a search, which a job reads from the sweep's folder."""
        return self._plan if self.search else read_plan(self.folder)

    @cached_property
    def spoiled(self) -> dict[str, str]:
        """Files of a search that were edited, truncated or are of runs that were removed: why."""
        if self.search is None:
            return {}
        return spoiled(self.settings.name, self.search, self.results, self.plan.get("sources", {}))

    @cached_property
    def finished(self) -> dict[str, Status]:
        """The finished runs of a large sweep."""
        if not self._is_main or self.search is not None:
            return {}
        return read_finished(self.folder, list(self.runs))

    @cached_property
    def settled(self) -> Settled:
        """The finished runs that need no job, and those that need one."""
        return settled(self.runs, self.finished, self.folder)

    @cached_property
    def taken(self) -> frozenset[str]:
        """The runs that the shard `rest` omits: other starts compute them, or they have failed."""
        if self.settings.shard != REST:
            return frozenset()
        states = {run: self.results.run(run).state for run in self.unsettled}
        return frozenset(
            run for run, state in states.items() if state.failure.exists() or is_alive(state.lock)
        )

    @cached_property
    def unsettled(self) -> dict[str, Experiment]:
        """The runs that are not known to be finished and published."""
        whole = self.settled.whole
        return {run: experiment for run, experiment in self.runs.items() if run not in whole}

    @cached_property
    def too_short(self) -> frozenset[str]:
        """The runs that Snakemake would take for finished.

        Snakemake compares a budget with that of its own last job. It does not know of a run that
        was computed by hand, or that has gone further than was published.
        """
        return self.settled.outdated | {
            run
            for run, experiment in self.unsettled.items()
            if is_too_short(self.results.run(run), experiment.budget)
        }

    @property
    def forced(self) -> set[str]:
        """The files of runs and of a search that are to be written again."""
        return {str(self.results.run(run).summary) for run in self.too_short} | self.spoiled.keys()

    def confirming_now(self) -> Sweep:
        """Returns the runs known to confirm the sweep: all of them once its winners are chosen."""
        return confirming(self.settings, self.sweep, self.results)

    @property
    def left(self) -> tuple[int, int, str]:
        """The number of unfinished runs (or places of a search), that of all, and their noun."""
        if self.search is not None:
            return *places_left(self.folder, self.search.levels), "place"
        return len(self.unfinished), len(self.runs), "run"

    @cached_property
    def unfinished(self) -> list[Experiment]:
        """The runs that have not reached their budget."""
        return unfinished(self.unsettled, self.results)

    def progress(self) -> Progress | None:
        """Returns the progress of the runs from now on; None for a search."""
        return None if self.search is not None else Progress(self._look, self._standings)

    def republished(self, runs: Sequence[str]) -> str:
        """Returns a line about jobs of finished runs, such as those of `--forceall`; or nothing.

        Args:
            runs: The runs that have a job.
        """
        standings = self._standings if runs else ()
        done = {now.run.id for now in standings if now.state == "finished"}
        finished = [run for run in runs if run in done]
        if not finished:
            return ""
        name = self.settings.name if len(finished) > 1 else finished[0]
        changed = [path for run in finished for path in self.results.run(run).state.damaged()]
        if changed:
            return (
                f"qdsweep: warning: {listed(list(map(str, changed)), most=3)} changed after the "
                "end of the run. Its job makes the results again from the reload file, or from the "
                "start if metrics.csv has changed. To prevent this, restore a copy first"
            )
        return (
            f"qdsweep: {plural(len(finished), 'run')} finished earlier: the job only copies files "
            "from state/, and computes nothing. To compute again, first run "
            f"`qdsweep clean --runs {name}`"
        )

    def check_fit(self, cluster: str) -> None:
        """Refuses more workers than a run has solutions at a time."""
        check_fit(self.clusters[cluster], cluster, self.sweep.settings)

    def check_fingerprints(self) -> None:
        """Refuses runs whose folder has another experiment, by the index of finished runs.

        Raises:
            BadInput: An id is by chance that of two experiments.
        """
        for run, known in self._fingerprints.items():
            require_fingerprint(self.results.run(run).path, known, self._planned(run))

    def _planned(self, run: str) -> str:
        return self.sweep.fingerprints.get(run) or self.confirming.fingerprints.get(run, "")

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        """The fingerprint in the folder of each run that has started; empty where it is unknown."""
        known = {run: status.fingerprint for run, status in self.finished.items()}
        folder = str(self.results.runs)
        for run in self.runs if self._is_main else ():  # Paths take ten times as long
            if run not in known and signature(f"{folder}/{run}/state/status.json"):
                state = self.results.run(run).state
                known[run] = fingerprint_of(state, read_status(state))
        return known

    def check_packages(self) -> None:
        """Refuses runs that need a package which is not installed here."""
        check_packages(self.runs, self.results)

    def check_sizes(self) -> None:
        """Refuses unfinished runs that this machine's memory cannot hold."""
        with naming_file(self.sources, "experiment"):
            for experiment in self.unfinished:
                require_memory_of(experiment)

    def algorithms(self) -> list[Experiment]:
        """Returns unfinished runs with all that their algorithms may become on the way."""
        return with_changes(self.settings, self.unfinished)

    def write_plan(self) -> None:
        """Writes plan.json and the configs of the runs.

        A finished run of an earlier release without a fingerprint gets that of its experiment.
        """
        write_plan(self.plan, self.runs, self.results)
        for run, known in self._fingerprints.items():
            if not known:
                name_fingerprint(self.results.run(run).state, self._planned(run))

    def memory_mb(self, cluster: str, wildcards: Mapping[str, str]) -> int:
        """Returns the memory of a job's run on each node [MB].

        Args:
            cluster: The cluster config.
            wildcards: Those of the job: of a run, or of a place of a search.
        """
        if "run" in wildcards:
            run: RunDir | None = self.results.run(wildcards["run"])
        else:
            level, place = self.levels[wildcards["level"]], int(wildcards["place"])
            run = run_of_place(self.folder, self.candidates, level, place, wildcards["seed"])
        return memory_mb(self.clusters[cluster], run)

    def slurm_request(self, *, on_one_node: bool = False) -> dict[str, int | str | None]:
        """Returns the resources of a run's Slurm job, or of a job on one node; None: not asked for.

        Only Slurm looks at them.
        """
        auto = self.settings.cluster == "auto"
        cluster = self.clusters["slurm" if auto else self.settings.cluster]
        request = slurm_request(cluster.on_one_node() if on_one_node else cluster)
        return {key: request.get(key) for key in REQUESTED}

    def decision_of(self, level: str, place: int) -> list[str]:
        """Returns the table of decisions that gives a place its run; none for a known one."""
        return decision_of(self.levels[level], place)

    def decided_by(self, level: str, block: int) -> list[str]:
        """Returns what a table of decisions is made from: markers, and the table before it."""
        return decided_by(self.levels, level, block)

    def basis(self, level: str, block: int) -> str:
        """Returns text that changes whenever a table of decisions must be rebuilt."""
        return basis(self.settings, self.levels[level], block)

    def budget_of(self, run: str) -> str:
        """Returns the budget of a run as `launch` takes it: a larger one extends the run."""
        if self._is_job:
            budget = planned_budget(self.folder, run)
        else:
            budget = (self.sweep.runs.get(run) or self.confirming_now().runs[run]).budget
        return launch_budget(budget, self.results.run(run))

    def forecast(self) -> Iterator[Forecast]:
        """Yields what will be done for each row of the sweep, and why."""
        return forecast(self._plan, self._standings, self.runs, self._changes)

    def lines(self) -> Iterator[str]:
        """Yields the lines of a start: finished and remaining work, and its unexpected costs."""
        settings, search, standings = self.settings, self.search, self._standings
        if settings.shard:
            others = (
                ""
                if settings.shard == REST
                else (". `qdsweep merge` adds the runs of other shards")
            )
            yield (
                f"qdsweep: shard {settings.shard}: {len(self.runs) - len(self.taken):,} of "
                f"{plural(len(self.whole.runs), 'run')}, without tables{others}"
            )
        yield from self.damaged()
        yield from renamed(settings.experiment, self.sweep, standings, self.results)
        if search is None:
            parts = settings.name, self.sweep, self.confirming
            yield from outlook(*parts, standings, self._changes, self.results)
            left = any(now.state != "finished" for now in standings if not now.run.confirms)
        else:
            yield from search_outlook(settings, search, self.sweep, self.spoiled, self.results)
            left = self.left[0] > 0
        if settings.confirm and not (settings.partial or settings.shard):
            chosen = Sweep((), (), {}) if left else self.confirming
            finalists = count_finalists(search.levels) if search else None
            sweeps = self.sweep, chosen
            yield confirm_line(settings.confirm, *sweeps, standings, self.results, finalists)
        if settings.reevaluate and not settings.shard:
            rows = read_search_rows(self.folder) if search else ()
            runs = [self.results.run(str(row["id"])) for row in rows]
            runs = runs if search else [self.results.run(run) for run in self.sweep.runs]
            times, stem = settings.reevaluate.times, settings.reevaluate.stem
            if not runs or not all(run.corrected(stem).exists() for run in runs):
                yield f"qdsweep: to re-evaluate: {plural(times, 'evaluation')} of each elite"

    def damaged(self) -> Iterator[str]:
        """Yields one line per run whose status.json cannot be read."""
        for run in self.unsettled:
            state = self.results.run(run).state
            if read_status(state).is_damaged:
                yield (
                    f"qdsweep: warning: {state.status} cannot be read. The other files of the run "
                    "are used. A start that computes the run writes it again"
                )

    @cached_property
    def _plan(self) -> Plan:
        """The plan of what this start computes."""
        settings = self.settings
        return Plan.of(plan_data(settings, self.sweep) if settings.shard else self.plan)

    @cached_property
    def _standings(self) -> list[Standing]:
        return self._look()

    def _look(self) -> list[Standing]:
        return read_standings(self.folder, self._plan, self.finished)

    @cached_property
    def _changes(self) -> dict[str, Change]:
        return find_changes(self.settings.name, self.sweep, self.confirming, self.results)


def read_sweep(
    config: Mapping[str, Any],
    command_line: Iterable[str] | None = (),
    files: Iterable[str | os.PathLike[str]] = (),
    where: str = "--config",
) -> SweepFile:
    """Reads what Snakemake made of the sweep's files and of `--config`; for arguments see `Given`.

    The files are read again: Snakemake's YAML reads `1e-3` as text, and accepts a key twice.

    Raises:
        BadInput: A file, a key or a value is wrong.
    """
    command_line, files = list(command_line or ()), list(files)
    typed_here = {entry.partition("=")[0] for entry in command_line}
    read: dict[str, Any] = {}
    for file in files:
        read |= _read(pathlib.Path(file))
    if read:
        read |= {key: value for key, value in config.items() if key in typed_here}
    data = json.loads(json.dumps(read or dict(config), default=str))
    if "sweep" in data:
        try:
            data["sweep"] = recover(data["sweep"], command_line)
        except BadInput as error:
            source = key_sources(command_line, files, where).get(("sweep",), where)
            raise BadInput(f"{source}: {error}") from None
    if "experiment" not in data:
        near = [key for key in data if nearest(key, ["experiment"])]
        hint = f" ({near[0]!r} is not a key)" if near else ""
        source = key_sources(command_line, files, where)[()]
        raise BadInput(
            f"{source}: the key experiment is missing; give a preset's name or a YAML file{hint}"
        )
    if "sweep" in typed_here and "name" not in typed_here:
        # It must never replace the tables of the sweep that the file names.
        for key in {"search", "exclude"} - typed_here:  # they belong to that sweep
            data.pop(key, None)
        data.pop("published", None)
        parts = {key: data[key] for key in ("search", "exclude") if key in data}
        data["name"] = adhoc_name(data["experiment"], data["sweep"], parts)
    for key in typed_here & data.keys() - {"sweep", "name", "cluster"}:
        data[key] = _typed(data[key])
    for key in _TEXTS:
        if type(data.get(key)) in (int, float):
            data[key] = str(data[key])
    try:
        return SweepFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        sources = key_sources(command_line, files, where)
        raise BadInput(explain(error, SweepFile, data, sources)) from None


# Keys whose value is text, also where YAML reads it as a number.
_TEXTS = ("name", "cluster", "shard")


def _read(file: pathlib.Path) -> dict[str, Any]:
    """Reads a sweep file.

    It refuses a name whose number is written otherwise, such as 1e3, and keys of the experiment
    that are not text.
    """
    data = read_yaml(file)
    for key in _TEXTS:
        number = data.get(key)
        if type(number) in (int, float):
            text = read_text_value(file, key)
            if text != str(number):
                raise BadInput(
                    f"{shown(file)}: {key} = {text}: YAML reads it as the number {number}. Write "
                    f'it in quotes: {key}: "{text}"'
                )
    require_text(data.get("experiment"), f"{shown(file)}: experiment")
    return data


def clusters_of(settings: SweepFile, sources: Mapping[Path, str]) -> dict[str, Cluster]:
    """Reads the cluster config of a sweep; for `auto` both that it may become.

    Args:
        settings: The sweep file.
        sources: The file or option of each key, from `key_sources`.

    Raises:
        BadInput: There is none, or a key or value of it is wrong.
    """
    auto = settings.cluster == "auto"
    with naming_file({} if auto else sources, "cluster"):
        names = ("local", "slurm") if auto else (settings.cluster,)
        return {name: read_cluster(name) for name in names}


def plan_data(
    settings: SweepFile, sweep: Sweep, search: SearchPlan | None = None
) -> dict[str, Any]:
    """Returns a sweep as plain data, as in plan.json."""
    about = {"name": settings.name, "experiment": settings.title, "sweep": settings.sweep}
    metrics = [metric.function for metric in sweep.own_metrics.values()]
    measured = {"sources": sources_of(metrics)} if metrics else {}
    plan = sweep.plan(**about, **settings.drawing, **settings.reporting, **measured)
    if search is None:
        return plan
    if settings.search and settings.search.pbt:
        plan["columns"] = [MEMBER, *sweep.columns, CHANGES]
    # Its rows are known at its end; until then there is what they are chosen from.
    return {**plan, "rows": [], "base": settings.experiment, **search.entries}


def _typed(value: Any) -> Any:
    """Returns a value of the command line with types: Snakemake leaves all of it as text."""
    if isinstance(value, dict):
        return {key: _typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_typed(part) for part in value]
    return typed(value) if isinstance(value, str) else value


def key_sources(
    command_line: Iterable[str] | None,
    files: Iterable[str | os.PathLike[str]],
    where: str = "--config",
) -> dict[Path, str]:
    """Returns the file or option of each key of a sweep, for messages; see `read_sweep`.

    Returns:
        Key -> its file, or `--config KEY`; `()` -> the files, for a key that is missing.
    """
    paths = [pathlib.Path(file) for file in files]
    sources: dict[Path, str] = {(): " + ".join(dict.fromkeys(map(shown, paths))) or where}
    for path in paths:
        sources |= {(key,): shown(path) for key in read_yaml(path)}
    names = (entry.partition("=")[0] for entry in command_line or ())
    return sources | {(name,): f"--config {name}" for name in names}


# With one of these drawn, iterations do not measure work.
BATCHES = ("batch_size", "num_emitters")


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
    search = settings.search
    try:
        sweep = table_of_runs(
            settings.experiment,
            settings.sweep,
            find=finder(results),
            draw=drawn_by(search) if search and samples_of(search) else None,
            excluded=settings.exclude,
        )
    except BadInput as error:
        with naming_file(sources, "sweep" if str(error).startswith("sweep") else "experiment"):
            raise
    with naming_file(sources, "search"):
        _check_samples(settings, sweep, results)
    with naming_file(sources, "imported"):
        return replace(sweep, imported=read_all(settings.imported))


def _check_samples(settings: SweepFile, sweep: Sweep, results: Results) -> None:
    """Refuses budgets that no two samples can share, and samples that would replace others."""
    search = settings.search
    if search is None or SAMPLE not in sweep.columns:
        return
    drawn = [name for name in sweep.columns if name.split(".")[-1] in BATCHES]
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
