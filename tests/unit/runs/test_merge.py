"""Runs of other results folders are merged whole, and only if they are the runs that they claim."""

import json
import os
import random
import re
import shutil
import signal
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from earlier_release import RUNS, unpack
from in_process import qdsweep
from refusals import names_all
from results import outcome, read_json
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import exchange, exchange_in_steps, write_json
from qdsweep.host import lock
from qdsweep.host.lock import Lock
from qdsweep.host.machine import processor
from qdsweep.planning.internals import forget_jobs
from qdsweep.records.aside import put_back
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.results import write_configs
from qdsweep.records.sources import keep_sources
from qdsweep.runs import merge as merging
from qdsweep.sweep.ids import identify, run_id

SMALL = {**TINY, "algorithm": "map_elites", "reload": {"min_seconds": 0.0, "max_cost": 1.0}}
WHOLE = 12
# Its results depend on a file that no id covers, as those of another CPU do.
OUTSIDE = """
from pathlib import Path
import numpy as np
from qdsweep.domains.base import Evaluation

class Outside:
    solution_dim = 3
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        scale = float(Path("scale.txt").read_text())
        return Evaluation(-scale * np.sum(solutions**2, axis=1), solutions[:, :2].copy())
"""


class StopsAfter(Stop):
    """Asks the run to stop in the evaluations that follow this number of iterations."""

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.left = iterations + 2  # the engine is made and awaited first

    def interruptible(self, timeout: float | None = None):
        self.left -= 1
        if self.left < 0:
            self.reason = "the test"
        return super().interruptible(timeout)


def experiment(seed: int, iterations: int = WHOLE, **changes) -> Experiment:
    return compose({**SMALL, **changes}, {"seed": seed, "iterations": iterations})


