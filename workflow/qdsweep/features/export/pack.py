"""A sweep as one zip for the supplement of a paper: a study that can be run by a stranger.

It has the config and the code of the sweep, unchanged, and its results. What qdsweep writes names
no people and no machines.
"""

import csv
import datetime
import hashlib
import io
import json
import re
import sys
import unicodedata
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from qdsweep.analysis.stages import STAGES
from qdsweep.config.files import HOME, to_yaml
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.corrected_archive import LATER
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.features.export.blind import AUTHORS, Secret, findings, named_lines, secrets_of
from qdsweep.features.export.checklist import ExportRecords, checklist
from qdsweep.features.export.code import made_with_others, packed_code
from qdsweep.features.export.complete import require_complete
from qdsweep.features.export.crate import CRATE_FILE as CRATE
from qdsweep.features.export.crate import metadata, readme
from qdsweep.features.export.publication import Publication, public_files
from qdsweep.files import AGAIN, atomic, read_arrays, read_csv, require
from qdsweep.host.owner import read_owner
from qdsweep.metrics import RECORDED
from qdsweep.records.dependencies import ACCEPTED, OUTDATED
from qdsweep.records.digests import DIGEST_COLUMNS, digest_rows
from qdsweep.records.metrics_file import read_lines
from qdsweep.records.paths import Results, RunDir, RunFiles, SweepDir
from qdsweep.records.plan import Plan, PlannedRun, read_confirm, read_plan
from qdsweep.records.results import read_config, read_summary
from qdsweep.records.status import read_attempts
from qdsweep.records.study_files import SWEEP_FILE, read_study
from qdsweep.records.sums import read_checked
from qdsweep.text import plural

# Keys that are taken from a run's summary.json. Not `attempts` (hosts, jobs), not `image`.
SUMMARY = (
    "id",
    "status",
    "iterations",
    *(metric.name for metric in RECORDED if metric.name != "iteration"),
    "failures",
    "archive_digest",
    "objectives_outside",
    "archive",
    "timings",
    "cpu_baseline",
    "versions",
    "engine",
    "workers",
    "stochastic",
    "sources",
    ACCEPTED,
)
# Keys that are taken from the summary of a corrected archive.
CORRECTED = (
    "id",
    "iterations",
    "evaluations",
    "archive_digest",
    "times",
    "seed",
    "elites",
    "seed_matters",
    "reported",
    "corrected",
    "corrected_digest",
    "common",
    *LATER,
)
_DATE = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_SHOWN = 10
# The libraries, with hashes, and the recipe of an image.
_ENVIRONMENT = {
    "requirements.lock": "envs/requirements.lock",
    **{
        f"containers/{name}": f"containers/{name}"
        for name in ("Dockerfile", "build.sh", "install.sh", "qdsweep.def")
    },
}
# The line of the page with the host.
_ORIGIN = re.compile(rb'<p class="origin">[^<]*</p>\n')
# The sweep file in it, between what is around.
_SHOWN_FILE = re.compile(rb'(<p class="lead">.*?<pre>).*?(</pre>)', re.DOTALL)
# In run.log, of workers on other nodes and of attempts that status.json has lost.
_HOST = re.compile(r"\bprocess \d+ on ([A-Za-z0-9](?:[\w.-]*\w)?)")
# In the name of a file: what not every system can have.
_FORBIDDEN = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
_SUMS = "SHA256SUMS"
Member = tuple[str, bytes]

_TABLES, _FIGURES = (".csv", ".tsv", ".md", ".tex"), (".pdf", ".svg", ".csv")


