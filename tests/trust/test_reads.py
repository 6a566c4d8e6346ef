"""A flipped bit in any file that a command reads is noticed, or changes no number.

The commands are the jobs of a study: runs of every kind of archive, a learner, a search,
re-evaluations, imported results, tables, figures, the page and what follows from it.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flipping import copy, flip, say
from results import read_json, steps
from support import POLE, write_yaml
from test_disks import planned

from qdsweep.errors import BadInput
from qdsweep.features.explore.live import open_run
from qdsweep.features.explore.packed import index, pack
from qdsweep.features.explore.shown_runs import ShownRun
from qdsweep.files import read_arrays
from qdsweep.records.paths import RunDir
from qdsweep.records.plan import read_confirm, read_plan
from qdsweep.runs.load import load, load_elites, load_sweep

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KINDS = "map_elites cvt_map_elites sliding_boundaries nslc dns"
EXPERIMENT = {
    "domain": {**POLE["domain"], "max_episode_steps": 40},
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 8,
    "iterations": 3,
    "reload": {"min_seconds": 0, "max_seconds": 1e-6},
}
SWEEP = {
    "name": "kinds",
    "experiment": EXPERIMENT,
    "sweep": f"::: algorithm {KINDS} ::: seed 1 2",
    "reevaluate": {"times": 2},
    "confirm": {"top": 1, "seeds": [101, 102]},
}
SEARCH = {
    "name": "search",
    "experiment": EXPERIMENT,
    "sweep": "::: sigma 0.1 0.5 1.0 ::: seed 1",
    "search": {"halving": {"rungs": [0.5, 1], "seeds": [1, 1]}},
}
LEARNER = {
    "domain": {
        "type": "gymnasium",
        "env": "Pendulum-v1",
        "max_episode_steps": 12,
        "objective_range": [-200, 0],
        "measures": [{"measure": "mean_abs_action", "component": 0, "range": [0, 2]}],
    },
    "algorithm": {"preset": "td3", "training_ratio": 0.05, "learner": {"minibatch": 16}},
    "archive": {"dims": [8]},
    "num_emitters": 1,
    "batch_size": 4,
    "iterations": 2,
}
THEIRS = {
    "algorithm": "theirs",
    "domain": "pole",
    "seeds": [1],
    "objective_range": [0, 500],
    "evaluations": 300,
    "archive": {"file": "theirs.npz", "dims": [5, 5], "ranges": [[-2, 2], [0, 1]]},
}


class Reads:
    """The files below a folder that this process opens to read, in a block of `noted`."""

    def __init__(self) -> None:
        self.folder, self.seen = "", list[str]()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple) -> None:
        if event == "open" and self.folder and isinstance(arguments[0], str | bytes):
            path, mode, flags = os.fsdecode(arguments[0]), *arguments[1:]
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not writes and not set(mode or "r") & set("wax"):
                self.seen.append(str(Path(path).absolute()))

    @contextlib.contextmanager
    def noted(self, folder: Path) -> Iterator[set[Path]]:
        found = set[Path]()
        self.seen.clear()
        self.folder = str(folder)
        try:
            yield found
        finally:
            self.folder = ""
            paths = (Path(path) for path in self.seen)
            found |= {p.relative_to(folder) for p in paths if p.is_relative_to(folder)}


READS = Reads()

_RUN = re.compile(r"[a-z_]+-[a-z_0-9]+-s\d+-[0-9a-f]{10}")
# No command takes a number from these.
_NO_NUMBERS = re.compile(r"/lock$|\.lock$|/run\.log$|\.tmp$")
# These commands take seconds. The short form flips as many bits for each of them as here.
SLOW = {"plot": 0, "evolution": 0, "report": 4, "export": 4}
# A command, or a function of the study's folder with numbers.
Command = tuple[object, ...] | Callable[[Path], str]


def kind_of(path: Path) -> str:
    """Returns the name of files that one piece of code reads."""
    return re.sub(r"[0-9a-f]{32}|\d+", "N", _RUN.sub("RUN", str(path)))


_ARRAYS: dict[bytes, dict[str, bytes]] = {}


def arrays_of(path: Path) -> dict[str, bytes]:
    """Returns the arrays of a file; of files with equal bytes, it reads only the first."""
    key = hashlib.sha256(path.read_bytes()).digest()
    if key not in _ARRAYS:
        arrays = read_arrays(path)
        _ARRAYS[key] = {name: values.tobytes() for name, values in arrays.items()}
    return _ARRAYS[key]


def numbers(folder: Path, but: Path = Path()) -> dict[str, object]:
    """Returns the results of all runs, and the bytes of all other files with results, but one."""
    found: dict[str, object] = {}
    same = folder / but.parent, folder / but.parent.parent  # hard links of files in state/
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or (path.name == but.name and path.parent in same):
            continue
        if "/state/" in name or "/." in name or _NO_NUMBERS.search(name):
            continue
        if path.name == "summary.json":
            found |= {f"{name}: {key}": value for key, value in read_json(path).items()}
        elif path.name == "metrics.csv":
            found[name] = steps(path.parent)
        elif path.suffix == ".npz":
            with contextlib.suppress(BadInput):  # a copy of a damaged file
                found[name] = arrays_of(path)
        elif path.suffix != ".pkl":
            found[name] = path.read_bytes()
    return found


def differing(first: dict[str, object], second: dict[str, object]) -> set[str]:
    return {name for name in first | second if first.get(name) != second.get(name)}


class Study:
    """A folder in which commands run, once as they are and then with flipped bits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "study"
        self.before, self.straight = folder / "before", folder / "straight"
        self.folder.mkdir()
        self.chance = random.Random(12)
        self.silent, self.tried = list[str](), set[str]()

    def run(self, command: Command) -> tuple[int, str, dict[str, object]]:
        """Runs a command; returns its exit code, all that it has printed, and its own numbers."""
        if callable(command):
            try:
                text = command(self.folder)
            except BadInput as error:
                return 2, str(error), {}
            return 0, text, {"its result": text}
        logs = {path: path.stat().st_size for path in self.folder.rglob("state/run.log")}
        code, printed = say(*command, cwd=self.folder)
        assert code in (0, 1, 2), (code, printed)
        assert "Traceback" not in printed, printed
        for path in self.folder.rglob("state/run.log"):
            printed += path.read_text()[logs.get(path, 0) :]
        return code, printed, {}

    def do(self, *commands: Command) -> None:
        """Runs commands, and each of them with a flip in every kind of file that it reads."""
        for command in commands:
            self._do(command)

    def _do(self, command: Command) -> None:
        copy(self.folder, self.before)
        with READS.noted(self.folder) as read:
            code, printed, own = self.run(command)
        assert code == 0, (command, printed)
        what = command.__name__ if callable(command) else str(command[0])
        kinds = self._kinds(what, read)
        if not kinds:
            return
        expected = numbers(self.folder) | own
        copy(self.folder, self.straight)
        copy(self.before, self.folder)
        again = self.run(command)[2]
        volatile = differing(expected, numbers(self.folder) | again)
        for kind, paths in kinds.items():
            self.tried.add(kind)
            is_all = LONG or "centroids" in kind  # which had no checksum once
            for third in range(3) if is_all else [self.chance.randrange(3)]:
                self._flip(command, self.chance.choice(paths), third, expected, volatile)
        copy(self.straight, self.folder)

    def _kinds(self, what: str, read: set[Path]) -> dict[str, list[Path]]:
        by_kind: dict[str, list[Path]] = {}
        for path in sorted(read):
            there, kind = self.before / path, f"{what}: {kind_of(path)}"
            is_ours = path.parts[0] == "results" and not _NO_NUMBERS.search(str(path))
            if is_ours and kind not in self.tried and there.is_file() and there.stat().st_size:
                by_kind.setdefault(kind, []).append(path)
        if LONG or what not in SLOW:
            return by_kind
        chosen = self.chance.sample(sorted(by_kind), min(SLOW[what], len(by_kind)))
        return {kind: by_kind[kind] for kind in chosen}

    def _flip(
        self,
        command: Command,
        path: Path,
        third: int,
        expected: dict[str, object],
        volatile: set[str],
    ) -> None:
        copy(self.before, self.folder)
        target = self.folder / path
        size = target.stat().st_size
        width = min(size, 300)
        start = (0, (size - width) // 2, size - width)[third]
        position = flip(target, self.chance, start, start + width)
        at = f"{command}: bit {position} of {path}"
        try:
            code, printed, own = self.run(command)
        except Exception as error:  # also an assertion about the command
            self.silent.append(f"{at}: {type(error).__name__}: {error}")
            return
        found = numbers(self.folder, path) | own
        wrong = differing(expected, found) - volatile
        wrong = {name for name in wrong if name in found or not is_of(name, path)}
        if wrong and not code and path.name not in printed:
            self.silent.append(f"{at}: {sorted(wrong)}\n{printed[-600:]}")


def is_of(name: str, path: Path) -> bool:
    """Whether a number is of a file, or of its second name."""
    return Path(name.partition(": ")[0]).name == path.name


def explored(folder: Path) -> str:
    """Returns what the page of `qdsweep explore` gets of all runs."""
    runs = [RunDir(path) for path in sorted((folder / "results/runs").iterdir())]
    shown = [ShownRun(run.path, run.name, "black") for run in runs]
    packed = [pack(open_run(run.path)).hex() for run in runs]
    return json.dumps(index(shown) | {"packed": packed}).replace(str(folder), "")


def loaded(folder: Path) -> str:
    """Returns what Python reads of all runs, and evaluates again."""
    with contextlib.chdir(folder):
        texts = [load_sweep("kinds").to_csv(), load_elites("kinds").to_csv()]
        for path in sorted(Path("results/runs").iterdir()):
            run = load(path)
            texts += [run.metrics.to_csv(), str(run.arrays), str(run.replay(run.best()))]
    return "\n".join(texts)


@pytest.fixture
def study(tmp_path, monkeypatch) -> Study:
    monkeypatch.chdir(tmp_path)
    return Study(tmp_path)


def launch(run: str, iterations: int) -> Command:
    return "launch", run, "--budget", f"iterations={iterations}"


@pytest.mark.timeout(20_000 if LONG else 900)
def test_in_what_the_jobs_of_a_sweep_read_it_is_noticed_or_harmless(study):
    sweep = planned(study.folder, SWEEP).sweep("kinds")
    runs = [row.run for row in read_plan(sweep).rows]
    study.do(*(launch(run, 2) for run in runs[:4]))
    study.do(("aggregate", "kinds", "--partial"))
    study.do(*(launch(run, 3) for run in runs))
    repeats = [("reevaluate", f"results/runs/{run}", "--times", 2) for run in runs]
    study.do(*repeats, *((stage, "kinds") for stage in ("aggregate", "corrected", "winners")))
    study.do(*(launch(row["id"], 3) for row in read_confirm(sweep)))
    stages = [(stage, "kinds") for stage in ("confirmed", "plot", "evolution", "report", "export")]
    study.do(*stages, ("export", "kinds", "--to", "tensorboard", "tb"))
    study.do(("merge", "results", "--results", "merged"), explored, loaded)
    assert not study.silent, "\n".join(
        [f"{len(study.silent)} of {len(study.tried)}", *study.silent]
    )
    assert any("centroids/cvt-N-" in kind for kind in study.tried)


@pytest.mark.timeout(20_000 if LONG else 900)
def test_in_what_searches_learners_and_imports_read_it_is_noticed_or_harmless(study):
    plan = read_plan(planned(study.folder, SEARCH).sweep("search"))
    for level in plan.levels:
        if level.kind != "known":
            study.do(*(("decide", "search", level.name, block) for block in range(level.blocks)))
        study.do(*(("place", "search", level.name, n, "--seed=1") for n in range(level.places)))
    study.do(*((stage, "search") for stage in ("search", "aggregate", "importance")))
    write_yaml(study.folder / "learner.yaml", LEARNER)
    learns = ("run", "learner.yaml", "--out", "results/learner", "--set")
    study.do((*learns, "iterations=1"), (*learns, "iterations=2"))
    write_yaml(study.folder / "theirs.yaml", THEIRS)
    theirs = next(study.folder.glob("results/runs/*/archive.npz"))
    shutil.copy(theirs, study.folder / "theirs.npz")
    study.do(("import", "theirs.yaml"))
    assert not study.silent, "\n".join(
        [f"{len(study.silent)} of {len(study.tried)}", *study.silent]
    )
