"""Studies of all kinds: what a sweep may consist of, each as the files and the start of a user."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from qdsweep.config.files import read_preset
from qdsweep.planning.request import Given
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results

BOWL = '''"""A bowl of Nora's."""
import numpy as np
from bowl_parts.depth import score
from bowl_scale import SCALE
from qdsweep.domains.base import Evaluation


class Bowl:
    """A task whose depth is in a file."""

    depends = ("data/depth.npy",)

    def __init__(self, steep=1.0):
        self.solution_dim, self.steep, self.objective_range = 4, steep, (-100.0, 0.0)
        self.measures, self.fields = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}, {}
        self.depth = float(np.load("data/depth.npy"))

    def evaluate(self, solutions, seeds):
        objective = SCALE * self.steep * score(solutions) - self.depth
        return Evaluation(objective, solutions[:, :2].copy())
'''
OWN = """
import gymnasium as gym


def waste(archive, evaluations):
    return float(evaluations)


def turns(episode):
    return float(len(episode.actions))


class Slow(gym.Wrapper):
    pass
"""
DEPTH = "def score(x):\n    return -(x**2).sum(axis=1)\n"
BOWL_FILES: dict[str, Any] = {
    "config/plugins/bowl.py": BOWL,
    "config/plugins/bowl_parts/__init__.py": "",
    "config/plugins/bowl_parts/depth.py": DEPTH,
    "bowl_scale.py": "SCALE = 1.0\n",  # in the study's folder
    "data/depth.npy": np.array(0.5),
}
SMALL = {
    "domain": {"preset": "lp_sphere", "solution_dim": 6},
    "algorithm": "map_elites",
    "archive": {"dims": [6, 6]},
    "num_emitters": 1,
    "batch_size": 8,
    "iterations": 2,
}
IN_BOWL = {**SMALL, "domain": {"type": "bowl:Bowl", "name": "bowl"}}
# A task of gymnasium with the user's wrapper and measure.
POLE = {
    **SMALL,
    "domain": {
        "type": "gymnasium",
        "name": "pole",
        "env": "CartPole-v1",
        "objective_range": [0, 500],
        "measures": [
            {"measure": "own:turns", "range": [0, 500]},
            {"measure": "mean_abs_action", "component": 0, "range": [0, 1]},
        ],
        "wrappers": [{"type": "own:Slow"}],
    },
}
LANDER = {**SMALL, "domain": {"preset": "lunar_lander", "evaluation_seed": "solution"}}
THEIRS = {
    "algorithm": "their CMA-ME",
    "domain": "lp_sphere",
    "seeds": [1, 2],
    "objective_range": [-600, 100],
    "archive": {"file": "theirs/{seed}.npz", "dims": [6, 6], "ranges": [[-16, 16], [-16, 16]]},
    "evaluations": 16,
    "source": "a repository",
}
ELITES = {
    "objective": np.zeros(2),
    "measures": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "solution": np.zeros((2, 6)),
}


class Kind(NamedTuple):
    """A study.

    Attributes:
        config: The sweep file.
        files: Path -> content, of further files: text, YAML, an array or arrays.
        more: Further config files, over the first one.
        typed: The `KEY=VALUE` of `--config`.
        prefix: That of a module of Snakemake, which has the config and no file.
    """

    config: Mapping[str, Any]
    files: Mapping[str, Any] = {}
    more: tuple[Mapping[str, Any], ...] = ()
    typed: tuple[str, ...] = ()
    prefix: str = ""


def _of(experiment: Any, sweep: str = "::: seed 1 2", **keys: Any) -> dict[str, Any]:
    return {"name": "mine", "experiment": experiment, "sweep": sweep, **keys}


def _preset(**keys: Any) -> dict[str, Any]:
    """Returns a preset of an algorithm: qdsweep's with other values."""
    data, _ = read_preset("algorithms", "map_elites")
    return {**data, **keys}


KINDS: dict[str, Kind] = {
    "inline": Kind(_of(SMALL)),
    "named": Kind(
        _of("lp_sphere", "::: algorithm cma_me map_elites ::: seed 1 2 ::: iterations 2")
    ),
    "presets of the user": Kind(
        _of("ours", "::: algorithm mine map_elites ::: domain flat lp_sphere ::: seed 1"),
        {
            "config/experiments/ours.yaml": {**SMALL, "algorithm": "mine", "domain": "flat"},
            "config/algorithms/mine.yaml": _preset(title="Mine"),
            "config/domains/flat.yaml": {
                "type": "linear_projection",
                "function": "sphere",
                "solution_dim": 4,
            },
        },
    ),
    "a preset of a name that qdsweep has": Kind(
        _of("lp_sphere", "::: algorithm map_elites ::: iterations 2"),
        {"config/algorithms/map_elites.yaml": _preset(title="Not that of qdsweep")},
    ),
    "experiments swept": Kind(
        _of("lp_sphere", "::: experiment lp_sphere tasks/far.yaml ::: iterations 2"),
        {"tasks/far.yaml": {**SMALL, "domain": "lp_rastrigin"}},
    ),
    "files elsewhere": Kind(
        _of("../far.yaml", ":::: ../far.txt tables/sizes.txt", cluster="../own.yaml"),
        {
            "../far.yaml": SMALL,
            "../far.txt": "seed\n1\n2\n",
            "tables/sizes.txt": "batch_size\n8\n9\n",
            "../own.yaml": {"workers_per_node": 1},
        },
    ),
    "an inline experiment of files": Kind(
        _of({**SMALL, "algorithm": "../far.yaml", "domain": {"preset": "parts/flat.yaml"}}),
        {
            "../far.yaml": _preset(),
            "parts/flat.yaml": {
                "type": "linear_projection",
                "function": "sphere",
                "solution_dim": 4,
            },
        },
    ),
    "value files": Kind(
        _of(SMALL, "# each with its size\n:::: values/seeds.txt ::::+ 'the sizes.txt' ::: sigma 1"),
        {"values/seeds.txt": "seed\n1\n2\n", "the sizes.txt": "batch_size\n8\n9\n"},
    ),
    "cluster": Kind(
        _of(SMALL, cluster="ours"), {"config/clusters/ours.yaml": {"workers_per_node": 1}}
    ),
    "rows left out": Kind(_of(SMALL, "::: sigma 1 2 ::: seed 1 2", exclude=["sigma=1,seed=2"])),
    "drawn": Kind(
        _of(SMALL, ":::~ sigma log 0.1 1 ::: seed 1 2", search={"samples": 3, "sampling": "sobol"})
    ),
    "drawn presets": Kind(
        _of(SMALL, ":::~ algorithm choice mine map_elites", search={"samples": 6}),
        {"config/algorithms/mine.yaml": _preset(title="Mine")},
    ),
    "halving": Kind(
        _of(
            {**SMALL, "iterations": 9},
            ":::~ sigma log 0.1 1 ::: seed 1",
            search={"samples": 4, "halving": {"eta": 2}},
        )
    ),
    "pbt": Kind(
        _of(
            {**SMALL, "algorithm": "map_elites_line", "iterations": 4},
            ":::~ iso_sigma log 0.1 1 ::: seed 1",
            search={"pbt": {"population": 4, "generations": 2}},
            confirm={"seeds": [101, 102]},
        )
    ),
    "reporting": Kind(
        _of(
            LANDER,
            "::: sigma 0.5 1e-1 ::: seed 1 2",
            confirm={"top": 1, "seeds": [101, 102]},
            reevaluate={"times": 2},
            rollouts={"seconds": 1},
            figures={"labels": {"0.5": "wide: ½"}, "colors": {"0.5": "#0072B2"}},
            tables={"columns": ["sigma", "coverage"]},
            published=[
                {"where": {"sigma": 0.5}, "metric": "coverage", "mean": 0.5, "source": "a paper"}
            ],
            rank="coverage",
        )
    ),
    "at equal evaluations": Kind(_of(SMALL, compare_at="evaluations")),
    "paired": Kind(_of(LANDER, "::: sigma 1 2 ::: evaluation_seed 7 ::: seed 1 2", tests="paired")),
    "schedule": Kind(_of({**SMALL, "schedule": [{"at": 1, "set": {"sigma": 0.2}}]})),
    "imported": Kind(
        _of(SMALL, imported=["theirs.yaml"]),
        {"theirs.yaml": THEIRS, "theirs/1.npz": ELITES, "theirs/2.npz": ELITES},
    ),
    "imported from elsewhere": Kind(
        _of(SMALL, imported=["../their/theirs.yaml"]),
        {
            "../their/theirs.yaml": THEIRS,
            "../their/theirs/1.npz": ELITES,
            "../their/theirs/2.npz": ELITES,
        },
    ),
    "code with imports and data": Kind(_of(IN_BOWL, "::: steep 1 2 ::: seed 1"), BOWL_FILES),
    "code in the study's folder": Kind(
        _of({**SMALL, "domain": {"type": "near.bowl:Bowl", "name": "bowl"}}),
        {
            "near/__init__.py": "",
            "near/bowl.py": BOWL.replace("bowl_parts.", "near.").replace("bowl_scale", ".scale"),
            "near/depth.py": DEPTH,
            "near/scale.py": "SCALE = 2.0\n",
            "data/depth.npy": np.array(0.5),
        },
    ),
    "own metric": Kind(_of({**SMALL, "metrics": ["own:waste"]}), {"config/plugins/own.py": OWN}),
    "own measure and wrapper": Kind(_of(POLE), {"config/plugins/own.py": OWN}),
    "environment of a module": Kind(
        _of(
            {**POLE, "domain": {**POLE["domain"], "env": "tasks.pole:Pole-v0", "wrappers": []}},
        ),
        {
            "config/plugins/own.py": OWN,
            "config/plugins/tasks/__init__.py": "",
            "config/plugins/tasks/pole.py": "import gymnasium as gym\nfrom tasks import rules\n",
            "config/plugins/tasks/rules.py": "LENGTH = 5\n",
        },
    ),
    "algorithms of code that comes with qdsweep": Kind(
        _of(
            "arm",
            "::: experiment arm_own_algorithm arm_own_archive arm_own_emitter arm_metrics"
            " ::: iterations 2",
        )
    ),
    "several files and the command line": Kind(
        _of(SMALL, "::: seed 1 2 3"),
        more=({"experiment": {**SMALL, "batch_size": 9}}, {"name": "theirs"}),
        typed=("sweep=::: seed 4 5 ::: sigma 1e-1", "rank=coverage"),
    ),
    "a module with a prefix": Kind(
        _of("ours"),
        {"config/experiments/ours.yaml": IN_BOWL, **BOWL_FILES},
        prefix="inner",
    ),
}


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Writes files: bytes and text as they are, arrays as .npy and .npz, other data as YAML."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, np.ndarray):
            np.save(path, content)
        elif path.suffix == ".npz" and not isinstance(content, bytes):
            np.savez(path, **content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            is_text = isinstance(content, str)
            path.write_text(content if is_text else yaml.safe_dump(content, sort_keys=False))


@contextlib.contextmanager
def study_of(kind: Kind, folder: Path) -> Iterator[tuple[Start, Results]]:
    """Writes a study, and starts its sweep in its folder, to the plan."""
    folder.mkdir(parents=True)
    write_files(folder, kind.files)
    with alone_in(folder):
        given = Given({**kind.config}, where="config of the module inner")
        if not kind.prefix:
            files = [Path(f"config{number}.yaml") for number in range(1 + len(kind.more))]
            write_files(folder, dict(zip(map(str, files), (kind.config, *kind.more), strict=True)))
            config: dict[str, Any] = {}
            for data in (kind.config, *kind.more):
                config |= data
            config |= dict(entry.split("=", 1) for entry in kind.typed)
            given = Given(config, kind.typed, files)
        results = Results(folder / kind.prefix / "results")
        start = Start(results, given)
        start.write_plan()
        yield start, results


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Enters a folder as a new process would, without the presets and modules of another one."""
    path = list(sys.path)
    read_preset.cache_clear()
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.path[:] = path
        read_preset.cache_clear()
