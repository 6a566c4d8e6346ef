"""A table of finished runs, of which a sample is computed again."""

import csv
import fcntl
import io
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from operator import itemgetter
from pathlib import Path

from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.files import find_preset
from qdsweep.errors import BadInput
from qdsweep.features.audit.recompute import (
    DigestRow,
    Sample,
    cost_of,
    draw,
    finder_in,
    missing_package,
    recompute_runs,
)
from qdsweep.files import damaged, naming, write_text
from qdsweep.metrics import agree
from qdsweep.records.digests import (
    DIGEST,
    DIGEST_COLUMNS,
    DIGEST_METRICS,
    digest_rows,
    key_of_run,
)
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan
from qdsweep.records.study_files import SWEEP_FILE
from qdsweep.text import plural, quoted

# Column -> the form of its values, and an example.
_FORMS = {
    "id": (r"[\w.-]{1,200}", "sphere-cma_me-s1-2eb4c6a7c4"),
    "budget": (rf"({'|'.join(BUDGETS)})=[1-9]\d{{0,14}}", "iterations=100"),
    "seconds": (r"\d{1,12}(\.\d+)?", "1.5"),
    DIGEST: (r"[0-9a-f]{64}", "5e6384f9... of 64 characters"),
    "versions": (r"[^ ;]+ [^;]+(; [^ ;]+ [^;]+)*", "numpy 2.4.6; ribs 0.12.0"),
}
_JOB = itemgetter("sweep", "id")


def audit(
    table: Path,
    results: Results,
    sample: Sample,
    cores: int,
    show: Callable[[str], None],
) -> int:
    """Computes a sample of a table of runs again, in a temporary folder.

    Args:
        table: The table.
        results: The folder results/, where the sweeps of the table may have been started.
        sample: The size of the sample.
        cores: The largest number of runs at a time.
        show: Prints a line.

    Returns:
        The number of runs that differ.

    Raises:
        BadInput: The table is wrong, or no run fits.
    """
    rows = read_table(table)
    if not rows:
        raise BadInput(f"{table}: it has no run; `--add SWEEP` writes them")
    runs = distinct(rows, table)
    experiments = {
        name: _experiments(name, [row for row in runs if row["sweep"] == name], table, results)
        for name in dict.fromkeys(row["sweep"] for row in runs)
    }
    jobs = {_JOB(row): experiments[row["sweep"]](row["id"]) for row in runs}
    reasons = {job: missing_package(experiment) for job, experiment in jobs.items()}
    for reason, number in Counter(filter(None, reasons.values())).items():
        show(f"{plural(number, 'run')} left out: {reason}")
    runs = [row for row in runs if not reasons[_JOB(row)]]
    if not runs:
        raise BadInput(f"{table}: every run needs a missing package")
    drawn = draw(runs, sample, cores)
    if not drawn:
        raise BadInput(f"--minutes {sample.minutes:g}: no run of {table} fits")
    show(f"{table}: {len(drawn)} of {plural(len(runs), 'run')}, {cost_of(drawn, cores)}")
    with naming(Path("TMPDIR")):
        folder = Results(Path(tempfile.mkdtemp(prefix="qdsweep-audit-")))
    different = 0
    try:
        with closing(
            recompute_runs([(row, jobs[_JOB(row)]) for row in drawn], folder, cores)
        ) as outcomes:
            for place, (row, (verdict, why)) in enumerate(outcomes, start=1):
                different += verdict != "same"
                kind = "differs" if verdict == "differs" else "fails"
                text = f"{kind}: {why}" if why else "the same bits"
                show(f"{place} of {len(drawn)}  {row['id']}  {text}")
    finally:
        if different and folder.runs.exists():
            show(f"The computed runs are in {folder.runs}")
        else:
            shutil.rmtree(folder.path)
    show(f"{len(drawn) - different} of {len(drawn)} the same bits")
    return different


def distinct(rows: Sequence[DigestRow], table: Path) -> list[DigestRow]:
    """Returns the first row of each run at each budget; several sweeps may share it.

    Raises:
        BadInput: Another row of it has other values.
    """
    runs: dict[tuple[str, str], DigestRow] = {}
    for row in rows:
        first = runs.setdefault((row["id"], row["budget"]), row)
        for name in (DIGEST, *DIGEST_METRICS):
            if not agree(name, row[name], first[name]):
                raise BadInput(
                    f"{table}: {row['id']} ({row['budget']}) has two rows: {name} = {first[name]} "
                    f"and {quoted(row[name])}: remove the wrong row"
                )
    return list(runs.values())


