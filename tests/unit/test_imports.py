"""The folders of the package stand in one order, and what Snakemake imports is light."""

import ast
import subprocess
import sys

import pytest
from support import REPO

PACKAGE = REPO / "workflow/qdsweep"
# A later one may import an earlier one, never back, also not in a function.
ORDER = (
    *("errors", "files", "versions", "text", "metrics", "host", "config", "sweep", "records"),
    *("search", "planning", "domains", "algorithms", "engines", "container", "experiment"),
    *("elites", "analysis", "scaling", "cli", "warm"),
)
# The package itself: `from qdsweep import load`, and `python -m qdsweep`.
AROUND = ("__init__", "__main__")
# What the Snakefile may import, and the declaration of what comes after the runs.
OF_THE_SNAKEFILE = {
    *("errors", "config", "sweep", "records", "search", "planning", "container", "warm")
}
HEAVY = {
    *("numpy", "ribs", "pandas", "scipy", "gymnasium", "dask", "distributed", "optuna", "sklearn"),
    *("torch", "stable_baselines3", "ale_py"),
}


def modules_in(source: str) -> set[str]:
    """The modules of the package that a source names, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import names the whole module"
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # of importlib.import_module
        else:
            continue
        found |= {name for name in names if name.startswith("qdsweep.") and is_module(name)}
    return found


def is_module(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def folder_of(module: str) -> str:
    return module.split(".")[1]


def edges() -> set[tuple[str, str, str]]:
    """Folder, folder that it imports, and the file that does so."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        path = file.relative_to(PACKAGE)
        mine = path.parts[0].removesuffix(".py")
        for module in modules_in(file.read_text()):
            if folder_of(module) != mine:
                found.add((mine, folder_of(module), str(path)))
    return found


def test_every_folder_has_its_place_in_the_order():
    names = {
        path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix in ("", ".py")
    }
    assert names - {"__pycache__", "py"} == {*ORDER, *AROUND}


def test_no_folder_imports_a_later_one():
    """So there is no circle, either."""
    back = sorted(
        f"{file}: {mine} imports {other}"
        for mine, other, file in edges()
        if mine not in AROUND and ORDER.index(other) > ORDER.index(mine)
    )
    assert back == []


def test_the_search_for_imports_sees_them_all():
    function = "def f():\n    from qdsweep import host\n    import qdsweep.sweep.runs"
    source = f"import qdsweep.files\n{function}"
    assert {folder_of(module) for module in modules_in(source)} == {"files", "host", "sweep"}
    assert len(edges()) > 100


def of_the_snakefile() -> set[str]:
    """The modules that the Snakefile and the rules import."""
    words = [
        line.split()
        for file in (REPO / "workflow/Snakefile", *(REPO / "workflow/rules").glob("*.smk"))
        for line in file.read_text().splitlines()
    ]
    found = {line[1] for line in words if line[:1] in (["from"], ["import"])}
    return {module for module in found if module.startswith("qdsweep")}


def test_the_snakefile_imports_these_folders_alone():
    found = set(map(folder_of, of_the_snakefile() - {"qdsweep.analysis.stages"}))
    assert {"config", "planning"} < found <= OF_THE_SNAKEFILE


def heavy_after(code: str) -> list[str]:
    code = f"import sys\n{code}\nprint(*sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_the_snakefile_imports_is_light():
    """It is parsed again in every job."""
    table = 'table_of_runs("lunar_lander", "::: domain maze:Maze cartpole ::: seed 1")'
    imports = [f"import {module}" for module in sorted(of_the_snakefile())]
    code = [
        *imports,
        "import qdsweep.domains",
        "from qdsweep.sweep.runs import table_of_runs",
        table,
    ]
    assert heavy_after("\n".join(code)) == []


@pytest.mark.parametrize("folder", ["config", "sweep", "planning", "container"])
def test_these_folders_are_light_as_a_whole(folder: str):
    files = (PACKAGE / folder).rglob("*.py")
    paths = [file.relative_to(PACKAGE.parent).with_suffix("") for file in files]
    assert paths
    code = [f"import {'.'.join(path.parts).removesuffix('.__init__')}" for path in paths]
    assert heavy_after("\n".join(code)) == []


@pytest.mark.parametrize(("folder", "other"), [("tables", "figures"), ("figures", "tables")])
def test_tables_and_figures_do_not_import_each_other(folder: str, other: str):
    files = (PACKAGE / "analysis" / folder).glob("*.py")
    found = {name for file in files for name in modules_in(file.read_text())}
    assert not [name for name in found if name.startswith(f"qdsweep.analysis.{other}")]