def put(results: Path, exp: Experiment, stop: int | None = None) -> RunDir:
    """Computes a run, up to an iteration or to its end."""
    run = Results(results).run(run_id(exp))
    run.state.path.mkdir(parents=True, exist_ok=True)
    try:
        with Lock(run.state.lock):
            compute(Attempt.of(exp, run), Stop() if stop is None else StopsAfter(stop))
    except Interrupted:
        assert stop is not None
    if stop is None:
        run.publish()
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Copies runs that were computed once into a results folder."""
    cached = tmp_path_factory.mktemp("runs")

    @cache
    def made(seed: int, iterations: int, stop: int | None) -> RunDir:
        return put(cached / f"{seed}-{iterations}-{stop}", experiment(seed, iterations), stop)

    def copy(results: Path, seed: int, iterations: int = WHOLE, stop: int | None = None) -> RunDir:
        source = made(seed, iterations, stop)
        run = Results(results).run(source.name)
        shutil.copytree(source.state.path, run.state.path)
        if stop is None:
            run.publish()
        return run

    return copy


@pytest.fixture
def ours(tmp_path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def theirs(tmp_path) -> Path:
    return tmp_path / "theirs/results"


def merge(folder: Path, *words: object, code: int = 0) -> str:
    """Merges the results in `theirs` of a folder into its own."""
    return qdsweep("merge", "theirs", *words, cwd=folder, code=code)


def files(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Returns content, time and number of each file, apart from the lock of merges."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".merge.lock"
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        name: content
        for name, (content, *_) in files(folder).items()
        if not Path(name).name.startswith("lock")
    }


def test_runs_are_added_whole_and_the_others_stay(tmp_path, ours, theirs, runs):
    finished, stopped = runs(theirs, 1), runs(theirs, 2, stop=6)
    write_configs({run_id(experiment(3)): experiment(3)}, Results(theirs))
    runs(ours, 4)
    before, known = contents(theirs), files(ours)
    text = merge(tmp_path, "--verbose")
    names_all(text, f"{finished.name}: finished", f"{stopped.name}: resumable", "1 finished")
    assert contents(theirs) == before
    assert {name: files(ours)[name] for name in known} == known
    added, half = (Results(ours).run(run.name) for run in (finished, stopped))
    assert contents(added.state.path) == contents(finished.state.path)
    assert contents(half.state.path) == contents(stopped.state.path)
    assert len(list((ours / "runs").iterdir())) == 3
    # A run appends to metrics.csv, so it has no name in both folders.
    assert added.state.archive.samefile(finished.state.archive)
    assert not added.state.metrics.samefile(finished.state.metrics)
    assert added.summary.stat().st_mtime > finished.summary.stat().st_mtime
    for name in ("config.yaml", "metrics.csv", "archive.npz", "history.npz", "summary.json"):
        assert (added.path / name).samefile(added.state.path / name)
    assert added.reload.samefile(added.state.reload(WHOLE))
    assert not half.summary.exists()
    after = files(ours)
    names_all(merge(tmp_path), "2 already here", "1 without")
    assert files(ours) == after
    # Longer runs there and here do not change the other ones.
    put(theirs, experiment(1, 20))
    assert contents(added.state.path) == {
        name.partition("state/")[2]: content
        for name, content in before.items()
        if name.startswith(f"runs/{added.name}/state/")
    }
    there = contents(theirs)
    put(ours, experiment(2))
    put(ours, experiment(1, 16))
    assert contents(theirs) == there
    assert outcome(half.state.path) == outcome(runs(tmp_path / "straight", 2).state.path)


STATES = {"begun": (0, WHOLE, 0), "4": (4, WHOLE, 4), "8": (8, WHOLE, 8), "end 6": (6, 6, None)}
STATES["end 12"] = (12, 12, None)


@pytest.mark.parametrize("here", STATES)
@pytest.mark.parametrize("there", STATES)
def test_only_a_further_run_replaces_one(tmp_path, ours, theirs, runs, here, there):
    at, *how = STATES[here]
    further, *other = STATES[there]
    run, source = runs(ours, 1, *how), runs(theirs, 1, *other)
    replaces = further > at and not (here == "end 6" and there == "8")
    before = files(ours)
    text = merge(tmp_path)
    if not replaces:
        assert files(ours) == before
        return
    assert "1 finished" in text if "end" in there else "1 unfinished" in text
    assert contents(run.state.path) == contents(source.state.path)
    assert run.summary.exists() == ("end" in there)
    names = {path.name for path in run.path.iterdir()}
    assert not any(name.startswith(".") for name in names)
    if "end" in there:
        assert read_json(run.summary)["iterations"] == further
    if here == "end 6":  # what was made from the archive is older now
        assert run.archive.stat().st_mtime > before[f"runs/{run.name}/archive.npz"][1] / 1e9


def test_a_config_that_a_start_has_written_is_no_run(tmp_path, ours, theirs, runs):
    source = runs(theirs, 1)
    write_configs({source.name: experiment(1)}, Results(ours))
    merge(tmp_path)
    assert contents(Results(ours).run(source.name).state.path) == contents(source.state.path)


@pytest.mark.parametrize("stop", [None, 6])
def test_other_results_of_one_id_are_refused(tmp_path, ours, theirs, plugins, stop):
    plugins("outside", OUTSIDE)
    keys = {"domain": {"type": "outside:Outside", "name": "outside"}}
    for scale, folder in enumerate((ours, theirs), start=1):
        (tmp_path / "scale.txt").write_text(str(scale))
        put(folder, experiment(1, **keys), stop)
    here, there = (next(Results(folder).known_runs()) for folder in (ours, theirs))
    if stop is None:
        summary = read_json(there.state.summary)
        summary["versions"]["numpy"] = "9.9.9"
        write_json(there.state.summary, summary)
        there.state.seal()
    before = files(ours)
    text = merge(tmp_path, code=1)
    names_all(text, here.name, here.path.relative_to(tmp_path), "theirs/results/runs", processor())
    names_all(text, f"qdsweep clean --runs {here.name}", "1 refused", "numpy")
    if stop is None:
        digests = [read_json(run.state.summary)["archive_digest"] for run in (here, there)]
        names_all(text, *digests, "archive_digest", f"numpy {np.__version__}", "numpy 9.9.9")
    else:
        names_all(text, "metrics.csv", "row 6", "qd_score")
    assert files(ours) == before


@pytest.mark.parametrize("place", ["ours", "theirs"])
def test_a_run_that_is_being_computed_is_left(tmp_path, ours, theirs, runs, place):
    here, there = runs(ours, 1, stop=4), runs(theirs, 1)
    other = runs(theirs, 2)
    with Lock((here if place == "ours" else there).state.lock):
        before = files(here.path)
        text = merge(tmp_path)
        assert files(here.path) == before
    names_all(text, f"{here.name}: busy", f"process {os.getpid()}", "1 being computed")
    assert Results(ours).run(other.name).summary.exists()
    names_all(merge(tmp_path), "1 finished", "1 already here")


def flip(path: Path, at: int) -> None:
    """Flips a bit; the file gets another inode, as others may have a name of it."""
    content = bytearray(path.read_bytes())
    content[at // 8] ^= 1 << at % 8
    path.unlink()
    path.write_bytes(content)


# Results do not depend on the others.
SEALED = {"config.yaml", "metrics.csv", "archive.npz", "history.npz", "summary.json", "SHA256SUMS"}


def fingerprint_in(config: bytes, folder: Path) -> str:
    (folder / "read.yaml").write_bytes(config)
    return identify(compose(str(folder / "read.yaml"))).fingerprint


@pytest.mark.parametrize("stop", [None, 6])
def test_a_flipped_bit_is_named(tmp_path, ours, theirs, runs, stop):
    draw = random.Random(5)
    source = runs(theirs, 1, stop=stop)
    kept = contents(source.state.path)
    expected = outcome(source.state.path) if stop is None else None
    named = set()
    for name in kept:
        for _ in range(12):
            path = source.state.path / name
            flip(path, draw.randrange(8 * len(kept[name])))
            changed = path.read_bytes()
            text = qdsweep("merge", "theirs", cwd=tmp_path, code=None)
            path.unlink()
            path.write_bytes(kept[name])
            run = Results(ours).run(source.name)
            if "1 refused" in text:
                assert not run.path.exists()
                named.add(name)
                names_all(text, f"theirs/results/runs/{source.name}/state/")
                if name != "SHA256SUMS":
                    assert path.name in text, (text, changed)
            else:
                if stop and name == "config.yaml":  # of what decides nothing, such as reload
                    assert fingerprint_in(changed, tmp_path) == fingerprint_in(kept[name], tmp_path)
                else:
                    assert name not in SEALED or name == "SHA256SUMS", (text, name, changed)
                assert not name.startswith("reload")
                if expected:
                    assert outcome(run.state.path) == expected
                shutil.rmtree(run.path)
    whole = {"config.yaml", "metrics.csv", "status.json"}
    whole |= {"history.bin"} if stop else SEALED
    assert whole | {name for name in kept if name.startswith("reload")} <= named


def test_a_killed_merge_leaves_runs_whole_and_completes(tmp_path, ours, theirs, runs, monkeypatch):
    """Forks are killed at random moments."""
    monkeypatch.setattr(lock, "BEAT_SECONDS", 0.2)  # some are killed while they take a lock
    for seed in range(1, 5):
        runs(theirs, seed)
        runs(theirs, seed + 4, stop=8)
    runs(tmp_path / "begin", 1, stop=4)
    runs(tmp_path / "begin", 2, 6)
    runs(tmp_path / "begin", 5, stop=4)
    run_names = [run.name for run in Results(theirs).known_runs()]
    early, late = (
        {name: contents(Results(folder).run(name).state.path) for name in run_names}
        for folder in (tmp_path / "begin", theirs)
    )
    begun = time.perf_counter()
    shutil.copytree(tmp_path / "begin", ours)
    merge(tmp_path)
    seconds = time.perf_counter() - begun
    expected = contents(ours)
    draw, middle = random.Random(1), 0
    for _ in range(50):
        shutil.rmtree(ours)
        shutil.copytree(tmp_path / "begin", ours)
        child = os.fork()
        if not child:
            merge(tmp_path)
            os._exit(0)
        time.sleep(draw.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        states = [contents(Results(ours).run(name).state.path) for name in run_names]
        for name, state in zip(run_names, states, strict=True):
            assert state in (early[name], late[name]), name
        middle += any(states) and states != [*late.values()]
        merge(tmp_path)
        assert contents(ours) == expected
    assert middle > 10


def killed_at(rename: int, ours: RunDir, theirs: RunDir) -> None:
    """Kills a merge after one of its renames, where the file system cannot exchange names."""
    child = os.fork()
    if not child:
        usual, left = Path.rename, [rename]

        def rename_(path: Path, target: Path) -> Path:
            renamed = usual(path, target)
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return renamed

        Path.rename, merging.exchange = rename_, exchange_in_steps
        merging.merge_run(theirs, ours, forget_jobs)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


RENAMES = (1, 2, 3)


def start_again(folder: Path, run: RunDir) -> None:
    """As `qdsweep run` does."""
    config = folder / "again.yaml"
    shutil.copy(next(Results(folder / "theirs").path.rglob("config.yaml")), config)
    qdsweep("run", config, "--set", f"iterations={WHOLE}", "--out", run.path, cwd=folder)


@pytest.mark.parametrize("then", ["behind", "clean", "start", "begun", "same"])
@pytest.mark.parametrize("rename", RENAMES)
def test_a_merge_that_was_killed_at_any_rename_loses_nothing(
    tmp_path, ours, theirs, runs, rename, then
):
    """Neither to a merge from a folder that is behind, nor to `clean` or a start."""
    here, there = runs(ours, 1, stop=6), runs(theirs, 1, stop=8)
    behind = runs(tmp_path / "behind/results", 1, stop=4)
    earlier, later = contents(here.state.path), contents(there.state.path)
    killed_at(rename, here, there)
    for path in here.path.glob(".*"):
        os.utime(path, (0, 0))  # days ago
    expected = earlier if rename == 1 else later
    if then == "behind":
        qdsweep("merge", "behind", cwd=tmp_path)
    elif then == "clean":
        half = qdsweep("clean", "--dry-run", cwd=tmp_path)
        assert (".aside.tmp" in half) == (rename == 2)
        qdsweep("clean", cwd=tmp_path)
    elif then == "same":
        merge(tmp_path)
        expected = later
    else:
        if then == "begun":  # a start of an earlier release has written the config
            write_configs({here.name: experiment(1)}, Results(ours))
        start_again(tmp_path, here)
        attempts = read_json(here.state.status)["attempts"]
        assert attempts[-1]["from"] == (6 if rename == 1 else 8)
        straight = runs(tmp_path / "straight", 1)
        assert outcome(here.state.path) == outcome(straight.state.path)
        expected = contents(here.state.path)
    assert contents(here.state.path) == expected
    assert not list(here.path.glob(".*"))
    assert behind.state.path.exists()


def test_a_live_merge_between_two_renames_is_awaited(tmp_path, ours, theirs, runs):
    """Of two processes that find a state/ aside, the second one finds it in its place."""
    here, there = runs(ours, 1, stop=4), runs(theirs, 1)
    known = contents(here.state.path)
    aside = here.path / ".state.node9-7-0123456789ab.tmp.aside.tmp"
    held, go_on = threading.Event(), threading.Event()

    def exchange_slowly() -> None:
        with Lock(here.state.lock) as lock:
            here.state.path.rename(aside)
            held.set()
            go_on.wait(60)
            aside.rename(here.state.path)
            lock.path = here.state.lock

    thread = threading.Thread(target=exchange_slowly)
    thread.start()
    held.wait(60)
    waiting = threading.Thread(target=put_back, args=[here])
    waiting.start()
    time.sleep(1)
    assert waiting.is_alive() and aside.exists() and not here.state.path.exists()
    go_on.set()
    thread.join()
    waiting.join()
    assert contents(here.state.path) == known and here.state.lock.read_bytes() == b""
    assert [path.name for path in here.path.glob(".*")] == []
    merge(tmp_path)
    assert contents(here.state.path) == contents(there.state.path)


@pytest.mark.parametrize("stop", [None, 4])
def test_all_is_on_the_disk_before_the_earlier_state_goes(
    tmp_path, ours, theirs, runs, monkeypatch, stop
):
    here, _ = runs(ours, 1, stop=4), runs(theirs, 1, stop=stop and 8)
    synced: list[Path] = []
    usual = os.fsync

    def fsync(descriptor: int) -> None:
        usual(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    def exchange_(folder: Path, other: Path) -> None:
        copied = {path for path in other.iterdir() if not path.name.startswith("lock")}
        assert len(copied) > 5 and {*copied, other} <= {*synced}
        exchange(folder, other)
        synced.clear()

    def rmtree(path: Path, **options: object) -> None:
        assert here.path in synced
        remove(path, **options)

    remove = shutil.rmtree
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(merging, "exchange", exchange_)
    monkeypatch.setattr(merging.shutil, "rmtree", rmtree)
    kind = merging.merge_run(next(Results(theirs).known_runs()), here, forget_jobs).kind
    assert kind == ("resumable" if stop else "finished")


def test_fifty_merges_killed_at_random_renames_lose_nothing(tmp_path, ours, theirs, runs):
    """Several kills of one run, then another merge, `clean` or a start."""
    draw = random.Random(7)
    for turn in range(50):
        for folder in (ours, theirs, tmp_path / "behind"):
            shutil.rmtree(folder, ignore_errors=True)
        here, there = runs(ours, 1, stop=6), runs(theirs, 1, stop=8)
        runs(tmp_path / "behind/results", 1, stop=4)
        earlier, later = contents(here.state.path), contents(there.state.path)
        for _ in range(draw.randrange(1, 4)):
            if contents(here.state.path) != later:
                killed_at(draw.choice(RENAMES), here, there)
        go_on = draw.choice([("clean",), ("merge", "behind"), ("run",)])
        if go_on == ("run",):
            start_again(tmp_path, here)
            assert read_json(here.state.status)["attempts"][-1]["from"] >= 6, turn
        else:
            qdsweep(*go_on, cwd=tmp_path)
            assert contents(here.state.path) in (earlier, later), turn


@pytest.mark.parametrize("exchanging", [exchange, exchange_in_steps])
def test_two_folders_exchange_their_names(tmp_path, exchanging):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    exchanging(tmp_path / "a", tmp_path / "b")
    assert {path.name: next(path.iterdir()).name for path in tmp_path.iterdir()} == {
        "a": "b",
        "b": "a",
    }
    with pytest.raises(FileNotFoundError):
        exchanging(tmp_path / "a", tmp_path / "c")
    assert (tmp_path / "a").exists()


def test_the_list_is_of_the_runs_that_are_lacking(tmp_path, ours, theirs, runs):
    lacking = [runs(theirs, 1), runs(theirs, 2, stop=8), runs(theirs, 3)]
    runs(theirs, 4)
    runs(theirs, 5, stop=4)
    runs(ours, 2, stop=4)
    runs(ours, 3, 6)
    runs(ours, 4)
    runs(ours, 5, stop=8)
    before = files(ours)
    names = sorted(f"results/runs/{run.name}" for run in lacking)
    assert merge(tmp_path, "--list").splitlines() == names
    for path in theirs.glob("runs/*/state/*"):  # a copy of only the small files
        if path.name not in ("status.json", "summary.json"):
            path.unlink()
    assert merge(tmp_path, "--list").splitlines() == names
    text = qdsweep("merge", theirs, "--list", cwd=tmp_path)
    assert text.splitlines() == [name.removeprefix("results/") for name in names]
    assert files(ours) == before


@pytest.mark.parametrize(
    "name", ["config.yaml", "metrics.csv", f"reload-{WHOLE:09d}.pkl", "status.json", "lock"]
)
def test_a_run_that_lacks_a_file_or_has_a_pipe_is_refused(tmp_path, ours, theirs, runs, name):
    """Such as a copy that was interrupted. The whole copy is added."""
    source = runs(theirs, 1)
    path, content = source.state.path / name, (source.state.path / name).read_bytes()
    path.unlink()
    if name not in ("status.json", "lock"):
        names_all(merge(tmp_path, code=1), path.relative_to(tmp_path), "1 refused")
    os.mkfifo(path)
    for words in ((), ("--list",)):
        names_all(merge(tmp_path, *words, code=1), path.relative_to(tmp_path))
    assert not Results(ours).run(source.name).path.exists()
    path.unlink()
    path.write_bytes(content)
    names_all(merge(tmp_path), "1 finished")


def test_what_this_user_may_not_read_is_named(tmp_path, theirs, runs):
    source = runs(theirs, 1)
    for path in (source.state.status, theirs / "runs"):
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("root may read all")
        for words in ((), ("--list",)):
            names_all(merge(tmp_path, *words, code=1), path.relative_to(tmp_path))
        path.chmod(0o700)


def test_plug_ins_with_other_code_are_named_and_their_code_is_kept(tmp_path, ours, theirs, plugins):
    (tmp_path / "scale.txt").write_text("1")
    plugins("outside", OUTSIDE)
    keys = {"domain": {"type": "outside:Outside", "name": "outside"}}
    exp = experiment(1, **keys)
    keep_sources([exp], Results(theirs))
    run = put(theirs, exp)
    half = put(theirs, experiment(2, **keys), 6)
    assert "outside.py" not in merge(tmp_path)
    shutil.rmtree(ours)
    plugins("outside", OUTSIDE.replace("-scale", "-2 * scale"))
    text = merge(tmp_path)
    names_all(text, "config/plugins/outside.py", "2 runs", theirs.relative_to(tmp_path) / "sources")
    (kept,) = (ours / "sources").iterdir()
    assert contents(kept) == contents(theirs / "sources" / kept.name)
    assert kept.stat().st_mtime_ns == (theirs / "sources" / kept.name).stat().st_mtime_ns
    for name in (run.name, half.name):
        assert Results(ours).run(name).state.status.exists()
    shutil.rmtree(ours)
    flip(theirs / "sources" / kept.name / "outside.py", 100)
    names_all(merge(tmp_path, code=1), theirs.relative_to(tmp_path) / "sources" / kept.name)
    assert not (ours / "sources").exists()


def test_results_of_an_earlier_release_are_merged(tmp_path):
    unpack(tmp_path / "theirs")
    shutil.copytree(tmp_path / "theirs/config", tmp_path / "config", dirs_exist_ok=True)
    text = merge(tmp_path)
    _, finished, unfinished = map(int, re.findall(r"\d+", text))
    assert finished + unfinished == len(list((tmp_path / "theirs/results/runs").iterdir()))
    for run in RUNS:
        states = [tmp_path / at / "runs" / run / "state" for at in ("results", "theirs/results")]
        there = contents(states[1])
        assert contents(states[0]) == {name: there[name] for name in there if "/" not in name}


def test_wrong_input_is_refused(tmp_path, ours, theirs, runs):
    runs(ours, 1)
    names_all(qdsweep("merge", "nowhere", cwd=tmp_path, code=2), "nowhere", "results/runs/")
    names_all(qdsweep("merge", "results", cwd=tmp_path, code=2), "results")
    names_all(qdsweep("merge", ".", cwd=tmp_path, code=2), "results")
    run = runs(theirs, 1, stop=4)
    run.state.status.write_text(json.dumps([]))
    names_all(merge(tmp_path, code=1), run.state.status.relative_to(tmp_path))
    torn = Results(ours).run(run.name).state.status
    torn.parent.mkdir(parents=True, exist_ok=True)
    torn.write_text("{")
    for words in ((), ("--list",)):
        names_all(merge(tmp_path, *words, code=1), torn.relative_to(tmp_path))
    with Lock(ours / ".merge.lock"):
        names_all(merge(tmp_path, code=75), "results", f"process {os.getpid()}")
