"""A user's own classes, `module:Class`: how they are found, loaded and hashed."""

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from qdsweep.config.files import CLONE, nearest
from qdsweep.config.source import code_hash
from qdsweep.errors import BadInput


def plugin_folders() -> list[Path]:
    """Returns the working directory's config/plugins, then the clone's, if they exist."""
    folders = [Path("config/plugins").resolve(), CLONE / "plugins"]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def load_class(target: str) -> type:
    """Imports a class.

    Args:
        target: `module:Class`.

    Raises:
        BadInput: There is no such module or class, importing the module fails, or its name is
            taken.
    """
    module_name, class_name = target.split(":")
    source = find_source(target)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise BadInput(
            f"{target}: {source} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if Path(module.__file__ or "") != source:
        raise BadInput(
            f"{target}: another module has the name {module_name} already "
            f"({module.__file__ or 'built in'}); rename {source}"
        )
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise BadInput(
            f"{target}: {source} has no class {class_name}; {nearest(class_name, classes)}"
            f"its classes: {', '.join(classes) or 'none'}"
        )
    return found


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
    spec = PathFinder.find_spec(top) or importlib.util.find_spec(top)
    name = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec
