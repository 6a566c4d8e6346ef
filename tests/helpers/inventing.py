"""Invented runs with known numbers, which are faster than real runs."""

import json

import numpy as np
import pandas as pd
import yaml

from qdsweep.config.compose import compose

DIM, BATCH, ITERATIONS = 6, 20, 40
SEEDS = (1, 2, 3)


def sphere(solutions, measure_dim):
    """A tiny linear projection: objective and measures."""
    parts = np.array_split(np.clip(solutions, -5.12, 5.12), measure_dim, axis=1)
    objective = 100 - np.sum((solutions - 2.048) ** 2, axis=1)
    return objective, np.stack([part.sum(axis=1) for part in parts], axis=1)


def make_archive(kind, measure_dim, seed):
    from ribs.archives import (
        CVTArchive,
        GridArchive,
        ProximityArchive,
        SlidingBoundariesArchive,
        k_means_centroids,
    )

    ranges = [(-16.0, 16.0)] * measure_dim
    common = {
        "solution_dim": DIM,
        "seed": seed,
        "qd_score_offset": -600.0,
        "extra_fields": {"objective_std": ((), np.float64), "path": ((2,), np.float64)},
    }
    if kind == "grid":
        return GridArchive(dims=[12] * measure_dim, ranges=ranges, **common), ranges
    if kind == "cvt":
        centroids, _ = k_means_centroids(centroids=60, ranges=ranges, samples=600, seed=0)
        return CVTArchive(centroids=centroids, ranges=ranges, **common), ranges
    if kind == "sliding_boundaries":
        options = {"remap_frequency": 100, "buffer_capacity": 200}
        archive = SlidingBoundariesArchive(dims=[8] * 2, ranges=ranges, **options, **common)
        return archive, ranges
    return ProximityArchive(
        measure_dim=measure_dim, k_neighbors=3, novelty_threshold=0.5, **common
    ), None


def make_run(runs, name, seed, *, kind="grid", measure_dim=2, sigma=0.5):
    """Writes one run's folder and returns its id and its archive."""
    from ribs.emitters import GaussianEmitter
    from ribs.schedulers import Scheduler

    archive, ranges = make_archive(kind, measure_dim, seed)
    emitter = GaussianEmitter(archive, sigma=sigma, x0=np.zeros(DIM), batch_size=BATCH, seed=seed)
    scheduler = Scheduler(archive, [emitter])
    rows = []
    for iteration in range(1, ITERATIONS + 1):
        solutions = scheduler.ask()
        objective, measures = sphere(solutions, measure_dim)
        scheduler.tell(objective, measures, objective_std=objective / 9, path=solutions[:, :2])
        stats = archive.stats
        rows.append(
            {
                "iteration": iteration,
                "evaluations": iteration * BATCH,
                "num_elites": int(stats.num_elites),
                "coverage": float(stats.coverage),
                "qd_score": float(stats.qd_score),
                "norm_qd_score": float(stats.norm_qd_score),
                "obj_max": float(stats.obj_max),
                "obj_mean": float(stats.obj_mean),
                "restarts": 0,
                "seconds_ask": 0.25,
                "seconds_evaluate": 1.0,
                "seconds_tell": 0.5,
                "seconds_reload": 0.0,
            }
        )
    run_id = f"sphere-{name}-s{seed}-0123456789"
    folder = runs / run_id
    folder.mkdir(parents=True)
    pd.DataFrame(rows).to_csv(folder / "metrics.csv", index=False)
    arrays = {field: values for field, values in archive.data().items() if field != "threshold"}
    if kind == "cvt":
        arrays["centroids"] = archive.centroids
    if kind == "sliding_boundaries":
        arrays["boundaries"] = archive._boundaries
    np.savez(folder / "archive.npz", **(arrays | {"index": arrays["index"].astype(np.int64)}))
    structured = ranges is not None
    summary = {
        "id": run_id,
        "status": "finished",
        "iterations": ITERATIONS,
        **{key: rows[-1][key] for key in ("evaluations", "num_elites", "qd_score", "obj_max")},
        "coverage": rows[-1]["coverage"] if structured else None,
        "norm_qd_score": rows[-1]["norm_qd_score"] if structured else None,
        "archive": {
            "type": kind,
            "cells": int(archive.cells) if structured else None,
            "dims": [int(dim) for dim in archive.dims] if hasattr(archive, "dims") else None,
            "ranges": ranges,
            "measures": [f"sum {i + 1}" for i in range(measure_dim)],
            "objective_range": [-600.0, 100.0],
            "qd_score_offset": -600.0,
            "solution_dim": DIM,
        },
        "timings": {},
        "versions": {"ribs": "0.12.0"},
        "engine": "processes",
        "workers": 2,
        "attempts": [],
        "stochastic": False,
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    config = compose("lp_sphere", {"seed": seed}).model_dump(mode="json")
    config["domain"]["name"], config["algorithm"]["name"] = "sphere", name
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return run_id, archive


def write_plan(results, name, columns, rows):
    """Writes plan.json; rows are (values, id, iterations, evaluations)."""
    folder = results / "sweeps" / name
    folder.mkdir(parents=True, exist_ok=True)
    keys = ("values", "id", "iterations", "evaluations")
    listed = [dict(zip(keys, row, strict=True)) for row in rows]
    plan = {"name": name, "experiment": "sphere", "sweep": "::: <b>", "columns": columns}
    (folder / "plan.json").write_text(json.dumps(plan | {"rows": listed}))
    return folder


def read_captions(sweep):
    entries = json.loads((sweep / "plots" / "figures.json").read_text())
    return {entry["name"]: entry["caption"] for entry in entries}


def metrics(made, name, seed):
    return pd.read_csv(made.runs / made.ids[name, seed] / "metrics.csv")
