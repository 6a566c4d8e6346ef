"""Renders episodes of chosen elites as animations."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qdsweep.algorithms.base import Arrays
from qdsweep.config.domain import Plugin
from qdsweep.config.domain_keys import DomainConfig, require_episodes
from qdsweep.domains import make_domain
from qdsweep.domains.base import Floats
from qdsweep.domains.episodes import episode_seeds
from qdsweep.engines.batch import Batch
from qdsweep.engines.failures import evaluate_here
from qdsweep.errors import BadInput, raised
from qdsweep.experiment.state import evaluation_seeds
from qdsweep.features.rollouts.film import OnPicture, Shot, filming, with_text, write_gif
from qdsweep.features.rollouts.stream import stream
from qdsweep.files import atomic, require
from qdsweep.records.paths import RunDir
from qdsweep.runs.elite import Elite, context_for, said
from qdsweep.runs.load import Run


class ChosenElite(NamedTuple):
    """An elite to show: its name for files, its title for readers, and its row of archive.npz."""

    name: str
    title: str
    row: int


def rollout(
    run_dir: Path,
    out: Path,
    elites: Sequence[str],
    seconds: float,
    run: str = "",
    files: str = "",
    at: Sequence[Sequence[float]] = (),
    *,
    streamed: bool = False,
) -> list[dict[str, Any]]:
    """Renders an episode of chosen elites of a run, each as an animated GIF.

    The episode has the seed of the elite's evaluation, so its score must equal that of the archive,
    bit for bit. If an evaluation has several episodes, the first one is shown.

    Args:
        run_dir: The run's folder, with config.yaml and archive.npz.
        out: The folder for the animations.
        elites: Any of "best", "median" and "corners", see `choose`.
        seconds: The longest animation [s]. A longer episode is shown faster.
        run: The run's id; if empty, the name of its folder.
        files: The beginning of file names; if empty, the run's id.
        at: Points of the measure space. The elites of their cells are shown too.
        streamed: Whether each episode is also written as a stream of records.

    Returns:
        One entry per animation: file, run, elite, title, seed, own_seed, episodes, steps, speed,
        and, if streamed, `film` and `cell`.
        `archive` and `rendered` are objective and measures of each. `equal` compares them. It is
        None if the seed of the evaluation is unknown and the episode has another seed.

    Raises:
        BadInput: The run is not finished, its domain cannot be rendered, or a cell is empty.
    """
    files_of = RunDir(run_dir)
    for path in (files_of.config, files_of.archive):
        require(path, "Give the folder of a finished run.")
    results = Run(run_dir)
    experiment = results.experiment
    require_episodes(experiment.domain)
    measures, run = list(results.summary["archive"]["measures"]), run or run_dir.name
    choices = choose(results.arrays, measures, elites)
    choices += [_in_cell(results.at(point), point) for point in at]
    draw_without_a_screen()
    out.mkdir(parents=True, exist_ok=True)
    entries = []
    for chosen in once_each(choices):
        elite = results.elite(chosen.row)
        seed, own_seed = seed_to_play(results, elite)
        shot, shown = play_episode(results, elite, seed, seconds)
        archived = np.array([elite.objective, *elite.measures])
        scored, episodes = shown, episodes_of(experiment.domain)
        if episodes > 1 and own_seed:
            scored = score(results, elite, seed)
        same = bool(np.array_equal(scored, archived)) if own_seed else None
        entry = {
            "file": f"{slug(files or run)}-{chosen.name}.gif",
            "run": run,
            "elite": chosen.name,
            "title": chosen.title,
            "seed": episode_seeds(seed, episodes)[0],
            "own_seed": own_seed,
            "episodes": episodes,
            "steps": shot.steps,
            "speed": shot.speed,
            "archive": _named(archived, measures),
            "rendered": _named(shown, measures),
            "equal": same,
        }
        if same is False:
            print(
                f"qdsweep: warning: {run}, {chosen.title}: with the seed of its evaluation its "
                f"score is {_score(_named(scored, measures))}, but archive.npz has "
                f"{_score(_named(archived, measures))}. This is a fault, unless libraries, CPU "
                "or cpu_baseline differ from those of the run",
                file=sys.stderr,
            )
        texts = [[*_lines(entry), _moment(shot, step)] for step in shot.moments]
        frames = with_text(shot.frames, f"{run}: {chosen.title}", texts)
        file = out / str(entry["file"])
        write_gif(file, frames, shot.seconds)
        if streamed:
            entry |= {"film": file.with_suffix(".film").name, "cell": int(results.cells[elite.row])}
            with atomic(file.with_suffix(".film")) as opened:
                opened.write(stream(elite, shot, same))
        entries.append(entry)
    return entries


def _in_cell(elite: Elite, point: Sequence[float]) -> ChosenElite:
    return ChosenElite(
        f"cell-{elite.index}", f"elite of the cell at {said(np.array(point))}", elite.row
    )


def seed_to_play(run: Run, elite: Elite) -> tuple[int, bool]:
    """Returns the seed of an elite's evaluation and True, or another seed and False."""
    try:
        return run.seed_of(elite), True
    except BadInput:
        (seed,) = evaluation_seeds("fixed", run.experiment.seed, 0, 0, 1)
        return int(seed), False


