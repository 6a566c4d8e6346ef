"""A flipped bit anywhere is detected, or does not change any table, figure or result."""

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from flipping import copy, flip, say
from in_process import compute_run
from refusals import names_all
from results import digest, read_json, steps
from support import BIN, POLE, TINY, snakemake, write_yaml
from waiting import wait_until

from qdsweep.errors import QdsweepError
from qdsweep.records.paths import StateDir
from qdsweep.records.status import write_status

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
# Flips in a finished sweep, those of them with Snakemake, and flips in half-done runs.
FLIPS, STARTS, HALVES = (6000, 300, 4000) if LONG else (24, 2, 12)

SWEEP = {
    "name": "mine",
    "experiment": {**POLE, "archive": {"dims": [5, 5]}},
    "sweep": "::: algorithm map_elites map_elites_line ::: seed 1 2",
    "reevaluate": {"times": 2},
}
RUN = {**TINY, "iterations": 150, "reload": {"min_seconds": 0.02, "max_cost": 0.5}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    write_yaml(folder / "sweep.yaml", SWEEP)
    start(folder)
    return folder


@pytest.fixture(scope="module")
def halves(tmp_path_factory) -> dict[str, Path]:
    """A run that was killed in the middle, and the same run undisturbed."""
    folder = tmp_path_factory.mktemp("halves")
    experiment = write_yaml(folder / "experiment.yaml", RUN)
    words = [BIN / "qdsweep", "run", experiment, "--out", folder / "half"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    reloads = StateDir(folder / "half/state").reloads
    wait_until(lambda: len(reloads()) == 2 or process.poll() is not None)
    process.kill()
    process.wait()
    assert not (folder / "half/summary.json").exists()
    return {"half": folder / "half", "whole": compute_run(RUN, folder / "whole")}


def start(folder: Path, check: int | None = 0) -> str:
    done = snakemake("--cores", "2", "--configfile", "sweep.yaml", cwd=folder, check=check)
    return done.stdout + done.stderr


def files_below(folder: Path) -> list[Path]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size)
    return list(paths)


def looks(sweep: Path) -> dict[str, bytes]:
    """The bytes of tables and figures."""
    files = [*sweep.rglob("*.csv"), *sweep.rglob("*.tex"), *sweep.rglob("*.md")]
    files += [*sweep.rglob("*.svg"), *sweep.rglob("*.png"), *sweep.rglob("*.tsv")]
    shown = (path for path in files if ".kept" not in path.parts)
    return {str(path.relative_to(sweep)): path.read_bytes() for path in shown}


def test_in_a_finished_sweep_it_is_noticed_or_harmless(finished, tmp_path):
    """Runs `status`, `aggregate` and `report` after each flip; for some, the same command again."""
    chance = random.Random(7)
    before = looks(finished / "results/sweeps/mine")
    silent = []
    for number in range(FLIPS):
        folder = copy(finished, tmp_path / "work")
        path = chance.choice(files_below(folder / "results"))
        name = path.relative_to(folder)
        position = flip(path, chance)
        at = f"flip {number}: bit {position} of {name}"
        flipped = looks(folder / "results/sweeps/mine")
        if number % 2:  # otherwise the cache of the runs is used
            (folder / "results/sweeps/mine/.aggregated.npz").unlink()
        printed = ""
        try:
            for command in ("aggregate", "report", "status"):
                code, words = say(command, "mine", cwd=folder)
                assert code in (0, 2), f"{at}: {command} ends with {code}\n{words}"
                assert "Traceback" not in words, f"{at}: {command}\n{words}"
                printed += words
        except QdsweepError as error:
            pytest.fail(f"{at}: {error}")
        if number * STARTS // FLIPS != (number + 1) * STARTS // FLIPS:
            words = start(folder, check=None)
            assert "Traceback" not in words, f"{at}:\n{words}"
            printed += words
            after = looks(folder / "results/sweeps/mine")
            if after != before and name.name not in printed:
                silent.append(f"{at}: snakemake leaves another table or figure")
        else:
            after = looks(folder / "results/sweeps/mine")
            changed = {path for path in after if after[path] != before.get(path)}
            changed -= {path for path in changed if after[path] == flipped.get(path)}
            if changed and name.name not in printed:
                silent.append(f"{at}: {sorted(changed)} changed\n{printed}")
        print(f"{at}; silent so far: {len(silent)}", flush=True)
    assert not silent, "\n".join([f"{len(silent)} of {FLIPS}", *silent])


def test_a_folder_with_the_id_of_another_run_names_the_file(halves, tmp_path):
    run = copy(halves["half"], tmp_path / "out")
    state = StateDir(run / "state")
    status = state.status
    other = read_json(status)
    del other["sha256"]
    write_status(state, other | {"id": other["id"].replace("lp_sphere-", "lp_spherm-")})
    write_yaml(tmp_path / "experiment.yaml", RUN)
    code, printed = say("run", "experiment.yaml", "--out", "out", cwd=tmp_path)
    assert code == 2
    names_all(printed, status)
    status.unlink()
    assert say("run", "experiment.yaml", "--out", "out", cwd=tmp_path)[0] == 0
    assert digest(run) == digest(halves["whole"])


def test_in_a_half_done_run_it_is_noticed_or_harmless(halves, tmp_path):
    """The same command gives the same digest and rows, or names the file."""
    chance = random.Random(8)
    for number in range(HALVES):
        run = copy(halves["half"], tmp_path / "out")
        path = chance.choice(files_below(run))
        position = flip(path, chance)
        at = f"flip {number}: bit {position} of {path.relative_to(run)}"
        write_yaml(tmp_path / "experiment.yaml", RUN)
        code, printed = say("run", "experiment.yaml", "--out", "out", cwd=tmp_path)
        print(f"{at}; exit code {code}", flush=True)
        assert code in (0, 2), f"{at}: ends with {code}\n{printed}"
        assert "Traceback" not in printed, f"{at}\n{printed}"
        if code == 2:
            assert path.name in printed, f"{at}: is not named\n{printed}"
            continue
        assert digest(run) == digest(halves["whole"]), f"{at}\n{printed}"
        assert steps(run) == steps(halves["whole"]), f"{at}\n{printed}"
        there = np.load(run / "history.npz") if (run / "history.npz").exists() else None
        with np.load(halves["whole"] / "history.npz") as whole:
            for name in whole if there is not None else ():
                assert (there[name] == whole[name]).all(), f"{at}\n{printed}"
        assert there is not None or "history" in printed, f"{at}\n{printed}"
