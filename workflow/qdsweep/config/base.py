"""The base of every config model: strict, immutable, documented."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A config model. It refuses unknown keys and values of another type.

    Every field carries a `description` that ends with its unit in brackets where it has one;
    `config/README.md` and the JSON schemas are generated from these descriptions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
