"""Example of your own metrics: two numbers of each iteration.

`config/experiments/arm_metrics.yaml` lists them under `metrics:`. `archive` is pyribs' archive,
read-only. `evaluation` has the `objective` (n,), the `measures` (n, m) and the `fields` of all
evaluations of the iteration. An exception or a value that is not finite leaves an empty cell.
"""

import numpy as np
from scipy.spatial import KDTree


def spread(archive, evaluation):
    """Mean distance of an elite to its nearest neighbour, in cells."""
    low, size = archive.lower_bounds, archive.interval_size
    elites = (archive.data("measures") - low) / size * archive.dims
    return KDTree(elites).query(elites, k=2)[0][:, 1].mean()


def wasted(archive, evaluation):
    """Share of the evaluations that are worse than the elite of their cell."""
    _, elites = archive.retrieve(evaluation.measures)
    return np.mean(elites["objective"] > evaluation.objective)
