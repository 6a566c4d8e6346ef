"""Tasks, archives and algorithms in the words of a paper, from resolved experiments.

The citations are exactly those of the parts that the runs used.
"""

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

from qdsweep.config.archive_kinds import ARCHIVES, PluginArchive
from qdsweep.config.compose import read_part
from qdsweep.config.domain import DomainSettings
from qdsweep.config.emitters import STRATEGIES, EmitterKind
from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.config.families import AlgorithmSettings, Bandit, Composition, PluginAlgorithm
from qdsweep.config.keys import ALIASED, models_in
from qdsweep.config.model import Model, value_text
from qdsweep.config.own_code import load_class, parameters
from qdsweep.config.references import bibliography
from qdsweep.config.resampling import Resampling
from qdsweep.runs.load import Run
from qdsweep.text import TIMES, exact, listed, number

# `[@key]` or `[@key; @key]` in a text, with the blank before it.
_CITATION = re.compile(r" ?\[(@[^\s;\]]+(?:; @[^\s;\]]+)*)\]")
_ACCENTS = {r"{\"o}": "ö", r"{\~a}": "ã"}

_PLURAL = re.compile(r"^((?: [\w-]+)*? [\w-]+)s\b")  # up to the first plural of a title
# Keys of a family that are not hyper-parameters, or that hold others.
_NOT_ITS_OWN = ("type", "name", "title", "cite", "tuned_by", "archive", "learner", "emitter")
_MAY_BE_ZERO = ("learning_rate", "threshold_min", "zeta", "sigma")
SCALES = ("sigma", "sigma0", "iso_sigma")  # null: the domain's step
_BANDIT = "bandit"
_AT_ONCE = "all at once"
_NONE = "none"  # null, or an empty list
_OWN_SCALE = "of the domain itself"  # null, where only a class that is gone knows it
# Values that a paper names only next to others.
_USUAL = {"learner_shares": 1, "device": "cpu"}
# Phrases of a paper where the title of the key in the models is another one.
_PHRASES = {"restart_rule": "...", "threshold_min": "initial acceptance threshold"}
_RANKINGS = {
    "imp": "improvement",
    "2imp": "two-stage improvement",
    "rd": "random-direction",
    "2rd": "two-stage random-direction",
    "obj": "objective",
    "2obj": "two-stage objective",
    "nov": "novelty",
    "nslc": "novelty and local-competition",
    "nslc_classic": "novelty, local-competition and genotypic-diversity",
    "density": "density",
}
_SEEDS = {
    "fixed": "with one evaluation seed per run",
    "iteration": "with a new evaluation seed in each iteration",
    "solution": "with a separate evaluation seed for each solution",
}
_IDLE = object()  # the value of a key that has no effect next to the others
# Parts of an experiment that other sentences describe.
_TOLD = ("algorithm", "archive", "resampling", "schedule", "seed", *BUDGETS)
# Keys of a domain that `task` states, if they decide anything.
_TOLD_OF_DOMAIN = (
    *("type", "name", "title", "cite", "solution_dim", "num_measures", "episodes"),
    *("ranges", "objective_range", "policy.type", "policy.hidden", "policy.activation"),
)


def cite(keys: Iterable[str]) -> str:
    """Returns a citation as `plain` and `latex` expect it in a text; nothing for no keys."""
    marks = "; ".join(f"@{key}" for key in keys)
    return f" [{marks}]" if marks else ""


def cited(text: str) -> list[str]:
    """Returns the keys that a text cites, in its order."""
    groups = _CITATION.findall(text)
    return list(dict.fromkeys(key[1:] for group in groups for key in group.split("; ")))


def plain_citations(text: str) -> str:
    """Returns a text with citations as (Mouret & Clune, 2015)."""
    return _CITATION.sub(lambda found: f" ({'; '.join(map(_short, _keys(found)))})", text)


def latex(text: str) -> str:
    r"""Returns a text as LaTeX, with citations as `\citep{key}`."""
    from qdsweep.analysis.sheet import escape_latex

    parts, end = [], 0
    for found in _CITATION.finditer(text):
        parts += [escape_latex(text[end : found.start()]), f"~\\citep{{{','.join(_keys(found))}}}"]
        end = found.end()
    return "".join([*parts, escape_latex(text[end:])])


def bibtex(text: str) -> str:
    """Returns the BibTeX entries that a text cites, in its order."""
    entries = bibliography()
    return "\n\n".join(entries[key] for key in cited(text) if key in entries) + "\n"


def _keys(found: re.Match[str]) -> list[str]:
    return [mark[1:] for mark in found[1].split("; ")]


