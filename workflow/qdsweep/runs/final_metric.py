"""A user's metric of a run's final archive, by the current code of the metric."""

from typing import Any

from qdsweep.config.own_code import load_function
from qdsweep.experiment.own_metrics import ReadOnly, finite_value, of_column
from qdsweep.metrics import Metric
from qdsweep.runs.load import Run


class _Unknown:
    """The evaluations of an iteration that has ended: no file keeps them."""

    def __init__(self) -> None:
        self.is_asked = False

    def _ask(self, *_: object) -> Any:
        self.is_asked = True
        raise AttributeError("the evaluations of an earlier iteration are not kept")

    __getattr__ = __iter__ = __len__ = __getitem__ = __bool__ = _ask


def measure_archive(run: Run, metric: Metric) -> float | None:
    """Measures the final archive of a run by the current code of a metric.

    Args:
        run: The run, finished or a snapshot.
        metric: One of the user's metrics.

    Returns:
        Its value. None where the metric has no value, also asks for evaluations, or needs an
        archive of a class that qdsweep cannot rebuild.
    """
    evaluation: Any = _Unknown()
    try:
        if "class" in run.summary["archive"]:  # the user's own
            return None
        result = load_function(metric.function)(ReadOnly(run.archive), evaluation)
    except (Exception, SystemExit):
        return None
    return None if evaluation.is_asked else finite_value(of_column(metric.name, result))
