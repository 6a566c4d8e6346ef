# From run directories to tables, figures and the page: a rule for each stage of
# workflow/qdsweep/analysis/stages.py that this sweep asks for.

# What stages need besides the outputs of others, and what makes them anew besides their inputs.
INPUTS = {
    "search": markers(LEVELS.values()),
    # No later stage lists the runs anew: it is felt with 10,000 of them.
    "aggregate": summaries,
    "corrected": REEVALUATED,
    "confirmed": confirming_summaries,
}
PARAMS = {
    "search": {"plan": digest(PLAN)},
    "aggregate": {"plan": digest(PLAN), "partial": PARTIAL},
}
OPTIONS = {"aggregate": PARTIAL}


for stage in STAGES.values():
    if stage.name == "winners":
        continue  # see confirm.smk

    rule:
        name:
            stage.rule or stage.name
        input:
            files_of(stage.reads),
            INPUTS.get(stage.name, []),
            again_if_damaged(stage),
        output:
            outputs_of(stage),
        log:
            f"results/sweeps/{{sweep}}/logs/{stage.name}.log",
        retries: 0
        localrule: True
        conda:
            CONDA
        resources:
            image=IMAGE,
            stage=stage.name,
            options=OPTIONS.get(stage.name, ""),
        params:
            **PARAMS.get(stage.name, {}),
        message:
            stage.message
        shell:
            "python -m qdsweep --image={resources.image:q}"
            " {resources.stage} {wildcards.sweep} {resources.options}"
            f"{AT_RESULTS} 2> {{log}}"
