"""The table of runs of a sweep file, and what one of drawn values must keep."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from qdsweep.config.imported import read_all
from qdsweep.config.keys import Path
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.files import read_json_if_whole
from qdsweep.planning.sources import naming_file
from qdsweep.records.sources import finder
from qdsweep.records.sweep_dir import Results
from qdsweep.strategies.draws import drawn_by
from qdsweep.strategies.levels import samples_of
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.runs import Sweep, table_of_runs

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
