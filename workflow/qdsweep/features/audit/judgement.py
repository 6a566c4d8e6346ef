"""The verdict on each run of a package, in its unpacked folder: `reproduce` starts this process.

It plans the sweep of the package, computes a sample of its runs, and compares them with its tables.
"""

import csv
import math
import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.errors import BadInput
from qdsweep.features.audit.audit import distinct, read_table
from qdsweep.features.audit.recompute import (
    DigestRow,
    Sample,
    Verdict,
    cost_of,
    draw,
    finder_in,
    first_few,
    missing_package,
    other_versions,
    recompute_runs,
    versions_of,
)
from qdsweep.files import damaged, read_arrays, read_json_if_whole, require
from qdsweep.metrics import agree
from qdsweep.records.archive import archive_digest
from qdsweep.records.digests import DIGEST, DIGEST_METRICS, digest_text, key_of_run
from qdsweep.records.paths import Results, RunDir, RunFiles
from qdsweep.records.results import read_summary
from qdsweep.sweep.ids import decisive, run_id
from qdsweep.text import listed, nearest, plural, quoted, visible
from qdsweep.versions import __version__, installed_versions, torch_build

SWEEP, DIGESTS = Path("sweep.yaml"), Path("tables/digests.csv")
_SUMMARY, _TABLE = Path("tables/summary.csv"), Path("tables/table.csv")
_MAKE = "make the package again, with `qdsweep export` of this release"
# For numbers of tables, which pandas has read and written in between [relative].
_CLOSE = 1e-9

_Known = Mapping[str, Experiment | None]
_Table = Sequence[Mapping[str, str]]


class _Chosen(NamedTuple):
    """The runs to compute, and why others are not: run id -> reason."""

    rows: list[DigestRow]
    left: dict[str, str]


def require_runs(package: Path, runs: Sequence[str]) -> None:
    """Checks that a package has these runs.

    Args:
        package: Its folder.
        runs: The ids of the runs.

    Raises:
        BadInput: It has no such run, or its tables are missing or wrong.
    """
    rows = [*read_table(require(package / DIGESTS, _MAKE)), *_read(package / _SUMMARY)]
    known = sorted({row["id"] for row in rows})
    for run in runs:
        if run not in known:
            raise BadInput(
                f"--runs {quoted(run)}: the package has no such run; {nearest(run, known)}"
                f"it has {visible(listed(known, most=5)) or 'no run'}"
            )


def judge_package(
    results: Results,
    sample: Sample,
    runs: Sequence[str],
    cores: int,
    show: Callable[[str], None],
) -> int:
    """Computes a sample of the package in the working directory, and prints a verdict a run.

    The files of every run are compared with each other, also of those that are not computed.

    Args:
        results: Where to compute the runs.
        sample: The size of the sample.
        runs: The ids of the runs, instead of a sample; none: a sample.
        cores: The largest number of runs at a time.
        show: Prints a line.

    Returns:
        The exit code: 0 if none differs and at least one has equal bits, otherwise 1.

    Raises:
        BadInput: A file of the package is missing or wrong.
    """
    rows = distinct(read_table(require(DIGESTS, _MAKE)), DIGESTS)
    summary = _read(_SUMMARY)
    experiments, otherwise = _experiments(rows, results, {row["id"] for row in summary})
    every = {row["id"]: row for row in [*summary, *rows]}
    total = len(every)
    altered = {run: lines for run, row in every.items() if (lines := [*_altered(run, row)])}
    chosen = _choose(rows, experiments, summary, sample, runs, cores)
    for line in _other_versions(rows):
        show(f"warning: {line}")
    if runs or sample.share == 1:
        for run, why in chosen.left.items():
            if run not in altered:
                show(f"{run}  not computed: {why}")
    else:
        for why, number in Counter(chosen.left.values()).items():
            show(f"{plural(number, 'run')} not computed: {why}")
    verdicts = Counter[str]()
    if chosen.rows:
        show(f"{len(chosen.rows)} of {plural(total, 'run')}, {cost_of(chosen.rows, cores)}")
        jobs = [(row, experiments[row["id"]]) for row in chosen.rows]
        further = partial(_differences, experiments, summary)
        with closing(recompute_runs(jobs, results, cores, further)) as judged:
            for place, (row, verdict) in enumerate(judged, start=1):
                if lines := altered.pop(row["id"], []):
                    why = "; ".join(filter(None, [first_few(lines), verdict.why]))
                    verdict = Verdict("differs", why)
                verdicts[verdict.kind] += 1
                show(f"{place} of {len(jobs)}  {row['id']}  {_text(verdict)}")
    for run, lines in altered.items():
        verdicts["differs"] += 1
        show(f"{run}  differs: {first_few(lines)}")
    wrong = list(_wrong_means(summary))
    for lines in filter(None, (otherwise, wrong)):
        show(f"differs: {first_few(lines)}")
    equal, different = verdicts["same"], verdicts["differs"] + verdicts["fails"]
    show(
        f"not checked: figures, report.html, and tables but {DIGESTS.name}, {_TABLE.name} and the "
        f"rows of computed runs in {_SUMMARY.name}"
    )
    rest = total - equal - different
    others = f", {SWEEP} differs" * bool(otherwise) + ", 1 table differs" * bool(wrong)
    show(
        f"{plural(total, 'run')}: {equal} equal bits, {different} differ, {rest} not computed"
        f"{others}"
    )
    return 0 if equal and not different and not otherwise and not wrong else 1


