"""The page: served by `qdsweep explore`, or inside a report, with all its data.

Its script is of four files of one theme. It asks for data by names. In a report, the element
`explore/NAME` contains the data, in base64.
"""

import json
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_profile import EarlierRun, beyond_text, reported_run
from qdsweep.analysis.page.gallery import Maps
from qdsweep.features.explore.live import LiveRun, open_run
from qdsweep.features.explore.packed import BEYOND, index, pack
from qdsweep.features.explore.shown_runs import MAX_MAPS, ShownRun, choose_runs
from qdsweep.files import read_json
from qdsweep.ornaments import ornament
from qdsweep.records.paths import SweepDir
from qdsweep.runs.load import Run

if TYPE_CHECKING:
    import pandas as pd

_TEMPLATES = Path(__file__).parent / "templates"
# Most bytes of archives and of films in a report, and its most cells for more than six runs. In
# base64, these bytes are a third more: 1.5 MB and 1 MB of the file.
ARCHIVES, FILMS, CELLS = 1_100_000, 750_000, 60_000


def html() -> str:
    """Returns the page, without any data."""
    return _read("explore.html")


def page_style() -> str:
    """Returns its style."""
    return _read("explore.css")


def script() -> str:
    """Returns its script, a module in which all files share one scope."""
    return "\n".join(_read(f"explore_{theme}.js") for theme in ("data", "layout", "maps", "panel"))


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@ornament("the maps on the page", lambda why, data: Maps())
def embedded(data: SweepData) -> Maps:
    """Returns the maps of a sweep's finished runs as a part of its report; empty without any.

    A run that went further is shown at the budget of its row, if its history reaches back to it.
    """
    rows = {(str(row["id"]), row["group"]): row for _, row in data.with_results.iterrows()}

    def row_of(shown: ShownRun) -> "pd.Series | None":
        return rows.get((shown.path.name, shown.group))

    def at_budget(shown: ShownRun) -> Run:
        run, row = open_run(shown.path), row_of(shown)
        ends = row is None or isinstance(run, LiveRun)
        return run if ends else reported_run(data.runs_dir, row)

    for most in (MAX_MAPS, 6):
        chosen = choose_runs(data.sweep.results, [data.sweep.name], finished=most)
        about = index(chosen.runs, data.plan.figures.color_range, at_budget)
        runs = [run for run in about["runs"] if "problem" not in run]
        if sum(about["spaces"][run["space"]]["cells"] for run in runs) <= CELLS:
            break
    if not runs:
        if any(run["problem"].endswith(BEYOND) for run in about["runs"]):
            raise OverflowError(BEYOND)
        return Maps()
    looks, parts, sources, drawn = {look.path.name: look for look in chosen.runs}, {}, {}, []
    for place, run in enumerate(runs):
        name = Path(run["path"]).name
        source, opened = f"{place}/{run['digest']}", at_budget(looks[name])
        run |= {"place": place, "path": name}  # a page that is sent has no paths
        parts[f"run/{source}/0"] = pack(opened, budget=ARCHIVES / len(runs))
        drawn.append((row_of(looks[name]), opened))
        if not isinstance(opened, EarlierRun):  # films are of final elites
            sources[name] = source
    played = _films(data.sweep, sources)
    notes = [f"{run['label']}: cannot be shown." for run in about["runs"] if "problem" in run]
    notes.append(beyond_text((row, run) for row, run in drawn if row is not None).strip())
    about |= {"title": chosen.title, "runs": runs, "notes": [*chosen.notes, *filter(None, notes)]}
    about |= {"is_open": False, "sweeps": [], "films": list(played)}
    parts |= {name: file.read_bytes() for name, file in played.items()}
    parts["index"] = json.dumps(about).encode()
    return Maps(_inline(parts), frozenset(f"{file.stem}.gif" for file in played.values()))


def _inline(parts: dict[str, bytes]) -> str:
    """Returns the page with its data, without the head of HTML."""
    encoded = [b64encode(content).decode() for content in parts.values()]
    inside = "\n".join(
        f'<script type="text/plain" id="{escape(f"explore/{name}")}">{text}</script>'
        for name, text in zip(parts, encoded, strict=True)
    )
    return (
        f"<style>{page_style()}</style>"
        f'<div class="screen"><div class="walk"></div></div>\n{inside}\n'
        f'<script type="module">{script()}</script>'
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
