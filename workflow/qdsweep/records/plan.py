"""What the start of a sweep leaves for its jobs: its plan, and each run's experiment."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from qdsweep.config.experiment import Experiment
from qdsweep.files import atomic

# Key of the sweep file -> files of the sweep that only an earlier start with this key left.
_FURTHER = {
    "confirm": ("confirm.json", "tables/confirmed.*"),
    "reevaluate": ("tables/corrected.*",),
}

# libyaml's is four times as fast, which a sweep of 10,000 runs feels.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_plan(plan: dict[str, Any], runs: Mapping[str, Experiment], results: Path) -> None:
    """Writes `sweeps/NAME/plan.json`, and `runs/ID/state/config.yaml` of runs that have none.

    Args:
        plan: From `Sweep.plan`.
        runs: Run id -> experiment.
        results: The folder results/.
    """
    write_configs(runs, results / "runs")
    folder = results / "sweeps" / plan["name"]
    path = folder / "plan.json"
    text = json.dumps(plan, indent=1) + "\n"
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path, "w") as file:
            file.write(text)
    for key, patterns in _FURTHER.items():
        for pattern in () if plan.get(key) else patterns:
            for stale in folder.glob(pattern):
                stale.unlink()


def write_configs(runs: Mapping[str, Experiment], runs_dir: Path) -> None:
    """Writes `state/config.yaml` of runs that have none."""
    for run, experiment in runs.items():
        path = runs_dir / run / "state" / "config.yaml"
        if not path.exists() or path.stat().st_size == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_experiment(path, experiment)


def write_experiment(path: Path, experiment: Experiment) -> None:
    """Writes the resolved experiment; `qdsweep run` takes it as it is."""
    with atomic(path, "w") as file:
        yaml.dump(experiment.model_dump(mode="json"), file, Dumper=_Dumper, sort_keys=False)


def digest(plan: dict[str, Any]) -> str:
    """Changes whenever the tables of the sweep must be made again."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]
