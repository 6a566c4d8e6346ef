"""Experiments that tests of the config compose, and what is wrong with some."""

from typing import Any

from support import REPO

CONFIG = REPO / "config"


# Small and complete: what the tests change one thing of.
BASE: dict[str, Any] = {
    "domain": {"preset": "lp_sphere", "solution_dim": 10},
    "algorithm": "cma_me",
    "archive": {"dims": [5, 5]},
    "iterations": 3,
}


def presets(kind: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG / kind).glob("*.yaml"))


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with changed keys; None removes one."""
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def emitter(**keys: Any) -> dict[str, Any]:
    return {"archive": {"type": "grid"}, "emitters": [keys]}


def wrong(message: str, source: str, parts: list[str]) -> None:
    for part in [source, *parts]:
        assert any(option in message for option in part.split("|")), f"{part!r} not in:\n{message}"
    assert "Traceback" not in message and "\n\n" not in message
