"""Tasks, archives and algorithms in the words of a paper, from resolved experiments."""

from typing import Any

from qdsweep.analysis.page.references import cite
from qdsweep.analysis.text import TIMES, listed, number, short
from qdsweep.config.algorithm import Algorithm
from qdsweep.config.archives import ARCHIVES
from qdsweep.config.compose import read_part
from qdsweep.config.domain import Domain
from qdsweep.config.emitters import STRATEGIES
from qdsweep.config.values import value_text
from qdsweep.experiment.load import Run

# Key of an emitter or archive -> how a sentence says it; others are given as key = value.
_PHRASES = {
    "num_emitters": "{} emitters",
    "batch_size": "batch size {}",
    "es": "{} as evolution strategy",
    "ranker": "{} ranking",
    "selection_rule": "{} selection",
    "restart_rule": "restart rule {}",
    "sigma": "mutation scale {}",
    "sigma0": "initial step size {}",
    "iso_sigma": "isotropic mutation scale {}",
    "line_sigma": "line mutation scale {}",
    "lr": "gradient learning rate {}",
    "initial_solutions": "{} random initial solutions per emitter",
    "learning_rate": "archive learning rate {}",
    "threshold_min": "first threshold {}",
    "result_archive": "{} for its results",
}
_MAY_BE_ZERO = ("learning_rate", "threshold_min")
_SCALES = ("sigma", "sigma0", "iso_sigma")  # null: the domain's step
_SEEDS = {
    "fixed": "with one evaluation seed per run",
    "iteration": "with a new evaluation seed each iteration",
    "solution": "with an evaluation seed of its own for each solution",
}


def task(run: Run) -> str:
    """Returns the domain of a run: what it is, its measures, its objectives, its seeds."""
    domain, geometry = domain_of(run.config), run.summary["archive"]
    parts = [domain.phrase(cite(domain.papers), geometry.get("solution_dim"))]
    episodes = run.config["domain"].get("episodes", 1)
    if episodes > 1:
        parts.append(f"averaged over {episodes} episodes an evaluation")
    if geometry.get("ranges"):
        names = geometry.get("measures") or [f"measure {i + 1}" for i in range(9)]
        spans = zip(names, geometry["ranges"], strict=False)
        measures = [f"{name} ({short(low)} to {short(high)})" for name, (low, high) in spans]
        noun = "measure" if len(measures) == 1 else "measures"
        parts.append(f"with the {noun} {listed(measures)}")
    if geometry.get("objective_range"):
        low, high = geometry["objective_range"]
        parts.append(f"objectives nominally from {short(low)} to {short(high)}")
    if not domain.is_deterministic:
        seed = domain.evaluation_seed
        parts.append(_SEEDS.get(str(seed), f"with the evaluation seed {seed}"))
    return ", ".join(parts)


def domain_of(config: dict[str, Any]) -> Domain:
    """Returns the domain of a resolved experiment; see `read_part`."""
    domain: Domain = read_part("domain", config["domain"])
    return domain


def archive(run: Run) -> str:
    """Returns the kind and the size of a run's archive."""
    geometry = run.summary["archive"]
    kind = ARCHIVES[geometry["type"]].title
    if not geometry.get("cells"):
        return f"an unstructured {kind} archive"
    size = f" {TIMES} ".join(map(str, geometry.get("dims") or [number(geometry["cells"])]))
    return f"a {kind} archive of {size} cells"


def algorithm(name: str, configs: list[dict[str, Any]], title: str | None = None) -> str:
    """Returns a sentence on an algorithm: its sources, emitters and hyper-parameters.

    Args:
        name: The preset's name.
        configs: The resolved experiments that use it; what was swept gets all its values.
        title: What the report calls it; None: as papers do.
    """
    values: dict[str, list[str]] = {}
    for config in configs:
        for key, value in _hyper_parameters(config).items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    facts = []
    for key, options in values.items():
        where, _, last = key.rpartition(": ")
        phrase = _PHRASES.get(last, f"{last} = {{}}").format(listed(options, "or"))
        facts.append(f"{where}: {phrase}" if where else phrase)
    used: Algorithm = read_part("algorithm", configs[0]["algorithm"])
    title = f"{title or used.title or name}{cite(used.papers)}"
    return f"{title} has {listed(facts)}." if facts else f"{title} was run."


def _hyper_parameters(config: dict[str, Any]) -> dict[str, str]:
    """Returns the hyper-parameters of an algorithm as text, without those that are not set."""
    algorithm = config["algorithm"]
    found: dict[str, Any] = {
        key: config[key] for key in ("num_emitters", "batch_size") if key in config
    }
    groups = algorithm.get("emitters", [])
    for position, emitter in enumerate(groups, start=1):
        where = f"emitter {position}: " if len(groups) > 1 else ""
        for key, value in emitter.items():
            if key == "type":
                value = value if where or ":" in value else None
            elif key == "es":
                value = STRATEGIES[value][0]
            elif key in _SCALES and value is None:
                value = config["domain"].get("step")
            found[where + key] = value
    kept = algorithm.get("archive", {})
    found |= {key: value for key, value in kept.items() if key != "type"}
    if kept.get("learning_rate") is not None and kept.get("threshold_min") is None:
        found["threshold_min"] = "at the lower end of the objectives"
    if algorithm.get("scheduler", {}).get("type") == "bandit":
        found["scheduler"] = "bandit"
    if algorithm.get("result_archive"):
        found["result_archive"] = "a passive elitist archive"
    return {
        key: value_text(value)
        for key, value in found.items()
        if value is not None and value != {} and (value != 0 or key in _MAY_BE_ZERO)
    }
