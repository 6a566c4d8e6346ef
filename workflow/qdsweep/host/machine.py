"""This machine: its CPU, its memory and its load. Import this module before numpy.

The settings for its CPU give the same bits on every x86-64 machine with AVX2. Arrays that can never
fit in its memory are refused, and the message names their key. Its load shows which measured times
are too long, because more processes than cores wanted to run.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from qdsweep.errors import BadInput

# More threads do not change the speed or the bits of ask and tell, but they change the bits of
# k-means.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# OpenBLAS chooses its kernel, and numpy its loops, by the CPU; each choice gives other bits.
_AVX2 = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
# The same for torch, whose libraries ATen, MKL and oneDNN choose separately.
_TORCH_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
_XLA_AVX2 = "--xla_cpu_max_isa=AVX2"
# The features of the baseline, in the names of all versions of numpy, and those that it needs.
_UP_TO_AVX2 = {"SSE", "SSE2", "SSE3", "SSSE3", "SSE41", "POPCNT", "SSE42", "AVX", "F16C", "FMA3",
               "AVX2", "X86_V2", "X86_V3"}  # fmt: skip
_NEEDED = {"FMA3", "AVX2", "X86_V3"}
_NUMPY = "numpy._core._multiarray_umath"
# Modules that are linked with an OpenBLAS, and the names of its function, by its build.
_LINKED = (_NUMPY, "scipy.linalg._fblas")
_CORE_NAMES = [f"{a}openblas_get_corename{b}" for a in ("scipy_", "") for b in ("64_", "")]

# More memory than any machine has [bytes].
_LARGEST = 2**46
# From this many processes per core on, they wait for one another.
BUSY_LOAD = 1.25


def apply_baseline(baseline: Literal["avx2", "native"]) -> None:
    """Sets the variables that numpy and OpenBLAS read at import, here and in child processes.

    Args:
        baseline: The experiment's `cpu_baseline`.

    Raises:
        BadInput: The CPU has no AVX2.
        RuntimeError: It is too late: numpy is imported already.
    """
    missing = missing_settings(baseline)
    if not missing:
        return
    if "numpy" in sys.modules:
        raise RuntimeError(f"numpy was imported before its settings were made: {missing}")
    if baseline == "avx2" and not has_avx2():
        raise BadInput(
            "cpu_baseline = 'avx2': this CPU has no AVX2; set cpu_baseline: native, and compare "
            "its results only with those of equal machines"
        )
    os.environ.update(missing)


def missing_settings(baseline: Literal["avx2", "native"]) -> dict[str, str]:
    """Returns the settings of a baseline that this process does not have."""
    expected = dict.fromkeys(_THREADS, "1") | (_AVX2 if baseline == "avx2" else {})
    return {name: value for name, value in expected.items() if os.environ.get(name) != value}


def settings() -> dict[str, str]:
    """Returns the settings of this process; they are equal in all processes of a run."""
    return {name: os.environ.get(name, "unset") for name in (*_THREADS, *_AVX2)}


def apply_torch_baseline() -> None:
    """Sets the variables that torch reads at import, if this process has the baseline avx2."""
    if _is_avx2():
        os.environ.update(_TORCH_AVX2)


def _is_avx2() -> bool:
    return all(os.environ.get(name) == value for name, value in _AVX2.items())


def require_baseline() -> None:
    """Refuses imported libraries that do not keep the baseline avx2, if this process has it.

    Raises:
        BadInput: A library uses other instructions; the message has the remedy.
    """
    if _is_avx2() and import_module(_NUMPY).__cpu_features__["SSE2"]:  # otherwise it is not x86
        for problem in _broken_settings():
            raise BadInput(
                f"cpu_baseline = 'avx2': results would depend on the machine, because {problem}. "
                "Or set cpu_baseline: native, and compare its results only with those of equal "
                "machines"
            )


def _broken_settings() -> Iterator[str]:
    """Yields each library that does not keep the baseline, and the remedy."""
    numpy: Any = import_module(_NUMPY)
    built = {*numpy.__cpu_baseline__, *numpy.__cpu_dispatch__}
    on = {name for name in built if numpy.__cpu_features__.get(name)}
    if wrong := on - _UP_TO_AVX2 or (built & _NEEDED) - on:
        how = "does not use" if wrong & _NEEDED else "uses"
        yield (
            f"numpy {sys.modules['numpy'].__version__} {how} {', '.join(sorted(wrong))}, with "
            f"NPY_DISABLE_CPU_FEATURES = {_AVX2['NPY_DISABLE_CPU_FEATURES']!r}. Install the numpy "
            "of the lock file (requirements.lock)"
        )
    for name in _LINKED:
        core = _openblas_core(name)
        if core not in (None, _AVX2["OPENBLAS_CORETYPE"]):
            yield (
                f"the OpenBLAS of {name.partition('.')[0]} uses its kernel for {core}, with "
                f"OPENBLAS_CORETYPE = {_AVX2['OPENBLAS_CORETYPE']!r}. Install the libraries of the "
                "lock file (requirements.lock)"
            )
    torch: Any = sys.modules.get("torch")
    capability = torch.backends.cpu.get_cpu_capability() if torch else "AVX2"
    if capability != "AVX2":
        yield (
            f"torch uses {capability}, with ATEN_CPU_CAPABILITY = "
            f"{os.environ.get('ATEN_CPU_CAPABILITY')!r}: it was imported before qdsweep set this. "
            "Import it only inside functions of your domain or metric"
        )
    flags = os.environ.get("XLA_FLAGS", "").split()
    if "jaxlib" in sys.modules and numpy.__cpu_features__["AVX512F"] and _XLA_AVX2 not in flags:
        yield f"the XLA of jax may use AVX-512. Set XLA_FLAGS={_XLA_AVX2} in the environment"


def _openblas_core(module: str) -> str | None:
    """Returns the CPU of the kernel that a module's OpenBLAS uses; None without an OpenBLAS."""
    library = ctypes.CDLL(sys.modules[module].__file__) if module in sys.modules else None
    for name in _CORE_NAMES:
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype = ctypes.c_char_p
            return str(function().decode())
    return None


