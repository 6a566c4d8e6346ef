"""Computes runs of a table of digests again, and compares: what `audit` and `reproduce` share."""

import math
import os
import platform
import random
import signal
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from qdsweep.config.experiment import Experiment
from qdsweep.config.requirements import require_packages_of
from qdsweep.engines.allocation import PYTHON
from qdsweep.errors import BadInput
from qdsweep.host.machine import has_avx2
from qdsweep.host.process import die_with_parent, ending
from qdsweep.metrics import agree
from qdsweep.records.digests import DIGEST, DIGEST_METRICS, digest_text, key_of_run
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.results import read_summary, write_config
from qdsweep.text import duration, plural

# How often a thread that waits for a run looks whether all are to end, and for how long a run may
# save its state before it is killed [s].
_LOOK, _SAVING = 0.2, 20.0
# The most differences in a verdict.
_SHOWN = 4

DigestRow = Mapping[str, str]
"""A row of a table of digests."""
Job = tuple[DigestRow, Experiment | None]
"""A row and its experiment; None where its sweep has none."""


class Sample(NamedTuple):
    """The size of a sample.

    Attributes:
        share: The share of the runs, above 0.
        seed: The seed of the draw.
        minutes: The longest time on all cores, by the seconds of the table [min].
    """

    share: float
    seed: int
    minutes: float


class Verdict(NamedTuple):
    """The verdict on a run.

    Attributes:
        kind: same, differs, fails, or refused: it cannot be computed here.
        why: Differences and their reason, or the error; empty if nothing differs.
    """

    kind: str
    why: str = ""


def draw(rows: Sequence[DigestRow], sample: Sample, cores: int) -> list[DigestRow]:
    """Draws a share of the rows, and leaves out each that does not fit into the minutes."""
    drawn: list[DigestRow] = []
    count = math.ceil(sample.share * len(rows))
    seconds = 60 * sample.minutes * min(cores, len(rows))
    for row in random.Random(sample.seed).sample(rows, len(rows)):
        if len(drawn) < count and float(row["seconds"]) <= seconds:
            drawn.append(row)
            seconds -= float(row["seconds"])
    return drawn


def cost_of(rows: Sequence[DigestRow], cores: int) -> str:
    """Returns how long some rows take on how many cores, in words."""
    cores = min(cores, len(rows))
    time = duration(sum(float(row["seconds"]) for row in rows) / cores)
    return f"about {time} on {plural(cores, 'core')}"


def finder_in(runs: Mapping[str, Experiment]) -> Callable[[str], Experiment | None]:
    """Returns what finds the experiment of a run's id, also under a preset's former name.

    Two presets with equal settings give two ids that differ only in the name.

    Args:
        runs: Run id -> experiment, of a sweep.
    """
    by_key = {key_of_run(run): experiment for run, experiment in runs.items()}
    return lambda run: runs.get(run, by_key.get(key_of_run(run)))


def missing_package(experiment: Experiment | None) -> str:
    """Returns which missing package an experiment needs, with the remedy; empty if it has all."""
    if experiment is not None:
        try:
            require_packages_of(experiment)
        except BadInput as error:
            return str(error)
    return ""


def recompute_runs(
    jobs: Sequence[Job],
    results: Results,
    cores: int,
    further: Callable[[RunDir, str], Iterable[str]] = lambda run, known: (),
) -> Generator[tuple[DigestRow, Verdict], None, None]:
    """Computes runs, and yields their verdicts in the order of the rows.

    After an error, Ctrl-C or `close`, no further run starts, and those under way are ended.

    Args:
        jobs: The rows and their experiments.
        results: Where to compute them.
        cores: The largest number of runs at a time.
        further: Returns what else differs in a computed run of an id.
    """
    ended = Event()
    pool = ThreadPoolExecutor(min(cores, len(jobs)))
    try:
        yield from pool.map(partial(_compute, results, further, ended), jobs)
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)


def _compute(
    results: Results,
    further: Callable[[RunDir, str], Iterable[str]],
    ended: Event,
    job: Job,
) -> tuple[DigestRow, Verdict]:
    row, experiment = job
    if experiment is None:
        return row, Verdict("differs", f"the sweep {row['sweep']} has no run of this id")
    name = f"{row['id']}-{row['budget']}"
    run, config = results.run(name), results.path / f"{name}.yaml"
    write_config(config, experiment)
    words = ["--set", row["budget"], "--out", str(run.path)]
    if not has_avx2():
        words += ["--set", "cpu_baseline=native"]
    code, error = _call([*PYTHON, "run", str(config), *words], ended)
    if code:
        last = " ".join(error.strip().splitlines()[-1:])
        kind = "refused" if code == BadInput.exit_code else "fails"
        return row, Verdict(kind, f"{ending(code)}{': ' * bool(last)}{last}")
    return row, _compared(row, read_summary(run), further(run, row["id"]))


def _call(words: Sequence[str], ended: Event) -> tuple[int, str]:
    """Runs a command to its end, or ends it; returns its exit code and its errors."""
    with subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(die_with_parent, signal.SIGTERM, os.getpid()),
    ) as process:
        left = _SAVING
        while True:
            try:
                _, error = process.communicate(timeout=_LOOK)
                return process.returncode, error
            except subprocess.TimeoutExpired:
                if ended.is_set():
                    process.terminate() if left > 0 else process.kill()
                    left -= _LOOK


def _compared(row: DigestRow, summary: Mapping[str, Any], further: Iterable[str]) -> Verdict:
    """Compares a computed run with its row."""
    wrong = [
        f"{name} is {summary[name]}, and {row[name]} in the table"
        for name in (DIGEST, *DIGEST_METRICS)
        if not agree(name, row[name], digest_text(summary[name]))
    ]
    wrong += further
    if not wrong:
        return Verdict("same")
    other = list(other_versions(row, summary["versions"]))
    if not has_avx2():
        other.append(f"this CPU ({platform.machine()}) has no AVX2")
    reason = (
        f"Reason: {'; '.join(other)}" if other else "Versions are the same, and this CPU has AVX2"
    )
    return Verdict("differs", f"{first_few(wrong)}. {reason}")


def first_few(wrong: Sequence[str]) -> str:
    """Returns the first four of some differences in one line: the digest and three values."""
    more = len(wrong) - _SHOWN
    return "; ".join(wrong[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def other_versions(row: DigestRow, here: Mapping[str, str]) -> Iterator[str]:
    """Yields the libraries of a row that have another version here."""
    for name, version in versions_of(row).items():
        if here.get(name) != version:
            yield f"{name} is {here.get(name, 'missing')}, and {version} in the table"


def versions_of(row: DigestRow) -> dict[str, str]:
    """Returns library -> version of a row."""
    return dict(entry.split(" ", 1) for entry in row["versions"].split("; "))
