"""The user's metrics of a run, measured after each iteration. They never change its results."""

import contextlib
import copy
import logging
import math
import numbers
import reprlib
from collections import Counter
from typing import Any

import numpy as np

from qdsweep.config.experiment import Experiment
from qdsweep.config.own_code import load_function
from qdsweep.config.own_metric import own_metrics
from qdsweep.domains.base import Evaluation, copied
from qdsweep.experiment.state import State
from qdsweep.records.sources import code_of_metrics, sources_of

log = logging.getLogger("qdsweep")

# Methods that change an archive or draw from its generator, which changes the run's results.
_CHANGES = ("add", "add_single", "clear", "retessellate", "sample_elites")


class ReadOnly:
    """An archive that can only be read.

    Args:
        archive: The archive.
    """

    def __init__(self, archive: Any) -> None:
        self._archive = archive

    def __getattr__(self, name: str) -> Any:
        if name in _CHANGES or name.startswith("_"):  # `_rng`, `_store`
            raise AttributeError(f"a metric may not use {name}: it could change the run's results")
        found = getattr(self._archive, name)
        if not callable(found):
            return copied(found)
        return lambda *given, **named: copied(found(*given, **named))

    def __len__(self) -> int:
        return len(self._archive)

    def __iter__(self) -> Any:
        # Copies, because pyribs yields the archive's own arrays.
        return (copy.deepcopy(elite) for elite in self._archive)


class OwnMetrics:
    """The metrics that the key `metrics` of an experiment lists.

    Each function is called once per iteration, with pyribs' archive of the results (read-only) and
    all evaluations of the iteration. An error, or a value that is not finite, leaves an empty cell.
    The log reports the first time, and the number of times at the end.

    Args:
        experiment: The experiment.
        state: The state of its run. It keeps the evaluations of the current iteration, because a
            run may be saved between two batches.

    Attributes:
        sources: The files of their code, for summary.json; see `sources_of`.
        code: The code of each, for the record of the attempt; see `code_of_metrics`.

    Raises:
        BadInput: A module or function is missing.
    """

    def __init__(self, experiment: Experiment, state: State) -> None:
        self._wanted = own_metrics(experiment.metrics)
        self._functions = {own.function: load_function(own.function) for own in self._wanted}
        self.sources = sources_of(self._functions)
        self.code = code_of_metrics({own.column: own.function for own in self._wanted})
        self._state = state
        self._failed: Counter[str] = Counter()

    @property
    def columns(self) -> list[str]:
        """The columns of the metrics in metrics.csv."""
        return [own.column for own in self._wanted]

    def told(self, evaluation: Evaluation) -> None:
        """Keeps the evaluations of a batch."""
        if self._wanted:
            named = evaluation.objective, evaluation.measures, evaluation.fields
            self._state.told.append(Evaluation(*named))

    def measure(self) -> dict[str, float | None]:
        """Returns the values of the iteration that has just ended, None for an empty cell."""
        if not self._state.told:
            return {}
        archive = self._state.algorithm.archive
        view = ReadOnly(getattr(archive, "ribs_archive", archive))
        results = {
            name: self._call(name, view, _joined(self._state.told)) for name in self._functions
        }
        self._state.told = []
        return {own.column: self._value(own.column, results[own.function]) for own in self._wanted}

    def report(self) -> None:
        """Logs how often the cell of each column was empty."""
        for column, times in self._failed.items():
            log.warning("the metric %s has %d empty cell(s) in this attempt", column, times)

    def _call(self, name: str, archive: ReadOnly, evaluation: Evaluation) -> Any:
        try:
            return self._functions[name](archive, evaluation)
        except (Exception, SystemExit) as error:
            return error

    def _value(self, column: str, result: Any) -> float | None:
        value = of_column(column, result)
        if (number := finite_value(value)) is not None:
            return number
        self._failed[column] += 1
        if self._failed[column] == 1:
            failed = isinstance(value, BaseException)
            raised, shown = f"raised {type(value).__name__}: {value}", reprlib.repr(value)
            log.warning(
                "the metric %s %s: its cell is empty, also whenever this happens again",
                column,
                raised if failed else f"returns no finite number: {shown}",
                exc_info=value if failed and value.__traceback__ else None,
            )
        return None


def of_column(column: str, result: Any) -> Any:
    """Returns the value of one metric in the result of its function."""
    if isinstance(result, dict):
        result = result.get(column, KeyError(f"{column} is not in {list(result)}"))
    return result.item() if isinstance(result, np.ndarray) and result.ndim == 0 else result


def finite_value(value: Any) -> float | None:
    """Returns a finite real number as a float, None for anything else."""
    with contextlib.suppress(OverflowError):  # a whole number may be too large for a float
        if isinstance(value, numbers.Real) and math.isfinite(value):
            return float(value)
    return None


def _joined(batches: list[Evaluation]) -> Evaluation:
    """Returns a copy of the evaluations of all batches of an iteration as one."""
    return Evaluation(
        np.concatenate([batch.objective for batch in batches]),
        np.concatenate([batch.measures for batch in batches]),
        {name: np.concatenate([b.fields[name] for b in batches]) for name in batches[0].fields},
    )
