# From elites to corrected archives, where the sweep file has the key `reevaluate`.

# Its results, which tables rank by where evaluations depend on their seed.
REEVALUATED = []

if SETTINGS.reevaluate is not None:

    rule reevaluate:
        input:
            "results/runs/{run}/archive.npz",
        output:
            elites=f"results/runs/{{run}}/{SETTINGS.reevaluate.stem}.npz",
            metrics=f"results/runs/{{run}}/{SETTINGS.reevaluate.stem}.json",
        log:
            f"results/runs/{{run}}/{SETTINGS.reevaluate.stem}.log",
        conda:
            CONDA
        threads: workers
        resources:
            **START.slurm_request(on_one_node=True),
            cluster_config=cluster_word,
            image=IMAGE,
            mem_mb=memory_of,
        params:
            times=SETTINGS.reevaluate.times,
            seed=SETTINGS.reevaluate.seed,
            common="--common" if SETTINGS.reevaluate.common else "",
        message:
            "re-evaluate the elites of {wildcards.run} {params.times} times"
        shell:
            "python -P -m qdsweep --image={resources.image:q}"
            f" reevaluate {RESULTS.runs}/{{wildcards.run}}"
            " --times {params.times} --seed {params.seed} {params.common}"
            " --cluster {resources.cluster_config} --cores {threads} 2> {log}"

    # The elites of outdated runs are of other code.
    REEVALUATED = expand(
        rules.reevaluate.output.metrics,
        run=[run for run in AWAITED if run not in START.found.outdated],
    )
