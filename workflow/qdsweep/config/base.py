"""The base of every config model: strict, immutable, documented."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict


class Model(BaseModel):
    """A config model. It refuses unknown keys and values of another type.

    Every field has a `description`, which ends with the unit in brackets if there is one.
    `config/README.md` and the JSON schemas are generated from these descriptions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def ordered(interval: tuple[float, float]) -> tuple[float, float]:
    """Refuses an interval whose lower end is not below its upper end."""
    if interval[0] >= interval[1]:
        raise ValueError(f"the lower end {interval[0]} is not below the upper end {interval[1]}")
    return interval


Interval = Annotated[tuple[float, float], AfterValidator(ordered)]


TARGET = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
"""What a `type` looks like that names something of the user's: `module:name`."""


def own_or_type(value: Any) -> str:
    """Returns the tag of a part with a `type`: the type, or "plugin" for one of the user's."""
    name = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "plugin" if isinstance(name, str) and ":" in name else str(name)
