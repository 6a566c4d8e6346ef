"""Public names have one definition, constants stand above, and what users' files import stays."""

import ast
import re
from collections import defaultdict
from importlib import import_module

from support import REPO

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
