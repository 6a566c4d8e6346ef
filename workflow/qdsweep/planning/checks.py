"""All checks of a sweep file against the runs that it asks for, before any job starts."""

from collections.abc import Mapping

from qdsweep.config.cluster import Cluster
from qdsweep.config.domain_keys import require_episodes
from qdsweep.config.experiment import BUDGETS, Experiment, refuse_idle
from qdsweep.config.explain import naming_file
from qdsweep.config.keys import Path
from qdsweep.config.memory import require_memory_of
from qdsweep.config.own_code import refuse_unknown, require_source
from qdsweep.config.own_metric import own_metrics
from qdsweep.config.references import check_cited
from qdsweep.config.requirements import require_packages, require_packages_of
from qdsweep.config.sweep import TABLE_COLUMNS, Figures, SweepFile
from qdsweep.errors import BadInput
from qdsweep.metrics import METRICS, REEVALUATED, Metric
from qdsweep.planning.outlook import unfinished
from qdsweep.records.dependencies import sources_of_plugins
from qdsweep.records.metrics_file import refuse_taken
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.status import read_status
from qdsweep.sweep.groups import Groups, group_columns, group_labels, label_columns
from qdsweep.sweep.looks import figure_names
from qdsweep.sweep.runs import Sweep, by_setting
from qdsweep.text import nearest, plural, seeds_text


def check_sweep(settings: SweepFile, sweep: Sweep, sources: Mapping[Path, str]) -> None:
    """Checks every key of a sweep file against the sweep's runs.

    Args:
        settings: The sweep file.
        sweep: Its runs.
        sources: The file or option of each key, from `key_sources`.

    Raises:
        BadInput: A key asks for what these runs cannot give; the message names file, key, value
            and remedy.
    """
    checks = {
        "shard": _check_shard,
        "experiment": _check_experiments,
        "sweep": _check_values,
        "search": _check_search,
        "figures": _check_figures,
        "rank": _check_rank,
        "tests": _check_tests,
        "compare_at": _check_compare_at,
        "tables": _check_tables,
        "published": _check_published,
        "rollouts": _check_rollouts,
        "reevaluate": _check_reevaluate,
        "confirm": _check_confirm,
    }
    for key, check in checks.items():
        with naming_file(sources, key):
            check(settings, sweep)


def require_folders(sweep: SweepDir) -> None:
    """Refuses a file in the place of a folder of results, which Snakemake would not name clearly.

    Raises:
        BadInput: The message names the file.
    """
    results, pictures = sweep.results, (sweep.archives, sweep.evolution, sweep.rollouts)
    above = (results.path, results.runs, results.sweeps)
    for path in (*above, sweep.path, sweep.tables, sweep.plots, *pictures, sweep.path / "logs"):
        if path.is_file():
            raise BadInput(f"{path} is a file, and results need a folder there. Move or remove it")


def check_fit(cluster: Cluster, name: str, runs: Mapping[str, Experiment]) -> None:
    """Refuses more workers than a run has solutions at a time.

    Args:
        cluster: The cluster config.
        name: Its name, for the message.
        runs: Run id -> experiment.

    Raises:
        BadInput: Some workers would never have anything to do.
    """
    for run, experiment in runs.items():
        batch = experiment.later_iteration
        if cluster.workers > batch and experiment.algorithm.batch_is_known:
            raise BadInput(
                f"cluster {name}: nodes = {cluster.nodes} with workers_per_node = "
                f"{cluster.workers_per_node} are {cluster.workers} workers, but {run} has only "
                f"{batch} solutions per iteration (num_emitters x batch_size): take at most "
                f"{batch} workers, or a larger batch_size"
            )


def check_gpus(cluster: Cluster, name: str, runs: Mapping[str, Experiment]) -> None:
    """Refuses Slurm jobs without a GPU for runs that need one.

    Args:
        cluster: The cluster config.
        name: Its name, for the message.
        runs: Run id -> experiment.

    Raises:
        BadInput: A run needs a GPU, and its job would have none.
    """
    if cluster.gpus or "gpu" in cluster.extra:
        return
    for run, experiment in runs.items():
        if experiment.algorithm.needs_gpu:
            raise BadInput(
                f"cluster {name}: gpus = 0, but {run} has algorithm.device = cuda. Set gpus: 1 in "
                "the cluster config, or device: cpu"
            )


