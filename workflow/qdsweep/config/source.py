"""The hash of the executed part of a Python source, without comments, docstrings and layout.

It imports only the standard library: a test runs it with Pythons that have nothing else.
"""

import ast
import functools
import hashlib
import importlib.util
import io
import json
import re
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from token import tok_name
from typing import NamedTuple

_LAYOUT = {"COMMENT", "NL", "ENCODING", "ENDMARKER", "INDENT", "DEDENT"}

# Modules that are imported for annotations. `__future__` is not one of them: it changes all others.
_TYPING = {"collections.abc", "numpy.typing", "typing", "typing_extensions"}
# Decorators that read no annotation of their function, by module; others may.
_PLAIN = {
    "builtins": {"property", "staticmethod", "classmethod"},
    "functools": {"cached_property", "cache", "lru_cache"},
    "abc": {"abstractmethod"},
    "typing": {"override"},
}
# A file with one of these words, even in a string, may read its own annotations.
_READERS = {
    *("__annotations__", "__annotate__", "get_annotations", "annotationlib", "get_type_hints"),
    *("signature", "Signature", "getfullargspec", "getmembers"),
    *("globals", "locals", "vars", "__dict__", "eval", "exec"),
}
# An annotation with one of these may do more than name a type.
_EFFECTS = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom
_WORD = re.compile(r"\w+")


class _Token(NamedTuple):
    """A token.

    Attributes:
        kind: Its type by name, such as NUMBER; FORMATTED for a whole f-string.
        text: Its characters.
        start: Its line, from 1, and its column in it [characters].
    """

    kind: str
    text: str
    start: tuple[int, int]


@functools.lru_cache(maxsize=256)  # each row of a sweep asks for the same file
def code_hash(source: bytes) -> str:
    """Returns the SHA-256 of the executed part of a Python file [hex].

    It is equal on Python 3.11 to 3.14. Comments, docstrings, blank lines, the width of an indent,
    line breaks inside brackets and line ends do not change it.

    Args:
        source: The file as it is.

    Raises:
        SyntaxError, ValueError: It is not Python.
    """
    compile(source, "<source>", "exec", dont_inherit=True)
    return _hash(_tokens(importlib.util.decode_source(source)))


@functools.lru_cache(maxsize=256)
def untyped_hash(source: bytes) -> str:
    """Returns the hash of a Python file like `code_hash`, but without its type annotations [hex].

    Two files with equal hashes give the same results. What code may read stays, and costs at most
    a computation. The hash is only without:

    - annotations of functions, and of variables that get a value, except in the body of a class,
    - imports from `_TYPING` that only these annotations use.

    The functions and classes around such an annotation are used only in calls such as `f(x)`. They
    have no keyword such as `metaclass`, and no decorator except `_PLAIN`. A file with one of
    `_READERS` keeps all its annotations.

    Args:
        source: The file as it is.

    Raises:
        SyntaxError, ValueError: It is not Python.
    """
    text = importlib.util.decode_source(source)
    tokens = [*_tokens(text)]
    dropped = _typing_places(tokens, text)
    return _hash(token for place, token in enumerate(tokens) if place not in dropped)


def file_hash(source: bytes) -> str:
    """Returns the SHA-256 of the whole file [hex], the hash in ids before release 0.2."""
    return hashlib.sha256(source).hexdigest()


def _hash(tokens: Iterable[_Token]) -> str:
    # A mark for the end of each line and its depth: both decide what the tokens mean.
    lines = [[depth, *texts] for depth, texts in _lines(tokens)]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def _lines(tokens: Iterable[_Token]) -> Iterator[tuple[int, list[str]]]:
    """Yields depth and tokens of each logical line, except lines that are only a string."""
    depth, texts, only_strings = 0, list[str](), True
    for kind, text, _ in tokens:
        depth += (kind == "INDENT") - (kind == "DEDENT")
        if kind == "NEWLINE":
            if not only_strings:
                yield depth, texts
            texts, only_strings = [], True
        elif kind not in _LAYOUT:
            texts.append(text)
            only_strings &= kind == "STRING"


def _tokens(text: str) -> Iterator[_Token]:
    """Yields the tokens; an f-string is one, as it was before Python 3.12."""
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    depth, begin = 0, (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):
            if depth == 0:
                begin = token.start
            depth += 1
        elif kind in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if depth == 0:
                first, last = (starts[row - 1] + column for row, column in (begin, token.end))
                yield _Token("FORMATTED", text[first:last], begin)
        elif depth == 0:
            prefix = token.string.partition('"')[0].partition("'")[0].lower()
            formatted = kind == "STRING" and "f" in prefix
            yield _Token("FORMATTED" if formatted else kind, token.string, token.start)


