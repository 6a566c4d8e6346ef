"""Rendered episodes of a sweep: the chosen elites of the median run of its best groups."""

from collections.abc import Mapping
from pathlib import Path

from qdsweep.analysis.figures.evolution import best_groups
from qdsweep.analysis.kept import keep_all, stamp
from qdsweep.analysis.selection import read_tables
from qdsweep.config.sweep import Rollouts
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
    shown: dict[str, RunDir] = {}
    for group in (group for groups in best_groups(tables).values() for group in groups):
        shown[group] = RunDir(runs_dir / str(tables.median_run(group)["id"]))
    runs = [f"{name} {run.name} {stamp(run.results.archive)}" for name, run in shown.items()]
    made_of = f"{settings.model_dump_json()} {runs}"
    keep_all(sweep.rollouts, sweep, made_of, lambda: _render(sweep.rollouts, shown, settings))


def _render(folder: Path, runs: Mapping[str, RunDir], settings: Rollouts) -> set[str]:
    """Renders elites of each group's run; returns the names of the files."""
    entries, taken = [], set[str]()
    for group, run in runs.items():
        name = group
        while slug(name) in taken:  # groups may differ only in signs
            name += "_"
        taken.add(slug(name))
        for entry in rollout(
            run.results.path, folder, settings.elites, settings.seconds, run=run.name, files=name
        ):
            entries.append({**entry, "group": group})
    names = {str(entry["file"]) for entry in entries}
    for path in set(folder.glob("*.gif")) - {folder / name for name in names}:
        path.unlink(missing_ok=True)  # of an earlier start
    write_json(folder / "rollouts.json", {"rollouts": entries})
    return {*names, "rollouts.json"}
