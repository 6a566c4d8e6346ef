"""Contacts of a body with the floor, in environments of MuJoCo and PyBullet."""

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym

from qdsweep.config import domain as config
from qdsweep.errors import BadInput

FLOOR = "floor"
# Returns the names of the parts that touch the floor, among those that measures name.
Ground = Callable[[gym.Env], frozenset[str]]


def make_ground(env: gym.Env, task: config.Gymnasium) -> Ground | None:
    """Makes the function that finds which parts named by measures touch the floor.

    Args:
        env: An environment of the task.
        task: The settings.

    Returns:
        A function from an environment of the task to names. They are MuJoCo's geoms, or parts in
        the `foot_list` of PyBullet's robot. None if no measure needs it.

    Raises:
        BadInput: The environment does not report contacts, or has no such part.
    """
    geoms = [measure.geom for measure in task.measures if measure.geom is not None]
    if not geoms:
        return None
    bare: Any = env.unwrapped
    if hasattr(getattr(bare, "model", None), "ngeom"):
        return _geoms(bare.model, [FLOOR, *geoms], task.env)
    if hasattr(getattr(bare, "robot", None), "foot_list"):
        _require(geoms, bare.robot.foot_list, f"{task.env}: robot.foot_list has no", "it has")
        return _feet
    raise BadInput(
        "domain.measures: only MuJoCo's tasks and PyBullet's robots with feet report contacts, "
        f"{task.env} does not"
    )


def _geoms(model: Any, geoms: list[str], env_id: str) -> Ground:
    nothing = frozenset[str]()
    names = {number: model.geom(number).name for number in range(model.ngeom)}
    _require(geoms, names.values(), f"{env_id} has no geom", "its geoms")
    (floor,) = (number for number, name in names.items() if name == FLOOR)

    def touching(env: Any) -> frozenset[str]:
        data = env.unwrapped.data
        if not data.ncon:
            return nothing
        pairs = data.contact.geom.tolist()
        return frozenset(names[a if b == floor else b] for a, b in pairs if floor in (a, b))

    return touching


def _feet(env: Any) -> frozenset[str]:
    robot = env.unwrapped.robot
    touching = zip(robot.foot_list, robot.feet_contact, strict=True)
    return frozenset(name for name, touches in touching if touches)


def _require(geoms: Iterable[str], known: Iterable[str], lacks: str, label: str) -> None:
    for name in geoms:
        if name not in known:
            raise BadInput(f"domain.measures: {lacks} {name!r}; {label}: {', '.join(known)}")