def export(
    results: Path,
    name: str,
    out: Path,
    *,
    allowed: Iterable[str] = (),
    publication: Publication | None = None,
) -> str:
    """Packs config, code, tables, figures, archives and metrics of a sweep.

    Every file is made only of harmless fields, was written by this package from such fields, or is
    the user's own. Finally all text of the finished file is searched too, but for the user's own.

    Args:
        results: The folder of the results.
        name: The sweep.
        out: The zip to write.
        allowed: Names that are common words, and may be found.
        publication: Who publishes it, and how; None for a blind review.

    Returns:
        Lines: the user's own files, what identifies a person in them, and the zip.

    Raises:
        BadInput: There is no such sweep, it has no tables and figures, runs are unfinished, or a
            stranger could not plan it with these files.
        QdsweepError: Personal data was found; no file is written.
    """
    there = Results(results)
    sweep = there.sweep(name)
    plan, confirming = read_plan(sweep), read_confirm(sweep)
    planned = {run.id: run for run in plan.runs(confirming)}
    for row in (row for row in plan.rows if row.imported):
        planned[row.run] = PlannedRun(row.run, row.group, "evaluations", 0)
    runs = _runs(sweep, plan, planned)
    require(sweep.plots, f"Run `qdsweep plot {name}` (or `snakemake`) first.")
    for stage in STAGES:
        stage.require_as_written(sweep.path)
    if out.is_dir():
        raise BadInput(f"--out {out}: that is a folder; give a file, such as {out / name}.zip")
    if not out.parent.is_dir():
        raise BadInput(f"--out {out}: there is no folder {out.parent}; make it, or name another")
    config, code = read_study(sweep), packed_code(runs, there)
    for path in code.keys() & config.keys():
        if code[path] != config[path]:
            raise _taken(path)
    study = config | code
    require_complete(study, plan, there)
    if others := [*made_with_others(runs, there, study)]:
        print(
            f"qdsweep: outdated, computed with other code than the package has: {_some(others)}",
            file=sys.stderr,
        )
    attempts = [attempt for run in runs for attempt in _attempts(there.run(run))]
    secrets = secrets_of(results, attempts, allowed, is_public=publication is not None)
    summaries = {run: read_summary(files) for run, files in sorted(runs.items())}
    day = _last_day(attempts)
    licence = publication.licence if publication else ""
    records = ExportRecords(sweep, plan, planned, runs, summaries, licence)
    own = {path for path, content in study.items() if _is_own(path, content)}
    with atomic(out) as file:
        members = chain(
            public_files(name, publication, day).items() if publication else (),
            study.items(),
            _environment(),
            _members(records, secrets, study[SWEEP_FILE]),
            [("tables/digests.csv", _digests(plan, confirming, there))],
        )
        count = _write(file, name, members, summaries, day, publication)
        file.flush()
        _check(Path(file.name), secrets, {*study, *_ENVIRONMENT} - {SWEEP_FILE})
        size = file.tell()
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    return "\n".join(
        [
            *_own_lines(study, sorted(own), [*secrets, *(() if publication else AUTHORS)]),
            f"{out}: {plural(count, 'file')} of {plural(len(runs), 'run')}, "
            f"{size / 1e6:.2f} MB, SHA-256 {digest}",
        ]
    )


def _is_own(path: str, content: bytes) -> bool:
    """Returns whether a file of the study is the user's, and not one that comes with qdsweep."""
    file = HOME / path
    return path != SWEEP_FILE and not (file.is_file() and file.read_bytes() == content)


def _own_lines(
    study: Mapping[str, bytes], own: Sequence[str], secrets: Iterable[Secret]
) -> Iterator[str]:
    """Yields the list of the user's own files, and the lines that may identify a person."""
    if not own:
        return
    yield "your own files in it, unchanged:"
    yield from (f"  {path}" for path in own)
    secrets = list(secrets)
    found = [line for path in own for line in named_lines(path, study[path], secrets)]
    if found:
        yield "they may tell who wrote them; to change that, edit them and start the sweep again:"
        yield from (f"  {line}" for line in found)


def _environment() -> Iterator[Member]:
    """Yields the libraries and the recipe of the image of this installation."""
    for path, file in _ENVIRONMENT.items():
        yield (
            path,
            require(HOME / file, "Install qdsweep again, with all of its files").read_bytes(),
        )


