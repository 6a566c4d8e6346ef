# From elites to rendered episodes, where the sweep file has the key `rollouts`.


localrules:
    rollouts,


rule rollouts:
    input:
        rules.aggregate.output,
    output:
        report(
            directory("results/sweeps/{sweep}/plots/rollouts"),
            patterns=["{elite}.gif"],
            caption="../report/rollouts.rst",
            category="Rollouts",
            labels={"sweep": "{sweep}", "elite": "{elite}"},
        ),
    log:
        "results/sweeps/{sweep}/logs/rollouts.log",
    retries: 0
    conda:
        "../../envs/qdsweep.yaml"
    resources:
        image=IMAGE,
    message:
        "rendered episodes of elites of {wildcards.sweep}"
    shell:
        "python -m qdsweep --image={resources.image:q} rollouts {wildcards.sweep} 2> {log}"


ROLLOUTS = rules.rollouts.output if SETTINGS.rollouts is not None else []
