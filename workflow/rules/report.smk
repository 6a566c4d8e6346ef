# From tables and figures to one page.


localrules:
    report_page,


rule report_page:
    input:
        rules.aggregate.output,
        rules.plot.output,
        CORRECTED,
        CONFIRMED,
        EVOLUTION,
        ROLLOUTS,
    output:
        report(
            "results/sweeps/{sweep}/report.html",
            caption="../report/page.rst",
            category="Page",
            labels={"sweep": "{sweep}", "page": "everything on one page"},
        ),
    log:
        "results/sweeps/{sweep}/logs/report.log",
    retries: 0
    conda:
        "../../envs/qdsweep.yaml"
    resources:
        image=IMAGE,
    message:
        "report of the sweep {wildcards.sweep}: {output}"
    shell:
        "python -m qdsweep --image={resources.image:q} report {wildcards.sweep} 2> {log}"