def _digests(plan: Plan, confirming: Iterable[Mapping[str, Any]], results: Results) -> bytes:
    """Returns the table of digests, in the form of `qdsweep audit TABLE --add`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, DIGEST_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(digest_rows(plan, results, confirming=confirming))
    return text.getvalue().encode()


def _runs(sweep: SweepDir, plan: Plan, planned: Iterable[str]) -> dict[str, RunFiles]:
    """Returns the results of each run.

    Raises:
        BadInput: The tables are missing, or of other runs, or some runs are unfinished and
            the tables are not of unfinished runs.
    """
    rows = [row.run for row in plan.rows]
    path, remedy = sweep.summary, "Run `snakemake`, which makes it."
    status = read_csv(path, remedy, usecols=["id", "status"], dtype=str)
    if sorted(status["id"]) != sorted(rows):
        raise BadInput(f"{path} is of other runs than the sweep has now: run `snakemake` first")
    done = ("finished", OUTDATED)
    known = {row.id: row.status for row in status.itertuples() if row.status not in done}
    states = dict.fromkeys(planned, "finished") | known
    results = {run: sweep.results.run(run).results for run in planned}
    for run, files in results.items():
        if states[run] == "finished" and not files.summary.exists():
            states[run] = "missing"
    open_runs = [f"{run} ({state})" for run, state in states.items() if state != "finished"]
    # Runs may be partial or missing if the tables say so. A run that the tables have, though,
    # must be there.
    lost = any(states[run] == "missing" and run not in known for run in rows)
    if open_runs and (not known or lost or "unfinished" in known.values()):
        raise BadInput(
            f"{plural(len(open_runs), 'run')} of the sweep {sweep.name} not finished: "
            f"{_some(open_runs)}. Finish them (`snakemake`), or make tables and "
            "figures of what is there: `snakemake --cores 1 --config partial=true`"
        )
    if open_runs:
        print(f"qdsweep: not finished: {_some(open_runs)}", file=sys.stderr)
    return {run: files for run, files in results.items() if files.summary.exists()}


def _some(lines: Sequence[str], between: str = ", ") -> str:
    """Returns the first lines, and how many more there are."""
    shown = between.join(lines[:_SHOWN])
    more = between if between.isspace() else " "
    return shown + (f"{more}and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else "")


def _attempts(run: RunDir) -> list[dict[str, Any]]:
    """Returns all attempts at a run, the owner of its lock, and the hosts that its log names."""
    files = (run.summary, run.state.summary, run.state.status)
    attempts = [attempt for file in files for attempt in read_attempts(file)]
    log = run.state.log
    hosts = set(_HOST.findall(log.read_text(errors="replace"))) if log.exists() else set()
    attempts += [{"host": host} for host in sorted(hosts)]
    return [*attempts, read_owner(run.state.lock) or {}]


def _members(records: ExportRecords, secrets: list[Secret], file: bytes) -> Iterator[Member]:
    """Yields the files of the zip, one after the other."""
    sweep, plan, summaries = records.sweep, records.plan, records.summaries
    about = {"searched": bool(plan.levels), "public": bool(records.licence)}
    yield "README.txt", readme(plan.name, list(summaries.values()), **about).encode()
    yield "checklist.md", checklist(records).encode()
    for path in _own(sweep.path, [*sweep.path.glob("*"), *sweep.tables.glob("*")], _TABLES):
        yield f"tables/{path.name}", path.read_bytes()
    for path in _own(sweep.path, sweep.search.glob("*/*"), (".json",)):
        yield f"search/{path.relative_to(sweep.search)}", path.read_bytes()
    for path in _own(sweep.path, sweep.plots.rglob("*"), _FIGURES):
        if not path.with_suffix(".csv").exists():  # its metadata may name its author
            print(f"qdsweep: left out, {path}: no figure of this sweep", file=sys.stderr)
            continue
        yield f"figures/{path.relative_to(sweep.plots)}", path.read_bytes()
    for page in _own(sweep.path, [sweep.report], (".html",)):
        content = _with_file(_ORIGIN.sub(b"", page.read_bytes()), file)
        finding = next(findings(page.name, content, secrets), None)
        if finding is None:
            yield page.name, content
        else:
            print(f"qdsweep: left out, {finding}", file=sys.stderr)
    for run, files in sorted(records.runs.items()):
        unit, amount = records.planned[run].unit, records.planned[run].budget
        summary = {key: summaries[run][key] for key in SUMMARY if key in summaries[run]}
        yield f"runs/{run}/summary.json", _json({**summary, "budget": {unit: amount}})
        for name, content in _run(files, plan.reevaluate):
            yield f"runs/{run}/{name}", content


def _with_file(page: bytes, file: bytes) -> bytes:
    """Returns a page that shows this sweep file; a later start may have composed another one."""
    from markupsafe import escape

    shown = str(escape(file.decode())).encode()
    return _SHOWN_FILE.sub(lambda match: match[1] + shown + match[2], page, count=1)


def _own(sweep: Path, paths: Iterable[Path], endings: tuple[str, ...]) -> Iterator[Path]:
    """Yields the files with these endings, sorted; no links that lead out of the sweep's folder."""
    for path in sorted(paths):
        if path.suffix not in endings or not path.is_file():
            continue
        if path.resolve().is_relative_to(sweep.resolve()):
            yield path
        else:
            print(f"qdsweep: left out, {path}: a link to another folder", file=sys.stderr)


