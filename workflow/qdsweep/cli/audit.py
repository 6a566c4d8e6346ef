"""The command audit: a table of finished runs, and a sample of it that is computed again."""

import argparse
import csv
import io
import math
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from qdsweep.cli.arguments import RESULTS, Add, sweep_name
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.files import HOME, find_preset
from qdsweep.config.requirements import require_packages_of
from qdsweep.engines.allocation import PYTHON
from qdsweep.errors import BadInput
from qdsweep.files import damaged, write_text
from qdsweep.host.machine import has_avx2
from qdsweep.host.process import die_with_parent
from qdsweep.metrics import ARCHIVE_METRICS
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan
from qdsweep.records.results import read_summary, write_config
from qdsweep.records.status import read_status
from qdsweep.text import duration, plural

AUDIT = """\
examples:
  qdsweep audit                          1 % of the runs of docs/published.csv
  qdsweep audit --share 5% --seed 3      another and larger sample
  qdsweep audit mine.csv --add my_sweep  write the finished runs of my_sweep to a table
The sample is computed in a temporary folder. Digests of archives and metrics are compared bit by
bit. A run that does not fit into --minutes, or that needs a missing package, is not drawn. Each row
names its sweep, a file of config/sweeps/ that defines the experiment.

exit codes:
  0 all the same bits; 1 a run differs (its line has the reason); 2 wrong input
"""
TABLE = HOME / "docs/published.csv"
_DIGEST = "archive_digest"
_METRICS = tuple(name for name in ARCHIVE_METRICS if name != "restarts")
_COLUMNS = (
    *("sweep", "id", "algorithm", "experiment", "seed", "budget", "seconds", _DIGEST),
    *(*_METRICS, "versions"),
)
# Column -> the form of its values, and an example.
_FORMS = {
    "budget": (rf"({'|'.join(BUDGETS)})=\d+", "iterations=100"),
    "seconds": (r"\d{1,12}(\.\d+)?", "1.5"),
    "versions": (r"[^ ;]+ [^;]+(; [^ ;]+ [^;]+)*", "numpy 2.4.6; ribs 0.12.0"),
}
_Row = Mapping[str, str]


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    audit = add("audit", "Compute a sample of a table of runs again, and compare the bits.", AUDIT)
    audit.add_argument(
        "table", nargs="?", type=Path, default=TABLE, help="default: the clone's docs/published.csv"
    )
    audit.add_argument(
        "--share", type=_share, default=0.01, metavar="P%", help="share of the runs (default: 1%%)"
    )
    audit.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    audit.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="M",
        help="maximum time on all cores, by the table's seconds",
    )
    audit.add_argument(
        "--cores", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time"
    )
    audit.add_argument(
        "--add",
        nargs="+",
        type=sweep_name,
        metavar="SWEEP",
        help="write the finished runs of these sweeps to the table; it keeps other rows",
    )
    audit.add_argument("--results", **RESULTS)
    audit.set_defaults(command=_audit)


