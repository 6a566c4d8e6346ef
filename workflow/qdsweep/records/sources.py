"""results/sources/: the user's code as it was at each start of a sweep that uses it.

A run's id follows the code of its plug-ins, with its type annotations. Before 0.2 it followed the
whole file, comments too. The files that are kept here find such runs, and runs whose code differs
from the current one only in annotations. They also show which file has changed since, and
`qdsweep export` packs them. Runs of a preset's former name are found here, too.
"""

import contextlib
import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typing_extensions import TypedDict

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.family import FORMER
from qdsweep.config.own_code import (
    find_source,
    needed_files,
    read_source,
    source_hash,
    source_paths,
)
from qdsweep.config.source import code_hash, file_hash, untyped_hash
from qdsweep.errors import BadInput
from qdsweep.files import naming, read_folder, temporary_name
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.status import (
    COMPUTED,
    fingerprint_of,
    read_status,
    require_fingerprint,
)
from qdsweep.sweep.ids import Identity, identify, identify_seeds

_PLUGINS = "config/plugins/"
# Gives the source of a `module:Class`, at one time.
Code = Callable[[str], bytes]


def sources_of(targets: Iterable[str]) -> dict[str, str]:
    """Returns the record `sources`: the code that a run uses and that its id does not cover.

    Args:
        targets: The `module:name` of that code.

    Returns:
        File, relative to the working directory, -> hash of its code (see `code_hash`). A module
        that is elsewhere has its own name.

    Raises:
        BadInput: There is no such module, or it is not Python.
    """
    return {
        source_name(target.partition(":")[0], find_source(target)): source_hash(target)
        for target in targets
    }


def source_name(module: str, source: Path) -> str:
    """Returns how a record names a module: its file in the working directory, else its name."""
    if source.is_relative_to(Path.cwd()):
        return source.relative_to(Path.cwd()).as_posix()
    return module


class Measured(TypedDict):
    """The code of a metric, which each attempt at a run records under the metric's column.

    Attributes:
        function: Its `module:function`.
        sha256: The hash of its module; see `source_hash`.
    """

    function: str
    sha256: str


def code_of_metrics(functions: Mapping[str, str]) -> dict[str, Measured]:
    """Returns the current code of metrics.

    Args:
        functions: Column -> `module:function`.

    Raises:
        BadInput: There is no such module, or it is not Python.
    """
    return {
        column: {"function": function, "sha256": source_hash(function)}
        for column, function in functions.items()
    }


def measured_otherwise(
    attempts: Iterable[Mapping[str, Any]], column: str, code: Measured, iterations: int
) -> list[bool]:
    """Returns in which iterations of a run other code than the given one measured a metric.

    Args:
        attempts: The attempts at the run. One of an earlier release has no record, and counts as
            one with the given code.
        column: The metric.
        code: Its code.
        iterations: Finished iterations of the run.

    Returns:
        A value for each iteration.
    """
    otherwise = [False] * iterations
    for attempt in attempts:
        recorded, start = attempt.get("metrics", {}).get(column, code), int(attempt.get("from", 0))
        otherwise[start:] = [_identity(recorded) != _identity(code)] * (iterations - start)
    return otherwise


def _identity(code: Measured) -> tuple[str, str]:
    """Returns the same for a function whose file has only moved."""
    return code["function"].partition(":")[2], code["sha256"]


def keep_sources(experiments: Iterable[Experiment], results: Results) -> None:
    """Copies the user's code, unless it is kept already; the newest folder is the current one.

    Args:
        experiments: Those that are about to be computed.
        results: The folder results/.
    """
    files = needed_files(
        sorted({name for experiment in experiments for name in experiment.own_code})
    )
    if not files:
        return
    folder = results.sources / _digest(files)
    if folder.exists():
        os.utime(folder)
    else:
        _write(files, folder)


