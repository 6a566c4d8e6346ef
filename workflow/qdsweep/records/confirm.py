"""confirm.json: the runs that confirm a sweep, its winners with seeds that did not choose them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from qdsweep.files import damaged, read_json, write_json
from qdsweep.records.plan import RowData
from qdsweep.records.sums import require_as_written
from qdsweep.records.sweep_dir import SweepDir

_REMEDY = "remove it, and start snakemake with that sweep, which writes it anew"


class ConfirmingRow(RowData):
    """A row of confirm.json: like one of plan.json, of a seed that did not choose the winner.

    Attributes:
        like: A run of the winner in the sweep.
        group: The winner.
    """

    like: str
    group: str


_ROWS = TypeAdapter(list[ConfirmingRow])


def read_confirm(sweep: SweepDir) -> list[ConfirmingRow]:
    """Reads the rows of confirm.json.

    Returns:
        None of them before the winners are known, and of a sweep that is not confirmed.

    Raises:
        BadInput: The file is damaged.
    """
    if not sweep.confirm.exists():
        return []
    require_as_written(sweep.confirm, _REMEDY, sweep.sums("winners"))
    data = read_json(sweep.confirm, cure=_REMEDY)
    try:
        rows = _ROWS.validate_python(data["rows"])
        for row in rows:
            int(row["values"]["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(sweep.confirm, error, _REMEDY) from None
    return rows


def write_confirm(sweep: SweepDir, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes confirm.json."""
    write_json(sweep.confirm, {"rows": rows})
