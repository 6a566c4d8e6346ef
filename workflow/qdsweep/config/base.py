"""The base of every config model: strict, immutable, documented."""

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue

# `json_schema_extra` of a key that a schedule can change while a run lasts: the change acts at
# once, or from the next restart of each emitter on. A key without it never changes.
NOW: dict[str, JsonValue] = {"mid_run": "now"}
RESTART: dict[str, JsonValue] = {"mid_run": "restart"}


class Model(BaseModel):
    """A config model. It refuses unknown keys and values of another type.

    Every field has a `description`, which ends with the unit in brackets if there is one.
    `config/README.md` and the JSON schemas are generated from these descriptions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    # Why its keys never change while a run lasts, but those that say `mid_run`.
    fixed: ClassVar[str] = "it is decided when a run starts"

    @classmethod
    def mid_run(cls, key: str) -> str:
        """Returns when a change of a key in mid-run acts: now, restart, or never."""
        extra = cls.model_fields[key].json_schema_extra
        return str(extra["mid_run"]) if isinstance(extra, dict) and "mid_run" in extra else "never"

    def why_fixed(self, key: str) -> str:
        """Returns why a key cannot change while a run lasts; empty where it can."""
        return self.fixed if self.mid_run(key) == "never" else ""


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
