# From tables to the winners of the sweep, and these on unseen seeds, where the sweep file has the
# key `confirm`. Nobody knows the winners before the tables are made: hence a checkpoint.

CONFIRMED = []

if SETTINGS.confirm is not None:

    localrules:
        choose_winners,
        confirmed_table,

    checkpoint choose_winners:
        input:
            rules.aggregate.output,
        output:
            "results/sweeps/{sweep}/confirm.json",
        log:
            "results/sweeps/{sweep}/logs/winners.log",
        retries: 0
        conda:
            "../../envs/qdsweep.yaml"
        resources:
            image=IMAGE,
        params:
            confirm=SETTINGS.confirm.model_dump(mode="json"),
        message:
            "winners of the sweep {wildcards.sweep}, to be confirmed"
        shell:
            "python -m qdsweep --image={resources.image:q} winners {wildcards.sweep} 2> {log}"

    rule confirmed_table:
        input:
            rules.aggregate.output,
            summaries=confirming_summaries,
        output:
            multiext("results/sweeps/{sweep}/tables/confirmed", ".csv", ".tex", ".json"),
            markdown=report(
                "results/sweeps/{sweep}/tables/confirmed.md",
                caption="../report/confirmed.rst",
                category="Tables",
                labels={"sweep": "{sweep}", "table": "winners on unseen seeds"},
            ),
        log:
            "results/sweeps/{sweep}/logs/confirmed.log",
        retries: 0
        conda:
            "../../envs/qdsweep.yaml"
        resources:
            image=IMAGE,
        message:
            "winners of the sweep {wildcards.sweep} on unseen seeds"
        shell:
            "python -m qdsweep --image={resources.image:q} confirmed {wildcards.sweep} 2> {log}"

    # Unfinished runs have no winners.
    CONFIRMED = [] if SETTINGS.partial else rules.confirmed_table.output
