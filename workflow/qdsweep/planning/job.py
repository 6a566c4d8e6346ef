"""What the Snakemake of a Slurm job needs of a sweep: nothing but the job's own run."""

import itertools
from collections.abc import Sequence

from qdsweep.errors import BadInput
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import read_plan
from qdsweep.records.sweep_dir import SweepDir


def is_of_runs(command_line: Sequence[str]) -> bool:
    """Returns whether a Snakemake was started for jobs of single runs or places of a search.

    Such a one needs no other run. Parsing the Snakefile must not take longer for 10,000 runs than
    for 10, and while it is parsed, only the command line tells the targets.

    Args:
        command_line: Of that Snakemake, such as `[..., "--target-jobs", "qd_run:run=ID", ...]`.
    """
    after = itertools.dropwhile(lambda word: word != "--target-jobs", command_line)
    targets = list(itertools.takewhile(lambda word: not word.startswith("-"), [*after][1:]))
    return bool(targets) and all(
        ":run=" in target or "search_place:" in target for target in targets
    )


def planned_budget(sweep: SweepDir, run: str) -> dict[str, int]:
    """Returns the largest budget that a sweep's plan gives a run, as `Experiment.budget` has it.

    Args:
        sweep: The sweep's folder.
        run: The run, of the sweep or of its confirmation.

    Raises:
        BadInput: The plan is missing or damaged, or does not have this run.
    """
    plan = read_plan(sweep)
    found = [planned for planned in plan.runs() if planned.id == run]
    found = found or [planned for planned in plan.runs(read_confirm(sweep)) if planned.id == run]
    if found:
        return {found[0].unit: found[0].budget}
    raise BadInput(
        f"{sweep.plan} does not have the run {run}: start snakemake with that sweep again, which "
        "writes it anew"
    )