def _text(verdict: Verdict) -> str:
    words = {"same": "equal bits", "refused": "not computed: ", "fails": "differs: it fails: "}
    return words.get(verdict.kind, "differs: ") + verdict.why


def _experiments(
    rows: Sequence[DigestRow], results: Results, known: Collection[str]
) -> tuple[dict[str, Experiment | None], list[str]]:
    """Returns the experiment of each row, by its sweep; None where the sweep has no such run.

    Runs that a search or `confirm` has chosen are in no plan: theirs are in the package.

    Args:
        rows: The rows.
        results: Where to compute the runs.
        known: The runs of the tables.

    Returns:
        Run id -> experiment; and a line on each run that the sweep plans otherwise.
    """
    from qdsweep.planning.request import Given, key_sources, read_sweep
    from qdsweep.planning.rows import sweep_of

    given = Given({}, files=[require(SWEEP, _MAKE)])
    settings = read_sweep(given)
    planned = sweep_of(settings, results, key_sources(given)).runs
    find = finder_in(planned)
    found: dict[str, Experiment | None] = {}
    for run in (row["id"] for row in rows):
        found[run] = find(run)
        config = _files(run).config
        if found[run] is None and (settings.search or settings.confirm) and config.exists():
            experiment = compose(str(config))
            is_own = key_of_run(run_id(experiment)) == key_of_run(run)
            found[run] = experiment if is_own else None
    is_whole = not (settings.staged_search or settings.confirm)  # these choose runs and budgets
    return found, list(_planned_otherwise(planned, known)) if is_whole else []


def _planned_otherwise(planned: Mapping[str, Experiment], known: Collection[str]) -> Iterator[str]:
    """Yields a line on each run of the sweep that is not in the tables, or has another budget."""
    ids = {key_of_run(run): run for run in known}
    for run, experiment in planned.items():
        name = run if run in known else ids.get(key_of_run(run))
        if name is None:
            yield f"{SWEEP} plans {run}, which {_SUMMARY} does not have"
        elif (path := _files(name).summary).exists():
            budget = read_json_if_whole(path).get("budget", experiment.budget)
            if budget != experiment.budget:
                yield f"{run} has {experiment.budget} by {SWEEP}, and {budget} in {path}"


def _files(run: str) -> RunFiles:
    """Returns the files of a run in the package."""
    return RunDir(Path("runs", run)).results


def _altered(run: str, row: Mapping[str, str]) -> Iterator[str]:
    """Yields what differs between the files of a run and its row of digests, if it has one."""
    files, has_row = _files(run), DIGEST in row
    if not has_row and not files.summary.exists():
        return  # it has not started
    try:
        summary = read_summary(files, _MAKE)
        digests = _digests_of(files.archive)
    except BadInput as error:
        yield str(error)
        return
    if (known := digest_text(summary.get(DIGEST))) not in digests:
        yield f"{DIGEST} is {digests[0]} by {files.archive}, and {known} in {files.summary}"
    for name in (DIGEST, *DIGEST_METRICS) if has_row else ():
        value = digest_text(summary.get(name))
        if not agree(name, row[name], value):
            yield f"{name} is {value} in {files.summary}, and {row[name]} in {DIGESTS}"


def _digests_of(archive: Path) -> list[str]:
    """Returns the digest of an archive.npz; of one with numbered elites, also that without numbers.

    Archives that have no cells get these numbers only in the file.
    """
    rows = read_arrays(archive, remedy=_MAKE)
    digests = [archive_digest(rows)]
    index = rows.pop("index", None)
    if index is not None and index.tolist() == [*range(len(index))]:
        digests.append(archive_digest(rows))
    return digests


def _choose(
    rows: Sequence[DigestRow],
    experiments: _Known,
    summary: _Table,
    sample: Sample,
    runs: Sequence[str],
    cores: int,
) -> _Chosen:
    """Chooses the runs to compute."""
    left = {
        row["id"]: f"{DIGESTS} has no digest of it ({row.get('status') or 'no status'})"
        for row in summary
        if row["id"] not in experiments
    }
    left |= {run: why for run, known in experiments.items() if (why := missing_package(known))}
    ready = [row for row in rows if row["id"] not in left]
    if runs:
        left = {run: why for run, why in left.items() if run in runs}
        ready = [row for row in ready if row["id"] in runs]
    drawn = draw(ready, sample, cores)
    if sample.share == 1:
        late = f"it does not fit into --minutes {sample.minutes:g}"
        left |= {row["id"]: late for row in ready if row not in drawn}
    return _Chosen(drawn, left)


