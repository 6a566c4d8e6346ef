"""New settings of a search, from what was seen of earlier ones; their runs are planned at once."""

from collections.abc import Mapping
from typing import Any

from qdsweep.config.values import typed
from qdsweep.errors import BadInput
from qdsweep.host.cpu import apply_baseline, has_avx2
from qdsweep.planning.places import SEED, compose_setting
from qdsweep.records.config import write_configs
from qdsweep.records.plan import Plan
from qdsweep.records.search import Chosen, Decision, Level
from qdsweep.records.sources import finder
from qdsweep.records.sweep_dir import Results
from qdsweep.strategies.study import Row, swept_sources
from qdsweep.strategies.tpe import Looks, asker, to_tell
from qdsweep.sweep.drawn import SAMPLE


def propose_settings(plan: Plan, level: Level, seen: Looks, results: Results) -> Decision:
    """Asks for the settings of a level, and plans their runs.

    Args:
        plan: The sweep, whose search samples by tpe.
        level: The level.
        seen: What was seen of the levels before it.
        results: The folder results/.

    Returns:
        What the model was told, and the new settings.

    Raises:
        BadInput: There are not so many different settings.
    """
    assert plan.search is not None
    apply_baseline("avx2" if has_avx2() else "native")  # before numpy is imported
    settings = [one["values"] for one in plan.candidates]
    sources = swept_sources(plan.sweep, settings, results.path.parent)
    told = to_tell(sources, seen)
    reason = f"tpe, from {len(told)} settings" if told else "random: too few settings for a model"
    names, seeds = [source.name for source in sources], [*plan.candidates[0]["runs"]]

    def can_be(row: Row) -> bool:
        """Values that may each be drawn need not go together."""
        try:
            values = dict(zip(names, map(typed, row), strict=True))
            compose_setting(plan.base, values, seeds[0])
        except BadInput:
            return False
        return True

    chosen = []
    for place, proposed in enumerate(asker(sources, plan.search.seed, can_be)(seen, level)):
        number = level.first + place
        found = {SAMPLE: number, **proposed}
        values = {name: found[name] for name in plan.columns if name != SEED}
        runs = plan_setting(plan, values, results)
        chosen.append(Chosen(place, number, values, reason, runs=runs))
    return Decision(told, chosen)


def plan_setting(plan: Plan, values: Mapping[str, Any], results: Results) -> dict[str, str]:
    """Writes the experiments of a setting that was chosen on the way, one for each swept seed.

    Returns:
        Swept seed -> run.

    Raises:
        BadInput: There is no such experiment.
    """
    find = finder(results)
    runs = {}
    for seed in plan.candidates[0]["runs"]:
        experiment = compose_setting(plan.base, values, seed)
        runs[seed] = find(experiment)
        write_configs({runs[seed]: experiment}, results)
    return runs