def _experiments(
    name: str, rows: Sequence[DigestRow], table: Path, results: Results
) -> Callable[[str], Experiment | None]:
    """Returns what finds the experiment of a run of a sweep of config/sweeps/.

    In the folder of an exported package, sweep.yaml is the file of its one sweep.

    Args:
        name: The sweep.
        rows: Its rows.
        table: The table, for messages.
        results: The folder results/.

    Raises:
        BadInput: The sweep is missing or wrong, or a row has another algorithm or seed than it.
    """
    from qdsweep.planning.request import Given, key_sources, read_sweep
    from qdsweep.planning.rows import sweep_of

    try:
        file = find_preset("sweeps", name)
    except BadInput as error:
        file = Path(SWEEP_FILE)
        if not file.is_file() or read_sweep(Given({}, files=[file])).name != name:
            raise BadInput(f"{table}: {error}. Copy the sweep's file there") from None
    given = Given({}, files=[file])
    sweep = sweep_of(read_sweep(given), results, key_sources(given))
    known = {row.id: texts for row, texts in zip(sweep.rows, sweep.texts, strict=True)}
    for row in rows:
        swept = known.get(row["id"], {})
        for key in ("algorithm", "seed"):
            if row[key] != swept.get(key, row[key]):
                raise BadInput(
                    f"{table}: {row['id']}: {key} = {quoted(row[key])}, and "
                    f"{swept[key]!r} in {file}: fix or remove the row"
                )
    return finder_in(sweep.runs)


def read_table(table: Path) -> list[dict[str, str]]:
    """Reads a table of runs.

    Raises:
        BadInput: It is missing, is no CSV, has other columns, or a row without a value, with a
            wrong one or with too many.
    """
    if not table.is_file():
        if table.exists():
            raise BadInput(f"{table}: it is not a regular file; give a file in CSV")
        raise BadInput(
            f"{table}: there is no such table; `qdsweep audit TABLE --add SWEEP` writes it"
        )
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or ()
            rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged(table, error, "write it as CSV in UTF-8") from None
    for name in (*DIGEST_COLUMNS, *columns):
        if (count := columns.count(name)) != 1:
            many = f"{count} columns" if count else "no column"
            raise BadInput(
                f"{table}: it has {many} {quoted(name)}; these are needed, each once: "
                f"{', '.join(DIGEST_COLUMNS)}"
            )
    for line, row in rows:
        for name in DIGEST_COLUMNS:
            form, example = _FORMS.get(name, ("(?s:.*)", ""))
            if not re.fullmatch(form, row[name] or "", re.ASCII) or row[name] is None:
                hint = f" (expected: {example!r} or alike)" if example else ""
                raise BadInput(
                    f"{table}, line {line}: {name} = {quoted(row[name])}{hint}: fix or remove the "
                    "line"
                )
        if None in row:  # what no column is for
            raise BadInput(
                f"{table}, line {line}: it has more values than columns: {quoted(row[None])}: fix "
                "or remove the line"
            )
    return [row for _, row in rows]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process adds rows to a table of a folder, where flock() works."""
    file = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def add_runs(table: Path, results: Results, sweeps: Sequence[str]) -> str:
    """Writes the finished runs of some sweeps to a table, and returns what it has.

    The table keeps runs that are not here. Only one process at a time changes it.

    Args:
        table: The table.
        results: The folder results/.
        sweeps: The names of the sweeps.

    Raises:
        BadInput: The table or a sweep is wrong.
    """
    with _alone(table.parent):
        return _add(table, results, sweeps)


def _add(table: Path, results: Results, sweeps: Sequence[str]) -> str:
    rows, sweeps = read_table(table) if table.exists() else [], list(dict.fromkeys(sweeps))
    others = [row for row in rows if row["sweep"] not in sweeps]
    added: list[DigestRow] = []
    for name in sweeps:
        known = {key_of_run(row["id"]): row for row in rows if row["sweep"] == name}
        plan = read_plan(results.sweep(name))
        if plan.search:
            raise BadInput(f"--add {name}: its search chooses runs that no sweep file lists")
        added += digest_rows(plan, results, known=known)
    text = io.StringIO()
    columns = dict.fromkeys([*DIGEST_COLUMNS, *(rows[0] if rows else ())])
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows([*others, *added])
    write_text(table, text.getvalue())
    return f"{table}: {plural(len(added), 'run')} of {', '.join(sweeps)}, {len(others)} others"
