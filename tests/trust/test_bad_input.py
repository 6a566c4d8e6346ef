"""What is wrong is said in one message that names it, and nothing is begun."""

import os
import re
from pathlib import Path

import pytest
from bad_input import REMEDY, Case, generated, hand_made, only_as_processes, tree
from in_process import qdsweep
from support import command, snakemake

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
MADE = list(generated())
BY_HAND = list(hand_made())
APART = list(only_as_processes())
# What is started as real processes in the short form, too.
SAMPLE = [
    *MADE[:: len(MADE) // 2],
    *(case for case in BY_HAND if case.name == "run with archive.dims = [1000000000, 1000000000]"),
    *APART[:1],
    *(case for case in APART if case.name == "snakemake --config sweep=::: seed x"),
    *(case for case in APART if re.match(r"snakemake: (plan with archive.dims|.*bomb)", case.name)),
]


def answer_in_process(case: Case, folder: Path) -> str:
    return qdsweep(*case.words[1:], cwd=folder, code=2)


def answer(case: Case, folder: Path) -> str:
    if case.words[0] == "snakemake":  # which has exit code 1 for all that fails
        done = snakemake(*case.words[1:], cwd=folder, check=1)
    else:
        done = command(*case.words, cwd=folder, check=2)
    return done.stdout + done.stderr


def check(case: Case, folder: Path, ask) -> str:
    """Asks, and checks the answer; returns what is wrong with it."""
    folder.mkdir()
    case.write(folder)
    before = tree(folder)
    try:
        said = ask(case, folder)
    except BaseException as error:
        return f"{case}: {type(error).__name__}: {error}"
    wrong = [f"it lacks {part}" for part in case.says if not has(said, part)]
    if "Traceback" in said or not said.strip() or "\n\n" in said.strip():
        wrong.append("it is no single message")
    if not REMEDY.search(said):
        wrong.append("it has no remedy")
    if (written := sorted(tree(folder).items() ^ before.items())) and ask is answer:
        written = [(name, _) for name, _ in written if not name.startswith(".snakemake")]
    if written:
        wrong.append(f"written: {written[:5]}")
    return f"{case}: {'; '.join(wrong)}:\n{said}" if wrong else ""


def has(said: str, part: str) -> bool:
    return any(one in said for one in part.split("|"))


def failures(cases: list[Case], folder: Path, ask) -> list[str]:
    found = []
    for number, case in enumerate(cases, 1):
        if wrong := check(case, folder / str(number), ask):
            found.append(wrong)
            print(wrong)
        if number % 100 == 0:  # the long form takes an hour
            print(f"{number} of {len(cases)} inputs, {len(found)} answered badly", flush=True)
    return found


def test_there_are_300_and_more():
    assert len(MADE) > 1000 and len(BY_HAND) + len(APART) > 200
    assert len({case.name for case in (*MADE, *BY_HAND, *APART)}) == len(MADE + BY_HAND + APART)


@pytest.mark.timeout(1200)
def test_a_wrong_value_of_every_kind_is_named(tmp_path):
    wrong = failures(MADE if LONG else MADE[::6], tmp_path, answer_in_process)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.timeout(1200)
def test_hand_made_ones_are_named(tmp_path):
    wrong = failures(BY_HAND, tmp_path, answer_in_process)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.timeout(20_000)
def test_real_processes_say_the_same(tmp_path):
    wrong = failures([*MADE, *BY_HAND, *APART] if LONG else SAMPLE, tmp_path, answer)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
