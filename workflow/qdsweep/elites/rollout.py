"""Rendered episodes of chosen elites: what a policy does, as an animation."""

import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qdsweep.algorithms.base import Arrays
from qdsweep.animation import with_text, write_gif
from qdsweep.config import domain as config
from qdsweep.config.compose import compose
from qdsweep.config.domain import require_episodes
from qdsweep.domains.base import Floats
from qdsweep.domains.episodes import episode_seeds
from qdsweep.domains.gymnasium_task import GymnasiumTask
from qdsweep.domains.lunar_lander import LunarLander
from qdsweep.domains.normalizer import Normalizer
from qdsweep.elites.camera import Camera, Shot
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.files import read_arrays, require
from qdsweep.records.run_dir import RunDir


class Chosen(NamedTuple):
    """An elite to show: a name for files, words for readers, and its row of archive.npz."""

    name: str
    title: str
    row: int


def rollout(
    run_dir: Path, out: Path, elites: Sequence[str], seconds: float, run: str = "", files: str = ""
) -> list[dict[str, Any]]:
    """Renders an episode of chosen elites of a run, each as an animated GIF.

    The episode has the seed that the elite was scored with, where all evaluations of the run had
    the same; its score must then be that of the archive, bit for bit. Of an evaluation of several
    episodes the first is shown.

    Args:
        run_dir: The run's folder, with config.yaml and archive.npz.
        out: Where the animations go.
        elites: Any of "best", "median" and "corners", see `choose`.
        seconds: The longest animation; a longer episode is shown faster [s].
        run: The run's id; empty: the name of its folder.
        files: What the names of files begin with; empty: the run's id.

    Returns:
        For each animation: file, run, elite, title, seed, own_seed, episodes, steps, speed,
        archive and rendered (objective and measures of each), and `equal`, None where the seeds
        differ.

    Raises:
        BadInput: The run is not finished, its domain is not of gymnasium, or nothing can be
            rendered here.
    """
    results = RunDir(run_dir)
    for path in (results.config, results.archive):
        require(path, "Give the folder of a finished run.")
    experiment = compose(str(results.config))
    require_episodes(experiment.domain)
    out.mkdir(parents=True, exist_ok=True)
    camera, filmed = _before_a_camera(experiment.domain, seconds)
    arrays = read_arrays(results.archive)
    measures, run = list(filmed.measures), run or run_dir.name
    policy = experiment.domain.evaluation_seed
    own_seed = policy == "fixed" or isinstance(policy, int)
    (seed,) = evaluation_seeds(policy if own_seed else "fixed", experiment.seed, 0, 0, 1)
    entries = []
    for chosen in choose(arrays, measures, elites):
        play = partial(filmed.play, arrays, chosen.row)
        first, *others = episode_seeds(int(seed), filmed.episodes)
        with camera.filming() as shot:
            shown = play(first)
        # In the way in which the domain takes the mean of its episodes.
        scored = np.array([shown, *map(play, others)]).mean(axis=0)
        archived = np.array([arrays["objective"][chosen.row], *arrays["measures"][chosen.row]])
        entry = {
            "file": f"{slug(files or run)}-{chosen.name}.gif",
            "run": run,
            "elite": chosen.name,
            "title": chosen.title,
            "seed": first,
            "own_seed": own_seed,
            "episodes": filmed.episodes,
            "steps": shot.steps,
            "speed": shot.speed,
            "archive": _named(archived, measures),
            "rendered": _named(shown, measures),
            "equal": bool(np.array_equal(scored, archived)) if own_seed else None,
        }
        if entry["equal"] is False:
            print(
                f"qdsweep: warning: {run}, {chosen.title}: with the seed of its own "
                f"evaluation it scores {_score(_named(scored, measures))}, but archive.npz says "
                f"{_score(_named(archived, measures))}: a fault, unless libraries, CPU or "
                "cpu_baseline are others than those of the run",
                file=sys.stderr,
            )
        texts = [[*_lines(entry), _moment(shot, step)] for step in shot.moments]
        frames = with_text(shot.frames, f"{run}: {chosen.title}", texts)
        write_gif(out / str(entry["file"]), frames, shot.seconds)
        entries.append(entry)
    return entries


