"""How a benchmark says what it has measured; `make bench` collects it."""

import json
import os
from pathlib import Path

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
) -> None:
    """Prints a ratio, and hands it to `make bench`.

    Args:
        work: What was measured.
        peer: Beside what, in the same run.
        ratio: Ours to the peer's.
        wanted: `<= 1.05` or `>= 2`; nothing for a figure that is only good to know.
        limit: The physical limit of the ratio, where it is known.
        detail: The figures behind it.
        profile: Where the time goes; the table shows it where the ratio is not reached.
    """
    met = ""
    if wanted:
        sign, bound = wanted.split()
        met = "yes" if (ratio <= float(bound) if sign == "<=" else ratio >= float(bound)) else "no"
    verdict = {"": "", "yes": f" (wanted {wanted})", "no": f" (NOT REACHED: wanted {wanted})"}[met]
    print(f"{work}, against {peer}: {ratio:.3g}{verdict}; {detail}; {profile}", flush=True)
    if VARIABLE in os.environ:
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
        with Path(os.environ[VARIABLE]).open("a") as file:
            file.write(json.dumps(row) + "\n")
