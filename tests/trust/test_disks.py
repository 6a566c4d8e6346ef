"""Every write, fsync, rename and link fails once: full disk, quota, broken disk, partial write.

A failure ends in one line that names the file. The same command then gives undisturbed results.
"""

import contextlib
import filecmp
import itertools
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from disks import Answer, Call, Disk, Fault, Forks, copy
from results import digest, steps
from support import POLE, TINY, snakemake, write_yaml

from qdsweep.config.compose import compose
from qdsweep.planning.request import Given
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_confirm, read_plan

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
ERRORS = ("ENOSPC", "EIO", "EDQUOT")
EVERY_ITERATION = {"min_seconds": 0, "max_seconds": 1e-6}
# A reload file after each iteration gives the same calls. The short form compiles nothing.
RUN = {
    **TINY,
    "algorithm": "cma_mae" if LONG else "map_elites",
    "iterations": 3,
    "reload": EVERY_ITERATION,
}
REEVALUATED = {"times": 2, "seed": 7}
SWEEP = {
    "name": "whole",
    "experiment": {**POLE, "iterations": 2, "reload": EVERY_ITERATION},
    "sweep": "::: seed 1 2",
    "reevaluate": REEVALUATED,
    "rollouts": {"elites": ["best"], "seconds": 0.5},
    "confirm": {"top": 1, "seeds": [101, 102]},
}
SEARCH = {
    "name": "search",
    "experiment": {**RUN, "algorithm": "map_elites"},
    "sweep": "::: sigma 0.1 0.5 1.0 ::: seed 1",
    "search": {"halving": {"rungs": [0.5, 1], "seeds": [1, 1]}},
}
# Stages that draw make hundreds of calls and take seconds. Each call fails in one way, in turn.
DRAWING = ("plot", "evolution", "rollouts", "rollout", "report")
# Files with times, durations or ends of commands; and partial files, which
# `qdsweep clean` removes.
OF_ONE_START = re.compile(
    r"\.log$|/(status|last_stop)\.json$|/reload[^/]*\.pkl$|/state/reevaluated-[^/]*$|/SHA256SUMS$|lock$|\.tmp$"
)


class Outcome(NamedTuple):
    """The outcome of a command whose disk failed.

    Attributes:
        call: The failed call.
        fault: The fault.
        wrong: The problem; empty if there is none.
        survived: Whether the command succeeded despite the fault.
    """

    call: Call
    fault: Fault
    wrong: str
    survived: bool


@pytest.fixture(scope="module")
def forks(tmp_path_factory) -> Iterator[Forks]:
    folder = tmp_path_factory.mktemp("disk")
    (folder / "disk").mkdir()
    made = Forks(
        Disk(folder / "switch", folder / "disk"), [compose(RUN), compose(POLE)], dict(os.environ)
    )
    yield made
    made.close()


def faults(calls: list[Call], most: int, by_turns: bool) -> list[Fault]:
    """Yields all faults of each call, or one fault in turn; for figures each fault once.

    The short form is a sample with all kinds of calls.
    """
    ways = [
        [
            Fault(nth=nth, error=error, how=how)
            for error in ERRORS
            for how in (("fail", "short", "torn") if call.kind == "write" else ("fail",))
            if how != "short" or error == ERRORS[0]
        ]
        for nth, call in enumerate(calls, start=1)
    ]
    if LONG and by_turns:
        return taking_turns(calls, ways)
    known = list(itertools.chain.from_iterable(ways))
    if LONG:
        return known
    chance = random.Random(len(calls))
    chance.shuffle(known)
    by_kind: dict[tuple[str, str], Fault] = {}
    for fault in known:
        by_kind.setdefault((calls[fault.nth - 1].kind, fault.how), fault)
    first = list(by_kind.values())
    return [*first, *(each for each in known if each not in first)][:most]