def _typing_places(tokens: Sequence[_Token], text: str) -> set[int]:
    """Returns the places of the tokens that only give types; see `untyped_hash`."""
    # A comment is no executed code.
    code = " ".join(token.text for token in tokens if token.kind != "COMMENT")
    if not _READERS.isdisjoint(_WORD.findall(code)):
        return set()
    tree, lines = ast.parse(text), text.split("\n")
    starts = [token.start for token in tokens]

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Returns the places of a node's first token and of the first one after it."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        # A column of ast counts bytes.
        first, last = ((row, len(lines[row - 1].encode()[:at].decode())) for row, at in ends)
        return bisect_right(starts, first) - 1, bisect_left(starts, last)  # after each DEDENT

    candidates = [*_annotations(tree, _plain_names(tree))]
    types = {id(part) for annotation, _ in candidates for part in ast.walk(annotation)}
    values = _values(part for part in ast.walk(tree) if id(part) not in types)
    annotations = [annotation for annotation, names in candidates if values.isdisjoint(names)]
    places = set[int]()
    for annotation in annotations:
        first, last = span(annotation)
        while tokens[first - 1].text not in (":", "->"):  # there are brackets around it
            first -= 1
            if tokens[first].text == "(":
                last = next(p for p in range(last, len(tokens)) if tokens[p].text == ")") + 1
        places.update(range(first - 1, last))
    inside = {id(part) for annotation in annotations for part in ast.walk(annotation)}
    others = [part for part in ast.walk(tree) if id(part) not in inside]
    used = {"*"} | _values(others) | {part.id for part in others if isinstance(part, ast.Name)}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            modules = {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            modules = {statement.module or ""}
        else:
            continue
        bound = {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        if modules <= _TYPING and used.isdisjoint(bound):
            places.update(range(*span(statement)))
    return places


def _plain_names(tree: ast.Module) -> set[str]:
    """Returns the decorators of `_PLAIN` by the names that this file has for them."""
    names = {f"{module}.{name}" for module, names in _PLAIN.items() for name in names}
    others = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known = set() if node.level else _PLAIN.get(node.module or "", set())
            for alias in node.names:
                is_known = alias.name in known and not alias.asname
                (names if is_known else others).add(alias.asname or alias.name)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            others.add(node.name)
    return (names | _PLAIN["builtins"]) - others


def _values(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that these nodes use as values, not only in calls of them.

    It includes the words of strings, as in `getattr(self, "cost")`, except docstrings.
    """
    nodes = [*nodes]
    skipped = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    skipped |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    values = set[str]()
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Name):
            values.add(node.id)
        elif isinstance(node, ast.Attribute):
            values.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            values.update(_WORD.findall(node.value))
    return values


def _annotations(
    parent: ast.AST, plain: set[str], owners: Sequence[str] | None = (), *, in_class: bool = False
) -> Iterator[tuple[ast.expr, Sequence[str]]]:
    """Yields the annotations inside a node, with the names whose use as a value may read them.

    Args:
        parent: The node.
        plain: The decorators that read nothing.
        owners: The functions and classes around its body; None if one of them has a decorator or
            a keyword that may read annotations.
        in_class: Whether it is in the body of a class.
    """
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.expr):
            continue
        stays, inner, candidates = in_class, owners, list[ast.expr | None]()
        if isinstance(node, ast.ClassDef):
            stays, is_plain = True, not node.decorator_list and not node.keywords
            inner = (*owners, node.name) if owners is not None and is_plain else None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stays, spec = False, node.args
            is_plain = all(_name(decorator) in plain for decorator in node.decorator_list)
            inner = (*owners, node.name) if owners is not None and is_plain else None
            arguments = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
            others = (spec.vararg, spec.kwarg)
            candidates = [a.annotation for a in (*arguments, *others) if a is not None]
            candidates.append(node.returns)
        elif isinstance(node, ast.AnnAssign) and node.value is not None and not in_class:
            candidates = [node.annotation]
        for each in candidates if inner is not None else ():
            if each and not any(isinstance(part, _EFFECTS) for part in ast.walk(each)):
                yield each, inner or ()
        yield from _annotations(node, plain, inner, in_class=stays)


def _name(decorator: ast.expr) -> str:
    """Returns the whole name of a decorator."""
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