def _short(key: str) -> str:
    """Returns an entry as `Mouret & Clune, 2015`, or its key where author and year are not read."""
    entry = bibliography().get(key, "")
    fields = dict(re.findall(r"^\s*(author|year)\s*=\s*[{\"]?(.*?)[}\"]?,?$", entry, re.MULTILINE))
    if len(fields) < 2:
        return key
    for code, letter in _ACCENTS.items():
        fields["author"] = fields["author"].replace(code, letter)
    names = [author.split(",")[0].strip("{}") for author in fields["author"].split(" and ")]
    listed = f"{names[0]} et al." if len(names) > 2 else " & ".join(names)
    return f"{listed}, {fields['year']}"


def task(run: Run) -> str:
    """Returns the domain of a run: its kind, measures, objectives and seeds."""
    domain, geometry = domain_of(run.config), run.summary["archive"]
    parts = [domain.phrase(cite(domain.papers), geometry.get("solution_dim"))]
    episodes = run.config["domain"].get("episodes", 1)
    if episodes > 1:
        parts.append(f"averaged over {episodes} episodes per evaluation")
    if geometry.get("ranges"):
        names = geometry.get("measures") or [f"measure {i + 1}" for i in range(9)]
        spans = zip(names, geometry["ranges"], strict=False)
        measures = [f"{name} ({exact(low)} to {exact(high)})" for name, (low, high) in spans]
        noun = "measure" if len(measures) == 1 else "measures"
        parts.append(f"with the {noun} {listed(measures)}")
    if geometry.get("objective_range"):
        low, high = geometry["objective_range"]
        parts.append(f"objectives nominally from {exact(low)} to {exact(high)}")
    if not _is_deterministic(domain):
        seed = domain.evaluation_seed
        parts.append(_SEEDS.get(str(seed), f"with seed {seed} in all evaluations"))
    return ", ".join(parts)


def domain_of(config: dict[str, Any]) -> DomainSettings:
    """Returns the domain of a resolved experiment; see `read_part`."""
    domain: DomainSettings = read_part("domain", config["domain"])
    return domain


def _is_deterministic(domain: DomainSettings) -> bool:
    """Returns whether seeds change nothing; a user's class declares it."""
    return domain.is_deterministic or getattr(_class_of(domain), "is_deterministic", None) is True


def _class_of(domain: DomainSettings) -> type | None:
    """Returns the class of a user's domain, of which no object is made; None if there is none."""
    if ":" not in domain.type:
        return None
    try:
        return load_class(domain.type)
    except Exception:  # a module can raise anything; the paragraph is then shorter
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

    There are several sentences where its archive, emitters or scheduler differ in their types.

    Args:
        name: The preset's name.
        configs: The resolved experiments that use it; a swept key gets all its values.
        title: Its label in the report; None: its name in papers.
    """
    models: list[AlgorithmSettings] = [
        read_part("algorithm", config["algorithm"]) for config in configs
    ]
    variants: dict[tuple[str, ...], list[int]] = {}
    for place, model in enumerate(models):
        variants.setdefault(_types(model), []).append(place)
    differing = [len(set(texts)) > 1 for texts in zip(*variants, strict=True)]
    sentences = []
    for types, places in variants.items():
        own = [text for text, differs in zip(types, differing, strict=True) if differs and text]
        called = title or models[places[0]].title or name
        called += f" with {listed(own)}" if own else ""
        some = [configs[place] for place in places], [models[place] for place in places]
        sentences.append(_variant(called, *some))
    return " ".join(sentences)


def _types(model: AlgorithmSettings) -> tuple[str, ...]:
    """Returns the types of an algorithm's parts in words: archive, emitters, scheduler."""
    if isinstance(model, PluginAlgorithm):
        return (model.type, "", "")
    archive = model.archive  # type: ignore[attr-defined]
    kind = archive.type if isinstance(archive, PluginArchive) else archive.title
    if not isinstance(model, Composition):
        return (f"a {kind} archive", "", "")
    emitters = [_emitter_title(emitter) for emitter in model.emitters]
    return f"a {kind} archive", listed(emitters), f"the scheduler {model.scheduler.type}"


