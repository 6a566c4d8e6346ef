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

from qdsweep.files import read_arrays, read_csv, require
from qdsweep.records.config import read_config
from qdsweep.records.metrics import read_metrics
from qdsweep.records.run_dir import RunFiles
from qdsweep.records.summary import read_summary
from qdsweep.records.sweep_dir import Results

if TYPE_CHECKING:
    import pandas as pd
    from ribs.archives import ArchiveBase


@dataclass(frozen=True)
class Run:
    """A run's results. Each part is read when it is first asked for.

    Attributes:
        path: The run's folder.
    """

    path: Path

    @property
    def files(self) -> RunFiles:
        """Where they are."""
        return RunFiles(self.path)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json: id, status, final metrics, archive, timings, versions, attempts."""
        return read_summary(self.files)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml: the resolved experiment."""
        return read_config(self.files.config)

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """metrics.csv: a row for each iteration."""
        return read_metrics(self.files.metrics)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """archive.npz: index, objective, measures, solution and the domain's extra fields."""
        return read_arrays(self.files.archive)

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
    files = RunFiles(path)
    for file in (files.summary, files.config, files.metrics, files.archive):
        require(file, f"{path} is not a finished run: run `snakemake` again to finish it.")
    return Run(path)


def load_sweep(name: str, results: str | PathLike[str] = "results") -> "pd.DataFrame":
    """Returns a row for each run of a sweep: summary.csv.

    Args:
        name: The sweep's name.
        results: The folder of the results.

    Raises:
        BadInput: There is no such sweep, or it has no tables yet.
    """
    there = Results(Path(results))
    known = sorted(sweep.name for sweep in there.known_sweeps())
    sweep = there.sweep(name)
    require(sweep.path, f"The sweeps there: {', '.join(known) or 'none'}.")
    return read_csv(sweep.summary, "Run `snakemake`, which makes it.")
