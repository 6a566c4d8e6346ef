"""The mpi engine over two nodes of a real Slurm, whose srun starts the ranks."""

import subprocess

from patient import make_folder, undisturbed_digest
from refusals import names_all
from results import summary
from support import BIN, write_yaml
from test_slurm import TWO_NODES, Sweep
from waiting import has_workers, wait_until

MPI = {**TWO_NODES, "engine": "mpi"}


def test_ranks_over_two_nodes_stopped_in_an_evaluation_and_again(tmp_path):
    expected = undisturbed_digest(tmp_path / "undisturbed", iterations=60)
    sweep = Sweep(tmp_path / "sweep", seconds=0.05, engine="mpi").computing()
    wait_until(lambda: has_workers(sweep.log, 6), what="all workers")
    subprocess.run(["scancel", sweep.job()], check=True)
    sweep.finish(expected)
    assert sweep.attempts() == ["SIGTERM", "finished"]
    about = summary(sweep.run)
    assert (about["engine"], about["workers"]) == ("mpi", 6)
    log = (sweep.run / "run.log").read_text()
    for rank in range(1, 7):
        assert f"[rank {rank}] evaluates" in log
    assert str(about["attempts"][0]["slurm_job"]) in log


def test_ranks_that_are_not_one_world_are_refused(tmp_path):
    make_folder(tmp_path)
    write_yaml(tmp_path / "cluster.yaml", {**MPI, "mpi": {"launcher": "srun --mpi=none"}})
    run = f"{BIN}/qdsweep run experiment.yaml --cluster cluster.yaml --out out"
    words = ["sbatch", "--wait", "--nodes=2", "--mem=900", "--output=said.txt", "--wrap", run]
    code = subprocess.run(words, cwd=tmp_path, check=False).returncode
    printed = (tmp_path / "said.txt").read_text()
    assert code == 2, printed
    names_all(printed, "srun --mpi=none", 7, 1, "srun --mpi=pmix")
    assert not (tmp_path / "out/state/metrics.csv").exists()