def _variant(title: str, configs: list[dict[str, Any]], models: list[AlgorithmSettings]) -> str:
    """Returns a sentence on experiments whose algorithms differ only in values."""
    values: dict[tuple[str, str], list[StatedValue]] = {}
    facts: dict[str, list[str]] = {}
    for config, model in zip(configs, models, strict=True):
        facts |= {kind: [] for kind, *_ in _emitters(config["algorithm"], model)}
        for key, value in _hyper_parameters(config, model).items():
            values.setdefault(key, []).append(value)
    for (kind, phrase), every in values.items():
        options = [option for option in dict.fromkeys(every) if option.text]
        if len(every) < len(configs):  # an argument of a user's class that only some give
            options.append(StatedValue("its default"))
        if any(not option.is_quiet for option in options) or len(options) > 1:
            facts.setdefault(kind, []).append(_fact(phrase, [option.text for option in options]))
    title += cite(dict.fromkeys((*models[0].papers, *_resampling(configs[0]).cite)))
    own, bandit = facts.pop("", []), facts.pop(_BANDIT, [])
    text = f"{title} used {listed(own)}." if own else f"{title} was run."
    mixed = listed([_kind_text(kind.partition("#")[0], of) for kind, of in facts.items()])
    if bandit:
        chosen = mixed or "its emitters"
        text += f" A bandit (UCB1; {', '.join(bandit)}) chose the active ones from {chosen}."
    elif mixed:
        text += f" {_in_numbers(facts, configs, models)}."
    return text


def _fact(phrase: str, options: list[str]) -> str:
    """Returns a phrase with the values of its key in the place of its `...`, or after it."""
    before, _, after = phrase.partition("...")
    if options == ["1"]:
        after = _PLURAL.sub(r"\1", after)
    known = [text for text in options if text != _NONE]
    unset = [_NONE] if len(known) < len(options) else []
    if not (after and known):
        return f"{before.rstrip()} {listed([*known, *unset], 'or')}{after}".strip()
    return " or ".join([f"{before.rstrip()} {listed(known, 'or')}{after}".strip(), *unset])


def _in_numbers(
    facts: dict[str, list[str]], configs: list[dict[str, Any]], models: list[AlgorithmSettings]
) -> str:
    """Returns the groups of emitters, with the size of each unless all are equal."""
    sizes: dict[str, list[str]] = {}
    equal = True
    for config, model in zip(configs, models, strict=True):
        if not isinstance(model, Composition):
            continue
        numbers = model.group_sizes(config["num_emitters"])
        equal &= len(set(numbers)) == 1
        groups = _emitters(config["algorithm"], model)
        for (kind, *_), size in zip(groups, map(str, numbers), strict=True):
            if size not in sizes.setdefault(kind, []):
                sizes[kind].append(size)
    texts = []
    for kind, of in facts.items():
        name = f" {kind.partition('#')[0]}"
        if not equal:
            name = listed(sizes[kind], "or") + (
                _PLURAL.sub(r"\1", name) if sizes[kind] == ["1"] else name
            )
        texts.append(_kind_text(name.strip(), of))
    return f"{'In equal numbers these' if equal else 'These'} were {listed(texts)}"


class StatedValue(NamedTuple):
    """A value in a text; a quiet one (0, false, null) is stated only where it is swept.

    The text of a key without effect is empty.
    """

    text: str
    is_quiet: bool = False


def _hyper_parameters(
    config: dict[str, Any], model: AlgorithmSettings
) -> dict[tuple[str, str], StatedValue]:
    """Returns (kind of emitters, phrase) -> value.

    The phrase of a key is the title of its field; the value replaces its `...`, or follows it.

    Args:
        config: The resolved experiment.
        model: Its algorithm.
    """
    texts = {}
    for kind, part, keys in _parts(config, model):
        own = {key: of.title for key, of in part.model_fields.items() if of.title}
        titles = _titles() | own | _PHRASES
        for key, value in keys.items():
            quiet = value in (None, {}, [], _AT_ONCE, _USUAL.get(key, _AT_ONCE))
            quiet = quiet or (value == 0 and key not in _MAY_BE_ZERO)
            if value is _IDLE:
                text = ""
            elif value in (None, {}, []):
                text = _OWN_SCALE if key in SCALES else _NONE
            elif isinstance(value, list) and key in titles:
                text = listed([str(item) for item in value])
            else:
                text = value_text(value)
            # An argument of a user's class may have the name of another key.
            names = (titles.get(key, f"{key} ="), f"{key} =", f"arguments.{key} =")
            phrase = next((name for name in names if (kind, name) not in texts), names[-1])
            texts[kind, phrase] = StatedValue(text, quiet)
    return texts


