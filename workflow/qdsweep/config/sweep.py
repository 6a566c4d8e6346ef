"""The sweep file: which experiment, which values, where."""

from pathlib import Path
from typing import Any

from pydantic import Field

from qdsweep.config.base import Model


class SweepFile(Model):
    """What `config/config.yaml`, `--configfile` and `--config` say."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$",
        description="the sweep's name, a folder of results/sweeps/",
    )
    experiment: str | dict[str, Any] = Field(
        description="a preset of config/experiments/, a YAML file, or the experiment itself"
    )
    sweep: str = Field(
        default="",
        description="the values, in GNU parallel's grammar; empty for the experiment alone",
    )
    cluster: str = Field(
        default="auto",
        description=(
            "a preset of config/clusters/, or a YAML file; auto: slurm with `--executor slurm`, "
            "else local"
        ),
    )
    partial: bool = Field(
        default=False,
        description=(
            "make tables, figures and report of the runs that are there, finished or not, and "
            "start none"
        ),
    )

    @property
    def title(self) -> str:
        """The experiment's name, for reports."""
        return Path(self.experiment).stem if isinstance(self.experiment, str) else "experiment"
