"""Families of algorithms: pyribs' parts without a `type`, any other by its own."""

from typing import Literal

from qdsweep.config.algorithm import Composition
from qdsweep.config.base import Model
from qdsweep.config.keys import key_paths


class Other(Model):
    type: Literal["other"]
    width: int = 1


def test_a_union_of_families_has_the_keys_of_the_one_that_is_meant():
    def keys(data: object) -> set[object]:
        return {path[-1] for path, _ in key_paths(Composition | Other, data)}

    assert keys({"type": "other"}) == {"type", "width"}
    assert "add_mode" in keys({"name": "cma_me"}) and "width" not in keys({"name": "cma_me"})
