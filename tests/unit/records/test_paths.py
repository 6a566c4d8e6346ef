"""Only `records` knows the paths of files under results/."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import qdsweep
from qdsweep.records.paths import Results, RunDir, SweepDir, run_of_connection

PACKAGE = Path(qdsweep.__file__).parent
OWNED = {
    *("state", "sweeps", "plan.json", "confirm.json", "runs.tsv"),
    *("status.json", "summary.json", "last_stop.json", "failure.json", "failed_solution.npz"),
    *("config.yaml", "metrics.csv", "archive.npz", "history.npz", "history.bin", "run.log"),
}


def joined(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Returns texts of paths: right operands of `/`, and arguments of Path, glob or with_name."""
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("Path", "glob", "rglob", "joinpath", "with_name", "join"):
                parts = node.args
        for part in parts:
            for leaf in ast.walk(part):
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                    yield leaf.lineno, leaf.value


def test_no_other_module_builds_these_paths():
    paths = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "records"
        for line, text in joined(ast.parse(path.read_text(encoding="utf-8")))
        if OWNED & set(text.split("/"))
    ]
    assert not paths


@pytest.mark.parametrize(
    "line", ['run / "state"', 'Path(a, "plan.json")', 'x.glob("*/state/status.json")', 'f("state")']
)
def test_the_search_finds_them(line):
    owned = [text for _, text in joined(ast.parse(line)) if OWNED & set(text.split("/"))]
    assert bool(owned) == (not line.startswith("f("))


def test_a_connection_file_identifies_its_run():
    run = RunDir(Path("/results/runs/a"))
    assert run_of_connection(run.state.connection) == run
    assert run_of_connection(Path("/results/runs/a/state/connection.json")) is None


def test_sweeps_are_known_the_last_one_first(tmp_path):
    for name, age in (("old", 20), ("new", 10)):
        sweep = SweepDir(tmp_path / "sweeps" / name)
        sweep.path.mkdir(parents=True)
        sweep.plan.write_text("{}")
        os.utime(sweep.plan, (1_000 - age, 1_000 - age))
    assert [sweep.name for sweep in Results(tmp_path).known_sweeps()] == ["new", "old"]
