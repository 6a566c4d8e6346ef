"""The table of which swept value of a search matters, at its smallest and its largest budget."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.importance import MOST, Importance, best_of, importances, lacking
from qdsweep.analysis.search import Searched, read_search
from qdsweep.analysis.selection import compared_metric, read_tables
from qdsweep.analysis.tables.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.text import number
from qdsweep.config.values import value_text
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.strategies.study import Told, is_score, swept_sources

if TYPE_CHECKING:
    import pandas as pd

NAME, TITLE = "importance", "Importance of swept values"
COLUMNS = ("of", "settings", "best", *Importance._fields)
# Values of a setting as text, and its score, larger is better; None where it failed.
Scored = tuple[Mapping[str, str], float | None]


def write_importance(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `tables/importance.*`; without rows, and with the reason, where nothing can be said.

    Raises:
        BadInput: A table or a marker is missing or damaged.
    """
    import pandas as pd

    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    search = read_search(sweep, plan)
    place = sweep.results.path.parent
    parts = _at_budgets(search) if search else _at_end(sweep_dir, plan)
    records, remarks = [], []
    for heading, settings in parts:
        sources = swept_sources(plan.sweep, [values for values, _ in settings], place)
        told = [Told(tuple(v[source.name] for source in sources), one) for v, one in settings]
        why = lacking(sources, told)
        if why:
            remarks.append(f"{heading}: {why}.")
            continue
        if len(told) > MOST:
            remarks.append(f"{heading}: the first {MOST} of {len(told)} settings.")
            told = told[:MOST]
        failed = sum(not is_score(one.score) for one in told)
        if failed:
            remarks.append(f"{heading}: the {failed} that failed count as the worst.")
        about = {"of": heading, "settings": len(told), "best": best_of(len(told))}
        records += [{**about, **one._asdict()} for one in importances(sources, told)]
    data = pd.DataFrame(records, columns=list(COLUMNS))
    write_sheet(sweep.tables, _sheet(plan, data, remarks), data)


def _at_budgets(search: Searched) -> Iterator[tuple[str, list[Scored]]]:
    """Yields the settings that had the smallest budget, and those that had the largest."""
    if search.is_pbt:
        return
    budgets = sorted({level.budget for level in search.levels})
    for budget in dict.fromkeys((budgets[0], budgets[-1])):
        at = {one.setting: one for one in search.placed if one.level.budget == budget}
        texts: list[Scored] = [
            ({name: value_text(value) for name, value in one.values.items()}, one.score)
            for _, one in sorted(at.items())
            if one.is_done
        ]
        if texts:
            yield f"after {number(budget)} {search.unit}", texts


def _at_end(sweep_dir: Path, plan: Plan) -> Iterator[tuple[str, list[Scored]]]:
    """Yields the groups of each score scale; `qdsweep aggregate` has their means."""
    tables = read_tables(sweep_dir)
    values = {group: rows[0].values for group, rows in plan.groups.items()}
    for scale, groups in tables.score_scales.items():
        own = [group for group in groups if group not in plan.imported_groups]
        done = tables.with_results
        metric = compared_metric(plan.rank, done, own)
        means = metric.sign * done.groupby("group")[metric.name].mean()
        if own:
            heading = "at the end" if len(tables.score_scales) == 1 else scale
            yield heading, [(values[group], float(means[group])) for group in own]


def _sheet(plan: Plan, data: "pd.DataFrame", remarks: Sequence[str]) -> Sheet:
    rows = [
        [
            text_cell(row["of"]),
            text_cell(plan.called(row["name"])),
            *_pair(row["ped_anova"], row["ped_anova_chance"]),
            *_pair(row["fanova"], row["fanova_chance"]),
        ]
        for row in data.to_dict("records")
    ]
    columns = ["settings", "value", "PED-ANOVA (%)", "by chance", "fANOVA (%)", "by chance"]
    note = " ".join([*([ASKED, BOLD] if rows else []), *remarks]) or CHANGING
    return Sheet(NAME, TITLE, note, columns, 2, rows)


def _pair(found: float, chance: float) -> tuple[Cell, Cell]:
    """Returns an importance, bold where it is more than chance, and what chance gives."""
    return (
        number_cell(number(100 * found, 1), found, bold=found > chance),
        number_cell(number(100 * chance, 1), chance),
    )


CHANGING = "In population-based training values change while a run lasts: no score is of one value."
ASKED = (
    "PED-ANOVA asks which value sets the best settings apart (the best tenth, at least five): its"
    " share of what does, together 100 %. fANOVA asks which value moves the score over its whole"
    " range: the share of the variance that it explains alone; what is missing to 100 % are values"
    " together. By chance: the largest of 19 shuffles of the scores; below it, a value is not told"
    " from one without effect. A conditional value counts in PED-ANOVA"
    " where its condition holds, and has no fANOVA. At the largest budget of a halving are the"
    " settings that went on: what they share is not seen there."
)
BOLD = "Bold: more than by chance."
