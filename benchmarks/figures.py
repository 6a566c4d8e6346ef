"""The rows that benchmarks print, and that `make bench` collects; the cost of a command."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

# A file for rows of JSON, set by bench.py.
VARIABLE = "QDSWEEP_BENCH"


def figure(
    work: str,
    peer: str,
    ratio: float,
    wanted: str = "",
    limit: str = "",
    detail: str = "",
    profile: str = "",
) -> dict[str, Any]:
    """Prints a ratio, and passes it to `make bench`.

    Args:
        work: What was measured.
        peer: The tool of the comparison, in the same run.
        ratio: qdsweep's value to the peer's.
        wanted: The target, `<= 1.05` or `>= 2`; empty for a value without a target.
        limit: The physical limit of the ratio, if it is known.
        detail: The values of the ratio.
        profile: The parts of the time; the table shows it if the target is not reached.

    Returns:
        A row for `table`.
    """
    met = ""
    if wanted:
        sign, bound = wanted.split()
        met = "yes" if (ratio <= float(bound) if sign == "<=" else ratio >= float(bound)) else "no"
    verdict = {"": "", "yes": f" (wanted {wanted})", "no": f" (NOT REACHED: wanted {wanted})"}[met]
    print(f"{work}, against {peer}: {ratio:.3g}{verdict}; {detail}; {profile}", flush=True)
    row = {
        "work": work,
        "peer": peer,
        "ratio": ratio,
        "wanted": wanted,
        "met": met,
        "limit": limit,
        "detail": detail,
        "profile": profile,
    }
    if VARIABLE in os.environ:
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def table(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the lines of a table in Markdown."""
    lines = ["| work | compared with | ratio | target | limit | values |"]
    lines.append("|---|---|---:|---:|---:|---|")
    for row in rows:
        ratio = f"{float(row['ratio']):.3g}"
        cells = [row["work"], row["peer"], ratio, row["wanted"], row["limit"], row["detail"]]
        if row["met"] == "no":
            cells[2:4] = f"**{ratio}**", f"**{row['wanted']}: not reached**"
        lines.append(f"| {' | '.join(cells)} |")
    return lines


class Cost(NamedTuple):
    """CPU and wall seconds of a command, and the largest memory of a process [GiB]."""

    cpu: float
    wall: float
    memory: float


# A child begins with the memory of its parent, so a small process starts the command.
_MEASURING = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2)
"""


def measure(folder: Path, *words: object) -> Cost:
    """Returns the cost of a command that succeeds in a folder."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURING, *map(str, words)],
        cwd=folder,
        env={**os.environ, "SLURM_CONF": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - start
    code, cpu, memory = done.stdout.split()
    assert code == "0", done.stderr[-3000:]
    return Cost(float(cpu), wall, float(memory))
