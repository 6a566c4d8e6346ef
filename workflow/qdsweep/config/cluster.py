"""The cluster: where runs are computed. It changes the speed, never a result."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from qdsweep.config.files import read_preset
from qdsweep.config.model import Model
from qdsweep.errors import BadInput

if TYPE_CHECKING:
    from qdsweep.config.keys import Path

# Engine -> the library that it needs, which is a separate extra.
LIBRARIES = {"ray": "ray", "mpi": "mpi4py"}


class DaskCluster(Model):
    """An existing Dask cluster: a lab's, or one made by dask-jobqueue or on Kubernetes.

    The runs use all its workers, including later ones, share them fairly and do not change them.
    Every worker needs qdsweep in the run's version.
    """

    address: str | None = Field(
        default=None,
        description="address of its scheduler, tls://HOST:PORT or tcp://HOST:PORT",
    )
    scheduler_file: str | None = Field(
        default=None,
        description="instead of `address`: the file that `dask scheduler --scheduler-file` writes",
    )
    tls_ca_file: str | None = Field(
        default=None, description="PEM file of the authority whose certificates are accepted"
    )
    tls_cert: str | None = Field(default=None, description="PEM file of the run's certificate")
    tls_key: str | None = Field(default=None, description="PEM file of its private key")

    @model_validator(mode="after")
    def _check(self) -> "DaskCluster":
        if self.address is not None and self.scheduler_file is not None:
            raise ValueError("give either address or scheduler_file, not both")
        if self.address is not None and not re.fullmatch(r"[a-z]+://.+:\d+", self.address):
            raise ValueError(
                f"address = {self.address!r} is not tcp://HOST:PORT or tls://HOST:PORT"
            )
        tls = (self.tls_ca_file, self.tls_cert, self.tls_key)
        if any(tls) and not all(tls):
            raise ValueError("tls_ca_file, tls_cert and tls_key are needed together")
        if any(tls) and not self.is_there:
            raise ValueError("the credentials are for an address or a scheduler_file: give one")
        return self

    @property
    def is_there(self) -> bool:
        """Whether a cluster is named."""
        return self.address is not None or self.scheduler_file is not None


class Mpi(Model):
    """How ranks are started: the main process and a rank for each worker."""

    launcher: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "the command that starts ranks, without their number, such as `srun --mpi=pmix`; null "
            "for `srun --mpi=pmi2` over the nodes of a Slurm job, and `mpiexec` elsewhere"
        ),
    )

    @field_validator("launcher")
    @classmethod
    def _check(cls, launcher: str | None) -> str | None:
        try:
            words = shlex.split(launcher or "srun")
        except ValueError:
            raise ValueError(f"{launcher!r}: a quote or a backslash is not closed") from None
        if not words:
            raise ValueError(f"{launcher!r} names no program, such as `srun --mpi=pmix`")
        return launcher


class RayCluster(Model):
    """An existing Ray cluster.

    Each worker of a run is an actor with one of its cores, so that Ray itself shares it between
    runs and others. The run does not change the cluster. Every node needs qdsweep in the run's
    version.
    """

    address: str | None = Field(
        default=None,
        pattern=r"^(auto|[^/\s:]+:\d+|ray://[^/\s:]+:\d+)$",
        description=(
            "auto or HOST:PORT of its head, from one of its nodes; ray://HOST:PORT of its client "
            "server, from anywhere"
        ),
    )
    workers: int | None = Field(
        default=None, ge=1, description="workers of a run there; needed with `address`"
    )

    @model_validator(mode="after")
    def _check(self) -> "RayCluster":
        if (self.address is None) != (self.workers is None):
            raise ValueError("address and workers are needed together")
        return self


class Cluster(Model):
    """Engine, nodes, workers and what they need."""

    engine: Literal["auto", "serial", "processes", "dask", "ray", "mpi"] = Field(
        default="auto",
        description=(
            "the engine that evaluates a batch; auto: serial with one worker, processes with "
            "more, dask over several nodes"
        ),
    )
    nodes: int = Field(default=1, ge=1, description="nodes of a run's Slurm job")
    workers_per_node: int = Field(
        default=1, ge=1, description="workers on each node; each takes one core [processes]"
    )
    learner_workers: int = Field(
        default=1,
        ge=1,
        description=(
            "threads of the main process that train a learner with `learner_shares`. They share "
            "the cores of the first node with its workers, most of which wait meanwhile. So a "
            "run's job asks for the larger of this and workers_per_node cores on each node "
            "[threads]"
        ),
    )
    mem_mb_main: int = Field(
        default=1000,
        ge=400,
        description="memory of the main process, the archive and Snakemake included [MB]",
    )
    mem_mb_per_worker: int = Field(default=500, ge=1, description="memory of each worker [MB]")
    runtime_min: int = Field(
        default=60, ge=1, description="time limit of a run's Slurm job, whole minutes [min]"
    )
    gpus: int = Field(default=0, ge=0, description="GPUs on each node of a run's Slurm job")
    image: str = Field(
        default="containers/qdsweep.sif",
        min_length=1,
        description=(
            "image of all jobs with `--sdm apptainer`: a file (.sif), relative to the working "
            "directory or the project's folder, or a URL for Apptainer"
        ),
    )
    interface: str | None = Field(
        default=None,
        description=(
            "network interface that workers of other nodes connect to, such as ib0; null: the "
            "choice of the system"
        ),
    )
    extra: str = Field(
        default="",
        # It becomes part of a shell command.
        pattern=r"^[A-Za-z0-9_@%+=:,./\-\[\] ]*$",
        description="further options of sbatch for a run's job, such as --exclusive",
    )
    dashboard: bool = Field(
        default=False,
        description=(
            "engine dask: show Dask's dashboard on loopback of the run's first node. run.log has "
            "its address. Every user with an account there can see it during the run"
        ),
    )
    dask: DaskCluster = Field(
        default=DaskCluster(),
        description="engine dask: an existing Dask cluster, instead of one of the run's own",
    )
    mpi: Mpi = Field(default=Mpi(), description="engine mpi: how its ranks are started")
    ray: RayCluster = Field(
        default=RayCluster(),
        description="engine ray: an existing Ray cluster, instead of one of the run's own",
    )
    max_seconds: float | None = Field(
        default=None,
        gt=0,
        description=(
            "stop a run after this time, and resume it in the next attempt; null: the end of the "
            "Slurm job, if there is one [s]"
        ),
    )

    @model_validator(mode="after")
    def _check_engine(self) -> "Cluster":
        if self.engine == "serial" and self.workers > 1:
            raise ValueError(
                f"engine = serial has one worker, not nodes = {self.nodes} with workers_per_node = "
                f"{self.workers_per_node}. Use another engine, or auto"
            )
        if self.dask.is_there and (self.engine != "dask" or self.nodes > 1):
            raise ValueError(
                f"dask names an existing Dask cluster, which needs engine = dask and nodes = 1 "
                f"(for the main process), not engine = {self.engine} and nodes = {self.nodes}"
            )
        if self.mpi.launcher is not None and self.engine != "mpi":
            raise ValueError(
                f"mpi.launcher is a key of engine = mpi, not of engine = {self.engine}"
            )
        if self.ray.address is not None and (
            self.engine != "ray" or self.nodes > 1 or self.workers_per_node > 1
        ):
            raise ValueError(
                "ray names an existing Ray cluster, which needs engine = ray, and nodes = 1 with "
                f"workers_per_node = 1 (for the main process), not engine = {self.engine}, nodes = "
                f"{self.nodes} and workers_per_node = {self.workers_per_node}. Set the number "
                "of workers with ray.workers"
            )
        if self.dashboard and self.engine_name != "dask":
            raise ValueError(
                f"dashboard is a key of engine dask, and the engine is {self.engine_name}"
            )
        if self.engine == "processes" and self.nodes > 1:
            raise ValueError(
                f"engine processes works on one node, not on nodes = {self.nodes}. Use engine "
                "dask, or auto"
            )
        return self

    @property
    def engine_name(self) -> str:
        """The engine that `auto` selects."""
        if self.engine != "auto":
            return self.engine
        if self.nodes > 1:
            return "dask"
        return "serial" if self.workers == 1 else "processes"

    @property
    def has_helpers(self) -> bool:
        """Whether the run starts its workers by `qdsweep worker`, ahead of the main process."""
        if self.engine_name == "ray":  # on one machine, Ray starts its own processes
            return self.over_nodes()
        return self.engine_name == "dask" and not self.dask.is_there

    @property
    def workers(self) -> int:
        """Number of workers of a run, on all its nodes."""
        return self.ray.workers or self.nodes * self.workers_per_node

    @property
    def cores(self) -> int:
        """Cores of a run on each node, for its workers and for the threads of the main process."""
        return max(self.workers_per_node, self.learner_workers)

    def over_nodes(self) -> bool:
        """Returns whether this process is in a Slurm job whose workers are on several nodes."""
        return self.nodes > 1 and "SLURM_JOB_ID" in os.environ

    def with_workers(self, number: int, name: str) -> "Cluster":
        """Returns the cluster with the workers of `--workers` on each node.

        Args:
            number: How many.
            name: What the cluster config is called, for messages.

        Raises:
            BadInput: Its engine cannot have that many.
        """
        data = {**self.model_dump(mode="json"), "workers_per_node": number}
        return _read(data, {(): f"cluster {name} with --workers {number}"})

    def on_one_node(self) -> "Cluster":
        """Returns the cluster for evaluations on only one node, in processes of that node."""
        return self.model_copy(update={"nodes": 1, "engine": "auto", "learner_workers": 1})

    def within(self, cores: int) -> "Cluster":
        """Returns the cluster with at most `cores` workers, if it is only this machine."""
        if self.over_nodes():
            return self
        cores = max(1, cores)
        return self.model_copy(
            update={
                "nodes": 1,
                "workers_per_node": min(self.workers, cores),
                "learner_workers": min(self.learner_workers, cores),
                "engine": self.engine_name,
            }
        )


def read_cluster(name: str) -> Cluster:
    """Reads a cluster config.

    Args:
        name: A preset of config/clusters/, or a path of a YAML file.

    Raises:
        BadInput: The file, a key or a value is wrong.
    """
    data, source = read_preset("clusters", name)
    return _read(data, {(): source})


def _read(data: Mapping[str, Any], sources: "Mapping[Path, str]") -> Cluster:
    try:
        return Cluster.model_validate_json(json.dumps(data))
    except ValidationError as error:
        from qdsweep.config.explain import explain  # with it, a worker would import all models

        raise BadInput(explain(error, Cluster, data, sources)) from None
