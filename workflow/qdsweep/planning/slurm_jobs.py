"""The Slurm jobs of runs: memory, request, those of an earlier start, and lost ones.

Slurm jobs outlive the main Snakemake. The jobs of the next one wait for them in the queue.
Otherwise a new job would hold its cores while it waits for the run's lock, and give up after a
minute.

A job over several nodes survives a lost node (--no-kill). Without the first node, which has the
main process, the others would idle until the time limit. The main Snakemake detects
this by the run's lock, which no process updates, and requeues the job.
"""

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from functools import cached_property

from qdsweep.config.cluster import Cluster
from qdsweep.errors import BadInput
from qdsweep.host.lock import DEAD_SECONDS, FileWatch
from qdsweep.host.owner import read_owner
from qdsweep.host.slurm import objection, queued_jobs, ran_out_of_memory, requeue, running_since
from qdsweep.planning.internals import joined, wildcards_of
from qdsweep.records.last_stop import read_last_stop
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.status import read_status
from qdsweep.text import plural

# A run that ran out of memory asks for this many times as much each time, up to the fourth.
GROWTH = 1.5
# The resources of a run's Slurm job that `slurm_request` may ask for.
REQUESTED = (
    *("runtime", "nodes", "tasks", "cpus_per_task", "mpi", "gres", "tasks_per_gpu"),
    "slurm_extra",
)
# The interval of looks at the locks. `FileWatch` counts at most 30 s between two looks [s].
_PAUSE_SECONDS = 10.0
# How long a job that was started again may take until its main process has the lock: two starts of
# Snakemake, perhaps of an image, on a busy file system.
START_SECONDS = 600.0


def memory_mb(cluster: Cluster, run_dir: RunDir | None) -> int:
    """Returns a run's memory on each node: 1.5 times as much each time it ran out of it [MB].

    Args:
        cluster: The cluster config.
        run_dir: The run's folder, whose files record its last stop; None: not decided yet.
    """
    stops = 0
    if run_dir is not None and run_dir.path.exists():
        stops = read_last_stop(run_dir.state).memory_stops
        killed_job = read_status(run_dir.state).killed_job
        if killed_job is not None:
            stops += ran_out_of_memory(killed_job)
    needed = cluster.mem_mb_main + cluster.workers_per_node * cluster.mem_mb_per_worker
    return round(needed * GROWTH ** min(stops, 4))


def slurm_request(cluster: Cluster) -> dict[str, int | str]:
    """Returns the resources of a run's Slurm job, as Snakemake's Slurm plugin names them.

    Over several nodes the job's command runs on the first one and starts the workers with srun;
    the plugin calls such a job `mpi`. A node that fails must not end the job then (--no-kill), but
    for the ranks of MPI, which end with it.
    """
    request: dict[str, int | str] = {
        "runtime": cluster.runtime_min,
        "cpus_per_task": cluster.cores,
    }
    extra = cluster.extra.split()
    if cluster.gpus:
        # GPUs of each node; without tasks_per_gpu the plugin would tie the number of tasks to them.
        request |= {"gres": f"gpu:{cluster.gpus}", "tasks_per_gpu": 0}
    if cluster.nodes > 1:
        request |= {"nodes": cluster.nodes, "tasks": cluster.nodes, "mpi": "srun"}
        if cluster.engine_name != "mpi":
            extra.append("--no-kill")
    if extra:
        request["slurm_extra"] = " ".join(extra)
    return request


def require_request(cluster: Cluster, name: str, defaults: Mapping[str, str]) -> None:
    """Asks Slurm whether it would accept the jobs, before any is submitted.

    Prints a warning if Slurm would refuse them now but perhaps not later.

    Args:
        cluster: The cluster config.
        name: Its name, for the message.
        defaults: `slurm_account` and `slurm_partition`, where they are set.

    Raises:
        BadInput: Slurm will always refuse them.
    """
    request = slurm_request(cluster)
    options = {
        "--time": cluster.runtime_min,
        "--nodes": cluster.nodes,
        "--ntasks": cluster.nodes,
        "--cpus-per-task": cluster.cores,
        "--mem": cluster.mem_mb_main + cluster.workers_per_node * cluster.mem_mb_per_worker,
        "--gres": request.get("gres"),
        "--account": defaults.get("slurm_account"),
        "--partition": defaults.get("slurm_partition"),
    }
    words = [f"{key}={value}" for key, value in options.items() if value is not None]
    words += str(request.get("slurm_extra", "")).split()
    text, wrong = objection(words)
    if not text:
        return
    message = (
        f"cluster {name}: Slurm's answer to a run's job: {text} (request: {' '.join(words)}; "
        "account and partition are set in profiles/slurm/profile.yaml)"
    )
    if wrong:
        raise BadInput(message)
    print(f"qdsweep: warning: {message}", file=sys.stderr)


class EarlierJobs:
    """The jobs that wait or run when this start plans its own.

    Args:
        folder: The folder that jobs are submitted from.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @cached_property
    def _by_wildcards(self) -> dict[str, list[str]]:
        by_wildcards: dict[str, list[str]] = {}
        for comment, jobs in queued_jobs(self._folder).items():
            if wildcards := wildcards_of(comment):
                by_wildcards.setdefault(wildcards, []).extend(jobs)
        if by_wildcards:
            count = plural(sum(map(len, by_wildcards.values())), "Slurm job")
            print(
                f"qdsweep: {count} of an earlier start still pending or running; new jobs of the "
                "same runs wait for them",
                file=sys.stderr,
            )
        return by_wildcards

    def option(self, wildcards: Iterable[str]) -> str:
        """Returns the option of sbatch that makes a job wait for earlier ones like it, if any.

        Args:
            wildcards: The values of the job's wildcards.
        """
        jobs = self._by_wildcards.get(joined(wildcards), [])
        return f"--dependency=afterany:{':'.join(jobs)}" if jobs else ""


def requeue_lost(runs: Iterable[str], results: Results) -> None:
    """Starts a thread that queues lost jobs again; it ends with this process.

    Args:
        runs: Run ids.
        results: The folder results/.
    """
    folders = [results.run(run) for run in runs]
    watch = FileWatch()

    def look() -> None:
        while True:
            time.sleep(_PAUSE_SECONDS)
            for run in folders:
                _check(run, watch)

    threading.Thread(target=look, daemon=True).start()


def _check(run: RunDir, watch: FileWatch) -> None:
    lock = run.state.lock
    silent = watch.silent(lock)
    owner = read_owner(lock) or {}
    job = owner.get("slurm_job")
    if job is None or silent < DEAD_SECONDS:
        return
    if (running := running_since(job)) is None:
        watch.begin(lock)  # a job that Slurm has suspended may run again, and then sends heartbeats
        return
    restarts, seconds = running
    if restarts != owner.get("restarts") and seconds < START_SECONDS:
        return  # it starts, and has not come to the run yet
    print(
        f"qdsweep: {run.name}: Slurm job {job} lost its main process "
        f"{silent:.0f} s ago; it is queued again",
        file=sys.stderr,
    )
    requeue(job)
