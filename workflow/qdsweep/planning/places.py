"""What a search computes, as far as it is known before it starts: its settings and its levels."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.keys import Path
from qdsweep.config.search import EARLIEST, Search
from qdsweep.config.sweep import SweepFile
from qdsweep.config.values import value_text
from qdsweep.errors import BadInput
from qdsweep.planning.population import refuse_population
from qdsweep.planning.sources import naming_file
from qdsweep.records.search import Level
from qdsweep.strategies.draws import shuffled
from qdsweep.strategies.levels import levels, samples_of
from qdsweep.strategies.study import swept_sources
from qdsweep.strategies.tpe import count_settings
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.runs import Row, Sweep

SEED = "seed"


class Setting(NamedTuple):
    """All swept values but the seed.

    Attributes:
        values: Name -> value.
        runs: Swept seed -> run.
    """

    values: dict[str, Any]
    runs: dict[str, str]


@dataclass(frozen=True)
class Places:
    """What a search computes.

    Attributes:
        levels: In the order in which they can be computed.
        settings: Those that are known before it starts.
        unit: Of the budget.
        warnings: What its user should know before it starts.
    """

    levels: tuple[Level, ...]
    settings: tuple[Setting, ...]
    unit: str
    warnings: tuple[str, ...] = ()

    @property
    def plan(self) -> dict[str, Any]:
        """What plan.json says of it."""
        return {
            "unit": self.unit,
            "levels": [level._asdict() for level in self.levels],
            "candidates": [setting._asdict() for setting in self.settings],
        }


def places_of(
    settings: SweepFile, sweep: Sweep, sources: Mapping[Path, str] = MappingProxyType({})
) -> Places | None:
    """Returns what a search computes; None where all runs of the sweep are computed whole.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        sources: Where each key stands, from `settings.key_sources`.

    Raises:
        BadInput: The search cannot be done with this sweep.
    """
    search = settings.staged_search
    with naming_file(sources, "search"):
        return None if search is None else _places(settings, search, sweep)


def _places(settings: SweepFile, search: Search, sweep: Sweep) -> Places:
    _refuse(settings, search, sweep)
    unit, budget = _budget(sweep)
    if search.pbt:
        refuse_population(settings.sweep, sweep, unit)
    is_drawn = SAMPLE in sweep.columns
    found = _settings(sweep, search, is_drawn=is_drawn)
    seeds = tuple(found[0].runs)
    for setting in found:
        if tuple(setting.runs) != seeds:
            raise BadInput(
                "search: each setting needs the same seeds, in the same order: write them as a "
                "source of their own, such as ::: seed 1 2 3"
            )
    known = levels(search, len(found), seeds, budget, drawn=is_drawn)
    needed = max(level.first + level.places for level in known if level.kind == "known")
    if needed > len(found):
        raise BadInput(
            f"search: {needed} different settings are needed, and only {len(found)} of "
            f"{samples_of(search)} draws differ: draw numbers from wider ranges, or write fewer "
            "(search.samples, or halving without brackets)"
        )
    if search.sampling == "tpe":
        sources = swept_sources(settings.sweep, [one.values for one in found])
        needed = max(level.first + level.places for level in known if level.kind != "promoted")
        count = count_settings(sources, needed)
        if count < needed:
            raise BadInput(
                f"search: tpe asks for {needed} different settings, and the drawn sources have "
                f"{count}: write fewer samples or batches, or a grid"
            )
    return Places(known, tuple(found), unit, tuple(_warnings(search, found)))


def basis(settings: SweepFile, level: Level, block: int) -> str:
    """Returns what changes whenever a table of decisions must be made again.

    Args:
        settings: The sweep file.
        level: The level that it is about.
        block: The table.
    """
    found: list[object] = [*level.basis(block)]
    if level.kind in ("asked", "exploited") and settings.search is not None:
        pbt = settings.search.pbt
        keys = pbt and pbt.model_dump(mode="json", exclude={"generations"})
        found += [settings.sweep, settings.search.seed, keys]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]


def _settings(sweep: Sweep, search: Search, *, is_drawn: bool) -> list[Setting]:
    """Returns the different settings, in the order of their numbers."""
    groups: dict[str, list[Row]] = {}
    for row in sweep.rows:
        values = {name: value for name, value in row.values.items() if name != SEED}
        groups.setdefault(repr(values), []).append(row)
    rows = list(groups.values())
    if is_drawn:  # each draw with all that crosses it, so that more samples follow behind
        rows.sort(key=lambda group: group[0].values[SAMPLE])
    else:  # neighbours of a grid are alike, and would be decided about together
        rows = shuffled(rows, search.seed)
    found: dict[str, Setting] = {}
    for group in rows:
        values = {name: value for name, value in group[0].values.items() if name != SEED}
        runs = {value_text(row.values[SEED]) if SEED in row.values else "": row.id for row in group}
        found.setdefault(next(iter(runs.values())), Setting(values, runs))
    return list(found.values())


def _budget(sweep: Sweep) -> tuple[str, int]:
    """Returns the unit and the amount of the one budget that a search has."""
    budgets = {next(iter(row.experiment.budget.items())) for row in sweep.rows}
    if len(budgets) > 1:
        said = ", ".join(f"{unit} {amount}" for unit, amount in sorted(budgets))
        raise BadInput(f"search: all settings need one budget, and the sweep has {said}")
    return budgets.pop()


def _refuse(settings: SweepFile, search: Search, sweep: Sweep) -> None:
    """Refuses keys that cannot go together with a search."""
    for key in ("reevaluate", "imported", "published"):
        if getattr(settings, key):
            raise BadInput(
                f"{key}: not with search.halving, search.pbt or tpe, whose runs are not known "
                f"beforehand: remove the key {key}, or put it into a sweep of the best settings"
            )
    if settings.partial:
        raise BadInput(
            "partial: a search has its tables at its end; `qdsweep status` shows where it stands"
        )
    if search.needs_different:
        what = "pbt" if search.pbt else "tpe" if search.sampling == "tpe" else "halving.brackets"
        if SAMPLE not in sweep.columns:
            raise BadInput(
                f"search: {what} draws its settings: write `:::~` sources into the sweep, such as "
                ":::~ sigma0 log 0.05 5"
            )
        drawn = len({row.values[SAMPLE] for row in sweep.rows})
        different = len(
            {repr({k: v for k, v in r.values.items() if k != SEED}) for r in sweep.rows}
        )
        if different > drawn:
            raise BadInput(
                f"search: {what} takes drawn sources and seeds alone: write the others as "
                ":::~ NAME choice VALUE..."
            )


def _is_single(search: Search) -> bool:
    return search.halving is not None and search.halving.num_brackets == 1


def _warnings(search: Search, found: Sequence[Setting]) -> list[str]:
    said = []
    halving = search.halving
    if halving is not None and halving.shares[0] < EARLIEST:
        said.append(
            f"the first rung has {halving.shares[0]} of the budget: what leads so early often "
            f"loses in the end (measured: docs/searches.md); take {EARLIEST} or more"
        )
    if halving is not None and _is_single(search) and len(found) < halving.eta:
        count = f"{len(found)} setting{'' if len(found) == 1 else 's'}"
        said.append(f"{count} and eta = {halving.eta}: nothing is decided before the last rung")
    return said


def compose_setting(
    base: str | Mapping[str, Any], values: Mapping[str, Any], seed: str
) -> Experiment:
    """Returns the experiment of a setting that was chosen on the way.

    Args:
        base: The experiment that is swept.
        values: The setting's values, empty text where a condition does not hold.
        seed: The swept seed as text; empty where none is swept.

    Raises:
        BadInput: There is no such experiment.
    """
    keys = {name: value for name, value in values.items() if name != SAMPLE and value != ""}
    if seed:
        keys[SEED] = int(seed)
    return compose(base, keys, source="search")
