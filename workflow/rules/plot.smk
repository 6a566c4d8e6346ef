# From tables and archives to figures.


localrules:
    plot,


rule plot:
    input:
        rules.aggregate.output,
        CORRECTED,
    output:
        overview=report(
            "results/sweeps/{sweep}/plots/overview.svg",
            caption="../report/overview.rst",
            category="Figures",
            labels={"sweep": "{sweep}", "figure": "overview"},
        ),
        curves=report(
            "results/sweeps/{sweep}/plots/learning_curves.svg",
            caption="../report/learning_curves.rst",
            category="Figures",
            labels={"sweep": "{sweep}", "figure": "learning curves"},
        ),
        heatmaps=report(
            "results/sweeps/{sweep}/plots/heatmaps.svg",
            caption="../report/heatmaps.rst",
            category="Figures",
            labels={"sweep": "{sweep}", "figure": "archives"},
        ),
        profiles=report(
            "results/sweeps/{sweep}/plots/archive_profiles.svg",
            caption="../report/archive_profiles.rst",
            category="Figures",
            labels={"sweep": "{sweep}", "figure": "archive profiles"},
        ),
        # What the sweep's shape allows, and its settings ask for.
        more=report(
            directory("results/sweeps/{sweep}/plots/more"),
            patterns=["{figure}.svg"],
            caption="../report/more.rst",
            category="Figures",
            labels={"sweep": "{sweep}", "figure": "{figure}"},
        ),
        archives=report(
            directory("results/sweeps/{sweep}/plots/archives"),
            patterns=["{run}.png"],
            caption="../report/archive.rst",
            category="Archives",
            labels={"sweep": "{sweep}", "run": "{run}"},
        ),
        index="results/sweeps/{sweep}/plots/figures.json",
        files=expand(
            "results/sweeps/{{sweep}}/plots/{figure}.{ending}",
            figure=["overview", "learning_curves", "heatmaps", "archive_profiles"],
            ending=["pdf", "png", "csv"],
        ),
    log:
        "results/sweeps/{sweep}/logs/plot.log",
    retries: 0
    conda:
        "../../envs/qdsweep.yaml"
    resources:
        image=IMAGE,
    message:
        "figures of the sweep {wildcards.sweep}"
    shell:
        "python -m qdsweep --image={resources.image:q} plot {wildcards.sweep} 2> {log}"