def _share(text: str) -> float:
    """Returns the fraction of a percentage such as 1%."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not (text.endswith("%") and 0 < share <= 1):
        raise argparse.ArgumentTypeError(f"{text!r}: give a percentage from 0% to 100%, such as 1%")
    return share


def _audit(arguments: argparse.Namespace) -> int:
    if arguments.cores < 1:
        raise BadInput(f"--cores {arguments.cores}: give 1 or more")
    if arguments.add:
        return _add(arguments.table, Results(arguments.results), arguments.add)
    rows = _read(arguments.table)
    if not rows:
        raise BadInput(f"{arguments.table}: it has no run; `--add SWEEP` writes them")
    runs = list({row["id"]: row for row in reversed(rows)}.values())[::-1]  # of several sweeps once
    experiments = {name: _experiments(name, arguments) for name in {row["sweep"] for row in runs}}
    jobs = {row["id"]: experiments[row["sweep"]].get(_hash(row["id"])) for row in runs}
    reasons = {run: _missing_package(experiment) for run, experiment in jobs.items()}
    for reason, number in Counter(filter(None, reasons.values())).items():
        print(f"{plural(number, 'run')} left out: {reason}", flush=True)
    runs = [row for row in runs if not reasons[row["id"]]]
    if not runs:
        raise BadInput(f"{arguments.table}: every run needs a missing package")
    count = math.ceil(arguments.share * len(runs))
    drawn = _draw(runs, count, arguments.seed, 60 * arguments.minutes * arguments.cores)
    if not drawn:
        raise BadInput(f"--minutes {arguments.minutes:g}: no run of {arguments.table} fits")
    cores = min(arguments.cores, len(drawn))
    time = duration(sum(float(row["seconds"]) for row in drawn) / cores)
    sample = f"{len(drawn)} of {plural(len(runs), 'run')}"
    print(f"{arguments.table}: {sample}, about {time} on {plural(cores, 'core')}", flush=True)
    folder = Results(Path(tempfile.mkdtemp(prefix="qdsweep-audit-")))
    different = 0
    try:
        with ThreadPoolExecutor(arguments.cores) as pool:
            outcomes = pool.map(_compute, drawn, (jobs[row["id"]] for row in drawn), repeat(folder))
            for place, (row, differences) in enumerate(zip(drawn, outcomes, strict=True), start=1):
                different += bool(differences)
                print(
                    f"{place} of {len(drawn)}  {row['id']}  {differences or 'the same bits'}",
                    flush=True,
                )
    finally:
        if different:
            print(f"The computed runs are in {folder.runs}")
        else:
            shutil.rmtree(folder.path)
    print(f"{len(drawn) - different} of {len(drawn)} the same bits")
    return 1 if different else 0


def _draw(rows: Sequence[_Row], count: int, seed: int, seconds: float) -> list[_Row]:
    """Draws at most `count` rows that together cost at most `seconds` on one core."""
    drawn: list[_Row] = []
    for row in random.Random(seed).sample(rows, len(rows)):
        if len(drawn) < count and float(row["seconds"]) <= seconds:
            drawn.append(row)
            seconds -= float(row["seconds"])
    return drawn


def _experiments(name: str, arguments: argparse.Namespace) -> dict[str, Experiment]:
    """Returns hash of the id -> experiment of each run of a sweep of config/sweeps/."""
    from qdsweep.planning.start import read_sweep, sweep_of

    try:
        settings = read_sweep({}, files=[find_preset("sweeps", name)])
        sweep = sweep_of(settings, Results(arguments.results))
    except BadInput as error:
        raise BadInput(f"{arguments.table}: {error}. Copy the sweep's file there") from None
    return {_hash(run): experiment for run, experiment in sweep.runs.items()}


def _hash(run: str) -> str:
    """Returns the hash in a run's id, which is the same under a preset's former name."""
    return run.rsplit("-", 1)[-1]


def _missing_package(experiment: Experiment | None) -> str:
    """Returns which missing package an experiment needs, with the remedy; empty if it has all."""
    if experiment is not None:
        try:
            require_packages_of(experiment)
        except BadInput as error:
            return str(error)
    return ""


def _compute(row: _Row, experiment: Experiment | None, results: Results) -> str:
    """Computes the run of a row, and returns its differences; empty if there are none."""
    if experiment is None:
        return f"differs: the sweep {row['sweep']} has no run of this id"
    run = results.run(row["id"])
    config = results.path / f"{row['id']}.yaml"
    write_config(config, experiment)
    words = ["--set", row["budget"], "--out", str(run.path)]
    if not has_avx2():
        words += ["--set", "cpu_baseline=native"]
    done = subprocess.run(
        [*PYTHON, "run", str(config), *words],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(die_with_parent, signal.SIGTERM, os.getpid()),
    )
    if done.returncode:
        return f"differs: it ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    return _differences(row, read_summary(run))


def _differences(row: _Row, summary: Mapping[str, Any]) -> str:
    """Returns what differs and the reason; empty if nothing does."""
    wrong = [
        f"{name} is {summary[name]}, and {row[name]} in the table"
        for name in (_DIGEST, *_METRICS)
        if row[name] != _text(summary[name])
    ]
    if not wrong:
        return ""
    versions = dict(entry.split(" ", 1) for entry in row["versions"].split("; "))
    here = summary["versions"]
    other = [
        f"{name} is {here.get(name, 'missing')}, and {version} in the table"
        for name, version in versions.items()
        if here.get(name) != version
    ]
    if not has_avx2():
        other.append(f"this CPU ({platform.machine()}) has no AVX2")
    reason = (
        f"Reason: {'; '.join(other)}" if other else "Versions are the same, and this CPU has AVX2"
    )
    return f"differs: {'; '.join(wrong)}. {reason}"


def _read(table: Path) -> list[dict[str, str]]:
    """Reads a table of runs.

    Raises:
        BadInput: It is missing, is no CSV, has other columns, or a row without a value or with a
            wrong one.
    """
    if not table.is_file():
        raise BadInput(
            f"{table}: there is no such table; `qdsweep audit TABLE --add SWEEP` writes it"
        )
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames or (), list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged(table, error, "write it as CSV in UTF-8") from None
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise BadInput(f"{table}: it has no column {missing[0]}")
    for line, row in enumerate(rows, start=2):
        for name in _COLUMNS:
            form, example = _FORMS.get(name, ("(?s:.*)", ""))
            if not re.fullmatch(form, row[name] or "") or row[name] is None:
                hint = f" (expected: {example!r} or alike)" if example else ""
                raise BadInput(
                    f"{table}, line {line}: {name} = {row[name]!r}{hint}: fix or remove the line"
                )
    return rows


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _add(table: Path, results: Results, sweeps: Sequence[str]) -> int:
    """Writes the finished runs of some sweeps to a table; it keeps runs that are not here."""
    rows, sweeps = _read(table) if table.exists() else [], list(dict.fromkeys(sweeps))
    others = [row for row in rows if row["sweep"] not in sweeps]
    added: list[_Row] = []
    for name in sweeps:
        known = {_hash(row["id"]): row for row in rows if row["sweep"] == name}
        added += _finished(results, name, known)
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*others, *added])
    write_text(table, text.getvalue())
    print(f"{table}: {plural(len(added), 'run')} of {', '.join(sweeps)}, {len(others)} others")
    return 0


def _finished(results: Results, name: str, known: Mapping[str, _Row]) -> Iterator[_Row]:
    """Yields the rows of those runs of a sweep that are finished at its budget, here or before."""
    plan = read_plan(results.sweep(name))
    if plan.search:
        raise BadInput(f"--add {name}: its search chooses runs that no sweep file lists")
    for row in plan.computed:
        run = results.run(row.run)
        budget = {unit: getattr(row, unit) for unit in BUDGETS if getattr(row, unit)}
        ((unit, amount),) = budget.items()
        status = read_status(run.state)
        if status.status != "finished" or status.budget != budget:
            before = known.get(_hash(row.run))
            if before and before["budget"] == f"{unit}={amount}":
                yield before
            continue
        summary = read_summary(run)
        yield {
            "sweep": name,
            "id": row.run,
            "algorithm": row.values.get("algorithm", ""),
            "experiment": row.values.get("experiment", plan.experiment),
            "seed": row.values.get("seed", ""),
            "budget": f"{unit}={amount}",
            "seconds": f"{summary['timings']['total'] * summary['workers']:.1f}",
            "versions": "; ".join(f"{key} {text}" for key, text in summary["versions"].items()),
            **{key: _text(summary[key]) for key in (_DIGEST, *_METRICS)},
        }