def choose(arrays: Arrays, measures: list[str], elites: Sequence[str]) -> list[ChosenElite]:
    """Chooses elites of an archive.

    Args:
        arrays: The arrays of archive.npz.
        measures: Names of the measures.
        elites: "best" is the elite with the highest objective, "median" the one with the lower
            median. "corners" are the best elites with the lowest and the highest value of each
            measure.
    """
    objective, values = arrays["objective"], arrays["measures"]
    if len(objective) == 0:
        return []
    ascending = np.argsort(objective, kind="stable")
    choices = []
    if "best" in elites:
        choices.append(ChosenElite("best", "best elite", int(np.argmax(objective))))
    if "median" in elites:
        middle = int(ascending[(len(objective) - 1) // 2])
        choices.append(ChosenElite("median", "elite of median objective", middle))
    if "corners" in elites:
        for name, column in zip(measures, values.T, strict=True):
            for word, sign in (("lowest", 1), ("highest", -1)):
                row = int(np.lexsort((-objective, sign * column))[0])
                choices.append(ChosenElite(slug(f"{word} {name}"), f"elite of {word} {name}", row))
    return once_each(choices)


def once_each(choices: list[ChosenElite]) -> list[ChosenElite]:
    """Returns each elite once, with all reasons for its choice in the title."""
    by_row: dict[int, ChosenElite] = {}
    for choice in choices:
        known = by_row.setdefault(choice.row, choice)
        if known is not choice:
            by_row[choice.row] = known._replace(title=f"{known.title}, {choice.title}")
    return list(by_row.values())


def slug(text: str) -> str:
    """Returns a text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.") or "all"


def score(run: Run, elite: Elite, seed: int) -> Floats:
    """Returns objective and measures of an elite with a seed, ``(1 + m,)``."""
    evaluation = run.evaluate(elite.solution, seed, elite)
    return np.array([evaluation.objective[0], *evaluation.measures[0]])


def play_episode(
    run: Run, elite: Elite, seed: int, seconds: float, on_picture: OnPicture | None = None
) -> tuple[Shot, Floats]:
    """Films the first episode of an elite's evaluation.

    Args:
        run: The run.
        elite: Its elite.
        seed: The seed of the evaluation.
        seconds: The longest animation [s].
        on_picture: Gets each picture when it is taken; the shot then keeps none.

    Returns:
        The shot, and objective and measures of the episode.

    Raises:
        BadInput: The domain cannot be rendered.
    """
    settings = run.experiment.domain
    episodes = episodes_of(settings)
    first = np.array(episode_seeds(seed, episodes)[:1], dtype=np.uint32)
    if episodes > 1:
        settings = settings.model_copy(update={"episodes": 1})
    with filming(seconds, on_picture, by_user=isinstance(settings, Plugin)) as shot:
        domain = make_domain(settings)
        context = context_for(domain, elite, settings.name)
        batch = Batch(elite.solution[np.newaxis], first, context=context)
        if hasattr(domain, "render"):
            try:
                shot.add_all(domain.render(elite.solution.copy(), int(first[0])))
            except Exception as error:  # in the user's code, or because of its result
                raise BadInput(
                    f"the domain {settings.name or settings.type} cannot be rendered: "
                    f"{raised(error)}; render(solution, seed) must return pictures, arrays "
                    "(h, w, 3) of uint8"
                ) from None
        evaluation = evaluate_here(domain, batch)
    if evaluation.steps is not None:
        shot.count(int(evaluation.steps[0]))
    if not shot.moments:
        fault = "render gave no pictures" if hasattr(domain, "render") else "it made no environment"
        raise BadInput(
            f"the domain {settings.name or settings.type} cannot be rendered ({fault}). Give its "
            "class a method render(solution, seed) that returns pictures, arrays (h, w, 3) of "
            "uint8, or let it play in an environment of gymnasium.make"
        )
    return shot, np.array([evaluation.objective[0], *evaluation.measures[0]])


def episodes_of(settings: DomainConfig) -> int:
    """Returns the number of episodes of an evaluation."""
    return int(getattr(settings, "episodes", 1))


def draw_without_a_screen() -> None:
    """Makes the settings that pygame and MuJoCo read when they are imported."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not ("DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ):
        os.environ.setdefault("MUJOCO_GL", "egl")


def _named(values: Floats | list[float], measures: list[str]) -> dict[str, Any]:
    objective, *rest = map(float, values)
    return {"objective": objective, "measures": dict(zip(measures, rest, strict=True))}


def _lines(entry: dict[str, Any]) -> list[str]:
    """Returns the text above every picture of an episode."""
    episode = "this episode" if entry["episodes"] == 1 else f"the first of {entry['episodes']}"
    seed = "" if entry["own_seed"] else ", not that of its evaluation"
    is_equal = entry["archive"] == entry["rendered"]
    score = "the same" if is_equal else _score(entry["rendered"])
    return [
        f"in the archive: {_score(entry['archive'])}",
        f"{episode} (seed {entry['seed']}{seed}): {score}",
    ]


def _score(named: dict[str, Any]) -> str:
    values = {"objective": named["objective"], **named["measures"]}
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _moment(shot: Shot, step: int) -> str:
    speed = "" if shot.speed < 1.05 else f", {shot.speed:.1f} times as fast"
    return f"step {step} of {shot.steps}{speed}"
