"""The GPU of a learner. Only runs with `device: cuda` import this module, as it needs torch."""

import subprocess

import torch

from qdsweep.errors import BadInput


def gpu_versions() -> dict[str, str]:
    """Returns what the bits of a GPU's results depend on: its name, its driver, and CUDA.

    Raises:
        BadInput: torch finds no GPU.
    """
    if not torch.cuda.is_available():
        why = (
            f"finds no GPU (CUDA {torch.version.cuda}; `nvidia-smi` lists those of this machine)"
            if torch.version.cuda
            else "is a build without CUDA (PyTorch's `Get Started` page has the others)"
        )
        raise BadInput(
            f"algorithm.device = cuda: torch {torch.__version__} {why}. Run it where there is a "
            "GPU, or set device: cpu"
        )
    name = torch.cuda.get_device_name()
    return {"GPU": name, "GPU driver": driver(), "CUDA": str(torch.version.cuda)}


def driver() -> str:
    """Returns the version of NVIDIA's driver, such as 580.159.04; "unknown" without nvidia-smi."""
    words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.split("\n")[0].strip()
