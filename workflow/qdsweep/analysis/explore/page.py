"""The page: served by `qdsweep explore`, or inside a report, with all its data.

Its script is of four files of one theme. It asks for data by names. In a report, the element
`explore/NAME` contains the data, in base64.
"""

import json
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.explore.data import BEYOND, index, pack
from qdsweep.analysis.explore.live import open_run
from qdsweep.analysis.explore.runs import MOST, choose_runs
from qdsweep.files import read_json
from qdsweep.ornaments import ornament
from qdsweep.records.paths import SweepDir

_TEMPLATES = Path(__file__).parent / "templates"
# Most bytes of archives and of films in a report, and its most cells for more than six runs.
ARCHIVES, FILMS, CELLS = 1_100_000, 750_000, 60_000


def html() -> str:
    """Returns the page, without any data."""
    return _read("explore.html")


def style() -> str:
    """Returns its style."""
    return _read("explore.css")


def script() -> str:
    """Returns its script, a module in which all files share one scope."""
    return "\n".join(_read(f"explore_{theme}.js") for theme in ("data", "layout", "maps", "panel"))


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


class Maps(NamedTuple):
    """Maps in a report: their HTML, and the animations that they play."""

    html: str = ""
    played: frozenset[str] = frozenset()


@ornament("the maps on the page", lambda why, data: Maps())
def embedded(data: SweepData) -> Maps:
    """Returns the maps of a sweep's finished runs as a part of its report; empty without any."""
    for most in (MOST, 6):
        chosen = choose_runs(data.sweep.results, [data.sweep.name], finished=most)
        about = index(chosen.runs, data.plan.figures.color_range)
        runs = [run for run in about["runs"] if "problem" not in run]
        if sum(about["spaces"][run["space"]]["cells"] for run in runs) <= CELLS:
            break
    if not runs:
        if any(run["problem"].endswith(BEYOND) for run in about["runs"]):
            raise OverflowError(BEYOND)
        return Maps()
    parts, sources = {}, {}
    for place, run in enumerate(runs):
        path = Path(run["path"])
        sources[path.name] = f"{place}/{run['digest']}"
        run |= {"place": place, "path": path.name}  # a page that is sent has no paths
        parts[f"run/{sources[path.name]}/0"] = pack(open_run(path), budget=ARCHIVES / len(runs))
    played = _films(data.sweep, sources)
    lost = [f"{run['label']}: cannot be shown." for run in about["runs"] if "problem" in run]
    about |= {"title": chosen.title, "runs": runs, "notes": chosen.notes + lost}
    about |= {"is_open": False, "sweeps": [], "films": list(played)}
    parts |= {name: file.read_bytes() for name, file in played.items()}
    parts["index"] = json.dumps(about).encode()
    inside = "\n".join(
        f'<script type="text/plain" id="explore/{name}">{b64encode(content).decode()}</script>'
        for name, content in parts.items()
    )
    return Maps(
        f'<style>{style()}</style><div class="screen"><div class="walk"></div></div>\n{inside}\n'
        f'<script type="module">{script()}</script>',
        frozenset(f"{file.stem}.gif" for file in played.values()),
    )


def _films(sweep: SweepDir, sources: dict[str, str]) -> dict[str, Path]:
    """Returns the files of the episodes of `qdsweep rollouts` that have room, by their names."""
    path, files, size = sweep.rollouts / "rollouts.json", {}, 0
    entries = read_json(path, "Run `qdsweep rollouts` again.")["rollouts"] if path.exists() else []
    for entry in entries:
        if "film" in entry and entry["run"] in sources:
            file = sweep.rollouts / entry["film"]
            if size + file.stat().st_size <= FILMS:
                size += file.stat().st_size
                files[f"film/{sources[entry['run']]}/{entry['cell']}"] = file
    return files