def _digest(files: Mapping[str, bytes]) -> str:
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:10]


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes a folder whole or not at all."""
    torn = temporary_name(folder)
    try:
        torn.mkdir(parents=True)
        for name, content in files.items():
            path = torn / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with naming(path):
                path.write_bytes(content)
        torn.rename(folder)
    except OSError:
        shutil.rmtree(torn, ignore_errors=True)
        if not folder.exists():  # else another start was quicker
            raise


def kept_sources(results: Results) -> list[Path]:
    """Returns the folders of the code of earlier starts, the newest first."""
    folders = [path for path in results.sources.glob("*") if not path.name.startswith(".")]
    return sorted(folders, key=lambda path: -path.stat().st_mtime_ns)


def merge_sources(other: Results, results: Results) -> Iterator[Path]:
    """Copies the code that another results folder keeps, and yields the folders that are damaged.

    A copy has the time of its original, so that the code of the last start here stays the current
    one.
    """
    for source in reversed(kept_sources(other)):
        folder = results.sources / source.name
        if folder.exists():
            continue
        files = read_folder(source)
        if _digest(files) != source.name:
            yield source
            continue
        _write(files, folder)
        about = source.stat()
        os.utime(folder, ns=(about.st_atime_ns, about.st_mtime_ns))


def kept_code(folder: Path, targets: Iterable[str]) -> Code | None:
    """Returns the code of an earlier start; None where it has not all of these classes."""
    texts = {target: _kept(folder, target) for target in targets}
    known = {target: text for target, text in texts.items() if text is not None}
    return known.__getitem__ if len(known) == len(texts) else None


@functools.lru_cache(maxsize=1024)  # for each row of a sweep
def _kept(folder: Path, target: str) -> bytes | None:
    paths = (folder / name for name in source_paths(target))
    return next((path.read_bytes() for path in paths if path.is_file()), None)


def identities(
    experiment: Experiment, results: Results, code: Code = read_source, *, former: bool = True
) -> Iterator[Identity]:
    """Yields the identities that the run of an experiment may have, the current one first.

    Args:
        experiment: The experiment.
        results: The folder results/.
        code: The user's code that it means.
        former: Also those of runs that earlier releases computed in another way.
    """
    for form, of_seed in _identities(experiment, results, code):
        if former or form is experiment:
            yield of_seed(experiment.seed)


def _identities(
    experiment: Experiment, results: Results, code: Code
) -> Iterator[tuple[Experiment, Callable[[int], Identity]]]:
    """Yields them as functions of the seed, with the experiment that such a run computes."""
    names = [*_forms(experiment)]
    for form, named in names:
        yield form, identify_seeds(named, lambda target: code_hash(code(target)))
    targets = experiment.plugins
    if not targets:
        return
    seen = [next(_hashes(targets, code))]
    for files in chain([code], (kept for _, kept in _kept_codes(targets, results))):
        for hashes in () if changed(targets, files, code) else _hashes(targets, files):
            if hashes not in seen:
                seen.append(hashes)
                for form, named in names:
                    yield form, identify_seeds(named, hashes.__getitem__)


def _forms(experiment: Experiment) -> Iterator[tuple[Experiment, Experiment]]:
    """Yields an experiment as it is and was computed, each under its present and former name."""
    forms = [experiment]
    if experiment.domain.former is not None:
        forms.append(experiment.model_copy(update={"domain": experiment.domain.former}))
    for form in forms:
        yield form, form
        if form.algorithm.name in FORMER:
            name = {"name": FORMER[form.algorithm.name].name}
            named = form.algorithm.model_copy(update=name)
            yield form, form.model_copy(update={"algorithm": named})


def _kept_codes(targets: Iterable[str], results: Results) -> Iterator[tuple[Path, Code]]:
    """Yields folder and code of each earlier start that has these classes, the newest first."""
    for folder in kept_sources(results):
        code = kept_code(folder, targets)
        if code is not None:
            yield folder, code


def _hashes(targets: Iterable[str], code: Code) -> Iterator[dict[str, str]]:
    """Yields the hashes of classes that ids have: those of their code, then of their files."""
    for hash_of in (code_hash, file_hash):
        yield {target: hash_of(code(target)) for target in targets}


def finder(results: Results) -> Callable[[Experiment], Identity]:
    """Returns a quick `find_run` for many experiments.

    It reads the user's code once, and copies of an experiment with other seeds cost little.
    """
    code = functools.cache(read_source)
    settings: dict[tuple[int, ...], tuple[Experiment, Callable[[int], Identity]]] = {}

    def find(experiment: Experiment) -> Identity:
        key = experiment.setting  # valid as long as its first experiment is kept
        if key not in settings:
            settings[key] = experiment, _find_seeds(experiment, results, code)
        return settings[key][1](experiment.seed)

    return find


def find_run(experiment: Experiment, results: Results) -> Identity:
    """Returns the identity of a run: the one that results/ has, or else the current one."""
    return _find_seeds(experiment, results, read_source)(experiment.seed)


def require_own(identity: Identity, results: Results) -> str:
    """Returns the id of a run that is about to be planned.

    Raises:
        BadInput: The folder of this id has another experiment.
    """
    run = results.run(identity.id)
    known = fingerprint_of(run.state, read_status(run.state))
    require_fingerprint(run.path, known, identity.fingerprint)
    return identity.id


def _find_seeds(experiment: Experiment, results: Results, code: Code) -> Callable[[int], Identity]:
    """Returns the identities of an experiment's runs by their seed; see `find_run`."""
    known = _identities(experiment, results, code)
    _, now = next(known)
    older = functools.cache(lambda: [of_seed for _, of_seed in known])
    has_older = bool(experiment.plugins) or len([*_forms(experiment)]) > 1

    def find(seed: int) -> Identity:
        run = now(seed)
        if not has_older or results.run(run.id).state.path.exists():
            return run
        others = (old(seed) for old in older())
        return next((old for old in others if results.run(old.id).state.path.exists()), run)

    return find


