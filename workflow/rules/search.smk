# The places of a search (key `search` of the sweep file). How many runs a rung, a batch or a
# generation has is known beforehand, only not which: a job is a place, and a table of decisions
# says which run it lengthens. So `-n` counts every job, and a kill loses no decision.


if SETTINGS.staged_search is not None:

    rule search_place:
        input:
            decision_of,
        output:
            "results/sweeps/{sweep}/search/{level}/{place}-s{seed}.json",
        log:
            "results/sweeps/{sweep}/logs/search/{level}/{place}-s{seed}.log",
        priority: 1
        conda:
            CONDA
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
            f"{AT_RESULTS} 2> {{log}}"

    rule search_decide:
        input:
            decided_by,
        output:
            "results/sweeps/{sweep}/search/{level}/decided-{block}.json",
        log:
            "results/sweeps/{sweep}/logs/search/{level}/decided-{block}.log",
        priority: 2
        localrule: True
        params:
            basis=basis_of,
        message:
            "search {wildcards.level}: who goes on ({wildcards.block})"
        shell:
            # In no image: it takes no time, and tpe needs what only `make extras` installs.
            "python -m qdsweep"
            " decide {wildcards.sweep} {wildcards.level} {wildcards.block}"
            f"{AT_RESULTS} 2> {{log}}"
