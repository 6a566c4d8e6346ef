"""What others write into the files of a sweep is text on its page, in every field."""

import base64
import copy
import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from in_process import compute_sweep, report_sweep
from support import TINY

from qdsweep.analysis.page.report import report
from qdsweep.errors import QdsweepError

# It leaves an attribute, an element, a script and JSON, rings, and turns the text that follows.
MARK = "\"'><script>pwned()</script><b>\x07\u202e"
RAW = ("<script>pwned", "\x07", "\u202e")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> Path:
    """A sweep with all sections of the page, but without checksums: its files are believed."""
    results = tmp_path_factory.mktemp("markup") / "results"
    text = "::: seed 1 2 ::: batch_size 4 8 ::: mutation_scale 0.1 0.2"
    sweep = report_sweep(compute_sweep(results, {**TINY, "algorithm": "map_elites"}, text))
    for sums in results.rglob("*.sha256"):
        sums.unlink()
    return sweep


def read(path: Path) -> Any:
    if path.suffix == ".csv":
        return list(csv.reader(path.read_text().splitlines()))
    return (
        yaml.safe_load(path.read_text()) if path.suffix == ".yaml" else json.loads(path.read_text())
    )


def write(path: Path, data: Any) -> None:
    with path.open("w") as file:
        if path.suffix == ".csv":
            csv.writer(file, lineterminator="\n").writerows(data)
        else:
            json.dump(data, file)  # YAML, too


Place = tuple[Any, ...]


def places(data: Any) -> Iterator[Place]:
    """The path to each text."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in places(value))
        elif isinstance(value, str) and not re.fullmatch(r"[-+.\de]*|nan|True|False", value):
            yield (key,)


def fields(path: Path, data: Any) -> list[Place]:
    """The path to one text of each field: of a key, whichever list it is in, or of a column."""
    if path.suffix == ".csv":
        return [(row, column) for row, column in places(data) if row == 1]
    return list(
        {tuple(k for k in place if type(k) is str): place for place in places(data)}.values()
    )


def marked(data: Any, chosen: list[Place]) -> Any:
    data = copy.deepcopy(data)
    for *path, last in chosen:
        inner = data
        for key in path:
            inner = inner[key]
        inner[last] = f"{MARK}{inner[last]}"
    return data


def shown(sweep: Path) -> str:
    """The page, with the data of its scripts."""
    page = (sweep / "report.html").read_text()
    packed = [base64.b64decode(text) for text in re.findall(r'"([A-Za-z0-9+/=]{200,})"', page)]
    return "\n".join([page, *(gzip.decompress(p).decode() for p in packed if p[:2] == b"\x1f\x8b")])


def check(sweep: Path, path: Path, data: Any, chosen: list[Place]) -> int:
    """Returns how many fields the page has taken; a file that is refused is tried in halves."""
    write(path, marked(data, chosen))
    (sweep / "report.html").unlink(missing_ok=True)
    try:
        report(sweep, sweep.parents[1] / "runs")
    except (QdsweepError, KeyError, ValueError):  # such as an id that the plan does not have
        half = len(chosen) // 2
        return sum(
            check(sweep, path, data, part) for part in (chosen[:half], chosen[half:]) if half
        )
    page = shown(sweep)
    assert not [raw for raw in RAW if raw in page], (path, chosen)
    return len(chosen)


def test_every_field_of_every_file_is_text(sweep):
    runs = sorted((sweep.parents[1] / "runs").iterdir())
    taken = 0
    for path in (*sweep.rglob("*.json"), *sweep.rglob("*.csv"), *runs[0].glob("*.[jyc]*")):
        before, data = path.read_bytes(), read(path)
        taken += check(sweep, path, data, fields(path, data))
        path.write_bytes(before)
    assert taken > 60
