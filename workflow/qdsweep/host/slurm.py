"""Questions to Slurm about a job. Each has a time limit, and there may be no answer."""

import functools
import re
import subprocess
from datetime import datetime

from qdsweep.host.process import host_facts

# The time limit of a question [s].
_SECONDS = 30
# States of a job of which no part runs any more; a job that will restart is PENDING.
ENDED = (
    *("PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"),
    *("PREEMPTED", "BOOT_FAIL", "DEADLINE"),
)
NOT_ENDED = ("PENDING", "RUNNING", "REQUEUED", "RESIZING", "SUSPENDED")
_ended: dict[str, str] = {}  # job -> its end state, as every resource of a run asks for it
# Question -> answer from the host, as there is no Slurm in an image.
answers: dict[str, str] = {}


@functools.cache
def job_details(job: str) -> dict[str, str]:
    """Returns the fields of `scontrol show job`; none if Slurm does not answer."""
    text = _ask("scontrol", "--oneliner", "show", "job", job)
    return dict(re.findall(r"(\S+?)=(\S*)", text))


def end_of_job(job: str) -> float | None:
    """Returns when the wall time of a job ends, as `time.time` counts; None if it is unknown."""
    try:
        return datetime.fromisoformat(job_details(job).get("EndTime", "")).timestamp()
    except ValueError:
        return None


def end_state(job: str) -> str | None:
    """Returns how a job ended: OUT_OF_MEMORY, TIMEOUT, NODE_FAIL, ...; None if it is unknown.

    If memory ran out within a step, the step has OUT_OF_MEMORY and the job only FAILED: the step
    counts. The state of a job that has not ended is not kept, as it will change.
    """
    if job not in _ended:
        text = _ask("sacct", "--noheader", "--parsable2", "--jobs", job, "--format", "State")
        states = [line.split(" ")[0] for line in text.splitlines() if line]
        if not states:
            return None
        state = "OUT_OF_MEMORY" if "OUT_OF_MEMORY" in states else states[0]
        if states[0] in NOT_ENDED:
            return state
        _ended[job] = state
    return _ended[job]


def has_ended(job: str) -> bool:
    """Returns whether Slurm reports that no part of a job runs; False without an answer."""
    state = re.search(r"JobState=(\S+)", _ask("scontrol", "--oneliner", "show", "job", job))
    return (state[1] if state else end_state(job)) in ENDED


def ran_out_of_memory(job: str) -> bool:
    """Returns whether Slurm ended a job, or a part of it, because of its memory."""
    return end_state(job) == "OUT_OF_MEMORY"


def objection(options: list[str]) -> tuple[str, bool]:
    """Returns why sbatch would refuse a job, without submitting it.

    Args:
        options: The options of sbatch.

    Returns:
        Its message, empty if it would accept the job, and whether the options themselves are
        wrong. If they are not, the job may fit at another time (when nodes are up again).
    """
    words = ["sbatch", "--test-only", *options, "--wrap", "true"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS)
    except OSError as error:
        return f"{error}: is this a node that can submit jobs?", True
    except subprocess.TimeoutExpired:
        return f"no answer for {_SECONDS} s", False
    lines = done.stderr.strip().splitlines()
    if done.returncode == 0 or not lines:
        return "", False
    return lines[0], not lines[0].startswith("allocation failure")


def running_since(job: str) -> tuple[str, float] | None:
    """Returns how often a job was restarted, and for how long it has had its nodes [s].

    Returns:
        None where it does not run at this moment, or Slurm does not answer.
    """
    text = _ask("scontrol", "--oneliner", "show", "job", job)
    line = re.search(rf"^JobId={job} .*", text, re.M)  # an array's other jobs have lines, too
    fields = dict(re.findall(r"(\S+?)=(\S*)", line[0] if line else ""))
    time = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", fields.get("RunTime", ""))
    if fields.get("JobState") != "RUNNING" or time is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in time.groups())
    return fields.get("Restarts", ""), ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def queued_jobs(folder: str) -> dict[str, list[str]]:
    """Returns the jobs of this user that wait or run, by their comment.

    Args:
        folder: The folder that they were submitted from.
    """
    jobs: dict[str, list[str]] = {}
    for line in _ask("squeue", "--noheader", "--me", "--format", "%A|%Z|%k").splitlines():
        job, place, comment = line.split("|", 2)
        if place == folder:
            jobs.setdefault(comment, []).append(job)
    return jobs


def requeue(job: str) -> None:
    """Makes Slurm restart a job from its beginning."""
    _ask("scontrol", "requeue", job)


def _ask(*words: str) -> str:
    question = " ".join(words)
    from_host = host_facts().get("slurm", {})
    if question in from_host:
        return str(from_host[question])
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    answers[question] = done.stdout
    return done.stdout
