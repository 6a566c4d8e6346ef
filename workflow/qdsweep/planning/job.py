"""What Snakemake needs to know of a sweep in a job of its own, on Slurm: that job's run alone."""

import itertools
from collections.abc import Sequence

from qdsweep.errors import BadInput
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import read_plan
from qdsweep.records.sweep_dir import SweepDir


def is_of_runs(command_line: Sequence[str]) -> bool:
    """Whether a Snakemake was started for jobs of single runs, and so needs no other run.

    Its targets are only known from its command line while the Snakefile is parsed, which is what
    must not take longer in a sweep of 10,000 runs than in one of 10.

    Args:
        command_line: Of that Snakemake, such as `[..., "--target-jobs", "qd_run:run=ID", ...]`.
    """
    after = itertools.dropwhile(lambda word: word != "--target-jobs", command_line)
    targets = list(itertools.takewhile(lambda word: not word.startswith("-"), [*after][1:]))
    return bool(targets) and all(":run=" in target for target in targets)


def planned_budget(sweep: SweepDir, run: str) -> dict[str, int]:
    """Returns the largest budget that a sweep's plan gives a run, as `Experiment.budget` has it.

    Args:
        sweep: The sweep's folder.
        run: The run, of the sweep or of its confirmation.

    Raises:
        BadInput: The plan is missing or damaged, or does not have this run.
    """
    for planned in read_plan(sweep).runs(read_confirm(sweep)):
        if planned.id == run:
            return {planned.unit: planned.budget}
    raise BadInput(
        f"{sweep.plan} does not have the run {run}: start snakemake with that sweep again, which "
        "writes it anew"
    )
