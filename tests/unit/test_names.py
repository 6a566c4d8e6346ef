"""Public names have one definition, constants stand above, and what is named anywhere is there."""

import ast
import re
import subprocess
from collections import defaultdict
from functools import cache
from importlib import import_module

from support import REPO

from qdsweep.experiment.reload import _MOVED

PACKAGE = REPO / "workflow/qdsweep"
# Name -> why it may be defined more than once.
ALLOWED = {
    **dict.fromkeys(
        ("ApexDQN", "DQN", "IMPALA", "PGAMapElites", "TD3", "TD3Search"),
        "an algorithm and its settings",
    ),
    **dict.fromkeys(("Arm", "LinearProjection", "LunarLander"), "a domain and its settings"),
    "log": "each module has its logger",
    "main": "each program has it",
}
# What features/__init__.py finds in features, and what the command line finds in its modules.
DECLARED = {
    *("DOMAINS", "FAMILIES", "MOVED", "NEEDS", "PICKLED", "STAGES"),
    *("add_commands", "embedded", "write_tables"),
}
FOUND = {"commands", "domains", "page", "settings", "stages", "tables"}
# Name -> why several modules have it.
MODULES = {
    "base": "algorithms.base and domains.base are in users' files",
    "files": "config.files is in users' files",
    "internals": "each has the private names of one library",
}
# What `qdsweep init` and the documentation have put into users' files.
IMPORTED = {
    "qdsweep": ("load", "load_elites", "load_sweep"),
    "qdsweep.algorithms.base": ("SEED", "Algorithm", "Candidates"),
    "qdsweep.algorithms.ribs.archives": ("ResultArchive",),
    "qdsweep.config.files": ("HOME",),
    "qdsweep.domains.base": ("Evaluation",),
    "qdsweep.domains.plugin": ("check_rows",),
    "qdsweep.planning.module": ("readable",),
}

# An import, in a code or a text; a dotted name; and what `features.member` and the tables of stages
# import, without the package's name.
NAMED = (
    re.compile(r"from (qdsweep[.\w]*) import (\([^()]*\)|[\w, ]+)"),
    re.compile(r"(?<![\w./-])(qdsweep(?:\.[A-Za-z_]\w*)+)((?::\w+)?)"),
    re.compile(r'"((?:[a-z]\w*\.)+\w+)(:[A-Za-z_]\w*)"'),
)
# Endings of the files qdsweep.ENDING.
ENDINGS = {"def", "py", "tar"}


def defined(tree: ast.Module) -> set[str]:
    """Returns the public names that a module defines."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def test_a_public_name_has_one_definition():
    places = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for name in defined(ast.parse(file.read_text())) - DECLARED:
            places[name].append(str(file.relative_to(PACKAGE)))
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert {name: several[name] for name in several.keys() - ALLOWED.keys()} == {}
    assert ALLOWED.keys() <= several.keys(), "an exception that no name needs"
    assert len(ALLOWED) <= 12


def bound(node: ast.stmt) -> set[str]:
    """Returns the names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        targets = [target for target in targets if isinstance(target, ast.Name | ast.Tuple)]
        parts = [part for target in targets for part in ast.walk(target)]
        return {part.id for part in parts if isinstance(part, ast.Name)}
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.alias)]
    names = {part.asname or part.name for part in parts if isinstance(part, ast.alias)}
    return names | {
        part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def test_constants_stand_above_the_definitions_and_once():
    """Only those that need a definition of the same file may stand below it."""
    below, twice = [], []
    for file in sorted(PACKAGE.rglob("*.py")):
        known, defined = set[str](), set[str]()
        for node in ast.parse(file.read_text()).body:
            names = bound(node)
            if isinstance(node, ast.Assign | ast.AnnAssign):
                used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                if defined and names and not used & defined and names != {"__all__"}:
                    below.append(f"{file}: {names}")
                twice += [f"{file}: {names & known}"] * bool(names & known)
                known |= names
            if defined or isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined |= names
    assert below == twice == []


def test_what_users_files_import_is_there():
    for module, names in IMPORTED.items():
        for name in names:
            assert hasattr(import_module(module), name), f"{module}.{name}"


def test_a_module_has_a_name_of_its_own():
    """Features repeat the names that features/__init__.py finds."""
    places = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if file.stem[0] != "_" and not (place.parts[0] == "features" and file.stem in FOUND):
            places[file.stem].append(str(place))
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert several.keys() == MODULES.keys(), several


def test_no_module_does_something_else_too():
    """A module with a second noun is two modules."""
    starts = ("It ", "The module ", "This module ", "Also")
    found = [
        f"{file}: {sentence}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for sentence in re.split(
            r"(?<=[.:])\s+", ast.get_docstring(ast.parse(file.read_text())) or ""
        )
        if sentence.startswith(starts) and re.search(r"\balso\b", sentence, re.IGNORECASE)
    ]
    assert found == []


