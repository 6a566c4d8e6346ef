# From external results to run directories: a rule for each description that the sweep file names
# under `imported`. They are read again when one of their files is newer, and never computed.

IMPORTED = []
PUBLISHED = ("config.yaml", "metrics.csv", "archive.npz", "summary.json")

for number, path in enumerate(dict.fromkeys(run.path for run in START.sweep.imported)):
    runs = [run for run in START.sweep.imported if run.path == path]
    ids = [run.id for run in runs]
    files = dict.fromkeys(file for run in runs for file in run.files)
    IMPORTED += expand("results/runs/{run}/summary.json", run=ids)

    rule:
        name:
            f"import_{number}"
        input:
            # Their files, which no `prefix:` of a module moves.
            [local(file) for file in files],
        output:
            expand("results/runs/{run}/{file}", run=ids, file=PUBLISHED),
        log:
            f".snakemake/log/qdsweep-import-{number}.log",
        retries: 0
        localrule: True
        conda:
            CONDA
        resources:
            image=IMAGE,
            description=str(path),
        message:
            "import {resources.description}"
        shell:
            "python -P -m qdsweep --image={resources.image:q}"
            " import {resources.description:q}"
            f"{AT_RESULTS} 2>&1 | tee {{log}} >&2"
