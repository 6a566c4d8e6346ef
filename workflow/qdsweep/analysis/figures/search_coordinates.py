"""Parallel coordinates of all settings of a search; those that stopped are pale."""

import math
from dataclasses import replace

from qdsweep.analysis.figures.combinations import Combinations, axis_of, log_text
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.parallel_coordinates import parallel_coordinates
from qdsweep.analysis.figures.search_curves import SECTION
from qdsweep.analysis.search import Searched
from qdsweep.analysis.text import plural
from qdsweep.config.values import value_text

NAME, TITLE = "search_coordinates", "Parallel coordinates of the search"


def search_combinations(search: Searched) -> Combinations | None:
    """Returns all settings that have a score, where they got furthest; `group`: their numbers.

    None where two names do not tell two of them apart.
    """
    import pandas as pd

    every = [one for one in search.last if one.score is not None]
    texts = {
        name: [value_text(one.values[name]) for one in every]
        for name in search.names
        if len({value_text(one.values[name]) for one in every}) > 1
    }
    if len(every) < 2 or len(texts) < 2:
        return None
    axes = [
        axis_of(
            name,
            list(dict.fromkeys(values)),
            search.called.get(name),
            logged=name in search.logged,
        )
        for name, values in texts.items()
    ]
    about = {
        "mean": [search.shown(one.score or 0.0) for one in every],
        "se": math.nan,
        "n": [len(one.level.seeds) for one in every],
        "group": [str(one.setting) for one in every],
        "budget": [one.level.budget for one in every],
        "why": [one.why for one in every],
    }
    return Combinations("", axes, search.metric, pd.DataFrame({**texts, **about}))


def stopped_early(search: Searched) -> set[str]:
    """Returns the settings that had less than the whole budget, as `search_combinations` does."""
    return {str(one.setting) for one in search.last} - {
        str(one.setting) for one in search.finalists
    }


def search_coordinates(search: Searched) -> Drawn | Omitted:
    """Draws a line for each setting, which ends at its score where it got furthest."""
    found = search_combinations(search)
    if found is None:
        why = "fewer than two settings have a score, or than two names tell them apart"
        return Omitted(NAME, SECTION, TITLE, why)
    table, pale = found.table, stopped_early(search)
    drawn = parallel_coordinates(found, NAME, SECTION, "", pale)
    caption = (
        f"A line is one of {plural(len(table), 'setting')}; its end and colour are the"
        f" {search.metric.phrase} where it got furthest, the mean over the seeds that it had there."
    )
    count = int(table["group"].isin(pale).sum())
    if count:
        caption += (
            f" Pale: the {count} that stopped earlier, so their scores are of a smaller budget."
        )
    if (table[found.names] == "").any(axis=None):
        caption += " A gap: not drawn for that setting."
    data = table.rename(columns={"group": "setting"})[
        [*found.names, "mean", "n", "setting", "budget"]
    ]
    return replace(drawn, title=TITLE, caption=caption + log_text(found.axes), data=data)
