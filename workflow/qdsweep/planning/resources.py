"""What a run needs from Snakemake: its budget, and the resources of its Slurm job."""

from collections.abc import Mapping

from qdsweep.config.cluster import Cluster
from qdsweep.errors import BadInput
from qdsweep.host.slurm import objection, ran_out_of_memory
from qdsweep.records.ending import read_last_stop
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import read_status

GROWTH = 1.5


def launch_budget(budget: Mapping[str, int], run_dir: RunDir) -> str:
    """Returns the budget of a run as `launch` takes it: a larger one lengthens the run.

    If a run has finished with a larger budget, for another sweep or an earlier version of this
    one, it keeps that budget: for Snakemake nothing has changed then.

    Args:
        budget: What the sweep asks for, as `Experiment.budget` has it.
        run_dir: The run's folder.
    """
    ((unit, amount),) = budget.items()
    status = read_status(run_dir.state)
    if status.status == "finished":
        amount = max(amount, status.budget.get(unit, 0))
    return f"{unit}={amount}"


def memory_mb(cluster: Cluster, run_dir: RunDir | None) -> int:
    """Returns a run's memory on each node: 1.5 times as much each time it ran out of it [MB].

    Args:
        cluster: The cluster config.
        run_dir: The run's folder, whose files say how it stopped; None: nobody knows the run yet.
    """
    stops = 0
    if run_dir is not None:
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
        "cpus_per_task": cluster.workers_per_node,
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


def check_request(cluster: Cluster, name: str, place: Mapping[str, str]) -> str:
    """Asks Slurm whether it would take the jobs, before any is submitted.

    Args:
        cluster: The cluster config.
        name: Its name, for the message.
        place: `slurm_account` and `slurm_partition`, where they are set.

    Returns:
        Why Slurm would refuse them now but perhaps not later; empty if it would take them.

    Raises:
        BadInput: Slurm refuses them for good.
    """
    request = slurm_request(cluster)
    options = {
        "--time": cluster.runtime_min,
        "--nodes": cluster.nodes,
        "--ntasks": cluster.nodes,
        "--cpus-per-task": cluster.workers_per_node,
        "--mem": cluster.mem_mb_main + cluster.workers_per_node * cluster.mem_mb_per_worker,
        "--gres": request.get("gres"),
        "--account": place.get("slurm_account"),
        "--partition": place.get("slurm_partition"),
    }
    words = [f"{key}={value}" for key, value in options.items() if value is not None]
    words += str(request.get("slurm_extra", "")).split()
    text, wrong = objection(words)
    if not text:
        return ""
    message = (
        f"cluster {name}: Slurm says of a run's job: {text} (asked for: {' '.join(words)}; "
        "account and partition: profiles/slurm/profile.yaml)"
    )
    if wrong:
        raise BadInput(message)
    return message
