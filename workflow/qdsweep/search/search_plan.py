"""The part of a search that is known before it starts: its candidates and its levels."""

import hashlib
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.explain import naming_file
from qdsweep.config.keys import Path
from qdsweep.config.model import value_text
from qdsweep.config.search import EARLIEST, Search
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results
from qdsweep.records.search_files import Level, decision_path, marker_path
from qdsweep.search.levels import levels, samples_of
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.grammar import drawn_in
from qdsweep.sweep.runs import Row, Sweep
from qdsweep.text import listed, plural

SEED_COLUMN = "seed"

# The folder of a sweep, in the form for outputs of rules.
_ANY = Results(pathlib.Path("results")).sweep("{sweep}")
_Group = tuple[dict[str, Any], list[Row]]


class Candidate(NamedTuple):
    """A configuration, that is, all swept values except the seed.

    Attributes:
        values: Name -> value.
        runs: Swept seed -> run id.
    """

    values: dict[str, Any]
    runs: dict[str, str]


@dataclass(frozen=True)
class SearchPlan:
    """The plan of a search.

    Attributes:
        levels: The levels, in an order in which they can be computed.
        candidates: The candidates that are known before it starts.
        unit: The unit of the budget.
        warnings: Warnings for the user before it starts.
    """

    levels: tuple[Level, ...]
    candidates: tuple[Candidate, ...]
    unit: str
    warnings: tuple[str, ...] = ()

    @property
    def entries(self) -> dict[str, Any]:
        """Its entries in plan.json."""
        return {
            "unit": self.unit,
            "levels": [level._asdict() for level in self.levels],
            "candidates": [candidate._asdict() for candidate in self.candidates],
        }


def search_plan(
    settings: SweepFile, sweep: Sweep, sources: Mapping[Path, str] = MappingProxyType({})
) -> SearchPlan | None:
    """Returns the plan of a search; None if all runs of the sweep have their full budget.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        sources: The file of each key, from `planning.start.key_sources`.

    Raises:
        BadInput: The search does not fit this sweep.
    """
    search = settings.staged_search
    with naming_file(sources, "search"):
        return None if search is None else _search_plan(settings, search, sweep)


def _search_plan(settings: SweepFile, search: Search, sweep: Sweep) -> SearchPlan:
    groups = _groups(sweep)
    _refuse(settings, search, sweep, len(groups))
    unit, budget = _budget(sweep)
    if search.pbt:
        from qdsweep.search.pbt import refuse_population

        refuse_population(settings.sweep, sweep, unit)
    is_drawn = SAMPLE in sweep.columns
    candidates = _candidates(groups, search, is_drawn=is_drawn)
    seeds = tuple(candidates[0].runs)
    if any(tuple(candidate.runs) != seeds for candidate in candidates):
        raise BadInput(
            "search: all configurations need the same seeds, in the same order. Write the seeds as "
            "a separate source, such as ::: seed 1 2 3"
        )
    planned = levels(search, len(candidates), seeds, budget, drawn=is_drawn)
    needed = max(level.first + level.places for level in planned if level.kind == "known")
    if needed > len(candidates):
        raise BadInput(
            f"search: {needed} different configurations are needed, and only {len(candidates)} of "
            f"{samples_of(search)} draws of {_drawn(settings.sweep)} differ. Draw numbers from "
            "wider ranges, or write fewer (search.samples, or halving without brackets)"
        )
    if search.sampling == "tpe":
        from qdsweep.search.tpe import count_rows, swept_sources

        sources = swept_sources(settings.sweep, [candidate.values for candidate in candidates])
        needed = max(level.first + level.places for level in planned if level.kind != "promoted")
        count = count_rows(sources, needed)
        if count < needed:
            raise BadInput(
                f"search: tpe needs {needed} different configurations, and the drawn sources have "
                f"{count}. Write fewer samples or batches, or a grid"
            )
    return SearchPlan(planned, candidates, unit, tuple(_warnings(search, len(candidates))))


def _drawn(sweep: str) -> str:
    """Returns the drawn keys, each with the number of its values if it is a choice."""
    return listed(
        [
            source.name + f" ({plural(len(source.arguments), 'value')})" * (source.kind == "choice")
            for source in drawn_in(sweep)
        ]
    )


def basis(settings: SweepFile, level: Level, block: int) -> str:
    """Returns data that changes whenever a table of decisions must be rebuilt.

    Args:
        settings: The sweep file.
        level: The level of the decisions.
        block: The number of the table.
    """
    parts: list[object] = [*level.basis(block)]
    if level.kind in ("asked", "exploited") and settings.search is not None:
        pbt = settings.search.pbt
        keys = pbt and pbt.model_dump(mode="json", exclude={"generations"})
        parts += [settings.sweep, settings.search.seed, keys]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def markers(levels: Iterable[Level], places: Iterable[int] | None = None) -> list[str]:
    """Returns the marker files of levels, or of some of their places, as outputs of a rule."""
    return [
        str(marker_path(_ANY, level.name, place, seed))
        for level in levels
        for place in (range(level.places) if places is None else places)
        for seed in level.seeds
    ]


