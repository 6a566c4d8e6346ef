"""What was computed of a sweep after its runs, for the methods paragraph."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from qdsweep.analysis.page.references import cite
from qdsweep.analysis.page.words import seeds_text
from qdsweep.analysis.text import listed, number, plural
from qdsweep.config.imported import MARK
from qdsweep.elites.reevaluation import core_seconds_of
from qdsweep.records.config import read_config
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import Row, read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.summary import read_summary
from qdsweep.records.sums import read_checked
from qdsweep.records.sweep_dir import SweepDir


def confirmation(sweep_dir: Path, runs_dir: Path, tasks: int) -> tuple[str, list[dict[str, Any]]]:
    """Returns a sentence on the winners of each task on unseen seeds, and their summary.json."""
    rows = read_confirm(SweepDir(sweep_dir))
    groups = len({row["group"] for row in rows})
    which = "The best group was" if groups == 1 else f"The best {groups} groups were"
    if tasks > 1:
        which = f"The best groups of each task, {groups} in all, were"
    seeds = seeds_text(row["values"]["seed"] for row in rows)
    sentence = (
        f"{which} run again with the unseen {seeds}, which takes the bias of the selection"
        f" out{cite(['cawley2010overfitting'])}."
    )
    return sentence, read_summaries(runs_dir, dict.fromkeys(row["id"] for row in rows))


def correction(sweep_dir: Path, runs_dir: Path, ids: Iterable[str]) -> tuple[str, float]:
    """Returns a sentence on the corrected archives of some runs, and their core-seconds."""
    settings = read_plan(SweepDir(sweep_dir)).reevaluate
    if settings is None:
        return "", 0.0
    folders = [RunDir(runs_dir / run) for run in ids]
    corrected = [folder for folder in folders if folder.corrected(settings.stem).exists()]
    elites = sum(read_checked(run.corrected(settings.stem))["elites"] for run in corrected)
    times = settings.times
    what = f"means of {times} new evaluations" if times > 1 else "values of one new evaluation"
    sentence = (
        f"Corrected archives{cite(['flageat2024uncertain'])} hold the elites with the {what} of"
        f" each ({number(times * elites)} evaluations in all, of fresh seeds drawn from"
        f" the seed {settings.seed}); where several fall into one cell, the best stays."
    )
    return sentence, sum(core_seconds_of(run, settings) for run in corrected)


def read_summaries(runs_dir: Path, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Reads summary.json of some runs."""
    return [read_summary(RunDir(runs_dir / run).results) for run in ids]


def imported(rows: Iterable[Row], runs_dir: Path) -> str:
    """Returns a sentence on the runs of others; nothing where there are none."""
    configs: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        config = read_config(RunDir(runs_dir / row.run).config)
        configs.setdefault(row.group, []).append(config["imported"])
    if not configs:
        return ""
    parts = [
        f"{group.removesuffix(MARK)} ({plural(len(found), 'run')}"
        + (f"; {found[0]['source']})" if found[0].get("source") else ")")
        for group, found in configs.items()
    ]
    return (
        f"Results of {listed(parts)} were not computed by us: their elites were imported, and"
        " measured as ours."
    )
