"""A domain whose processes record where they run and what they have imported."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import yaml

from qdsweep.domains.base import Evaluation

EXPERIMENT = {
    "domain": {"type": "witness:Witness", "name": "witness"},
    "algorithm": "cma_me",
    "archive": {"dims": [10, 10]},
    "num_emitters": 2,
    "batch_size": 12,
    "iterations": 30,
}


class Witness:
    """The sphere function."""

    solution_dim = 6
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}  # noqa: RUF012
    objective_range = (-100.0, 0.0)
    fields = {}  # noqa: RUF012

    def __init__(self):
        self.testify()  # the main process evaluates nothing if it has workers
        self.has_evaluated = False

    def evaluate(self, solutions, seeds):
        if not self.has_evaluated:
            self.has_evaluated = True
            self.testify()
        return Evaluation(-np.sum(solutions**2, axis=1), solutions[:, :2].copy())

    def testify(self):
        file = Path("seen", f"{os.getpid()}.json")
        file.parent.mkdir(exist_ok=True)
        about = {
            "image": os.environ.get("APPTAINER_CONTAINER"),
            "python": sys.executable,
            "modules": sorted(
                {m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}
            ),
            "environment": sorted(os.environ),
        }
        file.write_text(json.dumps(about))


def make_folder(folder: Path, **cluster: object) -> None:
    """Writes the domain, `experiment.yaml`, `cluster.yaml` and `sweep.yaml`."""
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/witness.py").write_text(Path(__file__).read_text())
    (folder / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    needs = {"mem_mb_main": 600, "mem_mb_per_worker": 200, "runtime_min": 10, **cluster}
    (folder / "cluster.yaml").write_text(yaml.safe_dump(needs))
    sweep = {"name": "s", "experiment": "experiment.yaml", "cluster": "cluster.yaml"}
    (folder / "sweep.yaml").write_text(yaml.safe_dump({**sweep, "sweep": "::: seed 1"}))


def undisturbed_digest(folder: Path) -> str:
    """The result of the serial engine in the venv. Here the name `witness` is already used."""
    from results import digest
    from support import command

    make_folder(folder)
    command("qdsweep", "run", "experiment.yaml", "--set", "seed=1", "--out", "out", cwd=folder)
    return digest(folder / "out")


def check_seen(folder: Path, image: Path, processes: int) -> None:
    """Checks that every process was in the image and imported nothing from outside."""
    seen = [json.loads(file.read_text()) for file in (folder / "seen").iterdir()]
    assert len(seen) == processes
    for about in seen:
        assert about["image"] == str(image)
        assert about["python"].startswith("/usr/local/bin/python")
        mine = [m for m in about["modules"] if not m.startswith(("/usr/local/", "/opt/qdsweep/"))]
        assert mine == [str(folder / "config/plugins/witness.py")]
        assert not {"PYTHONPATH", "VIRTUAL_ENV", "HOSTILE"} & set(about["environment"])
