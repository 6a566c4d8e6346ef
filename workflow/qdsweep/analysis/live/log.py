"""The end of a run's log, for a few lines of a terminal."""

from pathlib import Path

from qdsweep.records.tail import last_lines


def log_tail(path: Path, count: int) -> list[str]:
    """Returns the last lines of a log, without its text plots."""
    kept, in_plot = [], False
    for line in last_lines(path):
        dated = line[:4].isdigit() and line[4:5] == "-"
        in_plot = line.endswith("over evaluations:") or (in_plot and not dated)
        if line.strip() and not in_plot:
            kept.append(printable(line))
    return kept[-count:]


def printable(text: str) -> str:
    """Returns a text without characters that move a cursor."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
