"""What a paper on a sweep should cite: exactly what its runs used."""

import re
from collections.abc import Iterable

from qdsweep.config.references import bibliography

# `[@key]` or `[@key; @key]` in a text, with the blank before it.
_CITATION = re.compile(r" ?\[(@[^\s;\]]+(?:; @[^\s;\]]+)*)\]")
_ACCENTS = {r"{\"o}": "ö", r"{\~a}": "ã"}


def cite(keys: Iterable[str]) -> str:
    """Returns a citation as `plain` and `latex` expect it in a text; nothing for no keys."""
    marks = "; ".join(f"@{key}" for key in keys)
    return f" [{marks}]" if marks else ""


def cited(text: str) -> list[str]:
    """Returns the keys that a text cites, in its order."""
    groups = _CITATION.findall(text)
    return list(dict.fromkeys(key[1:] for group in groups for key in group.split("; ")))


def plain(text: str) -> str:
    """Returns a text with citations as (Mouret & Clune, 2015)."""
    return _CITATION.sub(lambda found: f" ({'; '.join(map(_short, _keys(found)))})", text)


def latex(text: str) -> str:
    r"""Returns a text as LaTeX, with citations as `\citep{key}`."""
    from qdsweep.analysis.tables.sheet import escape_latex

    parts, end = [], 0
    for found in _CITATION.finditer(text):
        parts += [escape_latex(text[end : found.start()]), f"~\\citep{{{','.join(_keys(found))}}}"]
        end = found.end()
    return "".join([*parts, escape_latex(text[end:])])


def bibtex(text: str) -> str:
    """Returns the BibTeX entries of exactly what a text cites, in its order."""
    entries = bibliography()
    return "\n\n".join(entries[key] for key in cited(text) if key in entries) + "\n"


def _keys(found: re.Match[str]) -> list[str]:
    return [mark[1:] for mark in found[1].split("; ")]


def _short(key: str) -> str:
    """Returns an entry as `Mouret & Clune, 2015`, or its key where author and year are not read."""
    entry = bibliography().get(key, "")
    fields = dict(re.findall(r"^\s*(author|year)\s*=\s*[{\"]?(.*?)[}\"]?,?$", entry, re.MULTILINE))
    if len(fields) < 2:
        return key
    for code, letter in _ACCENTS.items():
        fields["author"] = fields["author"].replace(code, letter)
    names = [author.split(",")[0] for author in fields["author"].split(" and ")]
    listed = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{listed}, {fields['year']}"
