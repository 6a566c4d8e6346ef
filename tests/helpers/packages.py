"""Packages of `qdsweep export`: a small one, and changed ones."""

import contextlib
import hashlib
import shutil
import zipfile
from pathlib import Path

from in_process import compute_sweep, forget_plugins, report_sweep

from qdsweep.features.export.pack import export

# A domain that names its helper module.
DOMAIN = """
from packed_depth import score
from qdsweep.domains.base import Evaluation


class Bowl:
    solution_dim = 3
    measures = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        return Evaluation(score(solutions), solutions[:, :2].copy())
"""
PLUGINS = {
    "packed_bowl.py": DOMAIN,
    "packed_depth.py": "def score(x):\n    return -(x**2).sum(1)\n",
}
EXPERIMENT = {
    "domain": {"type": "packed_bowl:Bowl", "name": "bowl"},
    "algorithm": "map_elites",
    "archive": {"dims": [8, 8]},
    "num_emitters": 1,
    "batch_size": 10,
    "iterations": 3,
}
SWEPT = "::: sigma 0.2 0.5 ::: seed 1 2"


def package(folder: Path) -> Path:
    """Computes a sweep of four runs of a plug-in, exports it, and returns the unpacked folder."""
    plugins = folder / "config/plugins"
    plugins.mkdir(parents=True)
    for name, text in PLUGINS.items():
        (plugins / name).write_text(text)
    forget_plugins()
    with contextlib.chdir(folder):
        report_sweep(compute_sweep(folder / "results", EXPERIMENT, SWEPT))
        export(folder / "results", "tiny", folder / "tiny.zip")
    forget_plugins()
    unpacked = folder / "unpacked/tiny"
    with zipfile.ZipFile(folder / "tiny.zip") as packed:
        packed.extractall(unpacked.parent)
    return unpacked


def sign(unpacked: Path) -> None:
    """Writes the checksums of a folder."""
    names = sorted(
        str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()
    )
    names = [name for name in names if name != "SHA256SUMS"]
    sums = {name: hashlib.sha256((unpacked / name).read_bytes()).hexdigest() for name in names}
    lines = (f"{digest}  {name}\n" for name, digest in sums.items())
    (unpacked / "SHA256SUMS").write_text("".join(lines))


def zipped(unpacked: Path) -> Path:
    """Returns a zip of a folder, next to it."""
    return Path(shutil.make_archive(str(unpacked), "zip", unpacked.parent, unpacked.name))
