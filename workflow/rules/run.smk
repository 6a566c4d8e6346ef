# One run: state/, which is not declared, holds the truth and survives every rerun.


rule qd_run:
    input:
        forced("runs/{run}/summary.json") if START.found.too_short else [],
    output:
        config="results/runs/{run}/config.yaml",
        metrics="results/runs/{run}/metrics.csv",
        archive="results/runs/{run}/archive.npz",
        reload="results/runs/{run}/reload.pkl",
        summary="results/runs/{run}/summary.json",
    log:
        "results/runs/{run}/run.log",
    # Runs come before jobs that only read finished runs.
    priority: 1
    conda:
        CONDA
    threads: cores
    resources:
        **RUN_RESOURCES,
        mem_mb=memory_of,
        attempt=lambda wildcards, attempt: attempt,
    params:
        budget=budget_of,
    message:
        "run {wildcards.run} ({params.budget}, cluster {resources.cluster_config})"
    shell:
        "python -P -m qdsweep --image={resources.image:q}"
        " launch {wildcards.run} --budget {params.budget}"
        " --cluster {resources.cluster_config} --cores {threads} --attempt {resources.attempt}"
        f"{AT_RUNS}"
