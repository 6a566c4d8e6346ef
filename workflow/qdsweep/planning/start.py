"""The start of a sweep: what its runs contain, what is left, and what it prints about both."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.explain import naming_file
from qdsweep.config.files import start_command
from qdsweep.config.sweep import ACCEPT, RECOMPUTE, REST, shard_parts
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole, signature
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
from qdsweep.planning.rows import (
    NO_RUNS,
    confirming,
    plan_data,
    planned_budget,
    seen_seeds,
    sweep_of,
)
from qdsweep.planning.settled import Settled, launch_budget, settled
from qdsweep.planning.slurm_jobs import REQUESTED, memory_mb, slurm_request
from qdsweep.records.dependencies import (
    OUTDATED,
    name_code,
    record_code,
    set_aside,
    sources_of_experiment,
)
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, PlannedRun, read_plan, write_plan
from qdsweep.records.progress import (
    OtherCode,
    Standing,
    outdated_lines,
    read_finished,
    read_standing,
    read_standings,
)
from qdsweep.records.search_files import Level, chosen_runs, places_left, read_search_rows
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


def _records() -> Callable[[Experiment], dict[str, str]]:
    """Returns a quick `sources_of_experiment` for many experiments with the same plug-ins."""
    known: dict[tuple[str, ...], dict[str, str]] = {}

    def record_of(experiment: Experiment) -> dict[str, str]:
        key = *experiment.plugins, *experiment.domain.modules
        if key not in known:
            known[key] = sources_of_experiment(experiment)
        return known[key]

    return record_of


class Found:
    """What the folders of a start's runs contain, each value at its first use.

    Each costs a look at all runs, but for those that the index of finished runs has.

    Args:
        folder: The sweep's folder.
        runs: Run id -> experiment.
        is_indexed: Whether the index of finished runs is read.
        is_rest: Whether the runs are those that no other start computes.
        decision: The key `outdated` of the sweep file.
        further: Runs that decisions of a search have made, next to these.
    """

    def __init__(
        self,
        folder: SweepDir,
        runs: Mapping[str, Experiment],
        *,
        is_indexed: bool,
        is_rest: bool,
        decision: str | None,
        further: Collection[str] = (),
    ) -> None:
        self._folder, self._results, self._runs = folder, folder.results, runs
        self._is_indexed, self._is_rest = is_indexed, is_rest
        self._decision, self._further = decision, further

    @cached_property
    def _finished(self) -> dict[str, Status]:
        return read_finished(self._folder, list(self._runs)) if self._is_indexed else {}

    @cached_property
    def finished(self) -> dict[str, Status]:
        """The finished runs of a large sweep, without those that are computed again."""
        again = self.again
        if not again:
            return self._finished
        return {run: status for run, status in self._finished.items() if run not in again}

    @cached_property
    def changed(self) -> dict[str, tuple[str, ...]]:
        """The runs that used other files than there are now -> these files."""
        code, changed = OtherCode(self._results), dict[str, tuple[str, ...]]()
        own = [*self._with_plugins]
        for run in (*own, *self._further) if own else ():
            status = self._finished.get(run) or read_status(self._results.run(run).state)
            files = code.outdated(run, status.code)
            if files and not is_alive(self._results.run(run).state.lock):
                changed[run] = files
        return changed

    @property
    def _with_plugins(self) -> Iterator[str]:
        return (run for run, experiment in self._runs.items() if experiment.has_own_modules)

    @property
    def outdated(self) -> dict[str, tuple[str, ...]]:
        """Those of them that stay as they are: no start computes them, and no test has them."""
        return {} if self._decision else self.changed

    @property
    def again(self) -> frozenset[str]:
        """Those of them that this start sets aside and computes again."""
        return frozenset(self.changed if self._decision == RECOMPUTE else ())

    @cached_property
    def resting(self) -> frozenset[str]:
        """The outdated runs that are not finished: tables do not wait for them."""
        runs = self._results.run
        return frozenset(run for run in self.outdated if not runs(run).summary.exists())

    @cached_property
    def unrecorded(self) -> dict[str, dict[str, str]]:
        """The finished runs of earlier releases, which recorded nothing -> what they use now."""
        record_of, found = _records(), {}
        for run in self._with_plugins:
            state = self._results.run(run).state
            status = self._finished.get(run) or read_status(state)
            is_named = bool(status.code) or status.status != "finished"
            if is_named or not os.access(state.path, os.W_OK):  # another user's stays unnamed
                continue
            if record := record_of(self._runs[run]):
                found[run] = record
        return found

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
        short = {
            run
            for run, experiment in self.unsettled.items()
            if run not in self.outdated and is_too_short(self._results.run(run), experiment.budget)
        }
        return self.settled.stale | short | self.again

    @cached_property
    def unfinished(self) -> list[Experiment]:
        """The runs that have not reached their budget, without outdated ones."""
        left = {run: of for run, of in self.unsettled.items() if run not in self.outdated}
        again = [left.pop(run) for run in self.again if run in left]
        return [*unfinished(left, self._results), *again]

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
        self._cut()
        if self.found.outdated:
            self.plan[OUTDATED] = {run: list(of) for run, of in self.found.outdated.items()}

    def _cut(self) -> None:
        """Takes only the runs of the shard, where there is one."""
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
        further: Collection[str] = ()
        if self.search is not None:
            with suppress(BadInput):  # a damaged decision is rebuilt
                further = chosen_runs(self.folder, self.search.levels) - self.runs.keys()
        found = Found(
            self.folder,
            self.runs,
            is_indexed=is_indexed,
            is_rest=self.settings.shard == REST,
            decision=self.settings.outdated,
            further=further,
        )
        if not self._is_main:  # the main Snakemake has written what it found; a job needs nothing
            plan = {} if self._is_job else read_json_if_whole(self.folder.plan)
            found.changed = {run: tuple(of) for run, of in plan.get(OUTDATED, {}).items()}
        return found

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

        code = self.plan.get("sources", {})
        return spoiled(self.settings.name, self.search, self.results, code, self.found.again)

    @property
    def forced(self) -> set[str]:
        """The files of runs and of a search that are to be written again."""
        runs = {str(self.results.run(run).summary) for run in self.found.too_short}
        # Also where nothing else has changed: a start without a job does nothing.
        decides = bool(self.settings.outdated and self.found.changed)
        records = self._is_main and (decides or bool(self.found.unrecorded))
        return runs | self.spoiled.keys() | ({str(self.folder.summary)} if records else set())

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
        self._settle()
        write_plan(self.plan, self.runs, self.results)
        write_study(composed_study(self._file, self._given, self.whole.imported), self.folder)
        for run, record in self.found.unrecorded.items():
            name_code(self.results.run(run).state, record)
        for run, known in self._fingerprints.items():
            if not known:
                name_fingerprint(self.results.run(run).state, self._planned(run))

    def _settle(self) -> None:
        """Sets outdated runs aside or takes them over, as the key `outdated` demands.

        Raises:
            BadInput: There is no such key, and a search would continue with other code.
        """
        found, record_of = self.found, _records()
        if self.search is not None and found.outdated and self.left[0]:
            raise BadInput(
                f"a search does not continue with two codes. {' '.join(self.outdated_lines)}"
            )
        for run in found.again:
            set_aside(self.results.run(run), self.results)
        for run in found.changed if self.settings.outdated == ACCEPT else ():
            folder = self.results.run(run)
            experiment = self.runs.get(run) or compose(str(folder.state.config))
            record_code(folder, record_of(experiment))

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
            if run in self.found.again:
                ((unit, amount),) = budget.items()
                return f"{unit}={amount}"
            if run in self.found.outdated:  # a larger budget does not extend it
                budget = read_status(self.results.run(run).state).budget or budget
        return launch_budget(budget, self.results.run(run))

    def forecast(self) -> Iterator[Forecast]:
        """Yields what will be done for each row of the sweep, and why."""
        return forecast(self._plan, self._standings, self.runs, self._changes)

    def lines(self, *, is_dry: bool = False) -> Iterator[str]:
        """Yields the lines of a start: finished and remaining work, and its unexpected costs.

        Args:
            is_dry: Whether nothing will be done.
        """
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
        for line in self.outdated_lines:
            yield f"qdsweep: warning: {line}"
        if self.settings.outdated and self.found.changed:
            count = plural(len(self.found.changed), "run")
            again = self.settings.outdated == RECOMPUTE
            what = f"moved to {self.results.outdated}/, computed again" if again else "taken over"
            would = "would be " if is_dry else ""
            yield f"qdsweep: outdated={self.settings.outdated}: {count} {would}{what}"
        if unrecorded := self.found.unrecorded:
            files = sorted({file for record in unrecorded.values() for file in record})
            yield (
                f"qdsweep: {plural(len(unrecorded), 'run')} of an earlier release did not record "
                f"{listed(files, most=3)}. They count as computed with them as they are now; the "
                "next start records that"
            )
        yield from renamed(settings.experiment, self.sweep, standings, self.results)
        for name, why in seen_seeds(self.runs.values()).items():
            yield f"qdsweep: warning: algorithm {name}: {why}"
        if search is None:
            parts = settings.name, self.sweep, self.confirming
            yield from outlook(*parts, standings, self._changes, self.results)
            left = any(not now.is_settled for now in standings if not now.run.confirms)
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
        code = OtherCode(self.results)
        standings = read_standings(self.folder, self._plan, self.found.finished)
        return [self._decided(now, code.mark_outdated(now)) for now in standings]

    def _decided(self, before: Standing, now: Standing) -> Standing:
        """Returns the progress of a run, after what the key `outdated` does with it."""
        if now.state != OUTDATED or self.settings.outdated is None:
            return now
        return before if self.settings.outdated == ACCEPT else replace(now, state="replaced")

    @property
    def outdated_lines(self) -> list[str]:
        """A line for each change by which runs are outdated, unless the key `outdated` is there."""
        if not self.found.outdated:
            return []
        files = self._given.files
        command = start_command(*files) if files else ""
        if self.search is None:
            return [*outdated_lines(self._standings, self.results, command)]
        unit, code, runs = self.search.unit, OtherCode(self.results), []
        for run in map(self.results.run, self.found.outdated):
            done = getattr(read_status(run.state), unit)  # as far as the search took it
            runs.append(read_standing(run, PlannedRun(run.name, "", unit, done)))
        return [*outdated_lines(map(code.mark_outdated, runs), self.results, command)]

    @cached_property
    def _changes(self) -> dict[str, CodeChange]:
        return find_changes(self.settings.name, self.sweep, self.confirming, self.results)
