"""The start of a sweep: what its runs contain, what is left, and what it prints about both."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from qdsweep.config.experiment import Experiment
from qdsweep.config.explain import naming_file
from qdsweep.config.sweep import REST, shard_parts
from qdsweep.files import signature
from qdsweep.host.lock import is_alive
from qdsweep.planning.checks import check_effects, check_fit, check_sweep, require_folders
from qdsweep.planning.composed import composed_study
from qdsweep.planning.console import ProgressLines
from qdsweep.planning.outlook import (
    CodeChange,
    Forecast,
    confirm_line,
    find_changes,
    forecast,
    outlook,
    renamed,
    unfinished,
)
from qdsweep.planning.request import Given, clusters_of, key_sources, read_sweep
from qdsweep.planning.rows import NO_RUNS, confirming, plan_data, planned_budget, sweep_of
from qdsweep.planning.settled import Settled, launch_budget, settled
from qdsweep.planning.slurm_jobs import REQUESTED, memory_mb, slurm_request
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, read_plan, write_plan
from qdsweep.records.progress import Standing, read_finished, read_standings
from qdsweep.records.search_files import Level, places_left, read_search_rows
from qdsweep.records.status import (
    Status,
    fingerprint_of,
    is_too_short,
    name_fingerprint,
    read_status,
    require_fingerprint,
)
from qdsweep.records.study_files import write_study
from qdsweep.search.levels import count_finalists
from qdsweep.search.search_plan import SearchPlan, search_plan
from qdsweep.text import listed, plural


class Found:
    """What the folders of a start's runs contain, each value at its first use.

    Each costs a look at all runs, but for those that the index of finished runs has.

    Args:
        folder: The sweep's folder.
        runs: Run id -> experiment.
        is_indexed: Whether the index of finished runs is read.
        is_rest: Whether the runs are those that no other start computes.
    """

    def __init__(
        self, folder: SweepDir, runs: Mapping[str, Experiment], *, is_indexed: bool, is_rest: bool
    ) -> None:
        self._folder, self._results, self._runs = folder, folder.results, runs
        self._is_indexed, self._is_rest = is_indexed, is_rest

    @cached_property
    def finished(self) -> dict[str, Status]:
        """The finished runs of a large sweep."""
        return read_finished(self._folder, list(self._runs)) if self._is_indexed else {}

    @cached_property
    def settled(self) -> Settled:
        """The finished runs that need no job, and those that need one."""
        return settled(self._runs, self.finished, self._folder)

    @cached_property
    def taken(self) -> frozenset[str]:
        """The runs that the shard `rest` omits: other starts compute them, or they have failed."""
        if not self._is_rest:
            return frozenset()
        states = {run: self._results.run(run).state for run in self.unsettled}
        return frozenset(
            run for run, state in states.items() if state.failure.exists() or is_alive(state.lock)
        )

    @cached_property
    def unsettled(self) -> dict[str, Experiment]:
        """The runs that are not known to be finished and published."""
        whole = self.settled.whole
        return {run: experiment for run, experiment in self._runs.items() if run not in whole}

    @cached_property
    def too_short(self) -> frozenset[str]:
        """The runs that Snakemake would take for finished.

        Snakemake compares a budget with that of its own last job. It does not know of a run that
        was computed by hand, or that has gone further than was published.
        """
        return self.settled.outdated | {
            run
            for run, experiment in self.unsettled.items()
            if is_too_short(self._results.run(run), experiment.budget)
        }

    @cached_property
    def unfinished(self) -> list[Experiment]:
        """The runs that have not reached their budget."""
        return unfinished(self.unsettled, self._results)

    def damaged(self) -> Iterator[str]:
        """Yields one line per run whose status.json cannot be read."""
        for run in self.unsettled:
            state = self._results.run(run).state
            if read_status(state).is_damaged:
                yield (
                    f"qdsweep: warning: {state.status} cannot be read. The other files of the run "
                    "are used. A start that computes the run writes it again"
                )


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
        self._given = given
        self._file = self.settings = read_sweep(given)
        self.sources = key_sources(given)
        self.folder = results.sweep(self.settings.name)
        require_folders(self.folder)
        self.sweep = self.confirming = NO_RUNS
        self.search: SearchPlan | None = None
        self._is_job, self._is_main = is_job, is_main
        if not is_job:
            self.sweep = sweep_of(self.settings, results, self.sources)
            self.settings = self.settings.with_columns(self.sweep.columns)
            check_sweep(self.settings, self.sweep, self.sources)
            with naming_file(self.sources, "experiment"):
                check_effects(self.sweep.runs, results)
            self.search = search_plan(self.settings, self.sweep, self.sources)
            self.confirming = confirming(self.settings, self.sweep, results)
        self.clusters = clusters_of(self.settings, self.sources)
        if self.settings.cluster != "auto":  # else it is not known before the executor is
            cluster = self.settings.cluster
            check_fit(self.clusters[cluster], cluster, self.sweep.settings)
        self.plan = plan_data(self.settings, self.sweep, self.search)
        self.whole = self.sweep
        if self.settings.shard:
            self.confirming = NO_RUNS
            if self.settings.shard != REST:
                from qdsweep.sweep.shard import cut_shard

                self.sweep = cut_shard(self.sweep, *shard_parts(self.settings.shard))

    @cached_property
    def runs(self) -> dict[str, Experiment]:
        """The runs of the sweep, and those known to confirm it: id -> experiment."""
        return dict(self.sweep.runs | self.confirming.runs)

    @cached_property
    def found(self) -> Found:
        """What the folders of these runs contain; none of it is read before it is used."""
        is_indexed = self._is_main and self.search is None
        is_rest = self.settings.shard == REST
        return Found(self.folder, self.runs, is_indexed=is_indexed, is_rest=is_rest)

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
        from qdsweep.search.rebuilt import spoiled

        return spoiled(self.settings.name, self.search, self.results, self.plan.get("sources", {}))

    @property
    def forced(self) -> set[str]:
        """The files of runs and of a search that are to be written again."""
        return {
            str(self.results.run(run).summary) for run in self.found.too_short
        } | self.spoiled.keys()

    @property
    def left(self) -> tuple[int, int, str]:
        """The number of unfinished runs (or places of a search), that of all, and their noun."""
        if self.search is not None:
            return *places_left(self.folder, self.search.levels), "place"
        return len(self.found.unfinished), len(self.runs), "run"

    def progress(self) -> ProgressLines | None:
        """Returns the progress of the runs from now on; None for a search."""
        return None if self.search is not None else ProgressLines(self._look, self._standings)

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
        known = {run: status.fingerprint for run, status in self.found.finished.items()}
        folder = str(self.results.runs)
        for run in self.runs if self._is_main else ():  # Paths take ten times as long
            if run not in known and signature(f"{folder}/{run}/state/status.json"):
                state = self.results.run(run).state
                known[run] = fingerprint_of(state, read_status(state))
        return known

    def write_plan(self) -> None:
        """Writes plan.json, the composed config of the sweep and those of its runs.

        A finished run of an earlier release without a fingerprint gets that of its experiment.
        """
        write_plan(self.plan, self.runs, self.results)
        write_study(composed_study(self._file, self._given, self.whole.imported), self.folder)
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
            from qdsweep.search.places import run_of_place

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

    def budget_of(self, run: str) -> str:
        """Returns the budget of a run as `launch` takes it: a larger one extends the run."""
        if self._is_job:
            budget = planned_budget(self.folder, run)
        else:
            budget = (
                self.sweep.runs.get(run)
                or confirming(self.settings, self.sweep, self.results).runs[run]
            ).budget
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
                f"qdsweep: shard {settings.shard}: {len(self.runs) - len(self.found.taken):,} of "
                f"{plural(len(self.whole.runs), 'run')}, without tables{others}"
            )
        yield from self.found.damaged()
        yield from renamed(settings.experiment, self.sweep, standings, self.results)
        if search is None:
            parts = settings.name, self.sweep, self.confirming
            yield from outlook(*parts, standings, self._changes, self.results)
            left = any(now.state != "finished" for now in standings if not now.run.confirms)
        else:
            from qdsweep.search.search_outlook import search_outlook

            yield from search_outlook(settings, search, self.sweep, self.spoiled, self.results)
            left = self.left[0] > 0
        if settings.confirm and not (settings.partial or settings.shard):
            chosen = NO_RUNS if left else self.confirming
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

    @cached_property
    def _plan(self) -> Plan:
        """The plan of what this start computes."""
        settings = self.settings
        return Plan.of(plan_data(settings, self.sweep) if settings.shard else self.plan)

    @cached_property
    def _standings(self) -> list[Standing]:
        return self._look()

    def _look(self) -> list[Standing]:
        return read_standings(self.folder, self._plan, self.found.finished)

    @cached_property
    def _changes(self) -> dict[str, CodeChange]:
        return find_changes(self.settings.name, self.sweep, self.confirming, self.results)
