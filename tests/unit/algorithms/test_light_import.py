"""pyribs without scikit-learn and torch is faster, and has the same results."""

import importlib.util
import json
import os
import re
import subprocess

import pytest
import yaml
from support import BIN, REPO, TINY

SCRIPT = """
import sys
from pathlib import Path
{first}
from qdsweep.cli import main
code = main(["run", "experiment.yaml", "--out", {out!r}])
print("sklearn" in sys.modules, "torch" in sys.modules)
import sklearn.neighbors, scipy.stats
assert sklearn.neighbors.KernelDensity.__module__.startswith("sklearn.")
assert scipy.stats.norm.cdf(0) == 0.5
sys.exit(code)
"""


def run(folder, out, first=""):
    words = [BIN / "python", "-c", SCRIPT.format(first=first, out=out)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    digest = json.loads((folder / out / "summary.json").read_text())["archive_digest"]
    return digest, done.stdout.split()[-2:]


@pytest.mark.parametrize(
    ("algorithm", "archive", "needs"),
    [
        ("cma_mae", {"dims": [12, 12]}, "False"),
        ("cvt_map_elites", {"cells": 50}, "True"),
    ],
)
def test_results_are_the_same(tmp_path, algorithm, archive, needs):
    experiment = {**TINY, "algorithm": algorithm, "archive": archive}
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    light, loaded = run(tmp_path, "light")
    plain, _ = run(tmp_path, "plain", "import sklearn.cluster, scipy.stats")
    assert light == plain
    assert loaded == [needs, "False"], "they are only imported for their use"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("features.learning.me_es", {"torch", "sklearn"}),
        ("algorithms.ribs.algorithm", {"torch", "sklearn"}),
        ("features.noise.deep", {"torch", "sklearn"}),
        ("experiment.run", {"ribs"}),  # the loop does not import any family of algorithms
    ],
)
def test_whatever_is_imported_first(module, heavy):
    code = f"import sys, qdsweep.{module}; print({heavy} & {{*sys.modules}})"
    done = subprocess.run([BIN / "python", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_only_these_packages_import_pyribs_at_their_top():
    """Others would import scikit-learn and torch. Discount models need torch themselves."""
    package = REPO / "workflow/qdsweep"
    files = [
        file
        for file in package.rglob("*.py")
        if re.search(r"^(from|import) ribs\b", file.read_text(), re.MULTILINE)
    ]
    folders = {str(file.parent.relative_to(package)) for file in files}
    assert folders == {"algorithms/pytorch", "algorithms/ribs", "features/noise"}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch: `make rl`")
@pytest.mark.parametrize("way", ["import ribs", "from ribs import discount_models"])
def test_what_needs_torch_finds_it(way):
    """As in a user's own algorithm."""
    code = f"import qdsweep.algorithms.ribs; {way}; import ribs; assert not hasattr(ribs, 'no')"
    code += "; print(ribs.discount_models.MLP([(2, 3), (3, 1)], __import__('torch').nn.ReLU))"
    done = subprocess.run([BIN / "python", "-c", code], capture_output=True, text=True)
    assert "in_features=2, out_features=3" in done.stdout, done.stderr


STRATEGIES = """
from qdsweep.host.machine import apply_baseline
apply_baseline("avx2")
import numpy as np
from numba.core.event import install_recorder
from qdsweep.algorithms.ribs import internals
from ribs.emitters import opt

with install_recorder("numba:compile") as compiled:
    for name in ("CMA", "LMMA", "SeparableCMA"):
        strategy = getattr(opt, f"{name}EvolutionStrategy")(0.5, 8, batch_size=8, seed=1)
        strategy.reset(np.zeros(8))
        for _ in range(3):
            strategy.tell(np.argsort((strategy.ask() ** 2).sum(axis=1)), np.zeros((8, 1)), 4)
        print(*strategy.ask().ravel())
print(len(compiled.buffer))
"""


def test_a_later_process_compiles_no_evolution_strategy(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    words = [BIN / "python", "-c", STRATEGIES]
    first, second = (
        subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert int(first[-1]) > 0 == int(second[-1])
    assert first[:-1] == second[:-1]
