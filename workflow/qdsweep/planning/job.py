"""What Snakemake needs to know of a sweep in a job of its own, on Slurm: that job's run alone."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from qdsweep.errors import BadInput
from qdsweep.files import read_json
from qdsweep.planning.confirmation import confirming_rows

UNITS = ("iterations", "evaluations")


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


def planned_budget(sweep_dir: Path, run: str) -> dict[str, int]:
    """The largest budget that a sweep's plan gives a run, as `Experiment.budget` has it.

    Args:
        sweep_dir: `results/sweeps/NAME`.
        run: The run, of the sweep or of its confirmation.

    Raises:
        BadInput: The plan is missing or damaged, or does not have this run.
    """
    rows = [*(read_json(sweep_dir / "plan.json").get("rows") or ()), *confirming_rows(sweep_dir)]
    budgets = [
        {unit: row[unit] for unit in UNITS if row.get(unit) is not None}
        for row in rows
        if row["id"] == run
    ]
    if not budgets:
        raise BadInput(
            f"{sweep_dir / 'plan.json'} does not have the run {run}: start snakemake with that "
            "sweep again, which writes it anew"
        )
    return max(budgets, key=lambda budget: max(budget.values()))
