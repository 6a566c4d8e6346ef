"""The package has no cyclic imports, its folders have an order, and its entries import little."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module

import pytest
from support import REPO

PACKAGE = REPO / "workflow/qdsweep"
# A later folder may import an earlier one, but never the reverse, even in a function.
ORDER = (
    *(
        "errors",
        "ornaments",
        "files",
        "versions",
        "text",
        "metrics",
        "features",
        "host",
        "config",
        "sweep",
        "records",
    ),
    *("search", "domains", "algorithms", "engines", "experiment"),
    *("runs", "elites", "analysis", "warm", "planning", "cli"),
)
# A feature may import the core, and only these features.
NEEDS = {
    path.parent.name: getattr(import_module(f"qdsweep.features.{path.parent.name}"), "NEEDS", ())
    for path in (PACKAGE / "features").glob("*/__init__.py")
}
# The package: `from qdsweep import load`, and `python -m qdsweep`.
AROUND = ("__init__", "__main__")
# The folders that the Snakefile may import, and the declaration of the later stages.
OF_THE_SNAKEFILE = {
    *("errors", "config", "records", "search", "planning"),
    *("analysis.stages", "host.process", "sweep.ids"),
}
HEAVY = {
    *("numpy", "ribs", "pandas", "scipy", "gymnasium", "dask", "distributed", "optuna", "sklearn"),
    *("torch", "stable_baselines3", "ale_py", "matplotlib", "snakemake", "ray", "mpi4py"),
}


def modules_in(source: str) -> set[str]:
    """Returns the package's modules that a source imports, even in functions or for annotations."""
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{name.name}" for name in node.names]
            names = [name if is_module(name) else str(node.module) for name in names]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # an argument of importlib.import_module
        else:
            continue
        if not isinstance(node, ast.Constant) and "qdsweep" in names:
            modules.add("__init__")
        modules |= {name for name in names if name.startswith("qdsweep.") and is_module(name)}
    return {module.removeprefix("qdsweep.") for module in modules}


def is_module(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


@cache
def arrows() -> dict[str, set[str]]:
    """Returns module -> the modules that it imports, without `qdsweep.`."""
    return {
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts): modules_in(file.read_text())
        for file in PACKAGE.rglob("*.py")
    }


def file_of(module: str) -> str:
    """Returns the module's file, or the `__init__` of a package."""
    return f"{module}.__init__" if f"{module}.__init__" in arrows() else module


def subfolder_of(module: str) -> str:
    """Returns the module's folder; a file directly in the package is its own folder."""
    return file_of(module).rpartition(".")[0] or module


def feature_of(module: str) -> str:
    """Returns the feature of a module; empty for the core and the registry itself."""
    folder, _, rest = module.partition(".")
    return rest.split(".")[0] if folder == "features" and rest != "__init__" else ""


def folder_of(module: str) -> str:
    """Returns the module's top folder; each feature is one."""
    feature = feature_of(module)
    return f"features.{feature}" if feature else module.split(".")[0]


