"""A user's classes and functions, `module:Class`: how they are found, loaded and hashed.

Parameters are read from the source without importing it, so they can be swept where numpy and
pyribs must not be imported.
"""

import ast
import functools
import importlib
import importlib.util
import re
import sys
import sysconfig
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
# Parts of the paths of installed packages, and the folders of Python's own modules.
_PACKAGES = {"site-packages", "dist-packages"}
_OF_PYTHON = ("stdlib", "platstdlib")


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
    folders = _on_path()
    spec = _find_spec(module_name)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        plugins = sorted({path.stem for folder in folders for path in folder.glob("*.py")})
        raise BadInput(
            f"{target}: there is no module {module_name}; {nearest(module_name, plugins)}"
            f"looked in {', '.join(map(str, folders)) or 'config/plugins (missing)'} and in the "
            f"installed packages (plugins: {', '.join(plugins) or 'none'})"
        )
    return Path(spec.origin)


def _on_path() -> list[Path]:
    """Puts the folders of plug-ins on Python's path, and returns them."""
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
    return folders


def module_in(path: Path) -> str:
    """Returns the name of the module in a file of a plug-in folder, or of the working directory."""
    folders = [*plugin_folders(), Path.cwd()]
    folder = next((each for each in folders if path.is_relative_to(each)), path.parent)
    names = path.relative_to(folder).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def _find_spec(module_name: str) -> ModuleSpec | None:
    """Returns what importlib.util.find_spec does, but imports no parents of a dotted name."""
    top, *rest = module_name.split(".")
    if sys.modules.get(top, top) is None:  # so Python refuses to import it, too
        return None
    spec = PathFinder.find_spec(top) or importlib.util.find_spec(top)
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        # Only the last word: for a whole name, a folder without __init__.py asks its parent.
        spec = PathFinder.find_spec(part, spec.submodule_search_locations)
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
    for target in targets:
        module = target.split(":")[0]
        if _plugin(module) is None:
            source = find_source(target)
            contents[f"{INSTALLED}/{_source_path(module, source)}"] = source.read_bytes()
    for module, (path, text) in _reached(targets, _plugin).items():
        contents[_source_path(module, path)] = text
    return contents


def imported_files(targets: Iterable[str], modules: Iterable[str] = ()) -> dict[str, Path]:
    """Returns the user's modules that some `module:Class` import, directly or not.

    They are those of any folder on the path, but not of Python, of installed packages or of
    qdsweep. Nothing is imported, so what is imported by a computed name is missing.

    Args:
        targets: The `module:Class`.
        modules: Modules that are imported next to them.

    Returns:
        Module -> its file; without the files of the targets, which a run's id covers.

    Raises:
        BadInput: There is no module of a target, or one of the files is not Python.
    """
    targets = list(targets)
    own = {find_source(target) for target in targets}
    found = own_modules([*targets, *modules])
    return {module: path for module, path in found.items() if path not in own}


def own_modules(targets: Iterable[str]) -> dict[str, Path]:
    """Returns the user's modules of some `module:NAME`, and those that they import.

    Args:
        targets: The `module:NAME`, or modules.

    Returns:
        Module -> its file; see `imported_files`.

    Raises:
        BadInput: One of the files is not Python.
    """
    _on_path()
    return {module: path for module, (path, _) in _reached(targets, _own_module).items()}


def _reached(
    targets: Iterable[str], find: Callable[[str], Path | None]
) -> dict[str, tuple[Path, bytes]]:
    """Returns the modules of some `module:Class`, and what they import of what `find` finds.

    Returns:
        Module -> its file, and the content.
    """
    found: dict[str, tuple[Path, bytes]] = {}
    modules = [part for target in targets for part in _with_parents(target.split(":")[0])]
    seen = set(modules)
    while modules:
        module = modules.pop()
        path = find(module)
        if path is None:
            continue
        found[module] = path, path.read_bytes()
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        try:
            names = _imported(found[module][1], package)
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{path} is not valid Python: {error}") from None
        modules += [name for name in names if name not in seen]
        seen.update(names)
    return found


