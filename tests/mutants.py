"""Mutation testing: `make mutants`, or `python tests/mutants.py sweep/grammar` for one module.

mutmut makes hundreds of small changes to the functions of some modules, and runs the tests that
call the function. A change that no test detects survives. The modules and tests are set in
pyproject.toml. It works in build/mutants, where the package is in `src/`, as mutmut requires.

Changes that reword a text are not counted, because tests do not check wordings. A change without
any effect counts as a survivor.
"""

import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
WORK = REPO / "build/mutants"
LEAST = 0.85  # the required fraction of killed mutants in each module
# Exit codes of mutmut's tries. Of the first ones, all except 1 and 3 mean an endless loop.
OUTCOMES = {
    "killed": (1, 3, 24, 36, 152, 255, -24, -11, -9),
    "survived": (0,),
    "without a test": (5, 33),
}


def main() -> int:
    """Tries the mutants and prints the killed ones; returns 1 if a module has too few."""
    settings = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["mutmut"]
    modules = [path.removeprefix("src/qdsweep/")[:-3] for path in settings["only_mutate"]]
    wanted = sys.argv[1:] or modules
    lay_out([*settings["also_copy"], "tests", "pyproject.toml"])
    names = [f"qdsweep.{module.replace('/', '.')}.x*" for module in sys.argv[1:]]
    words = [Path(sys.executable).parent / "mutmut", "run", *names]
    with tempfile.TemporaryDirectory(prefix="m") as folder:
        subprocess.run(words, cwd=WORK, check=True, env={**os.environ, "TMPDIR": folder})
    print(f"{'module':24}{'killed':>8}{'mutants':>9}")
    failed, diffs = False, []
    for module in wanted:
        counts = Counter[str]()
        for outcome, diff in outcomes(WORK / f"mutants/src/qdsweep/{module}.py"):
            counts[outcome] += 1
            diffs += [f"{outcome}: {diff}\n"] if outcome != "killed" else []
        share = counts["killed"] / counts.total()
        failed = failed or share < LEAST
        print(f"{module:24}{counts['killed']:8}{counts.total():9}{share:7.0%}")
    survivors = WORK / "survivors.diff"
    survivors.write_text("\n".join(diffs))
    print(f"{len(diffs)} survivors: {survivors.relative_to(REPO)}")
    return int(failed)


def lay_out(names: list[str]) -> None:
    """Makes mutmut's working folder, with links to the files that it copies."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for name in names:
        (WORK / name).symlink_to(REPO / name)
    (WORK / "src").symlink_to(REPO / "workflow")


def outcomes(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the outcome of each mutant of a module, and its change."""
    lines = path.read_text().splitlines()
    spans = json.loads(Path(f"{path}.spans").read_text())["spans"]
    results = json.loads(Path(f"{path}.meta").read_text())["exit_code_by_key"]

    def source(function: str) -> list[str]:
        first, last = spans[function]
        text = textwrap.dedent("\n".join(lines[first - 1 : last]))
        return re.sub(r"__mutmut_\w+", "", text).splitlines()

    for name, code in results.items():
        function = name.rpartition(".")[2]
        before = source(re.sub(r"__mutmut_\d+", "__mutmut_orig", function))
        after = source(function)
        if sense_of(before) == sense_of(after):
            continue
        diff = [*difflib.unified_diff(before, after, name, name, lineterm="", n=1)]
        outcome = next((known for known, codes in OUTCOMES.items() if code in codes), "not tried")
        yield outcome, "\n".join(diff[1:])


def sense_of(lines: list[str]) -> str:
    """Returns a function without the wording of its messages."""
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "" if re.search(r"\w,? \w", node.value) else node.value
    return ast.dump(tree)


if __name__ == "__main__":
    sys.exit(main())
