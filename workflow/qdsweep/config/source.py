"""The hash of the executed part of a Python source, without comments, docstrings and layout.

It imports only the standard library: a test runs it with Pythons that have nothing else.
"""

import functools
import hashlib
import importlib.util
import io
import json
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from token import tok_name

_LAYOUT = {"COMMENT", "NL", "ENCODING", "ENDMARKER", "INDENT", "DEDENT"}


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
    # A mark for the end of each line and its depth: both decide what the tokens mean.
    lines = [[depth, *tokens] for depth, tokens in _lines(importlib.util.decode_source(source))]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def file_hash(source: bytes) -> str:
    """Returns the SHA-256 of the whole file [hex], the hash in ids before release 0.2."""
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
    """Yields depth and tokens of each logical line, except lines that are only a string."""
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
