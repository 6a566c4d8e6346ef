"""A search on a real Slurm: the jobs of its places, and the decisions of one machine."""

import os
import signal
import subprocess

from patient import EXPERIMENT, add_plugin
from results import search_results
from support import BIN, REPO, snakemake, write_yaml
from test_slurm import SLURM, no_process_is_left
from waiting import wait_until

SEARCH = {
    "name": "s",
    "experiment": {**EXPERIMENT, "iterations": 12},
    "sweep": "::: iso_sigma 0.05 0.1 0.4 0.8 ::: seed 1 2",
    "search": {"halving": {"rungs": ["1/3", 1], "eta": 2, "seeds": [1, 2]}},
}
TABLE = "results/sweeps/s/table.csv"


def test_a_search_whose_main_process_is_killed_equals_that_of_one_machine(tmp_path):
    for name in ("local", "slurm"):
        (tmp_path / name).mkdir()
        add_plugin(tmp_path / name)
        write_yaml(tmp_path / name / "sweep.yaml", SEARCH)
    snakemake(TABLE, "--configfile", "sweep.yaml", "--cores", 2, cwd=tmp_path / "local")
    folder = tmp_path / "slurm"
    needs = {"workers_per_node": 2, "mem_mb_main": 400, "mem_mb_per_worker": 200, "runtime_min": 5}
    write_yaml(folder / "cluster.yaml", needs)
    words = ["--profile", REPO / "profiles/slurm", "--configfile", "sweep.yaml", *SLURM[4:]]
    words += ["--config", "cluster=cluster.yaml"]
    with (folder / "printed.txt").open("wb") as printed:
        first = subprocess.Popen(
            list(map(str, [BIN / "snakemake", "-s", REPO / "Snakefile", TABLE, *words])),
            cwd=folder,
            env={**os.environ, "PATIENT_SECONDS": "0.02"},
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        rung = folder / "results/sweeps/s/search/rung-1"
        wait_until((rung / "decided-0.json").exists, 300, "the first rung is decided")
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    printed = snakemake(TABLE, *words, cwd=folder)
    assert search_results(folder, "s") == search_results(tmp_path / "local", "s")
    again = snakemake(TABLE, "-n", "--cores", 2, "--configfile", "sweep.yaml", cwd=folder)
    assert "Nothing to be done" in again.stdout + again.stderr, printed.stderr
    no_process_is_left(tmp_path)
