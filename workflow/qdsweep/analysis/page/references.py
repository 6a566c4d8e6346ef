"""What a paper on a sweep should cite: exactly what its runs used."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

# `[@key]` or `[@key; @key]` in a text, with the blank before it.
_CITATION = re.compile(r" ?\[(@\w+(?:; @\w+)*)\]")
_STRATEGIES = {
    "cma_es": "hansen2016cma",
    "sep_cma_es": "ros2008simple",
    "lm_ma_es": "loshchilov2019large",
    "openai_es": "salimans2017evolution",
}
_ACCENTS = {r"{\"o}": "ö", r"{\~a}": "ã"}


@cache
def bibliography() -> dict[str, str]:
    """Every entry of references.bib: key -> its BibTeX."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in text.split("\n\n") if entry.strip()]
    return {re.split(r"[{,]", entry)[1]: entry for entry in entries}


def algorithm_sources(algorithm: dict[str, Any]) -> list[str]:
    """Returns the keys of the papers of an algorithm, the one that gave its name first.

    Args:
        algorithm: The `algorithm:` part of a resolved experiment.
    """
    archive = algorithm.get("archive", {})
    anneals = archive.get("learning_rate") is not None
    kind = archive.get("type")
    keys = ["fontaine2023covariance"] if anneals else []
    keys += {
        "cvt": ["vassiliades2018using"],
        "sliding_boundaries": ["fontaine2019mapping"],
        "proximity": ["lehman2011abandoning"],
        "dns": ["bahlous2025dominated"],
    }.get(str(kind), [])
    for emitter in algorithm.get("emitters", []):
        keys += _emitter_sources(emitter, anneals)
    if algorithm.get("scheduler", {}).get("type") == "bandit":
        keys.append("cully2021multi")
    return list(dict.fromkeys(keys))


def _emitter_sources(emitter: dict[str, Any], anneals: bool) -> list[str]:
    ranker = emitter.get("ranker")
    strategy = [_STRATEGIES[emitter["es"]]] if "es" in emitter else []
    match emitter["type"]:
        case "gaussian":
            return ["mouret2015illuminating"]
        case "iso_line":
            return ["vassiliades2018discovering", "mouret2015illuminating"]
        case "gradient_arborescence" | "gradient_operator":
            return ["fontaine2021differentiable", *strategy]
        case "evolution_strategy":
            if ranker in ("nov", "density"):
                return ["lee2024density", *strategy]
            improves = ranker in ("imp", "2imp", "rd", "2rd") and not anneals
            return (["fontaine2020covariance"] if improves else []) + strategy
    return []


def domain_sources(domain: dict[str, Any]) -> list[str]:
    """Returns the keys of the papers of a domain.

    Args:
        domain: The `domain:` part of a resolved experiment.
    """
    match domain.get("type"):
        case "linear_projection" if domain.get("function") == "plateau":
            return ["fontaine2023covariance"]
        case "linear_projection":
            return ["fontaine2020covariance"]
        case "arm":
            return ["vassiliades2018discovering", "fontaine2023covariance"]
        case "lunar_lander":
            return ["towers2024gymnasium", "tjanaka2021using"]
        case "gymnasium":
            measured = [measure.get("measure") for measure in domain.get("measures", [])]
            robots = ["todorov2012mujoco"] if "contact" in measured else []
            if str(domain.get("name", "")).startswith("qd_"):
                robots.append("tjanaka2022approximating")
            return ["towers2024gymnasium", *robots]
    return []


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
    return "\n\n".join(bibliography()[key] for key in cited(text)) + "\n"


def _keys(found: re.Match[str]) -> list[str]:
    return [mark[1:] for mark in found[1].split("; ")]


def _short(key: str) -> str:
    """Returns an entry as `Mouret & Clune, 2015`."""
    fields = dict(re.findall(r"^  (author|year) = \{(.*)\},$", bibliography()[key], re.MULTILINE))
    for code, letter in _ACCENTS.items():
        fields["author"] = fields["author"].replace(code, letter)
    names = [author.split(",")[0] for author in fields["author"].split(" and ")]
    listed = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{listed}, {fields['year']}"