def declared_files(target: str) -> tuple[str, ...]:
    """Returns the files that a class names in `depends`, without importing it.

    Args:
        target: `module:Class`. The class may inherit `depends` from another one of the user's.

    Returns:
        Paths relative to the working directory; none where nothing is declared.

    Raises:
        BadInput: There is no such module, or the value is not a tuple of texts in the source.
    """
    module, _, name = target.partition(":")
    found = _declaration(find_source(target), module, name, set())
    if found is None:
        return ()
    source, value = found
    try:
        paths = ast.literal_eval(value)
    except ValueError:
        paths = None
    if not isinstance(paths, tuple | list) or not all(isinstance(path, str) for path in paths):
        raise BadInput(
            f"{target}: {source}, line {value.lineno}: depends = {ast.unparse(value)}: write the "
            'paths as they are, such as depends = ("data/terrain.npy",): they are read without '
            "importing the module"
        )
    for path in paths:
        if not path or Path(path).is_absolute():
            raise BadInput(
                f"{target}: {source}: depends names {path!r}: write a path relative to the folder "
                "in which you start the sweep"
            )
    return tuple(paths)


def _declaration(
    path: Path, module: str, name: str, seen: set[tuple[str, str]]
) -> tuple[Path, ast.expr] | None:
    """Returns the file and the value of a class's `depends`, its own or an inherited one."""
    if (module, name) in seen:
        return None
    seen.add((module, name))
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{module}:{name}: {path} is not valid Python: {error}") from None
    bases = [name]
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for line in node.body:
                targets = line.targets if isinstance(line, ast.Assign) else []
                targets = [line.target] if isinstance(line, ast.AnnAssign) else targets
                value = getattr(line, "value", None)
                if value and any(isinstance(t, ast.Name) and t.id == "depends" for t in targets):
                    return path, value
            bases = [ast.unparse(base) for base in node.bases]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for base in bases:
        for other, inner in _meant(base, module, package, body):
            file = path if other == module else _own_module(other)
            found = file and _declaration(file, other, inner, seen)
            if found:
                return found
    return None


def _meant(
    name: str, module: str, package: str, body: Iterable[ast.stmt]
) -> Iterator[tuple[str, str]]:
    """Yields the module and the name that `Class` or `module.Class` may mean in a source."""
    yield module, name
    first, _, last = name.rpartition(".")
    for node in body:
        if isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield base, alias.name
                if first and (alias.asname or alias.name) == first:
                    yield f"{base}.{alias.name}", last
        elif isinstance(node, ast.Import) and first:
            for alias in node.names:
                if (alias.asname or alias.name) == first:
                    yield alias.name, last


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


def _own_module(module: str) -> Path | None:
    """Returns the file of a module of the user's own folders."""
    top = module.partition(".")[0]
    if top == "qdsweep" or top in sys.builtin_module_names:
        return None
    try:
        spec = _find_spec(module)
    except (ImportError, ValueError):  # a module that is loaded already and has no file
        return None
    if spec is None or not (spec.origin or "").endswith(".py"):
        return None
    path = Path(spec.origin or "")
    return path if _is_own(path) else None


def _is_own(path: Path) -> bool:
    """Returns whether a file is neither Python's nor of an installed package."""
    if any(path.is_relative_to(folder) for folder in plugin_folders()):
        return True
    if _PACKAGES & {*path.parts}:
        return False
    return not any(path.is_relative_to(sysconfig.get_path(name)) for name in _OF_PYTHON)


@functools.lru_cache(maxsize=1024)  # each start asks for the same files several times
def _imported(source: bytes, package: str) -> tuple[str, ...]:
    """Returns the modules that a source may import, and the packages that they are in.

    Raises:
        SyntaxError, ValueError: It is not Python.
    """
    modules: dict[str, None] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            names = [base, *(f"{base}.{name.name}".lstrip(".") for name in node.names)]
        else:
            continue
        modules |= dict.fromkeys(part for name in names if name for part in _with_parents(name))
    return tuple(modules)


def _base(node: ast.ImportFrom, package: str) -> str:
    """Returns the module that `from MODULE import` names; empty for `from . import` in none."""
    parts = package.split(".")[: 1 - node.level or None] if node.level else []
    return ".".join(filter(None, [*parts, node.module]))


def _with_parents(module: str) -> list[str]:
    """Returns a module, after the packages that it is in."""
    words = module.split(".")
    return [".".join(words[: end + 1]) for end in range(len(words))]
