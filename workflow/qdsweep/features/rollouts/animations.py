"""Animations: how the archives of a sweep filled, and rendered episodes of chosen elites."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_pictures import key_text, score_text
from qdsweep.analysis.figures.archive_profile import approximate_text
from qdsweep.analysis.figures.figure import (
    Drawn,
    Omitted,
    keep,
    keep_all,
    remove_others,
    save_figures,
    stamp,
)
from qdsweep.analysis.figures.heatmap import (
    Limits,
    add_color_bar,
    color_limits,
    objective_label,
)
from qdsweep.analysis.figures.style import (
    EMPTY_CELL,
    NOTE,
    add_heading,
    add_key,
    figure_width,
    short_numbers,
    style,
)
from qdsweep.analysis.legend import COLORMAP, Mark
from qdsweep.analysis.noise import reported_text
from qdsweep.analysis.selection import SweepTables, others_text, read_tables, short_names
from qdsweep.config.sweep import Rollouts
from qdsweep.errors import BadInput
from qdsweep.features.rollouts.film import write_gif
from qdsweep.features.rollouts.rollout import rollout, slug
from qdsweep.files import write_json
from qdsweep.ornaments import ornament
from qdsweep.records.history import History, read_history
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.runs.load import Run, load
from qdsweep.text import number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from PIL.Image import Image


_MAX_GROUPS = 6
FRAMES = 40
_SECONDS = 5.0
_PIXELS = 400  # width and height of the picture of a CVT archive
# The share of the evaluations after which a still is taken: most cells are filled early.
_STILLS = (1 / 64, 1 / 16, 1 / 4, 1.0)


@dataclass(frozen=True)
class Evolution:
    """The archive of a group's median run, up to the iteration of the group's budget, `last`.

    `cells`: ``(height, width)`` the cell of each pixel of a picture, lowest measure first; `mark`:
    its group's line in other figures, None for the only group.
    """

    group: str
    run: Run
    history: History
    last: int
    cells: NDArray[np.int64]
    mark: Mark | None

    def picture(self, iteration: int) -> NDArray[np.float64]:
        """Returns the objective of each pixel after an iteration; nan where there is no elite."""
        index, objective = self.history.at(iteration)
        values = np.full(self.run.summary["archive"]["cells"], np.nan)
        values[index] = objective
        return values[self.cells]

    def moment(self, iteration: int) -> dict[str, Any]:
        """Returns the evaluations and metrics of the run after an iteration."""
        row = self.run.metrics.iloc[iteration - 1]
        return {
            "group": self.group,
            "run": self.run.summary["id"],
            "iteration": iteration,
            "evaluations": int(row["evaluations"]),
            "num_elites": int(row["num_elites"]),
            "coverage": float(row["coverage"]),
            "qd_score": float(row["qd_score"]),
        }

    def made_of(self, limits: Limits) -> str:
        """Returns what the animation depends on."""
        return f"{stamp(self.run.files.archive)} {self.last} {self.group} {self.mark} {limits}"

    def iterations(self, count: int) -> list[int]:
        """Returns at most `count` iterations, closest together at the start, where most happens."""
        shares = np.linspace(1 / count, 1, count) ** 2
        return np.unique(np.ceil(self.last * shares).astype(int)).tolist()


def evolution(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `plots/evolution/ID.gif` of the best groups' median runs, and stills of them.

    Runs without history.npz and archives without two measures are left out, with a line each.

    Raises:
        BadInput: A table or a run's file is missing, or `figures` of the sweep file names what
            the sweep does not have.
    """
    data = SweepData.read(sweep_dir, runs_dir)
    folder, width = data.sweep.evolution, data.plan.figures.column_width
    drawn: list[Drawn | Omitted] = []
    animated: dict[str, tuple[Evolution, Limits]] = {}
    for scale, groups in best_groups(data).items():
        fillings = [_read(data, group) for group in groups]
        shown = [filling for filling in fillings if filling is not None]
        if shown:
            limits = evolution_limits(shown, data.plan.figures.color_range)
            animated |= {f"{filling.run.summary['id']}.gif": (filling, limits) for filling in shown}
            name = f"evolution_{len(drawn) + 1}" if drawn else "evolution"
            with style(width):
                drawn.append(stills(name, scale, shown, data))
    with style():
        keep(
            folder,
            data.sweep,
            {name: filling.made_of(limits) for name, (filling, limits) in animated.items()},
            lambda name: write_gif(folder / name, frames(*animated[name]), _SECONDS),
        )
    with style(width):
        names = save_figures(folder, drawn)
    remove_others(folder, names | animated.keys())


