# From insertions to animations: how the archives of the best groups filled.


localrules:
    evolution,


rule evolution:
    input:
        rules.aggregate.output,
    output:
        report(
            directory("results/sweeps/{sweep}/plots/evolution"),
            patterns=["{run}.gif"],
            caption="../report/evolution.rst",
            category="Evolution",
            labels={"sweep": "{sweep}", "run": "{run}"},
        ),
    log:
        "results/sweeps/{sweep}/logs/evolution.log",
    retries: 0
    conda:
        "../../envs/qdsweep.yaml"
    resources:
        image=IMAGE,
    message:
        "animations of how the archives of {wildcards.sweep} filled"
    shell:
        "python -m qdsweep --image={resources.image:q} evolution {wildcards.sweep} 2> {log}"


# Only archives whose cells stay have a history.
EVOLUTION = (
    rules.evolution.output
    if any(run.has_history for run in SWEEP.runs.values())
    else []
)
