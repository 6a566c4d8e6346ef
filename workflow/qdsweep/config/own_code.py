"""A user's classes and functions, `module:Class`: how they are found, loaded and hashed.

Parameters are read from the source without importing it, so they can be swept where numpy and
pyribs must not be imported.
"""

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from qdsweep.config.files import PRESET_FOLDER
from qdsweep.config.source import code_hash
from qdsweep.errors import BadInput
from qdsweep.text import listed, nearest

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The folder for the source of a class that was found in an installed package.
INSTALLED = "installed"


def plugin_folders() -> list[Path]:
    """Returns the working directory's config/plugins, then qdsweep's own, if they exist."""
    folders = [Path("config/plugins").resolve(), PRESET_FOLDER / "plugins"]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def load_class(target: str) -> type:
    """Imports a class.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module or class, importing the module fails, or its name is
            taken.
    """
    loaded: type = _load(target, "class", lambda value: isinstance(value, type))
    return loaded


def load_function(target: str) -> Callable[..., Any]:
    """Imports a function.

    Args:
        target: `module:function`.

    Raises:
        BadInput: There is no such module or function, importing the module fails, or its name is
            taken.
    """
    loaded: Callable[..., Any] = _load(target, "function", callable)
    return loaded


def load_plugin(target: str) -> Callable[..., Any]:
    """Imports a class or function; see `load_function`."""
    loaded: Callable[..., Any] = _load(target, "class or function", callable)
    return loaded


def _load(target: str, kind: str, fits: Callable[[Any], bool]) -> Any:
    module_name, name = target.split(":")
    source = find_source(target)
    cached = sys.dont_write_bytecode
    sys.dont_write_bytecode = (
        True  # no __pycache__ in a user's folder for a module that may be refused
    )
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
    loaded = getattr(module, name, None)
    if not fits(loaded):
        known = [
            name
            for name, value in vars(module).items()
            if fits(value) and getattr(value, "__module__", None) == module_name
        ]
        raise BadInput(
            f"{target}: {source} has no {kind} {name}; {nearest(name, known)}"
            f"known there: {listed(known, most=20) or 'none'}"
        )
    return loaded


def require_source(target: str) -> None:
    """Refuses a `module:name` whose file is missing, is not Python or defines no such name.

    Nothing is imported, so it can run before any job starts.

    Raises:
        BadInput: The message names the file, and what it defines.
    """
    source = find_source(target)
    text = source.read_bytes()
    try:
        tree = ast.parse(text, source)
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{target}: {source} is not valid Python: {error}") from None
    name = target.split(":")[1]
    if not re.search(rf"\b{name}\b".encode(), text):  # it may be imported or assigned there
        defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        known = [node.name for node in tree.body if isinstance(node, defined)]
        raise BadInput(
            f"{target}: {source} has no {name}; {nearest(name, known)}"
            f"known there: {listed(known, most=20) or 'nothing'}"
        )


def source_hash(target: str) -> str:
    """Returns the hash of the source of a `module:Class`, without importing it [hex].

    It covers the executed part of the file (see `code_hash`), and not what the module imports.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module, or it is not Python.
    """
    return code_hash(read_source(target))


def read_source(target: str) -> bytes:
    """Reads the source file of a `module:Class`, without importing it.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module, or it is not Python.
    """
    source = find_source(target)
    text = source.read_bytes()
    try:
        code_hash(text)  # so a faulty file is refused before any job starts
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{target}: {source} is not valid Python: {error}") from None
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
    # The working folder comes last: a file types.py in it does not replace Python's.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
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


def parameters(target: str) -> tuple[list[str], bool]:
    """Returns the parameters of a `module:name`.

    Args:
        target: A function, or a class, whose `__init__` counts; one that is inherited from a class
            of the same file too.

    Returns:
        Their names, without `self`; and whether these are all of them. They are not where
        `**arguments` goes to code of another file, or the name comes from there.
    """
    try:
        tree = ast.parse(find_source(target).read_bytes())
    except (BadInput, SyntaxError, ValueError, OSError):
        return [], False
    named = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | _Function)}
    return _parameters(target.rsplit(":", 1)[1], named)


