"""A user's metric: `module:function`, a column of metrics.csv."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from qdsweep.config.model import TARGET, Model
from qdsweep.metrics import Metric


class OwnMetric(Model):
    """A number that a function of the user's measures after each iteration."""

    function: str = Field(
        pattern=TARGET,
        description="`module:function`, from config/plugins/ or any importable module",
    )
    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_]\w*$",
        description=(
            "its column; if the function returns a dict, the key of its number; null: the name of "
            "the function"
        ),
    )
    label: str | None = Field(
        default=None, description="its name in tables and figures; null: derived from `name`"
    )
    smaller_is_better: bool = Field(
        default=False, description="whether the smallest mean is the best"
    )

    @property
    def column(self) -> str:
        """Its column in metrics.csv."""
        return self.name or self.function.partition(":")[2]

    @property
    def metric(self) -> Metric:
        """Its declaration for tables and figures."""
        words = self.column.replace("_", " ").strip()
        return Metric(
            self.column,
            self.label or words[:1].upper() + words[1:],
            ranks=True,
            main=True,
            curve=True,
            from_zero=False,
            smaller=self.smaller_is_better,
            function=self.function,
        )


def _check(metrics: list[str | OwnMetric]) -> list[str | OwnMetric]:
    columns: set[str] = set()
    for metric in own_metrics(metrics):
        name = metric.column
        if name in columns:
            raise ValueError(
                f"two metrics would be the column {name}: give one of them another name, "
                f'{{function: "{metric.function}", name: other_{name}}}'
            )
        columns.add(name)
    return metrics


OwnMetricSettings = Annotated[
    list[Annotated[str, Field(pattern=TARGET)] | OwnMetric], AfterValidator(_check)
]


def own_metrics(metrics: Iterable[str | OwnMetric]) -> list[OwnMetric]:
    """Returns the metrics of the key `metrics`, with those given as text filled in."""
    return [OwnMetric(function=metric) if isinstance(metric, str) else metric for metric in metrics]
