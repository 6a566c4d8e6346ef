"""confirm.json: the runs that confirm a sweep, its winners with seeds that did not choose them."""

from collections.abc import Mapping, Sequence
from typing import Any

from qdsweep.files import damaged, read_json, write_json
from qdsweep.records.sweep_dir import SweepDir

_KEYS = {"id", "like", "group", "values", "iterations", "evaluations"}
_REMEDY = "remove it, and start snakemake with that sweep, which writes it anew"


def read_confirm(sweep: SweepDir) -> list[dict[str, Any]]:
    """Reads the rows of confirm.json.

    They are like those of plan.json; `group` is the winner's, and `like` one of its runs in the
    sweep.

    Returns:
        None of them before the winners are known, and of a sweep that is not confirmed.

    Raises:
        BadInput: The file is damaged.
    """
    if not sweep.confirm.exists():
        return []
    data = read_json(sweep.confirm, cure=_REMEDY)
    try:
        rows = list(data["rows"])
        for row in rows:
            if missing := sorted(_KEYS - row.keys()):
                raise KeyError(missing[0])
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(sweep.confirm, error, _REMEDY) from None
    return rows


def write_confirm(sweep: SweepDir, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes confirm.json."""
    write_json(sweep.confirm, {"rows": rows})