def _run(files: RunFiles, corrected: Reevaluate | None) -> Iterator[Member]:
    """Yields the files of a run, except its summary."""
    yield "config.yaml", _yaml(read_config(files.config))
    lines = read_lines(require(files.metrics, AGAIN))
    yield "metrics.csv", ("\n".join(lines) + "\n").encode()
    yield "archive.npz", _arrays(require(files.archive, AGAIN))
    if files.history.exists():
        yield "history.npz", _arrays(files.history)
    path = files.path / f"{corrected.stem}.npz" if corrected else None
    if path and path.exists():
        yield path.name, _arrays(path)
        about = read_checked(path.with_suffix(".json"), AGAIN)
        yield f"{path.stem}.json", _json({key: about[key] for key in CORRECTED if key in about})


def _arrays(path: Path) -> bytes:
    """Returns the arrays of a file in a new file: nothing else, and no pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **read_arrays(path))
    return buffer.getvalue()


def _json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def _yaml(data: dict[str, Any]) -> bytes:
    return to_yaml(data, allow_unicode=True).encode()


def _last_day(attempts: Iterable[dict[str, Any]]) -> str:
    """Returns the day on which the last run ended; today where all are imported."""
    ends = [attempt.get("ended") or attempt.get("started") for attempt in attempts]
    today = datetime.datetime.now(datetime.UTC).isoformat()
    return max((end for end in ends if end), default=today)[:10]


def _write(
    file: IO[bytes],
    name: str,
    members: Iterator[Member],
    summaries: Mapping[str, dict[str, Any]],
    day: str,
    publication: Publication | None,
) -> int:
    """Writes the members and their metadata with fixed dates; returns the number of files."""
    sums: dict[str, str] = {}
    names: dict[str, str | None] = dict.fromkeys(map(_plain_name, (CRATE, _SUMS)))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in members:
            plain = _plain_name(path)
            if plain in names or _FORBIDDEN.search(path):
                raise _taken(names.get(plain) or path)
            names[plain] = path
            sums[path] = hashlib.sha256(content).hexdigest()
            archive.writestr(_entry(f"{name}/{path}"), content)
        about = metadata(name, sums, summaries, day, publication)
        sums[CRATE] = hashlib.sha256(about).hexdigest()
        archive.writestr(_entry(f"{name}/{CRATE}"), about)
        lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
        archive.writestr(_entry(f"{name}/{_SUMS}"), lines)
    return len(sums) + 1


def _plain_name(path: str) -> str:
    """Returns what is equal for names that some systems take for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _taken(path: str) -> BadInput:
    return BadInput(
        f"{path!r}: a package has a file of its own of that name, or can have no such name: rename "
        "your file, and start the sweep again"
    )


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _DATE)
    entry.create_system, entry.external_attr = 3, 0o644 << 16
    # An npz file is compressed already.
    entry.compress_type = zipfile.ZIP_STORED if path.endswith(".npz") else zipfile.ZIP_DEFLATED
    return entry


def _check(path: Path, secrets: list[Secret], kept: Collection[str]) -> None:
    """Searches the finished file, but for the content of files that were packed unchanged.

    Raises:
        QdsweepError: Text was found that identifies its author.
    """
    traces: list[str] = []
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        traces += findings("names of files", "\n".join(names).encode(), secrets)
        for name in names:
            if name.partition("/")[2] not in kept:
                traces += findings(name, archive.read(name), secrets)
    if traces:
        raise QdsweepError(
            "nothing was written, because it would tell who made it:\n"
            + _some(traces, "\n")
            + "\nA config that names a folder or a person: change it there and run `snakemake` "
            "again. A name that is a common word: --allow WORD"
        )
