"""Tasks, archives and algorithms in the words of a paper, and the works that a paper cites."""

import re
from collections.abc import Iterable
from typing import Any

from qdsweep.analysis.text import TIMES, listed, number, short
from qdsweep.config.algorithm import Algorithm
from qdsweep.config.archives import ARCHIVES
from qdsweep.config.base import value_text
from qdsweep.config.compose import read_part
from qdsweep.config.domain import Domain
from qdsweep.config.emitters import STRATEGIES
from qdsweep.config.plugin import load_class, parameters
from qdsweep.config.requirements import bibliography
from qdsweep.experiment.load import Run

# `[@key]` or `[@key; @key]` in a text, with the blank before it.
_CITATION = re.compile(r" ?\[(@[^\s;\]]+(?:; @[^\s;\]]+)*)\]")
_ACCENTS = {r"{\"o}": "ö", r"{\~a}": "ã"}


def cite(keys: Iterable[str]) -> str:
    """Returns a citation as `plain` and `latex` expect it in a text; nothing for no keys."""
    marks = "; ".join(f"@{key}" for key in keys)
    return f" [{marks}]" if marks else ""


def cited(text: str) -> list[str]:
    """Returns the keys that a text cites, in its order."""
    groups = _CITATION.findall(text)
    return list(dict.fromkeys(key[1:] for group in groups for key in group.split("; ")))


def plain(text: str) -> str:
    """Returns a text with citations as (Mouret & Clune, 2015)."""
    return _CITATION.sub(lambda match: f" ({'; '.join(map(_short, _keys(match)))})", text)


def latex(text: str) -> str:
    r"""Returns a text as LaTeX, with citations as `\citep{key}`."""
    from qdsweep.analysis.tables.sheet import escape_latex

    parts, end = [], 0
    for match in _CITATION.finditer(text):
        parts += [escape_latex(text[end : match.start()]), f"~\\citep{{{','.join(_keys(match))}}}"]
        end = match.end()
    return "".join([*parts, escape_latex(text[end:])])


def bibtex(text: str) -> str:
    """Returns the BibTeX entries of exactly what a text cites, in its order."""
    entries = bibliography()
    return "\n\n".join(entries[key] for key in cited(text) if key in entries) + "\n"


def _keys(match: re.Match[str]) -> list[str]:
    return [mark[1:] for mark in match[1].split("; ")]