@cache
def members(module: str) -> set[str] | None:
    """Returns the names in a module or folder, or None if there is none of this name."""
    place = PACKAGE.parent.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.is_file():
        return {path.stem for path in place.iterdir()} if place.is_dir() else None
    names = set().union(*map(bound, ast.parse(file.read_text()).body))
    inside = {path.stem for path in place.iterdir()} if place.is_dir() else set[str]()
    lazy = {*IMPORTED["qdsweep"], "__version__"} if module == "qdsweep" else set[str]()
    return names | inside | lazy


def is_there(name: str) -> bool:
    """Returns whether a dotted name is a module, or begins with one that has its next part."""
    module, rest = name, list[str]()
    while (known := members(module)) is None:
        module, _, last = module.rpartition(".")
        rest = [last, *rest]
    return not rest or rest[0] in known or rest[0].startswith("__")


def named_in(text: str) -> set[str]:
    """Returns the package's dotted names in a text."""
    names = set()
    for module, imported in NAMED[0].findall(text):
        words = re.sub(r"#.*| as \w+|[()]", "", imported).split(",")
        names |= {f"{module}.{word.split()[0]}" for word in words if word.strip()}
    names |= {module + name.replace(":", ".") for module, name in NAMED[1].findall(text)}
    for module, name in NAMED[2].findall(text):
        for package in ("qdsweep", "qdsweep.features"):
            if module.split(".")[0] in (members(package) or ()):
                names.add(f"{package}.{module}{name.replace(':', '.')}")
    return {name for name in names if name.removeprefix("qdsweep.") not in ENDINGS}


def test_what_any_file_names_is_there():
    """In functions, texts, documentation and scripts, too, where no import would fail in a test."""
    former = {name.replace(":", ".") for name in _MOVED}
    gone, seen = [], set[str]()
    for file in subprocess.check_output(["git", "ls-files"], cwd=REPO, text=True).splitlines():
        if file.startswith(("CHANGELOG.md", "tests/fixtures/", "tests/unit/test_names.py")):
            continue  # about earlier releases
        names = named_in((REPO / file).read_text(errors="replace"))
        seen |= names
        names = {name for name in names if not any(old.startswith(name) for old in former)}
        gone += [f"{file}: {name}" for name in sorted(names) if not is_there(name)]
    assert gone == []
    assert len(seen) > 500


def test_the_search_for_names_sees_them_all():
    code = 'x = "from qdsweep.a import (\n  b as c,\n  d,\n)"; y = "qdsweep.e:F", "rollouts.g:h"'
    assert named_in(code) == {
        *("qdsweep.a", "qdsweep.a.b", "qdsweep.a.d", "qdsweep.e.F"),
        "qdsweep.features.rollouts.g.h",
    }
    assert not any(map(is_there, ("qdsweep.scaling.study", "qdsweep.files.gone", "qdsweep.gone")))
