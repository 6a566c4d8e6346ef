"""The files that a user's classes need: their sources, and what these import from plug-ins."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from qdsweep.config.plugin import find_source, plugin_folders
from qdsweep.errors import BadInput

# Where the source of a class lies that was found in an installed package.
INSTALLED = "installed"


def needed_files(targets: Iterable[str]) -> dict[str, bytes]:
    """Returns the sources of some `module:Class`, and of what they import of config/plugins/.

    It imports nothing, and so misses what is imported by a computed name, and data files.

    Args:
        targets: The `module:Class`.

    Returns:
        Path inside config/plugins/ -> content; of a class of an installed package its own file
        alone, as `installed/PATH`.

    Raises:
        BadInput: There is no such module, or one of the files is no Python.
    """
    found: dict[str, bytes] = {}
    targets = list(targets)
    open_modules = [target.split(":")[0] for target in targets]
    seen = set(open_modules)
    for target in targets:
        module = target.split(":")[0]
        if _plugin(module) is None:
            source = find_source(target)
            found[f"{INSTALLED}/{_place(module, source)}"] = source.read_bytes()
    while open_modules:
        module = open_modules.pop()
        path = _plugin(module)
        if path is None:
            continue
        found[_place(module, path)] = text = path.read_bytes()
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        try:
            names = list(_imported(text, package))
        except (SyntaxError, ValueError) as error:
            raise BadInput(f"{path} is no Python: {error}") from None
        for name in names:
            if name not in seen:
                seen.add(name)
                open_modules.append(name)
    return found


def places(target: str) -> list[str]:
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


def _place(module: str, path: Path) -> str:
    base = module.replace(".", "/")
    return f"{base}/__init__.py" if path.name == "__init__.py" else f"{base}.py"


def _imported(source: bytes, package: str) -> Iterator[str]:
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
