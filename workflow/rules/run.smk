# One run: state/, which is not declared, holds the truth and survives every rerun.


rule qd_run:
    output:
        config="results/runs/{run}/config.yaml",
        metrics="results/runs/{run}/metrics.csv",
        archive="results/runs/{run}/archive.npz",
        reload="results/runs/{run}/reload.pkl",
        summary="results/runs/{run}/summary.json",
    log:
        "results/runs/{run}/run.log",
    conda:
        "../../envs/qdsweep.yaml"
    threads: CLUSTER.workers
    resources:
        cluster_config=SETTINGS.cluster_name,
        mem_mb=memory_of,
        attempt=lambda wildcards, attempt: attempt,
    params:
        budget=budget_of,
    message:
        "run {wildcards.run} ({params.budget}, {threads} worker(s))"
    shell:
        "qdsweep launch {wildcards.run} --budget {params.budget}"
        " --cluster {resources.cluster_config} --workers {threads} --attempt {resources.attempt}"