def taking_turns(calls: list[Call], ways: list[list[Fault]]) -> list[Fault]:
    """Yields one fault per call, in turn for calls of a kind; for figures each fault once."""
    chosen, turns = [], Counter[tuple[str, str]]()
    for call, choice in zip(calls, ways, strict=True):
        path = Path(call.path)
        figure = path.suffix if "plots" in path.parts else ""
        turn = turns[call.kind, figure]
        turns[call.kind, figure] += 1
        if not figure or turn < len(choice):
            chosen.append(choice[turn % len(choice)])
    return chosen


def try_all(forks: Forks, words: tuple[object, ...], most: int) -> list[Outcome]:
    """Runs a command with each fault and then without, each time from the same files.

    Afterwards, the files are those of the command without a fault.
    """
    disk, before = forks.disk.folder, forks.disk.path.with_name("before")
    copy(disk, before)
    straight = forks.disk.path.with_name("straight")
    undisturbed(forks, words)
    copy(disk, straight)
    copy(before, disk)
    calls = undisturbed(forks, words)
    assert not differing(straight, disk), "it is repeatable"
    outcomes = []
    for fault in faults(calls, most, by_turns=words[0] in DRAWING):
        copy(before, disk)
        answer = forks.run(*words, cwd=disk, fault=fault)
        assert forks.disk.failed, f"{fault} of {words} never came"
        call = forks.disk.calls[fault.nth - 1]
        wrong = complaints(answer, call, disk)
        if answer.code == 0 and (lacks := differing(straight, disk)):
            wrong += f"ended well, but not equal: {sorted(lacks)}"
        again = forks.run(*words, cwd=disk)
        if again.code:
            wrong += f"not cured: {again.text[-300:]}"
        else:
            wrong += " ".join(sorted(differing(straight, disk)))
        outcomes.append(Outcome(call, fault, wrong, answer.code == 0))
    copy(straight, disk)
    return outcomes


def undisturbed(forks: Forks, words: tuple[object, ...]) -> list[Call]:
    answer = forks.run(*words, cwd=forks.disk.folder)
    assert answer.code == 0, answer.text
    return forks.disk.calls


def complaints(answer: Answer, call: Call, disk: Path) -> str:
    """Returns the problem with the end of a command."""
    if "Traceback" in answer.text or "Exception ignored" in answer.text:
        return f"a traceback: {answer.text[-1500:]}"
    if answer.code == 0:
        return ""
    final = finished_name(call.path)
    names = {final, str(Path(final).relative_to(disk))}
    lines = [
        line for line in answer.text.splitlines() if any(f"{name}: " in line for name in names)
    ]
    if answer.code != 1 or len(lines) != 1:
        return f"exit code {answer.code}, {lines}"
    return ""


def differing(ours: Path, theirs: Path) -> set[str]:
    """Returns the files of two folders that differ; those of runs are compared by content."""
    names = {
        str(path.relative_to(folder))
        for folder in (ours, theirs)
        for path in folder.rglob("*")
        if path.is_file() and not OF_ONE_START.search(str(path))
    }
    return {name for name in names if not _equal(ours / name, theirs / name)}


def _equal(ours: Path, theirs: Path) -> bool:
    if not (ours.exists() and theirs.exists()):
        return False
    if ours.name == "summary.json":
        return digest(ours.parent) == digest(theirs.parent)
    if ours.name == "metrics.csv":
        return steps(ours.parent) == steps(theirs.parent)
    return filecmp.cmp(ours, theirs, shallow=False)


def wrong_of(words: object, outcomes: list[Outcome]) -> list[str]:
    """Prints the outcomes, and returns all problems."""
    wrong = [f"{words}: {each.call} {each.fault}: {each.wrong}" for each in outcomes if each.wrong]
    survived = sum(each.survived for each in outcomes)
    print(f"{words}: {len(outcomes)} failures, {survived} survived, {len(wrong)} wrong", flush=True)
    return wrong


@pytest.mark.timeout(20_000 if LONG else 600)
def test_a_run(forks, tmp_path):
    experiment = write_yaml(tmp_path / "experiment.yaml", RUN)
    words = ("run", experiment, "--out", "out")
    wrong = wrong_of("run", try_all(forks, words, 24))
    assert not wrong, "\n".join(wrong)


