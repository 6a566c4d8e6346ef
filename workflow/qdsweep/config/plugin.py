"""A user's own classes, `module:Class`: how they are found, loaded and hashed."""

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from qdsweep.config.files import PRESETS, listed, nearest
from qdsweep.config.source import code_hash
from qdsweep.errors import BadInput


def plugin_folders() -> list[Path]:
    """Returns the working directory's config/plugins, then qdsweep's own, if they exist."""
    folders = [Path("config/plugins").resolve(), PRESETS / "plugins"]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def load_class(target: str) -> type:
    """Imports a class.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module or class, importing the module fails, or its name is
            taken.
    """
    found: type = _load(target, "class", lambda value: isinstance(value, type))
    return found


def load_function(target: str) -> Callable[..., Any]:
    """Imports a function.

    Args:
        target: `module:function`.

    Raises:
        BadInput: There is no such module or function, importing the module fails, or its name is
            taken.
    """
    found: Callable[..., Any] = _load(target, "function", callable)
    return found


def load_plugin(target: str) -> Callable[..., Any]:
    """Imports a class or function; see `load_function`."""
    found: Callable[..., Any] = _load(target, "class or function", callable)
    return found


def _load(target: str, what: str, fits: Callable[[Any], bool]) -> Any:
    module_name, name = target.split(":")
    source = find_source(target)
    cached = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # no __pycache__ in a user's folder for what may be refused
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise BadInput(
            f"{target}: {source} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.dont_write_bytecode = cached
    if Path(module.__file__ or "") != source:
        raise BadInput(
            f"{target}: another module has the name {module_name} already "
            f"({module.__file__ or 'built in'}); rename {source}"
        )
    found = getattr(module, name, None)
    if not fits(found):
        known = [
            name
            for name, value in vars(module).items()
            if fits(value) and getattr(value, "__module__", None) == module_name
        ]
        raise BadInput(
            f"{target}: {source} has no {what} {name}; {nearest(name, known)}"
            f"known there: {listed(known) or 'none'}"
        )
    return found


def require_source(target: str) -> None:
    """Refuses a `module:name` whose file is missing, is no Python or defines no such name.

    Nothing is imported, so it can be asked before any job starts.

    Raises:
        BadInput: The message names the file, and what it defines.
    """
    source = find_source(target)
    text = source.read_bytes()
    try:
        tree = ast.parse(text, source)
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{target}: {source} is no Python: {error}") from None
    name = target.split(":")[1]
    if not re.search(rf"\b{name}\b".encode(), text):  # it may be imported or assigned there
        defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        known = [node.name for node in tree.body if isinstance(node, defined)]
        raise BadInput(
            f"{target}: {source} has no {name}; {nearest(name, known)}"
            f"known there: {listed(known) or 'nothing'}"
        )


def source_hash(target: str) -> str:
    """Returns the hash of the source of a `module:Class`, without importing it [hex].

    It sees what is executed of the file (see `code_hash`), and not what the module imports.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module, or it is no Python.
    """
    return code_hash(read_source(target))


def read_source(target: str) -> bytes:
    """Reads the source file of a `module:Class`, without importing it.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module, or it is no Python.
    """
    source = find_source(target)
    text = source.read_bytes()
    try:
        code_hash(text)  # so a faulty file is refused before any job starts
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{target}: {source} is no Python: {error}") from None
    return text


def find_source(target: str) -> Path:
    """Finds the source file of a `module:Class`, without importing anything.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module, or it has no file.
    """
    module_name = target.split(":")[0]
    folders = plugin_folders()
    # A plugin comes before an installed module of the same name, here and in every worker, as
    # each of them calls this.
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    importlib.invalidate_caches()  # the file may have been written since the folder was last read
    spec = _find_spec(module_name)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        plugins = sorted({path.stem for folder in folders for path in folder.glob("*.py")})
        raise BadInput(
            f"{target}: there is no module {module_name}; {nearest(module_name, plugins)}"
            f"looked in {', '.join(map(str, folders)) or 'config/plugins (missing)'} and in the "
            f"installed packages (plugins: {', '.join(plugins) or 'none'})"
        )
    return Path(spec.origin)


def _find_spec(module_name: str) -> ModuleSpec | None:
    """Returns what importlib.util.find_spec does, but imports no parents of a dotted name."""
    top, *rest = module_name.split(".")
    if sys.modules.get(top, top) is None:  # so Python refuses to import it, too
        return None
    spec = PathFinder.find_spec(top) or importlib.util.find_spec(top)
    name = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec
