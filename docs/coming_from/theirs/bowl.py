"""A pyribs script, as many start with one: python bowl.py SIGMA SEED."""

import sys

import numpy as np
from ribs.archives import GridArchive
from ribs.emitters import GaussianEmitter, IsoLineEmitter
from ribs.schedulers import Scheduler


def evaluate(solutions):
    return -np.square(solutions).sum(axis=1), solutions[:, :2]


def make(sigma=0.3, seed=1):
    box = [(-3.0, 3.0), (-3.0, 3.0)]
    archive = GridArchive(
        solution_dim=6, dims=[20, 20], ranges=box, qd_score_offset=-50.0, seed=seed
    )
    start = {"x0": np.zeros(6), "batch_size": 20}
    emitters = [
        GaussianEmitter(archive, sigma=sigma, seed=seed, **start),
        IsoLineEmitter(archive, iso_sigma=sigma, line_sigma=0.2, seed=seed + 1, **start),
    ]
    return Scheduler(archive, emitters)


def run(sigma, seed):
    scheduler = make(sigma, seed)
    for _ in range(30):
        scheduler.tell(*evaluate(scheduler.ask()))
    return float(scheduler.archive.stats.qd_score)


if __name__ == "__main__":
    print(f"{sys.argv[1]}\t{sys.argv[2]}\t{run(float(sys.argv[1]), int(sys.argv[2])):.3f}")
