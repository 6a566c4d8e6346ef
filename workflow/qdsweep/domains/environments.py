"""Finds environments of gymnasium by their ids, makes them, and resets them silently."""

import copy
import ctypes
import difflib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from qdsweep.config.domain import Wrapper
from qdsweep.config.own_code import load_class
from qdsweep.config.requirements import remedy, require_package
from qdsweep.domains.base import copied
from qdsweep.errors import BadInput
from qdsweep.text import nearest

_BULLET = "pybullet_envs_gymnasium"
# The last one makes the environments: gymnasium.make, or a camera while it films.
makers: list[Callable[..., gym.Env]] = [gym.make]


def find_spec(env_id: str) -> EnvSpec:
    """Finds a registered environment.

    Args:
        env_id: `Name-vN`, or `module:Name-vN` where importing the module registers it.

    Raises:
        BadInput: There is no such module or environment. The message has similar names.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        _import(env_id, module)
    try:
        return gym.spec(name)
    except (gym.error.Error, ImportError) as error:
        near = difflib.get_close_matches(name, list(gym.registry), n=3, cutoff=0.5)
        hint = f" Near: {', '.join(near)}." if near else ""
        raise BadInput(
            f"domain.env = {env_id!r}: there is no such environment.{hint} {error}"
        ) from error


def _import(env_id: str, module: str) -> None:
    try:
        require_package(env_id)  # it also looks in config/plugins/
    except BadInput as error:
        raise BadInput(f"domain.env = {error}") from None
    try:
        import_module(module)
        if module == _BULLET:
            with _silent("stderr"):  # it prints its build time
                import_module("pybullet")
    except (Exception, SystemExit) as error:
        raise BadInput(
            f"domain.env = {env_id!r}: {module} cannot be imported: "
            f"{type(error).__name__}: {error}{remedy(module)}"
        ) from error


def make_env(
    spec: EnvSpec,
    kwargs: dict[str, Any],
    wrappers: Sequence[Wrapper] = (),
    limit: int | None = -1,
) -> gym.Env:
    """Makes an environment without gymnasium's checks.

    The wrappers that check the order of calls and the spaces cost time and change no result.

    Args:
        spec: The environment.
        kwargs: Its arguments.
        wrappers: Its wrappers, the innermost first.
        limit: The longest episode [steps]; None for its own limit, -1 where the caller applies it.

    Raises:
        BadInput: A dependency or a wrapper is missing, or the arguments do not fit.
    """
    bare = copy.copy(spec)
    bare.order_enforce = False
    try:
        own = copied(kwargs)
        env = makers[-1](bare, max_episode_steps=limit, disable_env_checker=True, **own)
    except (gym.error.DependencyNotInstalled, ImportError) as error:
        raise BadInput(
            f"domain.env = {spec.id!r}: a package that it needs is missing: {error}"
            f"{remedy(str(spec.entry_point))}"
        ) from error
    except (gym.error.Error, TypeError) as error:
        raise BadInput(
            f"domain.env = {spec.id!r} cannot be made with env_kwargs = {kwargs}: {error}"
        ) from error
    for number, wrapper in enumerate(wrappers):
        try:
            env = _wrapper(wrapper.type)(env, **copied(wrapper.arguments))
        except BadInput as error:
            raise BadInput(f"domain.wrappers.{number} = {error}") from None
        except Exception as error:
            raise BadInput(
                f"domain.wrappers.{number} = {wrapper.type} cannot wrap {spec.id} with the "
                f"arguments {wrapper.arguments}: {type(error).__name__}: {error}"
            ) from error
    return env


def _wrapper(name: str) -> Callable[..., gym.Env]:
    if ":" in name:
        return load_class(name)
    if name not in gym.wrappers.__all__:
        near = nearest(name, gym.wrappers.__all__)
        raise BadInput(f"{name!r}: {near}gymnasium.wrappers has: {', '.join(gym.wrappers.__all__)}")
    wrapper: Callable[..., gym.Env] = getattr(gym.wrappers, name)
    return wrapper


def make_reset(spec: EnvSpec) -> Callable[[gym.Env, int], Any]:
    """Makes the function that resets an environment with a seed, and returns its observation.

    Args:
        spec: The environment.
    """

    def reset(env: gym.Env, seed: int) -> Any:
        return env.reset(seed=seed)[0]

    def quiet_reset(env: gym.Env, seed: int) -> Any:
        with _silent("stdout"):  # PyBullet prints `argv[0]=` twice at each reset
            return reset(env, seed)

    return quiet_reset if str(spec.entry_point).startswith(_BULLET) else reset


@contextmanager
def _silent(stream: str) -> Iterator[None]:
    """Drops the output of C code to stdout or stderr; Python's own output is not affected."""
    written = ctypes.c_void_p.in_dll(_libc(), stream)
    original, written.value = written.value, _nowhere()
    try:
        yield
    finally:
        written.value = original


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@functools.cache
def _nowhere() -> int | None:
    library = _libc()
    library.fopen.restype = ctypes.c_void_p
    nowhere: int | None = library.fopen(b"/dev/null", b"w")
    return nowhere
