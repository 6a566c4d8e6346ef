"""Errors that name what the machine lacks, in all forms in which user code raises them."""

import errno
import os
import subprocess
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from qdsweep.engines.failures import lacking

OF_THE_SYSTEM = {
    errno.ENOMEM: "memory",
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space",
    errno.EMFILE: "file handles",
    errno.ENFILE: "file handles",
    errno.EAGAIN: "processes or threads",
}
ERRORS = {
    **{number: (OSError(number, "no"), what) for number, what in OF_THE_SYSTEM.items()},
    "MemoryError": (MemoryError(), "memory"),
    "threads": (RuntimeError("can't start new thread"), "processes or threads"),
    "torch": (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), "memory"),
    "a GPU": (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "memory"),
    "C++": (RuntimeError("std::bad_alloc"), "memory"),
}


class SimulatorError(Exception):
    pass


def cause(error):
    try:
        raise SimulatorError("the simulation failed") from error
    except SimulatorError as raised:
        return raised


def context(error):
    try:
        try:
            raise error
        except type(error):
            raise SimulatorError("the simulation failed")  # noqa: B904
    except SimulatorError as raised:
        return raised


def only_text(error):
    return SimulatorError(f"the simulation failed: {error}")


def group(error):
    return ExceptionGroup("two", [ValueError("other"), error])


@pytest.mark.parametrize("form", [lambda error: error, cause, context, only_text, group])
@pytest.mark.parametrize("name", ERRORS)
def test_what_is_lacking_is_found_in_every_form(name, form):
    error, what = ERRORS[name]
    if form is only_text:
        number = getattr(error, "errno", None)
        if isinstance(error, MemoryError):
            return  # it has no text
        error = OSError(number, os.strerror(number)) if number else error
    assert lacking(form(error)) == what
    assert lacking(form(form(error))) == what


def too_large(_):
    np.empty(2**62 // 8)


def test_errors_of_numpy_and_of_other_processes():
    with ProcessPoolExecutor(1) as pool, pytest.raises(MemoryError) as caught:
        list(pool.map(too_large, [0]))
    assert lacking(caught.value) == "memory"


def test_other_errors_are_those_of_the_solution():
    circle = ValueError("no")
    circle.__cause__ = circle
    others = [
        circle,
        FileNotFoundError(errno.ENOENT, "no such file", "out of memory.txt"),
        PermissionError(errno.EACCES, "no"),
        RuntimeError("the simulator exploded"),
        subprocess.CalledProcessError(1, ["sim"]),
        KeyError("memory"),
        SystemExit(0),
    ]
    assert [lacking(form(error)) for error in others for form in (cause, context, str_of)] == [
        ""
    ] * (3 * len(others))


def str_of(error):
    return RuntimeError(str(error).replace("out of memory.txt", ""))
