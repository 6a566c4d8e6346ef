# From tables and figures to one page.


localrules:
    report_page,


rule report_page:
    input:
        rules.aggregate.output,
        rules.plot.output,
    output:
        "results/sweeps/{sweep}/report.html",
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