def _short(key: str) -> str:
    """Returns an entry as `Mouret & Clune, 2015`, or its key where author and year are not read."""
    entry = bibliography().get(key, "")
    fields = dict(re.findall(r"^\s*(author|year)\s*=\s*[{\"]?(.*?)[}\"]?,?$", entry, re.MULTILINE))
    if len(fields) < 2:
        return key
    for code, letter in _ACCENTS.items():
        fields["author"] = fields["author"].replace(code, letter)
    names = [author.split(",")[0] for author in fields["author"].split(" and ")]
    listed = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{listed}, {fields['year']}"


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
    "first_batch": "{} random initial solutions in all",
    "learning_rate": "archive learning rate {}",
    "threshold_min": "first threshold {}",
    "result_archive": "{} for its results",
    "type": "emitters of the class {}",
    "zeta": "exploration weight {}",
    "reselect": "{} emitters chosen anew",
    "gradient_fraction": "a share of {} of the solutions by policy gradients",
    "first_sigma": "initial mutation scale {}",
    "gradient_steps": "{} policy-gradient steps",
    "gradient_lr": "policy-gradient learning rate {}",
    "gradient_minibatch": "{} observations per policy-gradient step",
    "training_steps": "{} critic steps per iteration",
    "training_ratio": "{} critic steps per environment step",
    "critic_hidden": "critics with hidden layers of {} units",
    "actor_lr": "actor learning rate {}",
    "critic_lr": "critic learning rate {}",
    "minibatch": "minibatches of {} transitions",
    "gamma": "discount factor {}",
    "tau": "target update rate {}",
    "policy_delay": "policy delay {}",
    "policy_noise": "target policy noise {}",
    "noise_clip": "noise clipped at {}",
    "replay_size": "a replay buffer of {} transitions",
    "limit_is_end": "the time limit as an end of episodes: {}",
    "noise": "noise of standard deviation {} on solutions",
    "samples": "{} samples per gradient estimate",
    "gradient_observations": "{} observations per critic gradient",
    "generations": "{} iterations from each elite",
    "l2": "L2 coefficient {}",
    "neighbors": "novelty by {} nearest neighbours",
    "optimiser_rate": "learning rate {}",
    "decay_steps": "a linear decay to 0 in {} environment steps",
    "buffer_size": "a replay buffer of {} transitions",
    "steps_of_training": "{} gradient steps per training",
    "unrolls": "minibatches of {} unrolls",
    "vf_hidden": "a value function with hidden layers of {} units",
    "gae_lambda": "GAE parameter {}",
    "n_epochs": "{} epochs",
    "clip_range": "clip range {}",
}
# Keys of reinforcement learning that mean something else in other algorithms -> a key of _PHRASES.
_OF_LEARNERS = {"learning_rate": "optimiser_rate", "gradient_steps": "steps_of_training"}
_OF_IMPALA = {**_OF_LEARNERS, "minibatch": "unrolls"}
# Keys of a family that are no hyper-parameters, or that hold others.
_NOT_ITS_OWN = ("type", "name", "title", "cite", "archive", "learner", "emitter")
_MAY_BE_ZERO = ("learning_rate", "threshold_min", "zeta")
_SCALES = ("sigma", "sigma0", "iso_sigma")  # null: the domain's step
# Type of an emitter -> what its kind is called where an algorithm mixes several.
_KINDS = {
    "gaussian": "Gaussian emitters",
    "iso_line": "line emitters",
    "evolution_strategy": "evolution-strategy emitters",
    "gradient_arborescence": "gradient-arborescence emitters",
    "gradient_operator": "gradient-operator emitters",
}
_BANDIT = "bandit"
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
    if not _is_deterministic(domain):
        seed = domain.evaluation_seed
        parts.append(_SEEDS.get(str(seed), f"with the evaluation seed {seed}"))
    return ", ".join(parts)


def domain_of(config: dict[str, Any]) -> Domain:
    """Returns the domain of a resolved experiment; see `read_part`."""
    domain: Domain = read_part("domain", config["domain"])
    return domain


def _is_deterministic(domain: Domain) -> bool:
    """Returns whether seeds change nothing; a class of the user has an attribute for it."""
    return domain.is_deterministic or getattr(_class_of(domain), "is_deterministic", None) is True


def _class_of(domain: Domain) -> type | None:
    """Returns the class of a user's domain without an instance; None if there is none."""
    if ":" not in domain.type:
        return None
    try:
        return load_class(domain.type)
    except Exception:  # whatever its module does: the paragraph says less
        return None


def archive(run: Run) -> str:
    """Returns the kind and the size of a run's archive."""
    geometry = run.summary["archive"]
    kind, own = ARCHIVES[geometry["type"]].title, geometry.get("class")
    if not geometry.get("cells"):
        return f"an unstructured archive ({own})" if own else f"an unstructured {kind} archive"
    size = f" {TIMES} ".join(map(str, geometry.get("dims") or [number(geometry["cells"])]))
    return f"a {kind} archive of {size} cells" + (f" ({own})" if own else "")


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
    of_each = [_kinds_of(_groups(config["algorithm"])) for config in configs]
    facts: dict[str, list[str]] = {
        where.removesuffix(": "): [] for kinds in of_each for where, _ in kinds
    }
    for key, options in values.items():
        where, _, last = key.rpartition(": ")
        phrase = _PHRASES.get(last, f"{last} = {{}}").format(listed(options, "or"))
        facts.setdefault(where, []).append(phrase)
    used: Algorithm = read_part("algorithm", configs[0]["algorithm"])
    title = f"{title or used.title or name}{cite(used.papers)}"
    own, bandit = facts.pop("", []), facts.pop(_BANDIT, [])
    text = f"{title} has {listed(own)}." if own else f"{title} was run."
    mixed = listed([_kind_text(kind.partition("#")[0], of) for kind, of in facts.items()])
    if bandit:
        chosen = mixed or "its emitters"
        text += f" A bandit (UCB1; {', '.join(bandit)}) chooses those that work from {chosen}."
    elif mixed:
        text += f" In equal numbers these are {mixed}."
    return text


