"""The contents of the code blocks of a page of Markdown."""

import re
import shlex


def blocks(text: str, language: str) -> list[str]:
    """Returns the code blocks of a language, without those that the site executes."""
    return re.findall(rf"(?<!-->\n)^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def files(text: str) -> list[tuple[str, str]]:
    """Returns name and content of the files; their first line is a comment with the name."""
    named = re.compile(r"^```\w+\n# ([\w./]+)[^\n]*\n(.*?)^```", flags=re.M | re.S)
    return named.findall(text)


def commands(text: str) -> list[list[str]]:
    """Returns the words of each command, without comments."""
    lines = "".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]
