# The places of a search (key `search` of the sweep file). The number of runs of a rung, a batch or
# a generation is known in advance, but not their ids. So each job is a place, and a table of
# decisions names the run that it extends. `-n` therefore counts every job, and a kill loses no
# decision.

from qdsweep.search.search_plan import basis, decided_by, decision_of

if SETTINGS.staged_search is not None:

    rule search_place:
        input:
            lambda wildcards: decision_of(
                START.levels[wildcards.level], int(wildcards.place)
            ),
            forced("sweeps/{sweep}/search/{level}/{place}-s{seed}.json"),
        output:
            "results/sweeps/{sweep}/search/{level}/{place}-s{seed}.json",
        log:
            "results/sweeps/{sweep}/logs/search/{level}/{place}-s{seed}.log",
        priority: 1
        conda:
            CONDA
        threads: cores
        resources:
            **RUN_RESOURCES,
            mem_mb=memory_of,
        params:
            budget=lambda wildcards: START.levels[wildcards.level].budget,
            metric=SETTINGS.staged_search.metric or SETTINGS.rank,
        message:
            "search {wildcards.level}: place {wildcards.place}, seed {wildcards.seed}"
            " (to {params.budget}, cluster {resources.cluster_config})"
        shell:
            "python -P -m qdsweep --image={resources.image:q}"
            " place {wildcards.sweep} {wildcards.level} {wildcards.place}"
            " --seed={wildcards.seed} --cluster {resources.cluster_config} --cores {threads}"
            f"{AT_RESULTS} 2> {{log}}"

    rule search_decide:
        input:
            lambda wildcards: decided_by(
                START.levels, wildcards.level, int(wildcards.block)
            ),
            forced("sweeps/{sweep}/search/{level}/decided-{block}.json"),
        output:
            "results/sweeps/{sweep}/search/{level}/decided-{block}.json",
        log:
            "results/sweeps/{sweep}/logs/search/{level}/decided-{block}.log",
        priority: 2
        localrule: True
        params:
            basis=lambda wildcards: basis(
                SETTINGS, START.levels[wildcards.level], int(wildcards.block)
            ),
        message:
            "search {wildcards.level}: promotion ({wildcards.block})"
        shell:
            # It runs outside the image: it is quick, and tpe needs packages of `make extras`.
            "python -P -m qdsweep"
            " decide {wildcards.sweep} {wildcards.level} {wildcards.block}"
            f"{AT_RESULTS} 2> {{log}}"
