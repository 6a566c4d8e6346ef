"""A user's own classes, `module:Class`: how they are found, loaded and hashed.

What of a Python source is executed, and its hash: no comment, no docstring, no layout.

What a user's class or function takes, read from its source: nothing of it is imported.

So the arguments can be swept by name where numpy and pyribs must not be imported.

The files that a user's classes need: their sources, and what these import from plug-ins.
"""

import ast
import functools
import hashlib
import importlib
import importlib.util
import io
import json
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from itertools import accumulate
from pathlib import Path
from token import tok_name
from typing import Any

from qdsweep.config.files import PRESETS, listed, nearest
from qdsweep.errors import BadInput

_LAYOUT = {"COMMENT", "NL", "ENCODING", "ENDMARKER", "INDENT", "DEDENT"}


@functools.lru_cache(maxsize=256)  # of one file for each row of a sweep
def code_hash(source: bytes) -> str:
    """Returns the SHA-256 of what is executed of a Python file [hex].

    It is equal on Python 3.11 to 3.14, and unaffected by comments, docstrings, blank lines, the
    width of an indent, line breaks inside brackets and the line ends of another system.

    Args:
        source: The file as it is.

    Raises:
        SyntaxError, ValueError: It is no Python.
    """
    compile(source, "<source>", "exec", dont_inherit=True)
    # A mark for the end of each line and its depth: both decide what the tokens mean.
    lines = [[depth, *tokens] for depth, tokens in _lines(importlib.util.decode_source(source))]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def file_hash(source: bytes) -> str:
    """Returns the SHA-256 of a file as it is [hex], which ids were made of before 0.2."""
    return hashlib.sha256(source).hexdigest()


def without_comments(source: bytes) -> bytes:
    """Returns a Python file with the same `code_hash`, in UTF-8, without its comments."""
    text = importlib.util.decode_source(source)
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines).encode()


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields depth and tokens of each logical line, but of those that are nothing but a string."""
    depth, tokens, only_strings = 0, list[str](), True
    for kind, token in _tokens(text):
        depth += (kind == "INDENT") - (kind == "DEDENT")
        if kind == "NEWLINE":
            if not only_strings:
                yield depth, tokens
            tokens, only_strings = [], True
        elif kind not in _LAYOUT:
            tokens.append(token)
            only_strings &= kind == "STRING"


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yields kind and text of each token; an f-string is one, as it was before Python 3.12."""
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    depth = begin = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):
            if depth == 0:
                begin = starts[token.start[0] - 1] + token.start[1]
            depth += 1
        elif kind in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if depth == 0:
                yield "FORMATTED", text[begin : starts[token.end[0] - 1] + token.end[1]]
        elif depth == 0:
            prefix = token.string.partition('"')[0].partition("'")[0].lower()
            formatted = kind == "STRING" and "f" in prefix
            yield "FORMATTED" if formatted else kind, token.string


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


_Function = ast.FunctionDef | ast.AsyncFunctionDef


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
    """Refuses arguments that a user's class or function does not take, as far as can be seen.

    Args:
        target: `module:name`.
        where: The part in the experiment, such as `algorithm.archive`.
        arguments: Name -> value.

    Raises:
        BadInput: The message lists what it takes.
    """
    takes, complete = parameters(target)
    for name in arguments if complete else ():
        if name not in takes:
            raise BadInput(
                f"{where}: {target} takes no argument {name!r}; {nearest(name, takes)}"
                f"it takes: {', '.join(takes) or 'none'}"
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
    found, complete = own, True
    for base in node.bases:
        inner, whole = _parameters(ast.unparse(base), named)
        found += [parameter for parameter in inner if parameter not in found]
        complete = complete and whole
    return found, complete


def _names(function: _Function) -> list[str]:
    spec = function.args
    return [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


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
            found[f"{INSTALLED}/{_source_path(module, source)}"] = source.read_bytes()
    while open_modules:
        module = open_modules.pop()
        path = _plugin(module)
        if path is None:
            continue
        found[_source_path(module, path)] = text = path.read_bytes()
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
