"""Ray Tune: a grid of two settings, a trial each."""

import bowl
from ray import tune


def trial(config):
    tune.report({"qd_score": bowl.run(config["sigma"], config["seed"])})


if __name__ == "__main__":
    grid = {"sigma": tune.grid_search([0.1, 0.5]), "seed": tune.grid_search([1, 2, 3])}
    results = tune.Tuner(trial, param_space=grid, run_config=tune.RunConfig(verbose=0)).fit()
    table = results.get_dataframe().sort_values(["config/sigma", "config/seed"])
    for _, row in table.iterrows():
        print(f"{row['config/sigma']}\t{row['config/seed']}\t{row['qd_score']:.3f}")