def between(part: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for module, imported in arrows().items():
        yield from {(part(module), part(other)) for other in imported}


@pytest.mark.parametrize("part", [file_of, subfolder_of, folder_of])
def test_there_is_no_circle(part: Callable[[str], str]):
    graph = TopologicalSorter[str]()
    for module, other in between(part):
        if module != other:
            graph.add(module, other)
    graph.prepare()  # raises an error with the cycle


def test_every_folder_has_its_place_in_the_order():
    names = {
        path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix in ("", ".py")
    }
    assert names - {"__pycache__", "py"} == {*ORDER, *AROUND}


def test_no_folder_imports_a_later_one():
    back = sorted(
        f"{module} imports {other}"
        for module, imported in arrows().items()
        for other in imported
        if not {folder_of(module), other} & {*AROUND}
        and not feature_of(module)
        and ORDER.index(folder_of(other)) > ORDER.index(folder_of(module))
    )
    assert back == []


def test_the_core_imports_no_feature_and_a_feature_those_that_it_needs():
    wrong = sorted(
        f"{module} imports {other}"
        for module, imported in arrows().items()
        for other in imported
        if feature_of(other) not in {"", feature_of(module), *NEEDS.get(feature_of(module), ())}
    )
    assert wrong == []


def test_the_search_for_imports_sees_them_all():
    function = "def f():\n    from qdsweep import host\n    import qdsweep.sweep.runs"
    source = f"import qdsweep.files\n{function}"
    assert modules_in(source) == {"files", "host", "sweep.runs"}
    assert len([*between(folder_of)]) > 100


def of_the_snakefile() -> set[str]:
    """Returns the modules that the Snakefile and the rules import."""
    words = [
        line.split()
        for file in (REPO / "workflow/Snakefile", *(REPO / "workflow/rules").glob("*.smk"))
        for line in file.read_text().splitlines()
    ]
    modules = {line[1] for line in words if line[:1] in (["from"], ["import"])}
    return {module for module in modules if module.startswith("qdsweep")}


def test_the_snakefile_imports_only_these_folders():
    modules = {module.removeprefix("qdsweep.") for module in of_the_snakefile()}
    folders = {
        module if module in OF_THE_SNAKEFILE else folder_of(module)
        for module in modules - {"planning"}
    }
    assert {"config", "planning"} < folders <= OF_THE_SNAKEFILE


def heavy_after(code: str) -> set[str]:
    code = f"import sys\n{code}\nprint(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*done.stderr.split()}


def test_what_the_snakefile_imports_is_light():
    """Every job parses it again."""
    table = 'table_of_runs("lunar_lander", "::: domain maze:Maze cartpole ::: seed 1")'
    imports = [f"import {module}" for module in sorted(of_the_snakefile())]
    code = [
        *imports,
        "import qdsweep.domains",
        "from qdsweep.sweep.runs import table_of_runs",
        table,
    ]
    assert heavy_after("\n".join(code)) == {"snakemake"}


BASELINE = [
    file.relative_to(PACKAGE.parent).with_suffix("")
    for file in PACKAGE.rglob("*.py")
    if "apply_baseline(" in file.read_text()
]


@pytest.mark.parametrize("path", BASELINE, ids=str)
def test_what_makes_the_settings_of_numpy_does_not_import_it(path):
    """This process has the settings. The import is only an error in a process without them."""
    assert "numpy" not in heavy_after(f"import {'.'.join(path.parts)}")


@pytest.mark.parametrize("folder", ["config", "sweep", "planning", "features/image"])
def test_these_folders_are_light_as_a_whole(folder: str):
    files = (PACKAGE / folder).rglob("*.py")
    paths = [file.relative_to(PACKAGE.parent).with_suffix("") for file in files]
    assert paths
    code = [f"import {'.'.join(path.parts).removesuffix('.__init__')}" for path in paths]
    assert heavy_after("\n".join(code)) <= {"snakemake"}


def test_the_table_of_runs_needs_nothing_heavy_even_in_a_function():
    trees = [ast.parse(file.read_text()) for file in (PACKAGE / "sweep").glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    assert not HEAVY & {module.split(".")[0] for module in modules}


HELP = "from qdsweep.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"


@pytest.mark.parametrize(
    ("entry", "may_import"),
    [
        pytest.param(HELP, set(), id="--help"),
        ("import qdsweep.warm.client", set()),
        ("import qdsweep.features.image.enter", set()),
        ("import qdsweep.experiment.launch", set()),
        ("import qdsweep.planning.start, qdsweep.planning.internals", set()),
        ("import qdsweep.experiment.ranks", set()),
        ("import qdsweep.engines.worker", {"numpy"}),
        ("import qdsweep.engines.executors.processes", {"numpy"}),
        ("import qdsweep.engines.executors.ray_worker", {"numpy"}),
        ("import qdsweep.engines.executors.dask_worker", {"numpy", "dask", "distributed"}),
    ],
)
def test_what_an_entry_imports(entry: str, may_import: set[str]):
    """Each worker and each job waits for this import."""
    assert heavy_after(entry) == may_import


@pytest.mark.parametrize(
    "entry", ["cli.run_commands", "experiment.run", "experiment.launch", "engines"]
)
def test_a_run_and_its_workers_never_import_snakemake(entry: str):
    """Not even in a function."""
    reached, left = set[str](), [name for name in arrows() if f"{name}.".startswith(f"{entry}.")]
    while left:
        module = file_of(left.pop())
        if module not in reached:
            reached.add(module)
            left += arrows()[module]
    assert len(reached) > 20
    for module in reached:
        source = (PACKAGE / f"{module.replace('.', '/')}.py").read_text()
        assert not re.search(r"^\s*(from|import) snakemake", source, re.MULTILINE), module


@pytest.mark.parametrize(("folder", "other"), [("tables", "figures"), ("figures", "tables")])
def test_tables_and_figures_do_not_import_each_other(folder: str, other: str):
    files = (PACKAGE / "analysis" / folder).glob("*.py")
    imported = {module for file in files for module in modules_in(file.read_text())}
    assert not [module for module in imported if module.startswith(f"analysis.{other}")]


def test_what_reads_results_does_not_import_what_computes_them():
    imports = {
        module: {other for other in imported if folder_of(other) == "experiment"}
        for module, imported in arrows().items()
        if folder_of(module) in ("analysis", "features.scale")
    }
    assert not any(imports.values())