def _parts(
    config: dict[str, Any], model: AlgorithmSettings
) -> Iterator[tuple[str, type[Model], dict[str, Any]]]:
    """Yields kind of emitters (empty but for several), config model and keys of each part."""
    algorithm, step = config["algorithm"], mutation_scale(config)
    sizes = ["num_emitters", "batch_size"]
    if ":" in algorithm.get("type", ""):  # only the keys that its signature names
        sizes = [key for key in sizes if key in parameters(algorithm["type"])[0]]
    elif "type" in algorithm:  # a single emitter
        sizes = ["batch_size"]
    yield "", Experiment, {key: config[key] for key in sizes if key in config}
    if "type" in algorithm and ":" not in algorithm["type"]:
        left_out = {*_NOT_ITS_OWN, *model.unused}
        keys = {key: value for key, value in algorithm.items() if key not in left_out}
        # The value of null: see the models.
        if keys.get("samples", 0) is None:
            keys["samples"], _ = model.sizes(config["batch_size"])  # type: ignore[attr-defined]
        sigma = {key: keys.pop(key) for key in ("sigma",) if key in keys}
        yield "", type(model), keys
        if "learner" in algorithm:
            yield "", type(model.learner), algorithm["learner"]  # type: ignore[attr-defined]
        yield "", type(model), {key: step if sigma[key] is None else sigma[key] for key in sigma}
    if any("initial_solutions" in emitter for emitter in algorithm.get("emitters", [])):
        yield "", Experiment, {"first_batch": config.get("first_batch")}
    yield "", type(model), algorithm.get("arguments", {})
    for kind, emitter, part in _emitters(algorithm, model):
        keys = _with_arguments(emitter)
        named = keys.pop("type")
        if ":" in named and not kind:
            keys["type"] = named
        if "es" in keys:
            keys["es"] = STRATEGIES[keys["es"]][0]
        if "ranker" in keys:
            keys["ranker"] = _RANKINGS.get(keys["ranker"], keys["ranker"])
        if "restart_rule" in keys:
            keys["restart_rule"] = _restart_text(keys["restart_rule"])
        scales = {key: step for key in SCALES if keys.get(key, 0) is None}
        yield kind, type(part), keys | scales
    holder: Model = getattr(model, "archive", model)
    idle = dict(holder.idle())
    archive = _with_arguments(algorithm.get("archive", {}))
    archive = archive | dict.fromkeys(archive.keys() & idle, _IDLE)
    if archive.get("learning_rate") is not None and archive.get("threshold_min") is None:
        archive["threshold_min"] = "equal to the lower bound of the objective"
    if archive.get("type") == "density" and archive.get("bandwidth") is None:
        archive["bandwidth"] = "of 5 % of the mean range of the measures"
    yield "", type(holder), {key: value for key, value in archive.items() if key != "type"}
    scheduler = algorithm.get("scheduler", {})
    if scheduler.get("type") == "bandit":
        yield _BANDIT, Bandit, {key: scheduler.get(key) for key in ("zeta", "reselect")}
    else:
        yield "", type(model), scheduler.get("arguments", {})
    resampling = _resampling(config)
    yield "", type(resampling), resampling.model_dump()
    if "add_mode" in algorithm:
        single = algorithm["add_mode"] == "single"
        yield "", type(model), {"add_mode": "one after another" if single else _AT_ONCE}
    if "result_archive" in algorithm:
        result = "a passive elitist archive" if algorithm["result_archive"] else None
        yield "", type(model), {"result_archive": result}


def _resampling(config: dict[str, Any]) -> Resampling:
    """Returns how a run evaluates solutions again; earlier releases have no such key."""
    made: Resampling = read_part("resampling", config.get("resampling", {"type": None}))
    return made


def _restart_text(rule: str | int) -> str:
    if isinstance(rule, int):
        return f"restarts after {rule} iterations"
    return f"pyribs' {rule} restart rule"


@cache
def _titles() -> dict[str, str]:
    """Returns the title of each key, for the arguments of a user's class: the first one it has."""

    def titles_in(annotation: Any) -> Iterator[tuple[str, str]]:
        for model in models_in(annotation):
            for key, field in model.model_fields.items():
                yield from titles_in(field.annotation)
                yield from [(key, field.title)] if field.title else []

    return dict(reversed(list(titles_in(Experiment))))


