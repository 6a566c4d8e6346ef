"""Tables of decisions: the candidates for the places of a level, from the markers below it.

A decision promotes earlier candidates, or proposes new ones and plans their runs.
"""

from qdsweep.config.experiment import refuse_idle
from qdsweep.config.model import typed
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.results import write_configs
from qdsweep.records.search_files import (
    Chosen,
    Decision,
    Level,
    read_decision,
    seen_in,
    write_decision,
)
from qdsweep.records.sources import finder, require_own
from qdsweep.search.levels import promote
from qdsweep.search.pbt import decide_generation
from qdsweep.search.places import level_of
from qdsweep.search.search_plan import SEED_COLUMN, compose_candidate
from qdsweep.search.tpe import SeenLevels, WrittenRow, asker, for_model, swept_sources
from qdsweep.sweep.drawn import SAMPLE


def propose_candidates(plan: Plan, level: Level, seen: SeenLevels, results: Results) -> Decision:
    """Proposes the candidates of a level, and plans their runs.

    Args:
        plan: The sweep, whose search samples by tpe.
        level: The level.
        seen: The results of the levels before it.
        results: The folder results/.

    Returns:
        The candidates for the model, and the new candidates.

    Raises:
        BadInput: There are too few different candidates.
    """
    assert plan.search is not None
    apply_baseline("avx2" if has_avx2() else "native")  # before numpy is imported
    known = [candidate["values"] for candidate in plan.candidates]
    sources = swept_sources(plan.sweep, known)
    model = for_model(sources, seen)
    reason = f"tpe, from {len(model)} settings" if model else "random: too few settings for a model"
    names, seeds = [source.name for source in sources], [*plan.candidates[0]["runs"]]

    def is_valid(row: WrittenRow) -> bool:
        """Returns whether the values of a row, which are drawn separately, are compatible."""
        try:
            values = dict(zip(names, map(typed, row), strict=True))
            refuse_idle(compose_candidate(plan.base, values, seeds[0]))
        except BadInput:
            return False
        return True

    find = finder(results)
    chosen = []
    for place, proposed in enumerate(asker(sources, plan.search.seed, is_valid)(seen, level)):
        number = level.first + place
        row = {SAMPLE: number, **proposed}
        values = {name: row[name] for name in plan.columns if name != SEED_COLUMN}
        experiments = [compose_candidate(plan.base, values, seed) for seed in seeds]
        runs = [require_own(find(experiment), results) for experiment in experiments]
        write_configs(dict(zip(runs, experiments, strict=True)), results)
        by_seed = dict(zip(seeds, runs, strict=True))
        chosen.append(Chosen(place, number, values, reason, runs=by_seed))
    return Decision(model, chosen)


def decide(sweep: SweepDir, name: str, block: int) -> None:
    """Writes a table of decisions, and the experiments of runs that are not planned yet.

    Args:
        sweep: The sweep's folder.
        name: The level of the decisions.
        block: The number of the table.

    Raises:
        BadInput: A file that it needs is missing or damaged.
    """
    plan = read_plan(sweep)
    level = level_of(plan, name)
    below = [level_of(plan, name) for name in level.below]
    if level.kind == "exploited":
        decision = decide_generation(sweep, plan, level, below[0])
    elif level.kind == "asked":
        seen = [(lower, seen_in(sweep, lower, range(lower.places))) for lower in below]
        decision = propose_candidates(plan, level, seen, sweep.results)
    else:
        first, last, upto = level.sees(block, below[0].places)
        before = read_decision(sweep, level, block - 1) if block else Decision([], [])
        decision = promote(seen_in(sweep, below[0], range(first, last)), before, upto)
    write_decision(sweep, level, block, decision)
