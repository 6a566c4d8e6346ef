"""The text of `qdsweep` without a command: what to do next in this folder."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.config.files import CONFIG, read_yaml, start_command
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.search_files import places_left
from qdsweep.text import plural

if TYPE_CHECKING:
    from qdsweep.records.progress import Standing

_NAMED = 3  # runs per state
_INIT = {"qdsweep init FOLDER": "create a study folder with an example"}
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
    if Path(CONFIG).exists():
        from qdsweep.planning.request import Given
        from qdsweep.planning.start import Start

        start = Start(results, Given({}, files=[CONFIG]))
        if last is not None and last.name != start.folder.name:  # from another file or `--config`
            yield from _state_of_started(last)
        steps = {
            "qdsweep plan": "show what would be computed, and its cost",
            start_command(): "start or resume the sweep",
        }
        yield from start.found.damaged()
        left, total, noun = start.left
        folder = start.folder
        started: list[Standing] = []
        if left and folder.plan.exists():  # a finished sweep has nothing to name
            started = _states(folder, read_plan(folder))
        outdated = len(start.found.outdated)
        yield from _state(folder, left, total, noun, steps, started, outdated)
        yield from start.outdated_lines
    elif last is not None:
        yield from _state_of_started(last)
    else:
        yield f"There is no sweep in this folder: {CONFIG} and {results.sweeps}/ do not exist."
        yield from _listed(_INIT)
    yield _MORE


def how_to_start() -> str:
    """Returns the command that starts a sweep in this folder, or that creates a study."""
    if Path(CONFIG).exists():
        return f"Start that of {CONFIG}: {start_command()}"
    return "; ".join(f"{text.capitalize()}: {command}" for command, text in _INIT.items())


def has_new_config(sweep: SweepDir) -> bool:
    """Returns whether `CONFIG` is the file of a sweep and has changed since its last start."""
    with suppress(BadInput, OSError):
        is_newer = Path(CONFIG).stat().st_mtime_ns > sweep.plan.stat().st_mtime_ns
        return is_newer and bool(command_of(sweep))
    return False


def command_of(sweep: SweepDir) -> str:
    """Returns the command that starts a sweep again; empty where it is not that of `CONFIG`."""
    with suppress(BadInput, OSError):
        if read_yaml(Path(CONFIG)).get("name") == sweep.name:
            return start_command()
    return ""


def _states(sweep: SweepDir, plan: Plan) -> "list[Standing]":
    from qdsweep.analysis.search_progress import read_search, read_states

    return read_states(sweep, plan, read_search(sweep, plan))


def _state_of_started(sweep: SweepDir) -> Iterator[str]:
    """Yields the state of a sweep whose command is not known."""
    from qdsweep.records.progress import outdated_lines

    plan = read_plan(sweep)
    standings = _states(sweep, plan)
    if plan.levels:
        (left, total), noun = places_left(sweep, plan.levels), "place"
    else:
        states = [now.state for now in standings]
        left, total, noun = sum(not now.is_settled for now in standings), len(states), "run"
    steps = {f"qdsweep status {sweep.name}": "print the state of every run"}
    outdated = sum(now.state == "outdated" for now in standings)
    yield from _state(sweep, left, total, noun, steps, standings, outdated)
    yield from outdated_lines(standings, sweep.results)
    is_idle = all(now.state != "running" for now in standings)
    if is_idle and left:
        yield "To resume the sweep, repeat the command that started it."
    elif is_idle and not sweep.report.exists():
        yield "To make the report, repeat the command that started it, without a shard."


def _state(
    sweep: SweepDir,
    left: int,
    total: int,
    noun: str,
    steps: Mapping[str, str],
    standings: "list[Standing]",
    outdated: int,
) -> Iterator[str]:
    if left:
        yield f"Sweep {sweep.name}: {left:,} of {plural(total, noun)} left."
        for state in ("running", "failed", "replaced"):
            runs = [now for now in standings if now.state == state]
            if runs:
                labels = "; ".join(now.run.label for now in runs[:_NAMED])
                labels += f"; and {len(runs) - _NAMED:,} more" * (len(runs) > _NAMED)
                yield f"  {len(runs):,} {state}: {labels}"
            if runs and state == "running":  # a second start would compute nothing else
                steps = {f"qdsweep watch {sweep.name}": "show the progress live"}
            elif runs and state == "failed":
                why = {f"qdsweep status {sweep.name}": "print the cause of each failure"}
                steps = {**steps, **why}
            elif runs:
                yield f"  {runs[0].note}, so the next start computes them again."
    elif sweep.report.exists():
        count = (
            f"{outdated:,} of {plural(total, noun)}" if noun == "run" else plural(outdated, "run")
        )
        verb = "is" if outdated == 1 else "are"
        state = f": {count} {verb} outdated" if outdated else " is finished"
        yield f"Sweep {sweep.name}{state}. Its report: {sweep.report}"
        steps = {f"qdsweep status {sweep.name}": "print the state of every run"}
    else:
        yield f"Sweep {sweep.name}: no {noun} left, but {sweep.report} does not exist."
    yield from _listed(steps)


def _listed(steps: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, steps))
    for command, text in steps.items():
        yield f"  {command:{width}}   {text}"