def _hyper_parameters(config: dict[str, Any]) -> dict[str, str]:
    """Returns the hyper-parameters of an algorithm as text, without those that are not set.

    Those of a kind of emitters stand under `KIND: KEY` where there are several.
    """
    algorithm = config["algorithm"]
    sizes = ["num_emitters", "batch_size"]
    if ":" in algorithm.get("type", ""):  # what its signature does not name, it is not given
        sizes = [key for key in sizes if key in parameters(algorithm["type"])[0]]
    elif "type" in algorithm:  # a single emitter
        sizes = ["batch_size"]
    settings: dict[str, Any] = {key: config[key] for key in sizes if key in config}
    if "type" in algorithm and ":" not in algorithm["type"]:
        words: dict[str, str] = {}
        if read_part("algorithm", algorithm).explores:
            words = _OF_IMPALA if algorithm["type"] == "impala" else _OF_LEARNERS
        own = {key: value for key, value in algorithm.items() if key not in _NOT_ITS_OWN}
        settings |= {words.get(key, key): value for key, value in own.items()}
        settings |= algorithm.get("learner", {})
        for key in {"critic_hidden", "vf_hidden"} & settings.keys():
            settings[key] = listed([str(units) for units in settings[key]])
        # What stands for null: see the models.
        if settings.get("samples", 0) is None:
            settings["samples"], _ = read_part("algorithm", algorithm).sizes(config["batch_size"])
        if "sigma" in settings:
            sigma = settings.pop("sigma")
            settings["noise"] = _step(config) if sigma is None else sigma
    if any("initial_solutions" in emitter for emitter in algorithm.get("emitters", [])):
        settings["first_batch"] = config.get("first_batch")
    settings |= algorithm.get("arguments", {})
    for where, emitter in _kinds_of(_groups(algorithm)):
        for key, value in _with_arguments(emitter).items():
            if key == "type":
                value = value if ":" in value and not where else None
            elif key == "es":
                value = STRATEGIES[value][0]
            elif key in _SCALES and value is None:
                value = _step(config)
            settings[where + key] = value
    own_archive = _with_arguments(algorithm.get("archive", {}))
    settings |= {key: value for key, value in own_archive.items() if key != "type"}
    if own_archive.get("learning_rate") is not None and own_archive.get("threshold_min") is None:
        settings["threshold_min"] = "at the lower end of the objectives"
    scheduler = algorithm.get("scheduler", {})
    if scheduler.get("type") == "bandit":
        settings |= {f"{_BANDIT}: {key}": scheduler.get(key) for key in ("zeta", "reselect")}
    if algorithm.get("result_archive"):
        settings["result_archive"] = "a passive elitist archive"
    return {
        key: value_text(value)
        for key, value in settings.items()
        if value is not None
        and value != {}
        and (value != 0 or key.rpartition(": ")[2] in _MAY_BE_ZERO)
    }


def _with_arguments(part: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of a part, with those of a user's class among them."""
    return {key: value for key, value in part.items() if key != "arguments"} | part.get(
        "arguments", {}
    )


def _kind_text(kind: str, facts: list[str]) -> str:
    return f"{kind} ({', '.join(facts)})" if facts else kind


def _groups(algorithm: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the groups of emitters of an algorithm, or the one emitter that it works with."""
    return algorithm.get("emitters") or [algorithm[key] for key in ("emitter",) if key in algorithm]


def _kinds_of(groups: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Returns each group of emitters after the prefix of its keys, empty for a single group."""
    if len(groups) < 2:
        return [("", group) for group in groups]
    names = [
        _KINDS.get(group["type"], f"emitters of the class {group['type']}") for group in groups
    ]
    # The number keeps apart groups of one kind.
    return [(f"{name}#{place}: ", groups[place]) for place, name in enumerate(names)]


def _step(config: dict[str, Any]) -> float | None:
    """Returns the mutation scale of the domain; None if its class cannot be loaded."""
    step = config["domain"].get("step")
    if step is None:
        step = getattr(_class_of(domain_of(config)), "step", None)
    return step if isinstance(step, int | float) else None  # it may be a property