def replaced(experiment: Experiment, results: Results, code: Code) -> Path | None:
    """Finds the other user code with which a run of an experiment was computed.

    Args:
        experiment: The experiment.
        results: The folder results/.
        code: The user's code as it is now.

    Returns:
        The folder of that code; None where there is no such run.
    """
    targets = experiment.plugins
    for folder, other in _kept_codes(targets, results) if targets else ():
        if not changed(targets, code, other):
            continue
        for identity in identities(experiment, results, other):
            if read_status(results.run(identity.id).state).status in COMPUTED:
                return folder
    return None


def code_of_run(
    run: str,
    experiment: Experiment,
    results: Results,
    record: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Returns the user's code that a run was made with: as it is now, or as it was kept.

    Args:
        run: The run's id.
        experiment: Its experiment.
        results: The folder results/.
        record: Its record `sources`. Code that imports these files as they were comes first.

    Returns:
        Path inside config/plugins/ -> content; empty where that code is lost.
    """
    imported = {
        name.removeprefix(_PLUGINS): known
        for name, known in record.items()
        if name.startswith(_PLUGINS) and name.endswith(".py")
    }
    found: dict[str, bytes] = {}
    for files in _states(experiment.own_code, results):
        texts = {
            target: next((files[name] for name in source_paths(target) if name in files), None)
            for target in experiment.plugins
        }
        code = {target: text for target, text in texts.items() if text is not None}
        if len(code) == len(texts) and _has_made(run, experiment, code.__getitem__):
            if all(is_as_recorded(files.get(name), known) for name, known in imported.items()):
                return files
            found = found or files
    return found


def is_as_recorded(content: bytes | None, known: str) -> bool:
    """Returns whether a file has the hash of a record: that of its code, or of its bytes."""
    if content is None:
        return False
    if known == file_hash(content):
        return True
    with contextlib.suppress(SyntaxError, ValueError):
        return known == code_hash(content)
    return False


def _has_made(run: str, experiment: Experiment, code: Code) -> bool:
    """Returns whether the id of a run is that of an experiment with exactly this code."""
    hashes = [*_hashes(experiment.plugins, code)]
    forms = (form for form, _ in _forms(experiment))
    known = (identify(form, own.__getitem__) for form in forms for own in hashes)
    start = run.rsplit("-", 1)[-1]
    return any(identity.fingerprint.startswith(start) for identity in known)


def _states(targets: list[str], results: Results) -> Iterator[dict[str, bytes]]:
    """Yields the user's code as it is now, and as it was at each start, the last one first."""
    with contextlib.suppress(BadInput):  # a file is gone
        yield needed_files(targets)
    yield from map(read_folder, kept_sources(results))


def changed(targets: Iterable[str], code: Code, other: Code) -> list[str]:
    """Returns those classes whose code may give other results at two times."""
    return [
        target for target in targets if untyped_hash(code(target)) != untyped_hash(other(target))
    ]


def changed_files(targets: Iterable[str], previous: Code | None) -> tuple[Path, ...]:
    """Returns the files that have changed since; all files if the previous code is unknown."""
    others = changed(targets, read_source, previous) if previous else targets
    return tuple(sorted({find_source(target) for target in others}))


def changed_since(run: RunDir) -> tuple[Path, ...]:
    """Returns the files of the user's code that have changed since a run was started.

    They are unknown, and so none, where the experiment or the current code cannot be read.
    """
    results = Results(run.path.parent.parent)
    with contextlib.suppress(BadInput):
        experiment = compose(str(run.state.config))
        targets = experiment.plugins
        if identity_in(experiment, run).id != run.name:
            kept = (code for _, code in _kept_codes(targets, results))
            made = (code for code in kept if _has_made(run.name, experiment, code))
            return changed_files(targets, next(made, None))
    return ()


def identity_in(experiment: Experiment, run: RunDir) -> Identity:
    """Returns the identity of an experiment in the folder of its run.

    The current one, where the folder is that of another run.
    """
    return form_in(experiment, run)[1]


def form_in(experiment: Experiment, run: RunDir) -> tuple[Experiment, Identity]:
    """Returns an experiment as its run computes it, and the run's identity; see `identity_in`."""
    results, seed = Results(run.path.parent.parent), experiment.seed
    known = _identities(experiment, results, read_source)
    now, *older = ((form, of_seed(seed)) for form, of_seed in known)
    if not older:
        return now
    names = {run.name, read_status(run.state).id}
    return next((each for each in (now, *older) if each[1].id in names), now)