def planned(folder: Path, sweep: dict) -> Results:
    """Writes the files of the start of a sweep, and returns the folder results/."""
    file = write_yaml(folder / "sweep.yaml", sweep)
    with contextlib.chdir(folder):
        Start(Results(folder / "results"), Given({}, files=(file,))).write_plan()
    return Results(folder / "results")


@pytest.mark.timeout(20_000 if LONG else 600)
def test_every_stage_of_a_sweep(forks):
    """The jobs of the Snakefile, from the runs to the page and the export."""
    empty(forks.disk.folder)
    results = planned(forks.disk.folder, SWEEP)
    runs = [row.run for row in read_plan(results.sweep("whole")).rows]
    repeats = [word for key, value in REEVALUATED.items() for word in (f"--{key}", value)]
    launches = [("launch", run, "--budget", "iterations=2") for run in runs]
    reevaluations = [("reevaluate", f"results/runs/{run}", *repeats) for run in runs]
    stages = [(name, "whole") for name in ("aggregate", "corrected", "winners")]
    wrong = [each for words in (*launches, *reevaluations, *stages) for each in tried(forks, words)]
    confirming = [row["id"] for row in read_confirm(results.sweep("whole"))]
    assert len(confirming) == 2
    for run in confirming:
        wrong += tried(forks, ("launch", run, "--budget", "iterations=2"))
    for name in ("confirmed", "plot", "evolution", "rollouts", "report", "export"):
        wrong += tried(forks, (name, "whole"))
    rollout = ("rollout", f"results/runs/{runs[0]}", "--elites", "best", "--seconds", 0.5)
    wrong += tried(forks, rollout)
    wrong += tried(forks, ("export", "whole", "--to", "tensorboard", "tb"))
    wrong += wrong_of("merge", try_all(forks, ("merge", "results", "--results", "merged"), 24))
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(20_000 if LONG else 600)
def test_every_job_of_a_search(forks):
    empty(forks.disk.folder)
    plan = read_plan(planned(forks.disk.folder, SEARCH).sweep("search"))
    wrong = list[str]()
    for level in plan.levels:
        if level.kind != "known":
            for block in range(level.blocks):
                wrong += tried(forks, ("decide", "search", level.name, block))
        for place in range(level.places):
            for seed in level.seeds:
                wrong += tried(forks, ("place", "search", level.name, place, f"--seed={seed}"))
    wrong += tried(forks, ("search", "search"))
    assert not wrong, "\n".join(wrong)


def empty(folder: Path) -> None:
    """Empties the disk."""
    shutil.rmtree(folder)
    folder.mkdir()


def tried(forks: Forks, words: tuple[object, ...]) -> list[str]:
    return wrong_of(words, try_all(forks, words, 2))


@pytest.mark.timeout(20_000 if LONG else 600)
@pytest.mark.parametrize("kind", ["create", "write", "rename"] if LONG else ["rename"])
def test_what_the_main_snakemake_writes(tmp_path, kind):
    """The plan of a sweep, without which nothing is computed."""
    (tmp_path / "results").mkdir()
    disk = Disk(tmp_path / "switch", tmp_path / "results")
    disk.set(Fault(kinds=kind, nth=1, error="EDQUOT"))
    config = write_yaml(tmp_path / "sweep.yaml", SWEEP)
    words = ("results/sweeps/whole/table.csv", "--cores", 1, "--configfile", config)
    done = snakemake(*words, cwd=tmp_path, check=1, **disk.environment)
    call = disk.calls[0]
    assert disk.failed
    name = str(Path(finished_name(call.path)).relative_to(tmp_path))
    lines = [line for line in done.stderr.splitlines() if f"{name}: " in line]
    assert len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    assert not list(tmp_path.glob("results/runs/*/state/status.json"))
    if LONG:
        snakemake(*words, cwd=tmp_path)
        assert len(list(tmp_path.glob("results/runs/*/summary.json"))) == 2


def finished_name(path: str) -> str:
    """Returns the kind of a file, or of the file whose second half it is."""
    return re.sub(r"/\.([^/]+)\.[^/.]+-\d+-[0-9a-f]+\.tmp", r"/\1", path)
