"""The command merge: brings the runs of other clusters into this folder."""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from qdsweep.cli.arguments import RESULTS_OPTION, Add
from qdsweep.errors import BadInput
from qdsweep.host.lock import Lock, Locked, is_alive
from qdsweep.host.owner import describe, read_owner
from qdsweep.records.paths import Results, RunDir, is_imported
from qdsweep.text import plural

MERGE = """\
examples:
  qdsweep merge /mnt/other/study             the results/ of a study of another cluster
  qdsweep merge copies/a copies/b --verbose
  qdsweep merge --list copies/a > lacking.txt
  rsync -arH --files-from=lacking.txt other:study/ copies/a/
Finished runs are added if they have the digest that was recorded, and unfinished ones with their
newest reload file (a checkpoint of the run). A further run replaces a shorter one of the same
results. Nothing else is replaced. After a kill, the same command completes the merge. Then start
snakemake for the tables. The other folders do not change.

exit codes:
  0 merged; 1 a run was refused (its line has the reason); 2 wrong input
"""
_EVERY = 10.0
"""Time between two lines of progress [s]."""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    merge = add("merge", "Add the runs of other clusters to this folder.", MERGE)
    merge.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="a results/, or the folder with it"
    )
    merge.add_argument(
        "--list", action="store_true", help="only print the folders of the runs that are lacking"
    )
    merge.add_argument("--verbose", action="store_true", help="print one line per run")
    merge.add_argument("--results", **RESULTS_OPTION)
    merge.set_defaults(command=_merge)


def _merge(arguments: argparse.Namespace) -> int:
    results = Results(arguments.results)
    others = {folder: _results_in(folder, results) for folder in arguments.folders}
    if arguments.list:
        return sum(_list(folder, other, results) for folder, other in others.items()) and 1
    if is_alive(results.merging):
        owner = describe(read_owner(results.merging))
        raise Locked(f"{results.path}: {owner} merges into it; wait for its end")
    with Lock(results.merging):
        refused = [_add(other, results, verbose=arguments.verbose) for other in others.values()]
    return int(any(refused))


def _results_in(folder: Path, results: Results) -> Results:
    """Returns the results of a folder.

    Raises:
        BadInput: It has none, or they are those of this folder.
    """
    for path in (folder, folder / results.path.name):
        other = Results(path)
        if other.runs.is_dir():
            os.scandir(other.runs).close()  # else one that cannot be read has no runs
            if results.runs.exists() and other.runs.samefile(results.runs):
                raise BadInput(f"{folder}: its runs are those of {results.path}; give another one")
            return other
    raise BadInput(f"{folder}: it has no runs/ and no {results.path.name}/runs/; give a results/")


def _runs(other: Results, results: Results) -> list[tuple[RunDir, RunDir]]:
    """Returns the folder of each run there, and here. Imported results are imported again."""
    return [(run, results.run(run.name)) for run in other.known_runs() if not is_imported(run.name)]


def _list(folder: Path, other: Results, results: Results) -> int:
    """Prints the runs that are lacking here, and returns the number of unreadable ones."""
    from qdsweep.runs.merge import is_lacking

    unreadable = 0
    for theirs, ours in _runs(other, results):
        try:
            if is_lacking(theirs, ours):
                print(theirs.path.relative_to(folder))
        except BadInput as error:
            print(f"qdsweep: {error}", file=sys.stderr)
            unreadable += 1
    return unreadable


def _add(other: Results, results: Results, *, verbose: bool) -> int:
    """Adds the runs of one folder, and returns the number of refused ones."""
    from qdsweep.config.files import shown
    from qdsweep.planning.internals import forget_jobs
    from qdsweep.records.progress import OtherCode
    from qdsweep.records.sources import merge_sources
    from qdsweep.records.status import read_status
    from qdsweep.runs.merge import BUSY, EMPTY, FINISHED, KNOWN, REFUSED, RESUMABLE, merge_run

    damaged = list(merge_sources(other, results))
    for source in damaged:
        print(f"{source}: refused: its files have changed since they were written")
    code, replaced, outdated = OtherCode(other), Counter[Path](), Counter[str]()
    kinds = Counter[str]()
    runs = _runs(other, results)
    shown_at = time.monotonic()
    for place, (theirs, ours) in enumerate(runs):
        if time.monotonic() - shown_at > _EVERY:
            shown_at = time.monotonic()
            line = f"qdsweep: {other.path}: {place:,} of {plural(len(runs), 'run')}"
            print(line, file=sys.stderr, flush=True)
        outcome = merge_run(theirs, ours, forget_jobs)
        kinds[outcome.kind] += 1
        if outcome.kind != REFUSED:
            replaced.update(code.replaced(theirs))
            outdated.update(code.outdated(theirs, read_status(theirs.state).code))
        if verbose or outcome.note:
            note = f": {outcome.note}" if outcome.note else ""
            print(f"{theirs.name}: {outcome.kind}{note}", flush=True)
    for name, count in outdated.items():
        print(
            f"qdsweep: warning: {name} differs from the file that {plural(count, 'run')} used: "
            f"outdated here"
        )
    for file, count in replaced.items():
        print(
            f"qdsweep: warning: {shown(file)} differs from the code of {plural(count, 'run')}, "
            f"which {other.sources} keeps: this folder's sweeps have other runs"
        )
    texts = {
        FINISHED: "finished and added",
        RESUMABLE: "unfinished and added",
        KNOWN: "already here",
        EMPTY: "without results or reload file",
        BUSY: "being computed",
        REFUSED: "refused",
    }
    counts = [f"{kinds[kind]:,} {text}" for kind, text in texts.items() if kinds[kind]]
    print(f"{other.path}: {', '.join([plural(len(runs), 'run'), *counts])}")
    return kinds[REFUSED] + len(damaged)
