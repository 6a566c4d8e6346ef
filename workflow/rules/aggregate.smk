# From run directories to tables.


localrules:
    aggregate,


rule aggregate:
    input:
        # One file of each run; no later rule lists the runs anew: it is felt with 10,000 of them.
        expand("results/runs/{run}/summary.json", run=AWAITED),
    output:
        runs="results/sweeps/{sweep}/runs.tsv",
        summary="results/sweeps/{sweep}/summary.csv",
        curves="results/sweeps/{sweep}/curves.csv",
        table=multiext("results/sweeps/{sweep}/table", ".csv", ".tex", ".json"),
        markdown=report(
            "results/sweeps/{sweep}/table.md",
            caption="../report/table.rst",
            category="Tables",
            labels={"sweep": "{sweep}", "table": "results by group"},
        ),
        timing=multiext(
            "results/sweeps/{sweep}/tables/timing", ".csv", ".md", ".tex", ".json"
        ),
        pairs=multiext(
            "results/sweeps/{sweep}/tables/comparisons", ".csv", ".tex", ".json"
        ),
        comparisons=report(
            "results/sweeps/{sweep}/tables/comparisons.md",
            caption="../report/comparisons.rst",
            category="Tables",
            labels={"sweep": "{sweep}", "table": "differences between groups"},
        ),
    log:
        "results/sweeps/{sweep}/logs/aggregate.log",
    retries: 0
    conda:
        "../../envs/qdsweep.yaml"
    resources:
        image=IMAGE,
    params:
        plan=digest(PLAN),
        partial=PARTIAL,
    message:
        "tables of the sweep {wildcards.sweep}"
    shell:
        "python -m qdsweep --image={resources.image:q} aggregate {wildcards.sweep} {params.partial} 2> {log}"