def kept_by_forks() -> dict[str, str]:
    """Returns all settings of this process, which a fork must not lose.

    MKL and oneDNN read theirs at their first call, long after torch was imported.
    """
    torch = {name: os.environ[name] for name in _TORCH_AVX2 if name in os.environ}
    return settings() | torch


def has_avx2() -> bool:
    """Returns whether this CPU has AVX2 (True if the system does not report it)."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return True
    return "avx2" in flags


def processor() -> str:
    """Returns the name of this machine's CPU."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
    return " ".join((models or [platform.machine()])[0].split())


def require_memory(size: int, label: str, *, anywhere: bool = False) -> None:
    """Refuses an array that is larger than all memory of this machine, swap included.

    An array that is not written yet takes no memory, so the system may grant one that can never be
    filled.

    Args:
        size: Its size once it is full [bytes].
        label: Its key and value, and what they ask for.
        anywhere: Whether another machine may hold it; the limit is then the largest machine's.

    Raises:
        BadInput: The machine has less memory.
    """
    memory = _LARGEST if anywhere else _memory()
    if size > memory:
        needed, available = (f"{number // 2**30:,} GiB" for number in (size, memory))
        has = "no machine has that much" if anywhere else f"this machine has {available}"
        raise BadInput(f"{label} needs {needed} of memory, but {has}; use a smaller value")


def grants_all() -> bool:
    """Returns whether the system lets a program have arrays that are larger than all memory."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text(encoding="utf-8").strip() == "1"
    except OSError:
        return False


def _memory() -> int:
    """Returns the memory of this machine, swap included [bytes]."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    swap = [int(line.split()[1]) for line in lines if line.startswith("SwapTotal:")]  # [kB]
    return memory + 1024 * sum(swap)


class Load:
    """The mean number of processes per core that want to run, over all calls of `look`.

    Args:
        workers: Workers of this run on this machine. They count as wanting a core each, although
            they wait while the main process looks.
    """

    def __init__(self, workers: int) -> None:
        cores = os.cpu_count() or 1
        self._own = min(workers, cores)  # with more workers, the user chose to share cores
        self._cores = cores
        self._sum = self._looks = 0.0

    def look(self) -> float:
        """Measures once, between two iterations; returns the mean so far."""
        self._sum += (others() + self._own) / self._cores
        self._looks += 1
        return round(self._sum / self._looks, 2)


def others() -> int:
    """Returns how many other threads of the machine want a core now; 0 where it is unknown."""
    try:
        runnable = Path("/proc/loadavg").read_text(encoding="utf-8").split()[3].partition("/")[0]
    except OSError:
        return 0
    return max(0, int(runnable) - 1)
