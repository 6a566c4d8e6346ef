"""The evaluator of a worker of any engine, which keeps one domain alive. It does not import ribs.

The output of a worker is kept in a file and sent to the run's log.
"""

import contextlib
import faulthandler
import io
import logging
import os
import socket
import sys
from pathlib import Path
from typing import NamedTuple

from qdsweep.config.domain import DomainSettings as DomainConfig
from qdsweep.domains import make_domain
from qdsweep.engines.batch import Answer, Batch, Failure, Outcome
from qdsweep.engines.failures import EvaluationFailed, UnfitWorker, evaluate_safely
from qdsweep.errors import BadInput
from qdsweep.host.machine import require_baseline, settings
from qdsweep.versions import __version__, installed_versions

# At most this many lines per part reach the run's log. The file has all of them.
LIMIT = 20
# A line is cut after this many characters.
_LONGEST = 2000
# A worker's file of this size becomes its earlier file, which replaces the one before it [B].
_MAX_BYTES = 5_000_000


class WorkerLog(io.TextIOBase):
    """A text stream that writes lines with a prefix to a file, and remembers them.

    Args:
        path: The file; None for a worker that cannot write there.
        prefix: The start of each line of the file, the worker's name.
    """

    def __init__(self, path: Path | None, prefix: str) -> None:
        self.path = path or Path(os.devnull)
        self.prefix = prefix
        self._unfinished = ""
        self._lines: list[str] = []
        self._has_output = False  # that of this process
        self._open()

    def _open(self) -> None:
        self._file = self.path.open("a", buffering=1, encoding="utf-8", errors="backslashreplace")
        if self._has_output:
            for descriptor in (1, 2):
                os.dup2(self._file.fileno(), descriptor)
            faulthandler.enable(self._file)

    def _rotate(self) -> None:
        """Keeps the newest lines of a file that has become too large."""
        if os.fstat(self._file.fileno()).st_size >= _MAX_BYTES:
            with contextlib.suppress(OSError):
                self.path.replace(self.path.with_suffix(f".1{self.path.suffix}"))
                earlier = self._file
                self._open()
                earlier.close()

    def take_over_output(self) -> None:
        """Redirects print, logging, warnings and the output of C libraries to this log."""
        self._has_output = True
        self._open()
        sys.stdout = sys.stderr = self
        root = logging.getLogger()
        root.handlers[:] = [logging.StreamHandler(self)]
        root.handlers[0].setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        root.setLevel(logging.INFO)

    def write(self, text: str) -> int:
        """Receives text, and writes the complete lines."""
        *lines, self._unfinished = (self._unfinished + text.replace("\r", "\n")).split("\n")
        if len(self._unfinished) > _LONGEST:
            lines, self._unfinished = [*lines, self._unfinished], ""
        lines = [line[:_LONGEST] for line in lines]
        for line in lines:
            self._file.write(f"{self.prefix} {line}\n")
            self._rotate()
        self._lines += lines[: LIMIT + 1]
        return len(text)

    def take(self) -> list[str]:
        """Returns the lines since the last call for the run's log, at most `LIMIT` of them."""
        self._rotate()  # C libraries write into the file itself
        lines, self._lines = self._lines, []
        if len(lines) > LIMIT:
            lines[LIMIT:] = [f"... more in {self.path}"]
        return lines


class Order(NamedTuple):
    """The settings of all workers of a run.

    Attributes:
        domain: The domain's config, from which each worker makes its domain.
        objective_on_failure: See `evaluate_safely`.
        version: The version of qdsweep.
        versions: Library -> version, which all workers must have.
        settings: The CPU settings of the run, which all workers must have.
        directory: The main process's working directory, for the user's plug-ins.
        logs: The folder of the workers' logs; None to leave their output as it is.
        hides_gpus: Whether workers see no GPU, because the main process computes on it.
    """

    domain: DomainConfig
    objective_on_failure: float | None
    version: str
    versions: dict[str, str]
    settings: dict[str, str]
    directory: str
    logs: str | None
    hides_gpus: bool = False


class Evaluator:
    """The domain of a worker process, which works for only one run.

    Args:
        order: The settings of all workers.
        name: The worker's name in the run's log.

    Attributes:
        name: The worker's name, by default host and process.
        problem: The reason why it cannot work for the run; empty if it can.
    """

    def __init__(self, order: Order, name: str | None = None) -> None:
        self.name = name or f"process {os.getpid()} on {socket.gethostname()}"
        self._order = order
        self._log: WorkerLog | None = None
        self._is_new = True
        if order.hides_gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if order.logs is not None:
            self._log = WorkerLog(_log_file(order.logs), self.name)
            self._log.take_over_output()
        self.problem = _difference(order)
        if self.problem:
            return
        try:
            self._domain = make_domain(order.domain)
        except Exception as error:
            self.problem = f"cannot make the domain: {type(error).__name__}: {error}"
            logging.exception("the domain cannot be made in this worker")

    def evaluate(self, part: Batch, first: int) -> Answer:
        """Evaluates a part of a batch.

        Args:
            part: The rows.
            first: The row of the whole batch at which they start.

        Raises:
            UnfitWorker: The worker cannot work for the run, or its libraries do not keep the
                run's CPU settings.
        """
        if self.problem:
            raise UnfitWorker(f"{self.name}: {self.problem}")
        result: Outcome | Failure
        try:
            result = evaluate_safely(self._domain, part, first, self._order.objective_on_failure)
        except EvaluationFailed as error:
            result = error.failure
        if self._is_new:
            self._is_new = False
            self._require_baseline()
        return Answer(result, self._log.take() if self._log is not None else [], self.name)

    def _require_baseline(self) -> None:
        """Refuses libraries that the domain has imported only during its first evaluation."""
        try:
            require_baseline()
        except BadInput as error:
            self.problem = str(error)
            raise UnfitWorker(f"{self.name}: {self.problem}") from None


def _difference(order: Order) -> str:
    """Returns the settings in which this process differs from the run; empty if none."""
    has = installed_versions(order.versions) | settings() | {"qdsweep": __version__}
    wrong = [
        f"{what} {has.get(what)} (the run has {value})"
        for what, value in ({"qdsweep": order.version} | order.versions | order.settings).items()
        if has.get(what) != value
    ]
    return f"it would give other results: {', '.join(wrong)}" if wrong else ""


def _log_file(folder: str) -> Path | None:
    """Returns a worker's log file; None if it cannot write in the run's folder."""
    if not os.access(folder, os.W_OK):
        return None
    return Path(folder, f"{socket.gethostname()}-{os.getpid()}.log")
