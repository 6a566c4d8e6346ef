"""Contacts with the floor in MuJoCo's environments."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from qdsweep.config import domain as config
from qdsweep.errors import BadInput

FLOOR = "floor"


def make_ground(env: gym.Env, task: config.Gymnasium) -> Callable[[gym.Env], frozenset[str]] | None:
    """Makes the function that finds which geoms named by measures touch the floor.

    Args:
        env: An environment of the task.
        task: The settings.

    Returns:
        A function from an environment of the task to names; None if no measure needs it.

    Raises:
        BadInput: The environment is not MuJoCo's, or has no such geom.
    """
    nothing = frozenset[str]()
    wanted = [measure.geom for measure in task.measures if measure.geom is not None]
    if not wanted:
        return None
    model: Any = getattr(env.unwrapped, "model", None)
    if not hasattr(model, "ngeom"):
        raise BadInput(f"domain.measures: contact is only known in MuJoCo's tasks, not {task.env}")
    names = {number: model.geom(number).name for number in range(model.ngeom)}
    for name in (FLOOR, *wanted):
        if name not in names.values():
            raise BadInput(
                f"domain.measures: {task.env} has no geom {name!r}; its geoms: "
                f"{', '.join(names.values())}"
            )
    (floor,) = (number for number, name in names.items() if name == FLOOR)

    def touching(env: Any) -> frozenset[str]:
        data = env.unwrapped.data
        if not data.ncon:
            return nothing
        pairs = data.contact.geom.tolist()
        return frozenset(names[a if b == floor else b] for a, b in pairs if floor in (a, b))

    return touching