def decision_of(level: Level, place: int) -> list[str]:
    """Returns the table of decisions that gives a place its run, if it is not known beforehand."""
    if level.kind == "known":
        return []
    return [str(decision_path(_ANY, level.name, level.block_of(place)))]


def decided_by(levels: Mapping[str, Level], name: str, block: int) -> list[str]:
    """Returns the inputs of a table of decisions: new markers, and the previous table."""
    level = levels[name]
    below = [levels[lower] for lower in level.below]
    if level.kind != "promoted":
        return markers(below)
    first, last, _ = level.sees(block, below[0].places)
    before = [str(decision_path(_ANY, name, block - 1))] if block else []
    return markers(below, range(first, last)) + before


def _groups(sweep: Sweep) -> list[_Group]:
    """Returns the rows whose values are equal except for the seed, with these values."""
    groups: dict[str, _Group] = {}
    for row in sweep.rows:
        values = {name: value for name, value in row.values.items() if name != SEED_COLUMN}
        groups.setdefault(repr(values), (values, []))[1].append(row)
    return list(groups.values())


def _candidates(groups: list[_Group], search: Search, *, is_drawn: bool) -> tuple[Candidate, ...]:
    """Returns the different candidates, in the order of their numbers."""
    if is_drawn:  # in the order of the draws, so further samples come last
        groups.sort(key=lambda group: group[0][SAMPLE])
    else:  # shuffled, because similar neighbours of a grid would otherwise share a decision
        from qdsweep.search.draws import shuffled

        groups = shuffled(groups, search.seed)
    candidates: dict[str, Candidate] = {}
    for values, rows in groups:
        runs = {value_text(row.values.get(SEED_COLUMN, "")): row.id for row in rows}
        candidates.setdefault(next(iter(runs.values())), Candidate(values, runs))
    return tuple(candidates.values())


def _budget(sweep: Sweep) -> tuple[str, int]:
    """Returns the unit and the amount of a search's only budget."""
    budgets = {next(iter(row.experiment.budget.items())) for row in sweep.rows}
    if len(budgets) > 1:
        texts = ", ".join(f"{unit} {amount}" for unit, amount in sorted(budgets))
        raise BadInput(f"search: all configurations need one budget, but the sweep has {texts}")
    return budgets.pop()


def _refuse(settings: SweepFile, search: Search, sweep: Sweep, different: int) -> None:
    """Refuses keys that a search with this many different configurations cannot have."""
    for key in ("reevaluate", "imported", "published"):
        if getattr(settings, key):
            raise BadInput(
                f"{key}: this key does not work with search.halving, search.pbt or tpe, whose runs "
                f"are not known beforehand. Remove the key {key}, or put it into a sweep of the "
                "best configurations"
            )
    if settings.partial:
        raise BadInput(
            "partial: a search only writes tables at its end; `qdsweep status` shows its progress"
        )
    if search.needs_different:
        mode = "pbt" if search.pbt else "tpe" if search.sampling == "tpe" else "halving.brackets"
        if SAMPLE not in sweep.columns:
            raise BadInput(
                f"search: {mode} draws its configurations. Write `:::~` sources into the sweep, "
                "such as :::~ sigma0 log 0.05 5"
            )
        if different > len({row.values[SAMPLE] for row in sweep.rows}):
            raise BadInput(
                f"search: {mode} takes only drawn sources and seeds. Write the others as "
                ":::~ NAME choice VALUE..."
            )


def _warnings(search: Search, candidates: int) -> Iterator[str]:
    halving = search.halving
    if halving is not None and halving.shares[0] < EARLIEST:
        yield (
            f"the first rung has {halving.shares[0]} of the budget. The best configurations this "
            f"early are often not the best at the end (measured: docs/searches.md); use {EARLIEST} "
            "or more"
        )
    if halving is not None and halving.num_brackets == 1 and candidates < halving.eta:
        count = plural(candidates, "configuration")
        yield f"{count} and eta = {halving.eta}: there is no decision before the last rung"


def compose_candidate(
    base: str | Mapping[str, Any], values: Mapping[str, Any], seed: str
) -> Experiment:
    """Returns the experiment of a candidate that was chosen during the search.

    Args:
        base: The swept experiment.
        values: The candidate's values, empty text where a condition does not hold.
        seed: The swept seed as text; empty if none is swept.

    Raises:
        BadInput: There is no such experiment.
    """
    keys = {name: value for name, value in values.items() if name != SAMPLE and value != ""}
    if seed:
        keys[SEED_COLUMN] = int(seed)
    return compose(base, keys, source="search")
