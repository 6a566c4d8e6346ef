# The places of a search (key `search` of the sweep file). How many runs a rung, a batch or a
# generation has is known beforehand, only not which: a job is a place, and a table of decisions
# says which run it lengthens. So `-n` counts every job, and a kill loses no decision.


def markers(levels, places=None):
    """The markers of levels, or of some places of them."""
    return [
        f"results/sweeps/{{sweep}}/search/{level.name}/{place}-s{seed}.json"
        for level in levels
        for place in (range(level.places) if places is None else places)
        for seed in level.seeds
    ]


def decision_of(wildcards):
    """The table of decisions that gives a place its run; none where that is known beforehand."""
    again_if_spoiled("{place}-s{seed}.json", wildcards)
    level = LEVELS[wildcards.level]
    if level.kind == "known":
        return []
    block = level.block_of(int(wildcards.place))
    return f"results/sweeps/{{sweep}}/search/{{level}}/decided-{block}.json"


def decided_by(wildcards):
    """What a table of decisions is made from: new markers, and the table before it."""
    again_if_spoiled("decided-{block}.json", wildcards)
    level, block = LEVELS[wildcards.level], int(wildcards.block)
    below = [LEVELS[name] for name in level.below]
    if level.kind != "promoted":
        return markers(below)
    first, last, _ = level.sees(block, below[0].places)
    table = f"results/sweeps/{{sweep}}/search/{{level}}/decided-{block - 1}.json"
    return markers(below, range(first, last)) + [table] * bool(block)


def again_if_spoiled(name, wildcards):
    """Makes Snakemake write a file of the search again, although it is there."""
    path = f"results/sweeps/{wildcards.sweep}/search/{wildcards.level}/"
    path += name.format(**wildcards)
    if path in SPOILED:
        workflow.dag.forcefiles.add(path)


if SETTINGS.staged_search is not None:

    rule search_place:
        input:
            decision_of,
        output:
            "results/sweeps/{sweep}/search/{level}/{place}-s{seed}.json",
        log:
            "results/sweeps/{sweep}/search/{level}/{place}-s{seed}.log",
        priority: 1
        conda:
            "../../envs/qdsweep.yaml"
        threads: lambda wildcards: CLUSTERS[cluster_name()].workers_per_node
        resources:
            **RUN_RESOURCES,
            mem_mb=memory_of_place,
        params:
            budget=lambda wildcards: LEVELS[wildcards.level].budget,
            metric=SETTINGS.staged_search.metric or SETTINGS.rank,
        message:
            "search {wildcards.level}: place {wildcards.place}, seed {wildcards.seed}"
            " (to {params.budget}, cluster {resources.cluster_config})"
        shell:
            "python -m qdsweep --image={resources.image:q}"
            " place {wildcards.sweep} {wildcards.level} {wildcards.place}"
            " --seed={wildcards.seed} --cluster {resources.cluster_config} --cores {threads}"

    rule search_decide:
        input:
            decided_by,
        output:
            "results/sweeps/{sweep}/search/{level}/decided-{block}.json",
        log:
            "results/sweeps/{sweep}/search/{level}/decided-{block}.log",
        priority: 2
        localrule: True
        conda:
            "../../envs/qdsweep.yaml"
        resources:
            image=IMAGE,
        params:
            level=lambda wildcards: LEVELS[wildcards.level].basis(int(wildcards.block)),
        message:
            "search {wildcards.level}: who goes on ({wildcards.block})"
        shell:
            "python -m qdsweep --image={resources.image:q}"
            " decide {wildcards.sweep} {wildcards.level} {wildcards.block} 2> {log}"
