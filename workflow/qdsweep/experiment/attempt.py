"""An attempt: one start of a run, and its options, which never change a result."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.host.wall_time import WallTime
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.sources import form_in, identities
from qdsweep.sweep.ids import Identity


class Options(NamedTuple):
    """The options of a run, in addition to its cluster.

    Attributes:
        terminal: Whether a user watches a terminal, which then shows the log and a bar.
        max_seconds: Stop after this time [s], to resume later.
        attempt: Snakemake's count of attempts, from 1.
        allow_version_change: Whether to resume from a reload file of other library versions.
    """

    terminal: bool = False
    max_seconds: float | None = None
    attempt: int = 1
    allow_version_change: bool = False


class Inherited(NamedTuple):
    """The only reload file of a donor (`search.fork`) from which a run may resume.

    Attributes:
        iteration: The iteration of the file, which is that of the schedule's last change.
        fingerprints: The fingerprints of the experiment without that change.
    """

    iteration: int
    fingerprints: frozenset[str]

    def is_of(self, header: dict[str, Any]) -> bool:
        """Returns whether a reload file is this one."""
        is_same_experiment = header["fingerprint"] in self.fingerprints
        return is_same_experiment and bool(header["iteration"] == self.iteration)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One start of a run. `Attempt.of` makes it.

    Attributes:
        experiment: The experiment, in the form of this run; see `form_in`.
        run: The run's folder.
        identity: The run's identity at the start. The user's source may change during the run.
        cluster: The cluster config.
        options: The options.
        wall_time: When the process must have ended; None for never.
        inherited: The reload file of the run's donor, if it has one.
    """

    experiment: Experiment
    run: RunDir
    identity: Identity
    cluster: Cluster
    options: Options
    wall_time: WallTime | None
    inherited: Inherited | None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        run: RunDir,
        cluster: Cluster = Cluster(),  # noqa: B008 - immutable
        options: Options = Options(),  # noqa: B008 - immutable
        wall_time: WallTime | None = None,
    ) -> "Attempt":
        """Returns an attempt to compute an experiment, which may have another form of the run."""
        experiment, identity = form_in(experiment, run)
        return cls(
            experiment=experiment,
            run=run,
            identity=identity,
            cluster=cluster,
            options=options,
            wall_time=wall_time,
            inherited=_inherited(experiment, run),
        )


def _inherited(experiment: Experiment, run: RunDir) -> Inherited | None:
    donor = experiment.donor
    if donor is None:
        return None
    known = identities(donor, Results(run.path.parent.parent), former=False)
    fingerprints = frozenset(identity.fingerprint for identity in known)
    return Inherited(experiment.schedule[-1].at, fingerprints)