def require_own_code(experiment: Experiment) -> None:
    """Refuses the user's code if its file is missing, is not Python, or lacks the named part.

    Metrics with the name of a number of qdsweep are refused, too.

    Raises:
        BadInput: The message names the key, the file, and what the file has.
    """
    refuse_taken(experiment.metrics)
    parts = {key: part.type for key, part in experiment.own_parts.items()}
    for number, metric in enumerate(own_metrics(experiment.metrics)):
        parts[f"metrics.{number}"] = metric.function
    for key, target in parts.items():
        try:
            require_source(target)
            if key in experiment.own_parts:
                sources_of_plugins([target])
        except BadInput as error:
            raise BadInput(f"{key} = {error}") from None


def _check_experiments(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses names and citations of missing things, and arguments that the user's code lacks."""
    check_cited(sweep.settings.values())
    for name in sweep.own_metrics.keys() & {*sweep.columns}:
        function = sweep.own_metrics[name].function
        raise BadInput(
            f"metrics: {function}: {name} is a swept parameter. Give the metric another name:"
            f' {{function: "{function}", name: my_{name}}}'
        )
    seen: set[tuple[str, ...]] = set()
    file = f"experiment {settings.experiment}: " if isinstance(settings.experiment, str) else ""
    for experiment in sweep.settings.values():
        try:
            require_memory_of(experiment, anywhere=True)  # jobs may run on other machines
        except BadInput as error:
            raise BadInput(f"{file}{error}") from None
        if (code := (*experiment.own_code, *_columns(experiment))) not in seen:
            require_own_code(experiment)
            seen.add(code)
        for key, part in experiment.own_parts.items():
            look = (key, part.type, *part.arguments)
            if look not in seen:
                refuse_unknown(part.type, key, part.arguments)
            seen.add(look)


def _columns(experiment: Experiment) -> list[str]:
    return [metric.column for metric in own_metrics(experiment.metrics)]


def _check_values(settings: SweepFile, sweep: Sweep) -> None:
    rows = sweep.texts
    for name in label_columns(sweep.columns, rows):
        for text in {row[name] for row in rows} - set(settings.figures.labels):
            if "$" in text:  # matplotlib and LaTeX would read it as a formula
                raise BadInput(
                    f"sweep: {name} {text}: no figure can show a dollar sign; give the value a "
                    f"label: figures: {{labels: {{{text!r}: NAME}}}}"
                )


def _check_figures(settings: SweepFile, sweep: Sweep) -> None:
    if settings.figures != Figures():
        figure_names(settings.figures, sweep.columns, sweep.texts, settings.title)


def _check_rank(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses a metric that cannot rank the groups of every archive."""
    _ranking("rank", settings.rank, sweep, _of_reevaluation(settings))


def _of_reevaluation(settings: SweepFile) -> tuple[Metric, ...]:
    return REEVALUATED if settings.reevaluate else ()


def _check_tests(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses paired tests of runs whose seed is no instance of the task, or without partners."""
    if settings.tests != "paired":
        return
    seeds: dict[tuple[str, str], set[int]] = {}
    for label, row in zip(group_labels(sweep.columns, sweep.texts, ""), sweep.rows, strict=True):
        domain = row.experiment.domain
        if domain.evaluation_seed in ("iteration", "solution"):
            raise BadInput(
                f"tests = paired: {label or domain.name} has evaluation_seed = "
                f"{domain.evaluation_seed}, so runs of one seed have nothing in common. Set "
                "evaluation_seed: fixed, or tests: welch"
            )
        seeds.setdefault((domain.name, label), set()).add(row.experiment.seed)
    first: dict[str, tuple[str, set[int]]] = {}
    for (domain_name, label), own in seeds.items():
        other, known = first.setdefault(domain_name, (label, own))
        if own != known:
            raise BadInput(
                f"tests = paired: {other} has the {seeds_text(known)} and {label} the "
                f"{seeds_text(own)}. Give all groups of a domain the same seeds, or set tests: "
                "welch"
            )
    if settings.imported:
        raise BadInput(
            "tests = paired: it is unknown what the seeds of imported runs are. Remove the key "
            "imported, or set tests: welch"
        )


def _check_compare_at(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses a comparison at equal budgets that the sweep's other keys contradict."""
    if settings.compare_at is None:
        return
    key = f"compare_at = {settings.compare_at}"
    if swept := [name for name in sweep.columns if name in BUDGETS]:
        raise BadInput(
            f"{key}: the sweep compares values of {swept[0]}. Remove the key, or sweep something"
            " else"
        )
    if settings.reevaluate:
        raise BadInput(
            f"{key}: elites are evaluated again in final archives only, not in those at an equal"
            " budget. Remove compare_at or reevaluate"
        )
    for experiment in sweep.settings.values() if settings.compare_at == "steps" else ():
        domain = experiment.domain
        if not domain.counts_steps:
            raise BadInput(
                f"compare_at = steps: the domain {domain.name} does not count environment steps."
                " Set compare_at: evaluations, or remove the key"
            )


def _check_search(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses a search that misses its library, or a metric that it cannot decide by."""
    search = settings.staged_search
    if search is None:
        return
    if search.sampling == "tpe":
        require_packages("search: sampling = tpe, unlike sobol and random,", "optuna")
    key = "search: metric" if search.metric else "search: rank"
    metric = _ranking(key, search.metric or settings.rank, sweep)
    if not metric.recorded:
        metrics = (*METRICS, *_own(sweep))
        known = [metric.name for metric in metrics if metric.ranks and metric.recorded]
        raise BadInput(
            f"{key} = {metric.name}: a search can only decide by a column of metrics.csv; set the "
            f"metric of halving or pbt to one of {', '.join(known)}"
        )


def _check_tables(settings: SweepFile, sweep: Sweep) -> None:
    every = (*METRICS, *_of_reevaluation(settings), *_own(sweep))
    metrics = [metric.name for metric in every if metric.label]
    known = [*group_columns(sweep.columns, sweep.texts), *TABLE_COLUMNS, *metrics]
    for name in settings.tables.columns:
        if name not in known:
            raise BadInput(
                f"tables: columns: {name!r} is unknown; {nearest(name, known)}known: "
                f"{', '.join(known)}"
            )
        if settings.tables.columns.count(name) > 1:
            raise BadInput(f"tables: columns: {name!r} is listed twice; leave one out")


def _own(sweep: Sweep) -> list[Metric]:
    return [own.metric for own in sweep.own_metrics.values()]


def _ranking(key: str, name: str, sweep: Sweep, further: tuple[Metric, ...] = ()) -> Metric:
    """Returns a metric that ranks the runs of a sweep, whatever their archives are."""
    metrics = (*METRICS, *further, *_own(sweep))
    known = {metric.name: metric for metric in metrics if metric.ranks}
    if name not in known:
        raise BadInput(
            f"{key} = {name}: {nearest(name, list(known))}known metrics: {', '.join(known)}"
        )
    if known[name].always.needs_cells:
        defined = [metric.name for metric in METRICS if metric.ranks and not metric.needs_cells]
        for run, experiment in sweep.settings.items():
            archive = experiment.algorithm.reported_archive
            if archive.cells is None:
                raise BadInput(
                    f"{key} = {name}: {run} has a {archive.type} archive, which has no cells, and "
                    f"the metric needs them; rank by {', '.join(defined[:-1])} or {defined[-1]}"
                )
    return known[name]


def _check_published(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses a published value of no metric, or of no group or several."""
    if settings.published:
        groups = Groups(sweep.columns, [row.values for row in sweep.rows])
        for number, entry in enumerate(settings.published, start=1):
            _ranking(f"published, entry {number}: metric", entry.metric, sweep)
            groups.choose(number, entry.where)


def _check_rollouts(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses rollouts of a domain without episodes."""
    for experiment in sweep.settings.values() if settings.rollouts else ():
        try:
            require_episodes(experiment.domain)
        except BadInput as error:
            raise BadInput(
                f"rollouts: {error}; remove the key rollouts, or sweep this domain separately"
            ) from None


def _check_reevaluate(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses re-evaluation if no evaluation depends on its seed."""
    domains = [experiment.domain for experiment in sweep.settings.values()]
    if settings.reevaluate and all(domain.is_deterministic for domain in domains):
        names = dict.fromkeys(domain.name or domain.type for domain in domains)
        raise BadInput(
            f"reevaluate: evaluations of {', '.join(names)} do not depend on the seed, so "
            "re-evaluation cannot change the archive: remove the key reevaluate"
        )


def _check_confirm(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses seeds that the sweep has used, and more winners than groups."""
    confirm = settings.confirm
    if confirm is None:
        return
    _check_top(confirm.top, sweep)
    first, last = confirm.seeds
    seeds = {row.experiment.seed for row in sweep.rows}
    seen = [str(seed) for seed in sorted(seeds) if first <= seed <= last]
    if seen:
        free = max(seeds) + 1
        raise BadInput(
            f"confirm.seeds = [{first}, {last}]: the sweep must not have used the seeds that "
            f"confirm it, but it used {', '.join(seen[:10])}{', ...' if len(seen) > 10 else ''}; "
            f"take others, such as [{free}, {free + last - first}]"
        )


def _check_shard(settings: SweepFile, sweep: Sweep) -> None:
    """Refuses a shard of a sweep whose runs are not known, and of one that computes no run."""
    if settings.shard is None:
        return
    if settings.staged_search is not None:
        raise BadInput(
            f"shard = {settings.shard}: the results of all runs of this `search` decide which runs "
            "come next, so a part of them cannot be computed separately: remove the key shard"
        )
    if settings.partial:
        raise BadInput(
            f"shard = {settings.shard}: with partial: true no run is computed: remove one of them"
        )


def _check_top(top: int, sweep: Sweep) -> None:
    """Refuses more winners than the largest domain has groups."""
    groups: dict[str, set[str]] = {}
    for label, row in zip(group_labels(sweep.columns, sweep.texts, ""), sweep.rows, strict=True):
        groups.setdefault(row.experiment.domain.name, set()).add(label)
    most = max(map(len, groups.values()))
    if top > most:
        where = "" if len(groups) == 1 else " of one domain"
        raise BadInput(
            f"confirm.top = {top}: the sweep has {plural(most, 'group')}{where} to "
            f"choose from; write {most} or less"
        )


def check_effects(runs: Mapping[str, Experiment], results: Results) -> None:
    """Refuses keys without effect in new runs. Those of earlier releases are continued.

    Args:
        runs: Run id -> experiment.
        results: The folder results/.

    Raises:
        BadInput: The message names the key, its value, the reason and the remedy.
    """
    for alike in by_setting(runs):
        experiment = next(iter(alike.values()))
        if any(experiment.idle()) and not all(
            read_status(results.run(run).state).status for run in alike
        ):
            refuse_idle(experiment)


def check_packages(runs: Mapping[str, Experiment], results: Results) -> None:
    """Refuses runs that need a package which is not installed here.

    Nothing is imported, so a dry run reports it, too. Finished runs need no package.

    Args:
        runs: Run id -> experiment.
        results: The folder results/.

    Raises:
        BadInput: The message names domain or algorithm, the package and the remedy.
    """
    groups: dict[tuple[str, ...], dict[str, Experiment]] = {}
    for run, experiment in runs.items():
        needed = (*experiment.domain.packages, *experiment.algorithm.packages)
        groups.setdefault(needed, {})[run] = experiment
    for alike in groups.values():
        try:
            require_packages_of(next(iter(alike.values())))
        except BadInput:
            for experiment in unfinished(alike, results)[:1]:
                require_packages_of(experiment)
