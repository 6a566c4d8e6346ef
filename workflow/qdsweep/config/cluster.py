"""The cluster: where runs are computed. It changes the speed, never a result."""

import json
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from qdsweep.config.base import Model
from qdsweep.config.explain import explain
from qdsweep.config.files import read_preset
from qdsweep.errors import BadInput


class Cluster(Model):
    """Engine, nodes, workers and what they need."""

    engine: Literal["auto", "serial", "processes"] = Field(
        default="auto",
        description="what evaluates a batch; auto: serial with one worker, else processes",
    )
    workers_per_node: int = Field(
        default=1, ge=1, description="workers of a run; each takes one core [processes]"
    )
    mem_mb_main: int = Field(
        default=1000, ge=1, description="memory of the main process, the archive included [MB]"
    )
    mem_mb_per_worker: int = Field(default=500, ge=1, description="memory of each worker [MB]")
    max_seconds: float | None = Field(
        default=None,
        gt=0,
        description=(
            "stop a run after so long, to go on with the next attempt; null for the end of the "
            "Slurm job, if there is one [s]"
        ),
    )

    @model_validator(mode="after")
    def _check_engine(self) -> "Cluster":
        if self.engine == "serial" and self.workers_per_node > 1:
            raise ValueError(
                f"engine serial has one worker, not workers_per_node = {self.workers_per_node}; "
                "take engine processes, or auto"
            )
        return self

    @property
    def engine_name(self) -> str:
        """The engine that `auto` stands for."""
        if self.engine != "auto":
            return self.engine
        return "serial" if self.workers == 1 else "processes"

    @property
    def workers(self) -> int:
        """Workers of a run."""
        return self.workers_per_node


def read_cluster(name: str) -> Cluster:
    """Reads a cluster config.

    Args:
        name: A preset of config/clusters/, or a path of a YAML file.

    Raises:
        BadInput: The file, a key or a value is wrong.
    """
    data, source = read_preset("clusters", name)
    try:
        return Cluster.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise BadInput(explain(error, Cluster, data, {(): source})) from None