def refuse_unknown(target: str, where: str, arguments: dict[str, object]) -> None:
    """Refuses arguments that a user's class or function does not take, by its source.

    Args:
        target: `module:name`.
        where: The part in the experiment, such as `algorithm.archive`.
        arguments: Name -> value.

    Raises:
        BadInput: The message lists its arguments.
    """
    accepted, complete = parameters(target)
    for name in arguments if complete else ():
        if name not in accepted:
            raise BadInput(
                f"{where}: {target} takes no argument {name!r}; {nearest(name, accepted)}"
                f"it takes: {', '.join(accepted) or 'none'}"
            )


def _parameters(name: str, named: dict[str, ast.ClassDef | _Function]) -> tuple[list[str], bool]:
    node = named.get(name)
    if node is None:
        return [], name == "object"
    if not isinstance(node, ast.ClassDef):
        return _names(node), node.args.kwarg is None
    init = next((n for n in node.body if isinstance(n, _Function) and n.name == "__init__"), None)
    if init is None and node.decorator_list:  # such as @dataclass, which makes one
        return [], False
    own = [] if init is None else _names(init)[1:]
    if init is not None and init.args.kwarg is None:
        return own, True
    parameters, complete = own, True
    for base in node.bases:
        inner, is_complete = _parameters(ast.unparse(base), named)
        parameters += [parameter for parameter in inner if parameter not in parameters]
        complete = complete and is_complete
    return parameters, complete


def _names(function: _Function) -> list[str]:
    spec = function.args
    return [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def needed_files(targets: Iterable[str]) -> dict[str, bytes]:
    """Returns the sources of some `module:Class`, and of what they import of config/plugins/.

    It imports nothing, and so misses what is imported by a computed name, and data files.

    Args:
        targets: The `module:Class`.

    Returns:
        Path inside config/plugins/ -> content; of a class of an installed package only its own
        file, as `installed/PATH`.

    Raises:
        BadInput: There is no such module, or one of the files is not Python.
    """
    contents: dict[str, bytes] = {}
    targets = list(targets)
    open_modules = [target.split(":")[0] for target in targets]
    seen = set(open_modules)
    for target in targets:
        module = target.split(":")[0]
        if _plugin(module) is None:
            source = find_source(target)
            contents[f"{INSTALLED}/{_source_path(module, source)}"] = source.read_bytes()
    while open_modules:
        module = open_modules.pop()
        path = _plugin(module)
        if path is None:
            continue
        contents[_source_path(module, path)] = text = path.read_bytes()
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        try:
            names = list(imported_modules(text, package))
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{path} is not valid Python: {error}") from None
        for name in names:
            if name not in seen:
                seen.add(name)
                open_modules.append(name)
    return contents


def source_paths(target: str) -> list[str]:
    """Returns where `needed_files` may have put the source of a `module:Class`."""
    base = target.split(":")[0].replace(".", "/")
    files = (f"{base}.py", f"{base}/__init__.py")
    return [f"{folder}{file}" for folder in ("", f"{INSTALLED}/") for file in files]


def _plugin(module: str) -> Path | None:
    """Returns the file of a module of config/plugins/."""
    for folder in plugin_folders():
        base = folder.joinpath(*module.split("."))
        for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if path.is_file():
                return path
    return None


def _source_path(module: str, path: Path) -> str:
    base = module.replace(".", "/")
    return f"{base}/__init__.py" if path.name == "__init__.py" else f"{base}.py"


def imported_modules(source: bytes, package: str) -> Iterator[str]:
    """Yields the modules that a source may import, and the packages that they are in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if node.level else []
            parts = parts[: len(parts) + 1 - node.level] if node.level else parts
            base = ".".join(filter(None, [*parts, node.module]))
            names = [base, *(f"{base}.{name.name}".lstrip(".") for name in node.names)]
        else:
            continue
        for name in names:
            words = name.split(".")
            yield from (".".join(words[: end + 1]) for end in range(len(words)))
