"""Rendered episodes of a sweep: the chosen elites of the median run of its best groups."""

from pathlib import Path

from qdsweep.analysis.figures.evolution import best_groups
from qdsweep.analysis.selection import read_tables
from qdsweep.elites.rollout import rollout, slug
from qdsweep.errors import BadInput
from qdsweep.files import write_json
from qdsweep.records.plan import read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import SweepDir


def rollouts(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `plots/rollouts/GROUP-ELITE.gif` and `rollouts.json`, the list of them.

    Neither shows labels of `figures:`; the page adds them.

    Raises:
        BadInput: The sweep has no `rollouts:`, or its elites cannot be rendered.
    """
    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    settings = plan.rollouts
    if settings is None:
        raise BadInput(
            f"the sweep {sweep_dir.name} has no key rollouts: write `rollouts: {{}}` into its file "
            "and run `snakemake`, or take `qdsweep rollout RUN_DIR`"
        )
    tables = read_tables(sweep_dir)
    tables = tables.of(group for group in tables.series if group not in plan.imported_groups)
    folder = sweep.rollouts
    folder.mkdir(parents=True, exist_ok=True)
    entries, taken = [], set[str]()
    for group in (group for groups in best_groups(tables).values() for group in groups):
        name = group
        while slug(name) in taken:  # groups may differ only in signs
            name += "_"
        taken.add(slug(name))
        run = str(tables.median_run(group)["id"])
        run_dir = RunDir(runs_dir / run).results.path
        for entry in rollout(
            run_dir, folder, settings.elites, settings.seconds, run=run, files=name
        ):
            entries.append({**entry, "group": group})
    for path in set(folder.glob("*.gif")) - {folder / str(entry["file"]) for entry in entries}:
        path.unlink()  # of an earlier start
    write_json(folder / "rollouts.json", {"rollouts": entries})
