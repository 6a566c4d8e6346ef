"""The settings of a sweep, from what Snakemake made of files and command line.

The table of runs of a sweep file, and what one of drawn values must keep.

The confirmation of a sweep: its winners run again, with seeds that did not choose them.
"""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from qdsweep.config.base import typed
from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.explain import explain, naming_file
from qdsweep.config.files import nearest, read_yaml, shown
from qdsweep.config.imported import read_all
from qdsweep.config.keys import Path
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_confirm
from qdsweep.records.search import read_search_rows
from qdsweep.records.sources import finder
from qdsweep.search.draws import drawn_by
from qdsweep.search.levels import samples_of
from qdsweep.search.plan import SearchPlan
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.grammar import recover
from qdsweep.sweep.groups import CHANGES, MEMBER
from qdsweep.sweep.ids import adhoc_name
from qdsweep.sweep.runs import Sweep, table_of_runs


def read_sweep(
    config: Mapping[str, Any],
    command_line: Iterable[str] | None = (),
    files: Iterable[str | os.PathLike[str]] = (),
    where: str = "--config",
) -> SweepFile:
    """Reads what Snakemake made of the sweep's files and of `--config`.

    Args:
        config: Snakemake's config.
        command_line: The `KEY=VALUE` of `--config` as they were typed.
        files: The config files, later ones over earlier ones. They are read again: Snakemake's
            YAML reads `1e-3` as text, and accepts a key that stands twice.
        where: Where the config stands if there are no files.

    Raises:
        BadInput: A file, a key or a value is wrong.
    """
    command_line, files = list(command_line or ()), list(files)
    typed_here = {entry.partition("=")[0] for entry in command_line}
    read: dict[str, Any] = {}
    for file in files:
        read |= read_yaml(pathlib.Path(file))
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
        hint = f" ({near[0]!r} is no key)" if near else ""
        source = key_sources(command_line, files, where)[()]
        raise BadInput(
            f"{source}: the key experiment is missing: give a preset's name or a YAML file{hint}"
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
    for key in ("name", "cluster"):
        if isinstance(data.get(key), int | float) and not isinstance(data.get(key), bool):
            data[key] = str(data[key])
    try:
        return SweepFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        sources = key_sources(command_line, files, where)
        raise BadInput(explain(error, SweepFile, data, sources)) from None


def clusters_of(settings: SweepFile, sources: Mapping[Path, str]) -> dict[str, Cluster]:
    """Reads the cluster config of a sweep; for `auto` both that it may become.

    Args:
        settings: The sweep file.
        sources: Where its keys stand, from `key_sources`.

    Raises:
        BadInput: There is none, or a key or value of it is wrong.
    """
    auto = settings.cluster == "auto"
    with naming_file({} if auto else sources, "cluster"):
        names = ("local", "slurm") if auto else (settings.cluster,)
        return {name: read_cluster(name) for name in names}


def plan_data(
    settings: SweepFile, sweep: Sweep, places: SearchPlan | None = None
) -> dict[str, Any]:
    """Returns a sweep as plain data: what plan.json says of it."""
    about = {"name": settings.name, "experiment": settings.title, "sweep": settings.sweep}
    plan = sweep.plan(**about, **settings.drawing, **settings.reporting)
    if places is None:
        return plan
    if settings.search and settings.search.pbt:
        plan["columns"] = [MEMBER, *sweep.columns, CHANGES]
    # Its rows are known at its end; until then there is what they are chosen from.
    return {**plan, "rows": [], "base": settings.experiment, **places.entries}


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
    """Returns where each key of a sweep stands, for messages; see `read_sweep`.

    Returns:
        Key -> its file, or `--config KEY`; `()` -> the files, for a key that is missing.
    """
    paths = [pathlib.Path(file) for file in files]
    sources: dict[Path, str] = {(): " + ".join(map(shown, paths)) or where}
    for path in paths:
        sources |= {(key,): shown(path) for key in read_yaml(path)}
    names = (entry.partition("=")[0] for entry in command_line or ())
    return sources | {(name,): f"--config {name}" for name in names}


# With one of these drawn, iterations are no measure of work.
BATCHES = ("batch_size", "num_emitters")


def sweep_of(
    settings: SweepFile, results: Results, sources: Mapping[Path, str] = MappingProxyType({})
) -> Sweep:
    """Expands a sweep file.

    Args:
        settings: The sweep file.
        results: The folder results/: a run may stand there under an earlier id.
        sources: Where each key stands, from `settings.key_sources`.

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
    runs: dict[str, Experiment] = {}
    folder = results.sweep(settings.name)
    rows = read_confirm(folder) if settings.confirm else []
    found = {row["id"] for row in read_search_rows(folder)} if settings.staged_search else set()
    for row in rows:
        like = sweep.runs.get(row["like"])
        if like is None and row["like"] in found:  # a search has met it on its way
            like = compose(str(results.run(row["like"]).state.config))
        if like is None:
            continue  # from an earlier version of the sweep: its winners will be chosen again
        changes = {name: row.get(name) for name in BUDGETS}
        changes["seed"] = row["values"]["seed"]
        experiment = like.model_copy(update=changes)
        known = runs.get(row["id"])
        if known is None or [*known.budget.values()] < [*experiment.budget.values()]:
            runs[row["id"]] = experiment
    return Sweep((), (), runs)
