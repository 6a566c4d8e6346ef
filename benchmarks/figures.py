"""How a benchmark says what it has measured; `make bench` collects it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
    """Prints a ratio, and hands it to `make bench`.

    Args:
        work: What was measured.
        peer: Beside what, in the same run.
        ratio: Ours to the peer's.
        wanted: `<= 1.05` or `>= 2`; nothing for a figure that is only good to know.
        limit: The physical limit of the ratio, where it is known.
        detail: The figures behind it.
        profile: Where the time goes; the table shows it where the ratio is not reached.

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
    lines = ["| work | against | ratio | wanted | limit | figures |"]
    lines.append("|---|---|---:|---:|---:|---|")
    for row in rows:
        ratio = f"{float(row['ratio']):.3g}"
        cells = [row["work"], row["peer"], ratio, row["wanted"], row["limit"], row["detail"]]
        if row["met"] == "no":
            cells[2:4] = f"**{ratio}**", f"**{row['wanted']}: not reached**"
        lines.append(f"| {' | '.join(cells)} |")
    return lines
