"""Slurm jobs that outlive a main Snakemake: those of the next start wait for them in the queue.

Else a run's new job would hold its cores to wait for the run's lock, and give up after a minute.
Slurm starts it when the other one has ended, however it did: then there is nothing to compute, or
it goes on.
"""

import sys
from collections.abc import Iterable
from functools import cached_property

from qdsweep.host.slurm import queued_jobs

# The rules whose jobs compute runs; in a module of another workflow they have a prefix.
RULES = ("qd_run", "search_place")


class EarlierJobs:
    """The jobs that wait or run when this start plans its own.

    Args:
        folder: The folder that jobs are submitted from.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @cached_property
    def _by_wildcards(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for comment, jobs in queued_jobs(self._folder).items():
            rule, _, wildcards = comment.partition("_wildcards_")  # as the plugin makes it
            if rule.endswith(RULES):
                found.setdefault(wildcards, []).extend(jobs)
        if found:
            count = sum(map(len, found.values()))
            print(
                f"qdsweep: {count} Slurm job(s) of an earlier start wait or run: what they compute "
                "is waited for",
                file=sys.stderr,
            )
        return found

    def option(self, wildcards: Iterable[str]) -> str:
        """Returns the option of sbatch that makes a job wait for earlier ones like it, if any.

        Args:
            wildcards: The values of the job's wildcards.
        """
        jobs = self._by_wildcards.get("_".join(wildcards).replace("/", "_"), [])
        return f"--dependency=afterany:{':'.join(jobs)}" if jobs else ""
