"""summary.json, the results of a run, and config.yaml, its resolved experiment.

`qdsweep run` takes config.yaml as it is.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from qdsweep.config.experiment import Experiment
from qdsweep.config.family import name_now
from qdsweep.config.files import read_yaml, to_yaml
from qdsweep.errors import BadInput
from qdsweep.files import AGAIN, ANEW, atomic, read_arrays, require, write_json
from qdsweep.records.paths import Results, RunFiles, StateDir
from qdsweep.records.sums import read_checked, require_as_written

UNKNOWN: Literal["unknown"] = "unknown"
# Whether evaluations depend on their seed.
Stochastic = bool | Literal["unknown"]


class Summary(TypedDict, total=False):
    """The keys of summary.json, next to the metrics of the end.

    Attributes:
        id: The run.
        fingerprint: The whole hash of its experiment; its id has the start.
        status: finished, or partial in a snapshot.
        iterations: Finished iterations.
        failures: Evaluations that failed and were scored.
        archive_digest: The digest of archive.npz.
        objectives_outside: Number of elites below and above the objective range.
        archive: The geometry of the archive, and its domain.
        step: The mutation scale of the domain.
        timings: Seconds of each phase, and of all.
        cpu_baseline: The key of the experiment.
        versions: Library -> version.
        image: The container image; None without one.
        engine: The engine that evaluated the last iterations.
        workers: Its workers.
        attempts: The attempts at the run, the last one last.
        sources: File -> hash: what the run used and its id does not cover. These are the modules
            that its plug-ins import, the files that they declare, and the code of its metrics.
        accepted: Earlier values of `sources` for which the user took the results over, with times.
        stochastic: Whether evaluations depend on their seed.
    """

    id: str
    fingerprint: str
    status: str
    iterations: int
    failures: int
    archive_digest: str
    objectives_outside: dict[str, int]
    archive: dict[str, Any]
    step: float
    timings: dict[str, float]
    cpu_baseline: str
    versions: dict[str, str]
    image: dict[str, Any] | None
    engine: str
    workers: int
    attempts: list[dict[str, Any]]
    sources: dict[str, str]
    accepted: list[dict[str, Any]]
    stochastic: Stochastic


def read_summary(files: RunFiles, remedy: str = AGAIN) -> dict[str, Any]:
    """Reads summary.json; keys of other releases stay.

    Args:
        files: The run's folder, its `state/`, or a snapshot.
        remedy: What to do where there is none.

    Raises:
        BadInput: It is missing or damaged.
    """
    return read_checked(files.summary, remedy)


def stochastic_of(state: StateDir, summary: Mapping[str, Any]) -> Stochastic:
    """Returns whether evaluations of a run depend on their seed.

    A run of an earlier release does not know, but `qdsweep reevaluate` notes it in its `state/`.

    Raises:
        BadInput: The note is damaged.
    """
    known: Stochastic = summary.get("stochastic", UNKNOWN)
    if known == UNKNOWN and state.noise.exists():
        remedy = "remove it; then it is not known whether evaluations depend on their seed"
        return bool(read_arrays(state.noise, "stochastic", remedy=remedy)["stochastic"])
    return known


def write_summary(files: RunFiles, summary: dict[str, Any]) -> None:
    """Writes summary.json.

    Args:
        files: Where to.
        summary: `Summary`, and the metrics.
    """
    write_json(files.summary, summary)


def write_configs(
    runs: Mapping[str, Experiment], results: Results, *, changed: bool = False
) -> None:
    """Writes `state/config.yaml` of runs that have none.

    Args:
        runs: Run id -> experiment.
        results: The folder results/.
        changed: Also of those that have another list of `metrics`, the one key that is measured
            from now on and makes no other run.
    """
    for run, experiment in runs.items():
        path = results.run(run).state.config
        if not path.exists() or path.stat().st_size == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_config(path, experiment)
        elif changed and not _measures(path, experiment):
            StateDir(path.parent).unseal()
            write_config(path, experiment)


def _measures(path: Path, experiment: Experiment) -> bool:
    """Returns whether a config.yaml has the same `metrics`; parsing it would take 50 times as long.

    One of an earlier release has no such key.
    """
    wanted = experiment.model_dump(mode="json", include={"metrics"})
    block = re.escape("\n" + to_yaml(wanted))
    text = path.read_text(encoding="utf-8")
    is_same = re.search(block + r"(?=\w|\Z)", text) is not None
    return is_same or (not experiment.metrics and "\nmetrics:" not in text)


def write_config(path: Path, experiment: Experiment) -> None:
    """Writes the resolved experiment."""
    with atomic(path, "w") as file:
        file.write(to_yaml(experiment.model_dump(mode="json")))


def read_config(path: Path) -> dict[str, Any]:
    """Reads the resolved experiment as plain data, keys of other releases too.

    The algorithm has its present name (see `name_now`), and then no title of its own.

    Raises:
        BadInput: It is missing or damaged.
    """
    require(path, AGAIN)
    require_as_written(path)
    try:
        config = read_yaml(path)
    except BadInput as error:
        raise BadInput(f"{error}: {ANEW}") from None
    algorithm = config.get("algorithm")
    if isinstance(algorithm, dict):
        name = name_now(str(algorithm.get("name")), algorithm.get("title"))
        if name != algorithm.get("name"):
            own = {key: value for key, value in algorithm.items() if key != "title"}
            return {**config, "algorithm": {**own, "name": name}}
    return config
