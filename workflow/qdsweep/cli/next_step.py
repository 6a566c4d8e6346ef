"""The text of `qdsweep` without a command: what to do next in this folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.search import places_left
from qdsweep.text import plural

_CONFIG = "config/config.yaml"
_SNAKEFILES = (Path("Snakefile"), Path("workflow/Snakefile"))
_MORE = "`qdsweep watch` shows the progress of a sweep live. `qdsweep --help` lists all commands."


def next_step() -> Iterator[str]:
    """Yields lines: the state of the sweep of this folder, and the commands that come next.

    Raises:
        BadInput: config/config.yaml, or the plan of the last sweep, is wrong.
    """
    if Path("qdsweep.py").exists():
        yield "qdsweep.py: Snakemake would import this file in place of qdsweep. Rename it."
    results = Results(Path("results"))
    last = next(iter(results.known_sweeps()), None)
    if Path(_CONFIG).exists():
        from qdsweep.planning.start import Given, Start

        start = Start(results, Given({}, files=[_CONFIG]))
        if last is not None and last.name != start.folder.name:  # from another file or `--config`
            yield from _state_of_started(last)
        has_rules = any(map(Path.exists, _SNAKEFILES))
        steps = {
            "qdsweep plan": "show what would be computed, and its cost",
            "snakemake --cores all" if has_rules else "qdsweep sweep": "start or resume the sweep",
        }
        yield from start.damaged()
        yield from _state(start.folder, *start.left, steps)
    elif last is not None:
        yield from _state_of_started(last)
    else:
        yield f"There is no sweep in this folder: {_CONFIG} and {results.sweeps}/ do not exist."
        yield from _listed({"qdsweep init FOLDER": "create a study folder with an example"})
    yield _MORE


def _state_of_started(sweep: SweepDir) -> Iterator[str]:
    """Yields the state of a sweep whose command is not known."""
    from qdsweep.records.progress import Outdated, read_standings

    plan = read_plan(sweep)
    if plan.levels:
        (left, total), noun = places_left(sweep, plan.levels), "place"
    else:
        standings = map(Outdated(sweep.results).mark, read_standings(sweep, plan))
        states = [now.state for now in standings]
        left, total, noun = len(states) - states.count("finished"), len(states), "run"
    steps = {f"qdsweep status {sweep.name}": "print the state of every run"}
    yield from _state(sweep, left, total, noun, steps)
    if left or not sweep.report.exists():
        yield "To resume the sweep, repeat the command that started it."


def _state(
    sweep: SweepDir, left: int, total: int, noun: str, steps: Mapping[str, str]
) -> Iterator[str]:
    if left:
        yield f"Sweep {sweep.name}: {left:,} of {plural(total, noun)} left."
    elif sweep.report.exists():
        yield f"Sweep {sweep.name} is finished. Its report: {sweep.report}"
        steps = {f"qdsweep status {sweep.name}": "print the state of every run"}
    else:
        yield f"Sweep {sweep.name}: no {noun} left, but {sweep.report} does not exist."
    yield from _listed(steps)


def _listed(steps: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, steps))
    for command, text in steps.items():
        yield f"  {command:{width}}   {text}"
