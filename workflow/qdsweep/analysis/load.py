"""The results for Python: a run with its pyribs archive, or the table of a sweep.

>>> run = load("results/runs/lp_sphere-cma_me-s1-0123456789")
>>> run.archive.stats.qd_score, run.metrics["coverage"].iloc[-1], run.config["seed"]
"""

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.files import read_config, read_csv, read_json, require
from qdsweep.files import read_arrays

if TYPE_CHECKING:
    import pandas as pd
    from ribs.archives import ArchiveBase

RUN_FILES = ("summary.json", "config.yaml", "metrics.csv", "archive.npz")


@dataclass(frozen=True)
class Run:
    """A run's results. Each part is read when it is first asked for.

    Attributes:
        path: The run's folder.
    """

    path: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json: id, status, final metrics, archive, timings, versions, attempts."""
        return read_json(self.path / "summary.json", "Run `snakemake` again to make it.")

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml: the resolved experiment."""
        return read_config(self.path)

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """metrics.csv: a row for each iteration."""
        return read_csv(self.path / "metrics.csv", "Run `snakemake` again to make it.")

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """archive.npz: index, objective, measures, solution and the domain's extra fields."""
        return read_arrays(self.path / "archive.npz")

    @cached_property
    def archive(self) -> "ArchiveBase":
        """The final archive as pyribs has it, every elite in its cell, for any use of pyribs."""
        from qdsweep.algorithms.ribs.archives import rebuild_archive

        return rebuild_archive(self.summary["archive"], self.arrays)


def load(run_dir: str | PathLike[str]) -> Run:
    """Returns the results of a run.

    Args:
        run_dir: `results/runs/ID`.

    Raises:
        BadInput: The folder does not exist, or the run has not written its results yet.
    """
    path = require(
        Path(run_dir), "Give the folder of a run, results/runs/ID; runs.tsv of a sweep lists ids."
    )
    for name in RUN_FILES:
        require(path / name, f"{path} is not a finished run: run `snakemake` again to finish it.")
    return Run(path)


def load_sweep(name: str, results: str | PathLike[str] = "results") -> "pd.DataFrame":
    """Returns a row for each run of a sweep: summary.csv.

    Args:
        name: The sweep's name.
        results: The folder of the results.

    Raises:
        BadInput: There is no such sweep, or it has no tables yet.
    """
    sweeps = Path(results) / "sweeps"
    known = sorted(path.parent.name for path in sweeps.glob("*/plan.json"))
    require(sweeps / name, f"The sweeps there: {', '.join(known) or 'none'}.")
    return read_csv(sweeps / name / "summary.csv", "Run `snakemake`, which makes it.")
