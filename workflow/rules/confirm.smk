# From tables to the winners of the sweep, where the sweep file has the key `confirm`. Nobody knows
# them before the tables are made: hence a checkpoint, and no rule like those of the other stages.

if "winners" in STAGES:

    checkpoint choose_winners:
        input:
            files_of(STAGES["winners"].reads),
            again_if_damaged(STAGES["winners"]),
        output:
            files_of(["winners"]),
        log:
            "results/sweeps/{sweep}/logs/winners.log",
        retries: 0
        localrule: True
        conda:
            CONDA
        resources:
            image=IMAGE,
        params:
            confirm=SETTINGS.confirm.model_dump(mode="json"),
        message:
            STAGES["winners"].message
        shell:
            "python -m qdsweep --image={resources.image:q} winners {wildcards.sweep}"
            f"{AT_RESULTS} 2> {{log}}"
