"""A fault is reported in one message with the fault and the allowed values; nothing starts."""

import os
import re
from pathlib import Path

import pytest
from bad_by_hand import hand_made, only_as_processes
from bad_input import Case, generated
from in_process import qdsweep
from support import REPO, command, snakemake

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture


def sample() -> list[Case]:
    """Returns those that are real processes also in the short form."""
    made, apart = list(generated()), list(only_as_processes())
    names = "snakemake --config sweep=::: seed x|snakemake: (plan huge: {archive: {dims|.*bomb)"
    return [
        *made[:: len(made) // 2],
        *(case for case in hand_made() if case.name.startswith("run huge: {archive: {dims")),
        *apart[:1],
        *(case for case in apart if re.match(names, case.name)),
    ]


def message_in_process(case: Case, folder: Path) -> str:
    return qdsweep(*case.words[1:], cwd=folder, code=2)


def message_of_process(case: Case, folder: Path) -> str:
    if case.words[0] == "snakemake":  # its exit code is 1 for all failures
        done = snakemake(*case.words[1:], cwd=folder, check=1)
    else:
        done = command(*case.words, cwd=folder, check=2)
    return done.stdout + done.stderr


def tree(folder: Path) -> set[tuple[str, int]]:
    """All files below a folder with their times, without Snakemake's files."""
    paths = {path.relative_to(folder): path for path in folder.rglob("*")}
    return {
        (str(name), 0 if path.is_dir() else path.lstat().st_mtime_ns)
        for name, path in paths.items()
        if name.parts[0] != ".snakemake"
    }


def check(cases: list[Case], folder: Path, message_of) -> dict[Case, str]:
    """Runs each case, fails with the list of bad answers, and returns the messages."""
    messages, wrong = {}, []
    for number, case in enumerate(cases, 1):
        place = folder / str(number)
        place.mkdir()
        case.write(place)
        before = tree(place)
        try:
            message = messages[case.name] = message_of(case, place)
        except BaseException as error:
            wrong.append(f"{case}: {type(error).__name__}: {error}")
        else:
            faults = case.faults_of(message)
            faults += [f"it wrote {name}" for name, _ in sorted(tree(place) ^ before)]
            wrong += [f"{case}: {'; '.join(faults)}:\n{message}"] if faults else []
        if number % 100 == 0:  # the long form takes an hour
            print(f"{number} of {len(cases)} inputs, {len(wrong)} answered badly", flush=True)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    return messages


@pytest.mark.timeout(1200)
def test_a_wrong_value_of_every_kind_is_named(tmp_path):
    made = list(generated())
    assert len(made) > 1500
    check(made if LONG else made[::3], tmp_path, message_in_process)


@pytest.mark.timeout(1200)
def test_hand_made_ones_are_named(tmp_path, snapshot):
    by_hand = list(hand_made())
    messages = check(by_hand, tmp_path, message_in_process)
    assert len(messages) == len(by_hand), "all names differ"
    # Without the texts of Python and argparse, which differ between Python versions.
    left_out = re.compile("plan(:| huge)|(name|experiment|cluster) '|run: a plug-in that is no")
    lines = [shortened(messages[name], tmp_path) for name in messages if not left_out.match(name)]
    lines = [line for line in dict.fromkeys(lines) if not line.startswith("usage:")]
    assert "\n".join(lines) == snapshot


def shortened(message: str, folder: Path) -> str:
    """Returns a message as one line that is the same on any machine."""
    line = re.sub(rf"{folder}/\d+/|{REPO}/", "", " / ".join(message.split("\n")))
    line = re.sub(r"\d+ GiB(?=;)", "N GiB", line)  # of this machine
    line = re.sub(r"((?:[\w.]+, ){3})(?:[\w.]+, )+[\w.]+", r"\1...", line)
    line = re.sub(r"(.)\1{20,}", r"\1...", line).removeprefix("qdsweep: ").strip(" /")
    return re.sub(r" +", " ", line)


@pytest.mark.timeout(20_000)
def test_real_processes_say_the_same(tmp_path):
    cases = [*generated(), *hand_made(), *only_as_processes()] if LONG else sample()
    check(cases, tmp_path, message_of_process)