def _other_versions(rows: Sequence[DigestRow]) -> list[str]:
    """Returns the libraries that have another version here than in the table."""
    names = {name for row in rows for name in versions_of(row)}
    here = installed_versions(names) | {"qdsweep": __version__}
    here |= {"python": platform.python_version()} | (torch_build() if "torch" in names else {})
    return sorted({line for row in rows for line in other_versions(row, here)})


def _differences(experiments: _Known, summary: _Table, run: RunDir, known: str) -> Iterator[str]:
    """Yields what differs between a computed run and the package, next to its row of digests."""
    files, experiment = _files(known), experiments[known]
    if experiment is not None:
        yield from _other_keys(files.config, experiment)
    if files.history.exists():
        yield from _other_history(files.history, run.results.history)
    measured, before = _read(run.results.metrics), _read(files.metrics)
    yield from _other_metrics(files.metrics, measured, before)
    by_iteration = {row["iteration"]: row for row in measured}
    for row in summary:
        if row["id"] == known and (own := by_iteration.get(row.get("iteration", ""))):
            for name in DIGEST_METRICS:
                if name in row and not _close(own[name], row[name]):
                    yield f"{name} is {own[name]}, and {row[name]} in {_SUMMARY}"


def _other_keys(config: Path, experiment: Experiment) -> Iterator[str]:
    """Yields a line on each key of a run's config that is another one by its sweep."""
    packed, planned = (_flat(decisive(each)) for each in (compose(str(config)), experiment))
    for key in sorted({*packed, *planned}):
        if packed.get(key) != planned.get(key) and key not in BUDGETS:
            yield f"{key} is {planned.get(key)} by {SWEEP}, and {packed.get(key)} in {config}"


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Returns nested mappings as one, with dotted keys."""
    if not isinstance(value, dict):
        return {key: value}
    inner = (_flat(part, f"{key}.{name}".strip(".")) for name, part in value.items())
    return {name: part for each in inner for name, part in each.items()}


def _other_history(path: Path, computed: Path) -> Iterator[str]:
    """Yields a line on each array of a history that the computed one has otherwise."""
    now = read_arrays(computed)
    for name, values in read_arrays(path, remedy=_MAKE).items():
        if name not in now or (now[name].shape, now[name].tobytes()) != (
            values.shape,
            values.tobytes(),
        ):
            yield f"{name} has other values in {path}"


def _other_metrics(path: Path, measured: _Table, before: _Table) -> Iterator[str]:
    """Yields a line on each column that first differs in an iteration; not on times."""
    if len(measured) > len(before):  # a larger budget of another sweep made it longer
        yield f"it has {plural(len(measured), 'iteration')}, and {len(before)} in {path}"
        return
    for name in (name for name in before[0] if not name.startswith("seconds_")):
        for row, other in zip(measured, before, strict=False):
            if name not in row or not agree(name, row[name], other[name]):
                now = row.get(name, "missing")
                place = f"{path}, iteration {other['iteration']}"
                yield f"{name} is {now}, and {other[name]} in {place}"
                break


def _wrong_means(summary: _Table) -> Iterator[str]:
    """Yields a line on each number of table.csv that summary.csv does not give."""
    import pandas as pd

    from qdsweep.analysis.columns import STATISTICS
    from qdsweep.analysis.selection import in_percent
    from qdsweep.analysis.statistics import mean_error_count

    if not _TABLE.exists() or not summary:
        return
    values = in_percent(pd.DataFrame(summary).apply(_numbers))
    for row in _read(_TABLE):
        runs = values[values["group"].astype(str) == row["group"]].drop_duplicates("id")
        for metric in (name.removesuffix("_mean") for name in row if name.endswith("_mean")):
            if metric in runs:
                found = mean_error_count(runs[metric].to_numpy(float))
                for part, value in zip(STATISTICS, found, strict=True):
                    name = f"{metric}_{part}"
                    if not _close(str(value), row[name]):
                        yield (
                            f"{_TABLE}, {row['group']}: {name} is {row[name]}, and {value} by "
                            f"{_SUMMARY}"
                        )


def _numbers(column: Any) -> Any:
    """Returns a column of texts as numbers, if it has only these."""
    import pandas as pd

    numbers = pd.to_numeric(column.replace("", math.nan), errors="coerce")
    return column if (numbers.isna() & (column != "")).any() else numbers


def _close(text: str, other: str) -> bool:
    """Returns whether two cells have the same number; an empty one is unknown, as nan is."""
    if text == other:
        return True
    try:
        one, two = float(text or "nan"), float(other or "nan")
    except ValueError:
        return False
    return math.isclose(one, two, rel_tol=_CLOSE) or (math.isnan(one) and math.isnan(two))


def _read(path: Path) -> list[dict[str, str]]:
    """Reads a table as it is written.

    Raises:
        BadInput: It is missing or damaged.
    """
    try:
        with require(path, _MAKE).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged(path, error, _MAKE) from None
    if any(None in row or None in row.values() for row in rows):
        raise damaged(path, ValueError("a line has too many or too few values"), _MAKE)
    return rows
