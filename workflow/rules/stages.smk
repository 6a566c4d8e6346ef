# From run directories to tables, figures and the page: a rule for each stage of
# workflow/qdsweep/analysis/stages.py that this sweep asks for.

from qdsweep.records.plan import digest
from qdsweep.search.search_plan import markers

# Further inputs of stages, in addition to the outputs of other stages, and further reasons to rebuild.
INPUTS = {
    "search": markers(START.levels.values()),
    # No later stage lists the runs again, which would take long with 10,000 of them.
    "aggregate": summaries,
    "confirmed": confirming_results,
}
PARAMS = {
    "search": {"plan": digest(START.plan)},
    "aggregate": {"plan": digest(START.plan), "partial": PARTIAL},
}
# Several processes read the runs of a large sweep.
THREADS = min(16, 1 + len(START.sweep.runs) // 1000)


for stage in STAGES.values():
    if stage.name == "winners":
        continue

    rule:
        name:
            stage.rule or stage.name
        input:
            files_of(STAGES, stage.reads),
            INPUTS.get(stage.name, []),
            REEVALUATED if stage.name == "aggregate" else [],
            forced(*stage.outputs_below_results),
        output:
            stage.rule_outputs(),
        log:
            f"results/sweeps/{{sweep}}/logs/{stage.name}.log",
        retries: 0
        localrule: True
        conda:
            CONDA
        threads: THREADS if stage.name == "aggregate" else 1
        resources:
            image=IMAGE,
            stage=stage.name,
            options=options_of_tables if stage.name == "aggregate" else "",
        params:
            **PARAMS.get(stage.name, {}),
        message:
            stage.message
        shell:
            "python -P -m qdsweep --image={resources.image:q}"
            " {resources.stage} {wildcards.sweep} {resources.options}"
            f"{AT_RESULTS} 2> {{log}}"


# The winners of the sweep, where the sweep file has the key `confirm`. They are unknown until the
# tables are written, so this is a checkpoint.
if "winners" in STAGES:

    checkpoint choose_winners:
        input:
            files_of(STAGES, STAGES["winners"].reads),
            forced(*STAGES["winners"].outputs_below_results),
        output:
            files_of(STAGES, ["winners"]),
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
            "python -P -m qdsweep --image={resources.image:q} winners {wildcards.sweep}"
            f"{AT_RESULTS} 2> {{log}}"