def choose(arrays: Arrays, measures: list[str], elites: Sequence[str]) -> list[Chosen]:
    """Chooses elites of an archive; one that is chosen twice has both reasons in its title.

    Args:
        arrays: The arrays of archive.npz.
        measures: Names of the measures.
        elites: "best": the highest objective; "median": the lower median of the objectives;
            "corners": the lowest and the highest value of each measure, of equals the best.
    """
    objective, values = arrays["objective"], arrays["measures"]
    if len(objective) == 0:
        return []
    ascending = np.argsort(objective, kind="stable")
    found = []
    if "best" in elites:
        found.append(Chosen("best", "best elite", int(np.argmax(objective))))
    if "median" in elites:
        middle = int(ascending[(len(objective) - 1) // 2])
        found.append(Chosen("median", "elite of median objective", middle))
    if "corners" in elites:
        for name, column in zip(measures, values.T, strict=True):
            for word, sign in (("lowest", 1), ("highest", -1)):
                row = int(np.lexsort((-objective, sign * column))[0])
                found.append(Chosen(slug(f"{word} {name}"), f"elite of {word} {name}", row))
    by_row: dict[int, Chosen] = {}
    for one in found:
        known = by_row.setdefault(one.row, one)
        if known is not one:
            by_row[one.row] = known._replace(title=f"{known.title}, {one.title}")
    return list(by_row.values())


def slug(text: str) -> str:
    """Returns a text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.") or "all"


class _FilmedTask(GymnasiumTask):
    """The task in an environment that is filmed: the code that scores, unchanged."""

    def __init__(self, task: config.Gymnasium, camera: Camera) -> None:
        super().__init__(task)
        self._env = camera
        self.episodes = task.episodes

    def play(self, arrays: Arrays, row: int, seed: int) -> list[float]:
        """Plays an episode of an elite: objective and measures."""
        solution = arrays["solution"][row]
        if not self._task.normalize_observations:
            return self._play(solution, seed)
        normalizer = Normalizer(np.zeros(self.context_dim))
        normalizer.mean = arrays["observation_mean"][row]
        normalizer.std = arrays["observation_std"][row]
        return self._play(solution, seed, normalizer)


class _FilmedLander(LunarLander):
    """The lander in a filmed environment, by its plain code, which gives the same bits."""

    def __init__(self, episodes: int, camera: Camera) -> None:
        super().__init__(episodes)
        self._env, self._lean = camera, None
        self.episodes = episodes

    def play(self, arrays: Arrays, row: int, seed: int) -> list[float]:
        """Flies a landing of an elite: objective and measures."""
        return self._land(arrays["solution"][row], seed)


def _before_a_camera(
    domain: config.DomainConfig, seconds: float
) -> tuple[Camera, _FilmedTask | _FilmedLander]:
    # Draw without a screen: pygame and MuJoCo read these when they are imported.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not ("DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ):
        os.environ.setdefault("MUJOCO_GL", "egl")
    if isinstance(domain, config.Gymnasium):
        camera = Camera(domain.env, domain.env_kwargs, seconds)
        return camera, _FilmedTask(domain, camera)
    assert isinstance(domain, config.LunarLander), "see require_episodes"
    camera = Camera("LunarLander-v3", {}, seconds)
    return camera, _FilmedLander(domain.episodes, camera)


def _named(values: Floats | list[float], measures: list[str]) -> dict[str, Any]:
    objective, *rest = map(float, values)
    return {"objective": objective, "measures": dict(zip(measures, rest, strict=True))}


def _lines(entry: dict[str, Any]) -> list[str]:
    """Returns what stands above every picture of an episode."""
    which = "this episode" if entry["episodes"] == 1 else f"the first of {entry['episodes']}"
    seed = "" if entry["own_seed"] else ", not that of its evaluation"
    same = entry["archive"] == entry["rendered"]
    score = "the same" if same else _score(entry["rendered"])
    return [
        f"in the archive: {_score(entry['archive'])}",
        f"{which} (seed {entry['seed']}{seed}): {score}",
    ]


def _score(named: dict[str, Any]) -> str:
    values = {"objective": named["objective"], **named["measures"]}
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _moment(shot: Shot, step: int) -> str:
    speed = "" if shot.speed < 1.05 else f", {shot.speed:.1f} times as fast"
    return f"step {step} of {shot.steps}{speed}"
