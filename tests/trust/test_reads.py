"""A flipped bit in any file that a command reads is noticed, or changes no number.

The commands are the jobs of a study: runs of every kind of archive, a learner, a search,
re-evaluations, results of others, tables, figures, the page and what follows from it.
"""

import contextlib
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from flipping import copy, flip, say
from results import read_json, steps
from support import POLE

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KINDS = "map_elites cvt_map_elites sliding_boundaries nslc dns"
EXPERIMENT = {
    "domain": POLE["domain"],
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


def kind_of(path: Path) -> str:
    """Returns the name of files that one piece of code reads."""
    name = _RUN.sub("RUN", str(path))
    return re.sub(r"[0-9a-f]{32}|\d+", "N", name)


def numbers(folder: Path, but: Path = Path()) -> dict[str, object]:
    """Returns the results of all runs, and the bytes of all other files with results, but one."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == but.name and path.parent in (
            folder / but.parent,
            folder / but.parent.parent,
        ):
            continue
        if not path.is_file() or "/state/" in name or "/." in name or _NO_NUMBERS.search(name):
            continue
        if path.name == "summary.json":
            found |= {f"{name}: {key}": value for key, value in read_json(path).items()}
        elif path.name == "metrics.csv":
            found[name] = steps(path.parent)
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                found[name] = {key: arrays[key].tobytes() for key in arrays}
        elif path.suffix != ".pkl":
            found[name] = path.read_bytes()
    return found


def differing(first: dict[str, object], second: dict[str, object]) -> set[str]:
    return {name for name in first | second if first.get(name) != second.get(name)}


class Study:
    """A folder in which commands run, once as they are and then with flipped bits."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder / "study", most
        self.before, self.straight = folder / "before", folder / "straight"
        self.folder.mkdir()
        self.chance = random.Random(12)
        self.silent, self.flips, self.kinds = list[str](), 0, set[str]()

    def run(self, *words: object) -> tuple[int, str]:
        """Runs a command; returns its exit code and all that it has printed and logged."""
        logs = {path: path.stat().st_size for path in self.folder.rglob("state/run.log")}
        code, printed = say(*words, cwd=self.folder)
        assert "Traceback" not in printed, (words, printed)
        assert code in (0, 2), (words, code, printed)
        for path in self.folder.rglob("state/run.log"):
            printed += path.read_text()[logs.get(path, 0) :]
        return code, printed

    def do(self, *words: object) -> None:
        """Runs a command, and then with a flip in each kind of file that it reads."""
        copy(self.folder, self.before)
        with READS.noted(self.folder) as read:
            self.run(*words)
        expected = numbers(self.folder)
        copy(self.folder, self.straight)
        by_kind: dict[str, list[Path]] = {}
        for path in sorted(read):
            there = self.before / path
            if there.is_file() and there.stat().st_size and not _NO_NUMBERS.search(str(path)):
                by_kind.setdefault(f"{words[0]}: {kind_of(path)}", []).append(path)
        copy(self.before, self.folder)
        self.run(*words)
        volatile = differing(expected, numbers(self.folder))
        for kind, paths in by_kind.items():
            if kind in self.kinds and not LONG:
                continue
            self.kinds.add(kind)
            for third in range(3):
                self.flip(words, self.chance.choice(paths), third, expected, volatile)
        copy(self.straight, self.folder)

    def flip(
        self, words: tuple, path: Path, third: int, expected: dict[str, object], volatile: set[str]
    ) -> None:
        copy(self.before, self.folder)
        target = self.folder / path
        size = target.stat().st_size
        width = min(size, 300)
        start = (0, (size - width) // 2, size - width)[third]
        position = flip(target, self.chance, start, start + width)
        self.flips += 1
        at = f"{words}: bit {position} of {path}"
        try:
            code, printed = self.run(*words)
        except Exception as error:  # also an assertion about the command
            self.silent.append(f"{at}: {type(error).__name__}: {error}")
            return
        found = numbers(self.folder, path)
        wrong = differing(expected, found) - volatile
        wrong = {name for name in wrong if name in found or self.is_other(name, path)}
        if wrong and not code and path.name not in printed:
            self.silent.append(f"{at}: {sorted(wrong)}\n{printed[-600:]}")

    @staticmethod
    def is_other(name: str, path: Path) -> bool:
        return Path(name.partition(": ")[0]).name != path.name
