"""The stages of animations."""

from qdsweep.analysis.stage import Stage, folder_outputs

STAGES = (
    Stage(
        "evolution",
        "Animate the archives of a sweep over time.",
        "animations of the archives of {wildcards.sweep} over time",
        "features.rollouts.animations:evolution",
        folder_outputs("plots/evolution", ".gif", "Evolution", "run", "evolution"),
        # Only archives with fixed cells have one.
        fits=lambda runs: any(run.has_history for run in runs),
    ),
    Stage(
        "rollouts",
        "Render elites of a sweep, as declared by its key rollouts.",
        "rendered episodes of elites of {wildcards.sweep}",
        "features.rollouts.animations:rollouts",
        folder_outputs("plots/rollouts", ".gif", "Rollouts", "elite", "rollouts"),
        key="rollouts",
    ),
)