def best_groups(tables: SweepTables) -> dict[str, list[str]]:
    """Returns the groups that animations show: at most six, the best of each scale."""
    score_scales = dict(list(tables.score_scales.items())[:_MAX_GROUPS])
    return {
        scale: tables.best(groups, max(1, _MAX_GROUPS // len(score_scales)))
        for scale, groups in score_scales.items()
    }


def frames(filling: Evolution, limits: Limits) -> list["Image"]:
    """Returns the pictures of an animation, all in the same colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(4.4, 3.9), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ax = figure.subplots()
    image = draw_moment(ax, filling, filling.last, limits)
    iterations = filling.iterations(FRAMES)
    label = objective_label(filling.run)
    add_color_bar(figure, [ax], map(filling.picture, iterations), limits, label=label)
    title = ax.set_title(_text(filling, filling.last), loc="left", **NOTE)
    figure.suptitle(filling.group, fontsize=9.5)
    canvas.draw()
    figure.set_layout_engine("none")  # nothing may move from here on
    # Only these change or lie over what changes. All else is drawn once.
    changing = [image, *ax.spines.values(), *ax.lines, title]
    for artist in changing:
        artist.set_animated(True)
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)
    pictures = []
    for iteration in iterations:
        canvas.restore_region(background)
        image.set_data(np.ma.masked_invalid(filling.picture(iteration)))
        title.set_text(_text(filling, iteration))
        for artist in changing:
            ax.draw_artist(artist)
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
    return pictures


def draw_moment(ax: "Axes", filling: Evolution, iteration: int, limits: Limits) -> "AxesImage":
    """Draws the archive after an iteration: colour is the objective, grey is empty."""
    (left, right), (bottom, top) = filling.run.summary["archive"]["ranges"]
    ax.set_facecolor(EMPTY_CELL)
    image = ax.imshow(
        np.ma.masked_invalid(filling.picture(iteration)),
        origin="lower",
        extent=(left, right, bottom, top),
        aspect="auto",
        interpolation="nearest",
        cmap=COLORMAP,
        vmin=limits[0],
        vmax=limits[1],
    )
    if filling.mark is not None:
        add_key(ax, filling.mark)
    short_numbers(ax.xaxis, 4)
    short_numbers(ax.yaxis, 5)
    first, second = filling.run.measure_names
    ax.set_xlabel(first)
    ax.set_ylabel(second)
    return image


def evolution_limits(shown: list[Evolution], chosen: Limits | None) -> Limits:
    """Returns the objectives at the ends of the colours, from the last elites."""
    last = [filling.history.at(filling.last)[1] for filling in shown]
    run = shown[0].run
    return color_limits(last, run.summary["archive"], chosen, objective_label(run))


@ornament("the animation of the archive of {1}")
def _read(data: SweepData, group: str) -> Evolution | None:
    """Reads the evolution of a group's median run; without one prints why and returns None."""
    row = data.median_run(group)
    files = data.run(str(row["id"])).results
    run, history = load(files.path), read_history(files)
    cells = None if history is None else _cells_of_pixels(run)
    if history is None or cells is None:
        lacks = "no history.npz" if history is None else "not two measures"
        print(f"{row['id']}: {lacks}, so no animation of how it filled", file=sys.stderr)
        return None
    mark = data.marks[group] if len(data.series) > 1 else None
    return Evolution(group, run, history, int(row["iteration"]), cells, mark)


def _cells_of_pixels(run: Run) -> NDArray[np.int64] | None:
    about = run.summary["archive"]
    if len(about["ranges"]) != 2:
        return None
    if about["dims"]:
        return np.arange(about["cells"]).reshape(about["dims"]).T
    from scipy.spatial import cKDTree

    middles = (np.arange(_PIXELS) + 0.5) / _PIXELS
    x, y = (low + middles * (high - low) for low, high in about["ranges"])
    pixels = np.stack(np.meshgrid(x, y), axis=-1)
    nearest: NDArray[np.int64] = cKDTree(run.arrays["centroids"]).query(pixels)[1]
    return nearest


@ornament(
    "the figure {0}",
    lambda why, name, *about: Omitted(name, "Evolution", "Archives over time", why),
)
def stills(name: str, scale: str, shown: list[Evolution], tables: SweepTables) -> Drawn | Omitted:
    """Draws a row of moments for each group, in one colour scale."""
    import pandas as pd
    from matplotlib.figure import Figure

    is_narrow = figure_width(2.3 * len(_STILLS) + 1.1) <= 5
    shares = _STILLS[1::2] if is_narrow else _STILLS  # a narrow column has room for two
    # The first shares of a short run are the same iteration.
    moments = [sorted({math.ceil(filling.last * share) for share in shares}) for filling in shown]
    columns = max(map(len, moments))
    width = figure_width(2.3 * columns + 1.1)
    figure = Figure(figsize=(width, 2.55 * len(shown) + 0.3), layout="constrained")
    limits = evolution_limits(shown, tables.plan.figures.color_range)
    rows = figure.subfigures(len(shown), 1, squeeze=False)[:, 0]
    for row, filling, iterations in zip(rows, shown, moments, strict=True):
        axes = list(row.subplots(1, columns, squeeze=False)[0])
        for ax in axes[len(iterations) :]:
            ax.set_visible(False)
        for ax, iteration in zip(axes, iterations, strict=False):
            draw_moment(ax, filling, iteration, limits)
            ax.set_title(_text(filling, iteration, "\n" if is_narrow else " "), **NOTE)
            if ax is not axes[0]:
                ax.set_ylabel("")
                ax.set_yticklabels([])
        pictures = map(filling.picture, iterations)
        label = objective_label(filling.run)
        add_color_bar(row, axes[: len(iterations)], pictures, limits, label=label)
        add_heading(row, f"{filling.group}, seed {filling.run.config['seed']}", inches=width)
    left_out = len(tables.score_scales[scale]) - len(shown)
    about = "" if len(tables.score_scales) == 1 else f" {scale}."
    parts = ", ".join(f"1/{1 / share:.0f}" for share in shares[:-1])
    median = tables.median_text([filling.group for filling in shown])
    caption = (
        f"The archive of each group's run with {median} after {parts}"
        " (rounded up) and all of its iterations, each iteration once. Colour: objective, in one"
        f" scale. Grey: no elite.{key_text(tables)}"
        f" The animation of a run has up to {FRAMES} such moments.{about}"
        f"{reported_text(tables.plan)}"
    )
    caption += approximate_text(
        filling.history.is_approximate(filling.run.config.get("algorithm")) for filling in shown
    )
    if left_out:
        caption += f" Not shown: {plural(left_out, 'group')}."
    caption += others_text(sum(map(len, list(tables.score_scales.values())[_MAX_GROUPS:])))
    points = [
        filling.moment(iteration) for filling in shown for iteration in filling.iterations(FRAMES)
    ]
    place = list(tables.score_scales).index(scale)
    task = short_names(list(tables.score_scales))[place] if about else ""
    title = f"Archives over time: {task}" if task else "Archives over time"
    return Drawn(name, "Evolution", title, caption, figure, pd.DataFrame(points))


def _text(filling: Evolution, iteration: int, between: str = " ") -> str:
    moment = filling.moment(iteration)
    score = score_text(moment["qd_score"], filling.run.summary["archive"]["cells"])
    return (
        f"{number(moment['evaluations'])} evaluations\n"
        f"{score},{between}coverage {100 * moment['coverage']:.1f} %"
    )


def rollouts(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `plots/rollouts/GROUP-ELITE.gif` and `rollouts.json`, the list of them.

    Neither shows labels of `figures:`; the page adds them.

    Raises:
        BadInput: The sweep has no `rollouts:`, or its elites cannot be rendered.
    """
    sweep, tables = SweepDir(sweep_dir), read_tables(sweep_dir)
    settings = tables.plan.rollouts
    if settings is None:
        raise BadInput(
            f"the sweep {sweep_dir.name} has no key rollouts: write `rollouts: {{}}` into its file "
            "and run `snakemake`, or take `qdsweep rollout RUN_DIR`"
        )
    imported = tables.plan.imported_groups
    tables = tables.of(group for group in tables.series if group not in imported)
    shown: dict[str, RunDir] = {}
    for group in (group for groups in best_groups(tables).values() for group in groups):
        shown[group] = RunDir(runs_dir / str(tables.median_run(group)["id"]))
    runs = [f"{name} {run.name} {stamp(run.results.archive)}" for name, run in shown.items()]
    made_of = f"streamed {settings.model_dump_json()} {runs}"
    keep_all(sweep.rollouts, sweep, made_of, lambda: _render(sweep.rollouts, shown, settings))


@ornament("the episodes of {4}", lambda why, *about: None)
def _episodes(
    run: RunDir, folder: Path, settings: Rollouts, files: str, group: str
) -> list[dict[str, Any]] | None:
    """Renders elites of a group's run; returns their entries of rollouts.json."""
    entries = rollout(
        run.results.path,
        folder,
        settings.elites,
        settings.seconds,
        run=run.name,
        files=files,
        streamed=True,
    )
    return [{**entry, "group": group} for entry in entries]


def _render(folder: Path, runs: Mapping[str, RunDir], settings: Rollouts) -> tuple[set[str], bool]:
    """Renders elites of each group's run; returns the names of the files, and if they are all."""
    entries, taken, is_all = [], set[str](), True
    for group, run in runs.items():
        name = group
        while slug(name) in taken:  # groups may differ only in signs
            name += "_"
        taken.add(slug(name))
        of_group = _episodes(run, folder, settings, name, group)
        entries += of_group or []
        is_all &= of_group is not None
    write_json(folder / "rollouts.json", {"rollouts": entries})
    files = {str(entry[key]) for entry in entries for key in ("file", "film")}
    return {"rollouts.json", *files}, is_all
