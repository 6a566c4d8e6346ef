"""Documentation, help, messages, docstrings and comments are written in plain English.

`python tests/readme/test_words.py PATH...` lists the places to rewrite in these files.
"""

import ast
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 35  # words
GENERATED = ("docs/reference", "build")

# A pattern, and what to write in its place.
WORDS = {
    r"anew": "again, from scratch, rebuilt, recomputed",
    r"besides?": "next to, compared with, in addition to",
    r"(go|goes|going|went|gone) on": "resume, continue, be promoted",
    r"(says|said|saying|tells|told)": "print, show, list, report, state, store; distinguish",
    r"without a word": "silently, without warning",
    r"of (yours|ours|mine|theirs|somebody else's)": "your, our, another user's",
    r"(stands|stood)": "is in, is set in, appears in",
    r"mend(s|ed|ing)?": "fix",
    r"torn": "truncated",
    r"(somebody|whoever|nobody|everybody)": "a user, anyone who, no process, all users",
    r"(so many|so long|so often|so large|so few)": "this many, that long, as often",
    r"of (before|then|now|old)": "previous, at that time, current",
    r"as ever": "as usual",
    r"(made|makes|make|begun|drawn) again": "rebuilt, restarted",
    r"begun": "started",
    r"(dear|its kin|in mid-run|by turns|now and then|as a rule|for good)": (
        "expensive, its variants, during the run, in turn, occasionally, usually, permanently"
    ),
    r"(what|who|which) leads": "the best configuration",
    r"lengthen(s|ed|ing)?": "extend",
    r"luck": "overestimation, chance",  # a lucky evaluation is the field's word
    r"turned away": "rejected",
    r"unseen seeds": "held-out seeds",
    r"swept names?": "swept parameter",
    r"alone": "only, without ...",
    r"by itself": "on its own, automatically",
    r"(a|an|one) (line|row|job|task|run|directory|file|process|column|group|Slurm job|panel|point)"
    r" an? (?!(few|little|lot|time|day|minute|second|hour)\b)\w+": "one ... per ...",
}
PATTERN = re.compile(
    "|".join(rf"(?P<w{i}>\b{word}\b)" for i, word in enumerate(WORDS)), re.IGNORECASE
)


def prose_of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and table cells, with their line; of code, the comments only."""
    fence, paragraph, start = "", [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        mark = re.match(r"(`{3,}|:{3,})", stripped)
        item = re.match(r"([-*+]|\d+\.|>|#+|\|) ?", stripped)
        if (not stripped or mark or item or fence) and paragraph:
            yield start, " ".join(paragraph)
            paragraph = []
        if mark and (not fence or stripped == fence):
            code = not fence and not re.match(
                r"(`{3,}|:{3,})\{(note|tip|warning|admonition)", stripped
            )
            fence = mark[0] if code else ""
        elif fence:
            if "# " in line:
                yield number, line.split("# ", 1)[1]
        elif stripped.startswith("|"):
            for cell in stripped.strip("|").split("|"):
                yield number, cell.strip()
        elif stripped:
            start = start if paragraph else number
            paragraph.append(stripped[item.end() :] if item else stripped)


def prose_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, strings with a blank (messages and help), and blocks of comments."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "X" for p in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and is_prose(node.value)
        ):
            for offset, part in paragraphs(node.value):
                yield node.lineno + offset, part
    yield from comments(path)


def is_prose(text: str) -> bool:
    """Returns whether a string has words, and is not code that a test writes to a file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of regular expressions
            ast.parse(text)
    except (SyntaxError, ValueError):
        return " " in text
    return False


def comments(path: Path) -> Iterator[tuple[int, str]]:
    block, last = [], 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type != tokenize.COMMENT:
                continue
            if block and token.start[0] != last + 1:
                yield last, " ".join(block)
                block = []
            last = token.start[0]
            block.append(token.string.lstrip("#: "))
    if block:
        yield last, " ".join(block)


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    start, paragraph = 0, []
    for number, line in enumerate([*text.splitlines(), ""]):
        item = re.match(r"\s*([-*|] |>>> |\.{2,3} |qdsweep |containers/|\w+( \([^)]*\))?: )", line)
        if (not line.strip() or item) and paragraph:
            yield start, " ".join(paragraph)
            paragraph = []
        if line.strip():
            start = start if paragraph else number
            paragraph.append(line.strip())


def prose_of_hashes(text: str) -> Iterator[tuple[int, str]]:
    """Blocks of comments of YAML, Snakemake and make."""
    block, last = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(^|\s)#+ (.*)", line)
        if comment and block and last == number - 1 and line.strip().startswith("#"):
            block.append(comment[2])
        elif comment:
            if block:
                yield last, " ".join(block)
            block = [comment[2]]
        last = number if comment else last
    if block:
        yield last, " ".join(block)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix in {".md", ".rst"}:
        yield from prose_of_markdown(path.read_text())
    elif path.suffix == ".py":
        yield from prose_of_python(path)
    else:
        yield from prose_of_hashes(path.read_text())


def corpus() -> list[Path]:
    patterns = ["*.md", "docs/**/*.md", "docs/**/*.py", "config/**/*.md", "config/**/*.yaml"]
    patterns += ["workflow/**/*.py", "workflow/**/*.md", "workflow/**/*.smk", "workflow/**/*.rst"]
    patterns += [
        "profiles/**/*.yaml",
        "profiles/**/*.sh",
        "containers/*.sh",
        "Snakefile",
        "Makefile",
    ]
    patterns += ["workflow/**/*.yaml", "tests/**/*.py", "benchmarks/**/*.py"]
    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    this = Path(__file__).resolve()
    return sorted(p for p in paths if p != this and "fixtures" not in p.parts)  # of a release


def words(paths: list[Path]) -> list[str]:
    places = []
    for path in paths:
        for line, text in prose(path):
            bare = re.sub(r"`[^`]*`|https?://\S+", "X", text)
            for match in PATTERN.finditer(bare):
                word = next(w for i, w in enumerate(WORDS) if match[f"w{i}"])
                where = f"{path.relative_to(ROOT)}:{line}"
                places.append(f"{where}: {match[0]!r} -> {WORDS[word]}: {bare[:100]}")
    return places


def long_sentences(paths: list[Path]) -> list[str]:
    places = []
    for path in paths:
        for line, text in prose(path):
            bare = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "X", text)
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*(\[])|\n\n", bare):
                if len(re.findall(r"[A-Za-z]\S*", sentence)) > LONGEST:
                    places.append(f"{path.relative_to(ROOT)}:{line}: {sentence[:150]}")
    return places


def test_words_are_plain():
    places = words(corpus())
    assert not places, f"{len(places)} words to replace:\n" + "\n".join(places)


def test_sentences_are_short():
    places = long_sentences(corpus())
    assert len(places) <= 10, f"{len(places)} sentences to shorten:\n" + "\n".join(places)


if __name__ == "__main__":
    chosen = [
        p
        for p in corpus()
        if not sys.argv[1:] or any(str(p.relative_to(ROOT)).startswith(a) for a in sys.argv[1:])
    ]
    print("\n".join([*words(chosen), "", *long_sentences(chosen)]))
