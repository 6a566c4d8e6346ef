"""The text of `qdsweep` without a command: what to do next in this folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.text import plural

_CONFIG = "config/config.yaml"
_SNAKEFILES = (Path("Snakefile"), Path("workflow/Snakefile"))
_MORE = "`qdsweep watch` shows the progress of a sweep live. `qdsweep --help` lists all commands."


def next_step() -> Iterator[str]:
    """Yields lines: the state of the sweep of this folder, and the commands that come next.

    Raises:
        BadInput: config/config.yaml, or the plan of the last sweep, is wrong.
    """
    results = Results(Path("results"))
    if Path(_CONFIG).exists():
        from qdsweep.planning.start import Given, Start

        start = Start(results, Given({}, files=[_CONFIG]))
        has_rules = any(map(Path.exists, _SNAKEFILES))
        steps = {
            "qdsweep plan": "show what would be computed, and its cost",
            "snakemake --cores all" if has_rules else "qdsweep sweep": "start or resume the sweep",
        }
        yield from _state(start.folder, *start.left, steps)
    elif sweeps := results.known_sweeps():
        from qdsweep.records.progress import read_standings

        last = sweeps[0]
        states = [now.state for now in read_standings(last, read_plan(last))]
        left = len(states) - states.count("finished")
        steps = {f"qdsweep status {last.name}": "print the state of every run"}
        yield from _state(last, left, len(states), "run", steps)
        if left or not last.report.exists():
            yield "To resume the sweep, repeat the command that started it."
    else:
        yield f"There is no sweep in this folder: {_CONFIG} and {results.sweeps}/ do not exist."
        yield from _listed({"qdsweep init FOLDER": "create a study folder with an example"})
    yield _MORE


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
