# From tables and archives to figures.


localrules:
    plot,


rule plot:
    input:
        rules.aggregate.output,
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
        archives=report(
            directory("results/sweeps/{sweep}/plots/archives"),
            patterns=["{run}.png"],
            caption="../report/archive.rst",
            category="Archives",
            labels={"sweep": "{sweep}", "run": "{run}"},
        ),
        captions="results/sweeps/{sweep}/plots/captions.json",
        print=multiext(
            "results/sweeps/{sweep}/plots/",
            "overview.pdf",
            "overview.png",
            "learning_curves.pdf",
            "learning_curves.png",
            "heatmaps.pdf",
            "heatmaps.png",
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
