"""A stage's work, while no other process writes what it reads, or uses what it writes."""

import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qdsweep.analysis.stage import Stage
from qdsweep.analysis.stages import STAGES
from qdsweep.files import read_json_if_whole, write_text
from qdsweep.host.lock import FileWatch, Lock
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.host.owner import describe, read_owner
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import sums_of, withdraw
from qdsweep.text import formulas


def run_stage(stage: Stage, sweep_dir: Path, runs_dir: Path, **options: object) -> None:
    """Runs a stage with the CPU settings of a run: the same bits with and without the warm process.

    Raises:
        BadInput: A file that it reads has changed since it was written, or its own work failed.
    """
    with _turn(stage, SweepDir(sweep_dir)) as read:
        for source in read:
            source.await_files(sweep_dir)
            source.require_as_written(sweep_dir)
        for path in stage.damaged(sweep_dir):
            path.unlink(missing_ok=True)  # cached pictures too
        withdraw(stage.sums(sweep_dir))
        apply_baseline("avx2" if has_avx2() else "native")
        with formulas(_labels_of(sweep_dir)):
            stage.load()(sweep_dir, runs_dir, **options)
        write_text(stage.sums(sweep_dir), sums_of(sweep_dir, stage.files(sweep_dir)))


@contextmanager
def _turn(stage: Stage, sweep: SweepDir) -> Iterator[list[Stage]]:
    """Waits until no other process writes what this stage reads, or uses what it writes.

    A stage takes its own lock first, and then looks at the locks of the others. If a
    reader and a writer meet, the reader gives its lock back.

    Yields:
        The stages that it reads.
    """
    read = [other for other in STAGES if other.name in stage.reads]
    readers = [other for other in STAGES if stage.name in other.reads]
    if not sweep.path.exists():  # a wrong name, which its function refuses
        yield read
        return
    watch = FileWatch()
    while True:
        _await_end([stage, *read], sweep, watch)
        with Lock(sweep.lock(stage.name), math.inf, watch, sys.stdout):
            if any(watch.is_held(sweep.lock(other.name)) for other in read):
                continue
            _await_end(readers, sweep, watch)
            yield read
            return


def _labels_of(sweep_dir: Path) -> list[str]:
    """Returns the labels and names in `figures` of a sweep file, which may have formulas."""
    figures = read_json_if_whole(SweepDir(sweep_dir).plan).get("figures") or {}
    return [*figures.get("labels", {}).values(), *figures.get("names", {}).values()]


def _await_end(stages: Iterable[Stage], sweep: SweepDir, watch: FileWatch) -> None:
    """Waits until no process runs one of these stages, and prints which process does.

    It prints to the standard output, which is the terminal: rules redirect only the error output.
    """
    for stage in stages:
        printed = ""
        while watch.is_held(lock := sweep.lock(stage.name)):
            owner = describe(read_owner(lock))
            if owner != printed:
                text = f"waiting for {owner}, which makes the {stage.title(sweep.name)}"
                print(f"qdsweep: {text}", flush=True)
                printed = owner
            time.sleep(0.2)