def _with_arguments(part: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of a part, with those of a user's class among them."""
    return {key: value for key, value in part.items() if key != "arguments"} | part.get(
        "arguments", {}
    )


def _kind_text(kind: str, facts: list[str]) -> str:
    return f"{kind} ({', '.join(facts)})" if facts else kind


def _emitter_title(emitter: EmitterKind) -> str:
    """Returns the kind of an emitter in words, with the name of a user's class."""
    own = f" {emitter.type}" if ":" in emitter.type else ""
    return f"{emitter.title}{own}"


def _emitters(
    algorithm: dict[str, Any], model: AlgorithmSettings
) -> list[tuple[str, dict[str, Any], EmitterKind]]:
    """Returns kind, keys and model of each group of emitters; no kind where there is one group."""
    groups = algorithm.get("emitters") or [
        algorithm[key] for key in ("emitter",) if key in algorithm
    ]
    models: list[EmitterKind] = getattr(model, "emitters", None) or [
        getattr(model, "emitter", None)
    ]
    if len(groups) < 2:
        return [("", group, part) for group, part in zip(groups, models, strict=False)]
    names = [_emitter_title(part) for part in models]
    # The number keeps apart groups of one kind.
    return [(f"{name}#{place}", groups[place], models[place]) for place, name in enumerate(names)]


def moments(run: Run) -> Iterator[dict[str, Any]]:
    """Yields the config of a run at its start, and after each change of its schedule."""
    config = with_step(run)
    yield config
    for change in config.get("schedule", ()):
        if change["at"] < run.summary["iterations"]:
            config = deepcopy(config)
            for path, value in change["set"].items():
                part: Any = config
                *owners, key = path.split(".")
                for owner in owners:
                    part = part[int(owner) if owner.isdecimal() else owner]
                part[key] = value
            yield config


def further_keys(configs: list[dict[str, Any]]) -> list[str]:
    """Returns the keys that differ, with their values, of those that no other sentence states.

    Domains of different types are not compared with each other.

    Args:
        configs: Resolved experiments.
    """
    every = [(config["domain"]["type"], config, flat(config)) for config in configs]
    texts = []
    for kind, key in dict.fromkeys((kind, key) for kind, _, keys in every for key in keys):
        alike = [kind] if key.startswith("domain.") else [of for of, *_ in every]
        some = [(config, keys.get(key)) for of, config, keys in every if of in alike]
        values = [_NONE if value in (None, {}, []) else value_text(value) for _, value in some]
        if len(set(values)) > 1 and not all(_is_told(key, config) for config, _ in some):
            options = listed(list(dict.fromkeys(values)), "or")
            texts.append(f"{ALIASED.get(key, key)} ({options})")
    return list(dict.fromkeys(texts))


def flat(part: Any, path: str = "") -> dict[str, Any]:
    """Returns a config with dotted keys, which have no number where a list has one item."""
    items: list[tuple[Any, Any]]
    if isinstance(part, dict) and part:
        items = [(f"{path}.{key}" if path else str(key), inner) for key, inner in part.items()]
    elif isinstance(part, list) and any(isinstance(inner, dict) for inner in part):
        several = len(part) > 1
        items = [(f"{path}.{n}" if several else path, inner) for n, inner in enumerate(part)]
    else:
        return {path: part}
    return {key: value for place, inner in items for key, value in flat(inner, place).items()}


def _is_told(key: str, config: dict[str, Any]) -> bool:
    """Returns whether the sentences on tasks, archives, algorithms and budgets state a key."""
    part, _, rest = key.partition(".")
    if part in _TOLD:
        return True
    algorithm = config["algorithm"]
    if part != "domain":
        parts = _parts(config, read_part("algorithm", algorithm))
        return any(part in keys for _, model, keys in parts if model is Experiment)
    domain = config["domain"]
    if rest.startswith("measures."):  # by its label, if that is not the user's
        *place, field = rest.split(".")[1:]
        named = domain["measures"][int(place[0]) if place else 0].get("name")
        return field in ("range", "name") or not named
    if rest == "step":
        holders = (algorithm, algorithm.get("emitter", {}), *algorithm.get("emitters", ()))
        return any(key in part and part[key] is None for part in holders for key in SCALES)
    if rest in ("function", "env", "game"):
        return not domain["title"]
    if rest == "evaluation_seed":
        return not _is_deterministic(domain_of(config))
    return rest in _TOLD_OF_DOMAIN


def with_step(run: Run) -> dict[str, Any]:
    """Returns a run's config with the mutation scale that its user's domain has reported."""
    domain, step = run.config["domain"], run.summary.get("step")
    if step is None or domain.get("step") is not None:
        return run.config
    return run.config | {"domain": domain | {"step": step}}


def mutation_scale(config: dict[str, Any]) -> float | None:
    """Returns the mutation scale of the domain; None where only a class that is gone knows it."""
    step = config["domain"].get("step")
    if step is None:
        step = getattr(_class_of(domain_of(config)), "step", None)
    return step if isinstance(step, int | float) else None  # it may be a property
