"""The same bits from every x86-64 machine with AVX2. Import this module before numpy."""

import os
import sys
from pathlib import Path
from typing import Literal

from qdsweep.errors import BadInput

# More threads do not change the speed or the bits of ask and tell, but the bits of k-means.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# The CPU decides which kernel OpenBLAS and which loops numpy take: each gives other bits.
_AVX2 = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
# The same for torch, of which ATen, MKL and oneDNN choose each for itself.
_TORCH_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}


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
    wanted = dict.fromkeys(_THREADS, "1") | (_AVX2 if baseline == "avx2" else {})
    return {name: value for name, value in wanted.items() if os.environ.get(name) != value}


def settings() -> dict[str, str]:
    """Returns the settings of this process; they are equal in all processes of a run."""
    return {name: os.environ.get(name, "unset") for name in (*_THREADS, *_AVX2)}


def apply_torch_baseline() -> bool:
    """Sets the variables that torch reads at import, if this process has the baseline avx2.

    Returns:
        Whether it has.
    """
    is_avx2 = all(os.environ.get(name) == value for name, value in _AVX2.items())
    if is_avx2:
        os.environ.update(_TORCH_AVX2)
    return is_avx2


def kept_by_forks() -> dict[str, str]:
    """Returns all settings of this process, which a fork must not lose.

    MKL and oneDNN read theirs at their first call, long after torch was imported.
    """
    torch = {name: os.environ[name] for name in _TORCH_AVX2 if name in os.environ}
    return settings() | torch


def has_avx2() -> bool:
    """Returns whether this CPU has AVX2 (True if the system does not tell)."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
    return "avx2" in flags
