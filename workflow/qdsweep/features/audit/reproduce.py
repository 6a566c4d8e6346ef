"""Computes a sample of a package again: unpacked, in an environment of its lock file or another."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import qdsweep
from qdsweep.engines.allocation import PYTHON
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.features import member
from qdsweep.features.audit.judgement import require_runs
from qdsweep.features.audit.package import SUMS, unpack_package
from qdsweep.files import naming
from qdsweep.host.process import die_with_parent, ending
from qdsweep.host.signals import SIGNALS
from qdsweep.text import listed, plural, visible

LOCK = "requirements.lock"
# Time for the runs to save their state, before their process is killed [s].
_SAVING = 30


def reproduce(
    package: Path,
    words: Sequence[str],
    show: Callable[[str], None],
    *,
    runs: Sequence[str],
    here: bool,
    image: str | None,
    yes: bool,
) -> int:
    """Checks a package, and starts `words` in its environment.

    All is done in a temporary folder, which is removed.

    Args:
        package: The zip, or a folder that it was unpacked into.
        words: Options of `qdsweep reproduce`, for the process in the environment.
        show: Prints a line.
        runs: The ids of the runs among these options, which are checked first.
        here: Use the environment of this process.
        image: Use this image.
        yes: Do not ask before code of the package is run.

    Returns:
        The exit code of that process, or 1 if the answer is no.

    Raises:
        BadInput: The package is damaged or hostile, it has no such run, its lock file cannot be
            installed, or there is no terminal to ask.
    """
    with _temporary_folder() as folder:
        unpacked = folder / "package"
        files = unpack_package(package, unpacked, show)
        show(f"{package}: {plural(len(files) - 1, 'file')} agree with {SUMS}")
        if runs:
            require_runs(unpacked, runs)
        is_fresh = not (here or image)
        if not _may_run(files, show, yes, is_fresh=is_fresh):
            show("nothing was computed")
            return 1
        if image:
            start = member("image.enter:in_image", "--image")(image, folder, unpacked)
        elif here:
            start = PYTHON
        else:
            for variable in ("PYTHONPATH", "PYTHONHOME"):  # libraries of another environment
                os.environ.pop(variable, None)
            start = [_fresh_python(unpacked / LOCK, folder / "environment", show), *PYTHON[1:]]
        (folder / "computed").mkdir()
        command = [*start, "reproduce", ".", "--unpacked", str(folder / "computed"), *words]
        code, _ = _run(command, unpacked)
    if code < 0:
        raise QdsweepError(f"the process that computed the runs has ended by {ending(code)}")
    return code


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with naming(Path("TMPDIR")):
        folder = Path(tempfile.mkdtemp(prefix="qdsweep-reproduce-"))
    try:
        yield folder.resolve()
    finally:
        for number in SIGNALS:  # a second Ctrl-C must not leave half of it
            signal.signal(number, signal.SIG_IGN)
        shutil.rmtree(folder)


def _may_run(
    files: Iterable[str], show: Callable[[str], None], yes: bool, *, is_fresh: bool
) -> bool:
    """Names the code of a package, and asks whether to run it.

    Only a fresh environment has the packages of the lock file.
    """
    code = sorted(
        name for name in files if name.startswith("config/plugins/") or name[-3:] == ".py"
    )
    code += [f"the packages of {LOCK}"] * is_fresh
    names = visible(listed(code)) or "no file, but what its configs name"
    show(
        f"It runs code of its author under your account, and nothing confines it: {names}. "
        "Checksums do not show who made it. --image FILE runs it in an image"
    )
    if yes:
        return True
    if not sys.stdin.isatty():
        raise BadInput("there is no terminal to ask whether to run it; add --yes to run it")
    try:
        return input("Run it? [y/N] ").lower() == "y"
    except EOFError:
        return False


def _fresh_python(lock: Path, folder: Path, show: Callable[[str], None]) -> str:
    """Makes an environment with the packages of a lock file and this qdsweep.

    Returns:
        Its Python.

    Raises:
        BadInput: There is no lock file, or it cannot be installed.
    """
    if not lock.is_file():
        raise BadInput(f"the package has no {LOCK}: add --here to compute it in this environment")
    show(f"A fresh environment gets the packages of {LOCK}, which takes minutes (--here: this one)")
    python = str(folder / "bin/python")
    install = ("install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps")
    for words in (
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", *install, "--require-hashes", "-r", str(lock)],
    ):
        code, error = _run(words, folder.parent, subprocess.PIPE)
        if code:
            lines = [line for line in error.splitlines() if line.strip()]
            raise BadInput(
                f"{LOCK}: no environment can be made of it ({' '.join(lines[-2:])}): add --here to "
                "compute it in this environment, or --image FILE"
            )
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "qdsweep").symlink_to(Path(qdsweep.__file__).resolve().parent)
    return python


def _run(words: Sequence[str], folder: Path, errors: int | None = None) -> tuple[int, str]:
    """Runs a command in a folder; returns its exit code, and its errors if they are in a pipe.

    If this process is interrupted, the command is ended first.
    """
    process = subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stderr=errors,
        text=True,
        preexec_fn=partial(die_with_parent, signal.SIGTERM, os.getpid()),
    )
    try:
        _, error = process.communicate()
    except BaseException:
        process.terminate()
        try:
            process.wait(_SAVING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    return process.returncode, error or ""
