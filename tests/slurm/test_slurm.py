"""The real Snakefile on a real Slurm: results, faults and leftovers."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import cluster
import pytest
from in_process import compute_sweep
from patient import make_folder, undisturbed_digest
from readme import lines
from refusals import names_all
from results import digest, digests, read_json, summary
from support import BIN, REPO, TINY, copy_project, snakemake, write_yaml
from waiting import crew_of, evaluates, has_lost, has_workers, says, wait_until, workers_of

TWO_NODES = {"nodes": 2, "workers_per_node": 3, "mem_mb_main": 600, "mem_mb_per_worker": 200}
SLURM = ("--executor", "slurm", "--jobs", "4", "--slurm-init-seconds-before-status-checks", "2")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    return undisturbed_digest(tmp_path_factory.mktemp("undisturbed"), iterations=60)


class Sweep:
    """A sweep of one patient run, with Snakemake and Slurm, in the background."""

    def __init__(self, folder: Path, seconds: float, words: tuple[str, ...] = (), **needs: object):
        self.folder = make_folder(folder, iterations=60)
        needs = {**TWO_NODES, "runtime_min": 10, **needs}
        cluster = write_yaml(folder / "a 'b' $(touch pwned);.yaml", needs).name
        self.seconds = seconds
        self.words = words
        config = {"name": "s", "experiment": "experiment.yaml", "cluster": cluster}
        write_yaml(folder / "sweep.yaml", config)
        self.printed = folder / "printed.txt"
        self.start()

    def start(self, **env: str) -> "Sweep":
        words = ["-s", REPO / "Snakefile", "--configfile", "sweep.yaml", *SLURM]
        words += ["--until", "qd_run", *self.words]  # tables and figures take longer than a run
        with self.printed.open("ab") as printed:
            self.snakemake = subprocess.Popen(
                [BIN / "snakemake", *words],
                cwd=self.folder,
                env={**os.environ, "PATIENT_SECONDS": str(self.seconds), **env},
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )
        return self

    @property
    def run(self) -> Path:
        (run,) = (self.folder / "results/runs").iterdir()
        return run

    @property
    def log(self) -> Path:
        return self.run / "state/run.log"

    def job(self) -> str:
        """The Slurm job that currently computes."""
        return read_json(self.run / "state/lock")["slurm_job"]

    def computing(self, times: int = 1) -> "Sweep":
        """Waits until the n-th attempt evaluates."""
        runs = self.folder / "results/runs"
        wait_until(lambda: runs.exists() and any(runs.iterdir()), 300, "a run's folder")
        wait_until(lambda: evaluates(self.log, times), 300, "evaluations")
        return self

    def finish(self, expected: str, seconds: float = 300) -> None:
        assert self.snakemake.wait(seconds) == 0, self.printed.read_text()[-5000:]
        assert digest(self.run) == expected
        no_process_is_left(self.folder)

    def attempts(self) -> list[str]:
        return [attempt["how"] for attempt in summary(self.run)["attempts"]]


def no_process_is_left(folder: Path) -> None:
    wait_until(lambda: not crew_of(folder), 300, "all workers have left")


def squeue() -> str:
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout


def test_a_sweep_over_nodes_equals_that_of_one_machine(tmp_path):
    compute_sweep(tmp_path / "local/results", TINY, "::: seed 1 2")
    folder = tmp_path / "slurm"
    folder.mkdir()
    write_yaml(folder / "two.yaml", {**TWO_NODES, "runtime_min": 5})
    write_yaml(folder / "tiny.yaml", TINY)
    config = {"name": "t", "experiment": "tiny.yaml", "sweep": "::: seed 1 2"}
    write_yaml(folder / "sweep.yaml", config)
    words = ("--profile", REPO / "profiles/slurm", *SLURM[4:], "--config", "cluster=two.yaml")
    snakemake("--configfile", "sweep.yaml", *words, cwd=folder)
    assert len(digests(folder)) == 2
    assert digests(folder) == digests(tmp_path / "local")
    (run, _) = (folder / "results/runs").iterdir()
    about = summary(run)
    assert (about["engine"], about["workers"]) == ("dask", 6)
    assert has_workers(run / "run.log", 6)
    job = about["attempts"][0]["slurm_job"]
    assert re.search(rf"Slurm job {job}\b.* /\S+\.log", (run / "run.log").read_text())
    # Another place of computation is not a reason to compute it again.
    again = ("--configfile", "sweep.yaml", "--cores", "2", "-n")
    assert "Nothing to be done" in snakemake(*again, cwd=folder).stdout
    no_process_is_left(tmp_path)


def test_worker_and_node_lost_slurmctld_restarted_main_snakemake_killed(tmp_path, expected):
    sweep = Sweep(tmp_path, seconds=0.15).computing()
    job = sweep.job()
    (state,) = {p.parent for p in tmp_path.rglob("state/workers")}
    workers_of(tmp_path)[0].kill()
    wait_until(lambda: has_lost(sweep.log), what="the worker's loss is noted")
    cluster.kill_slurmctld()
    time.sleep(1)
    cluster.up()
    time.sleep(4)  # until the nodes have registered again
    cluster.kill_node("n2")
    wait_until(lambda: has_lost(sweep.log, 3), what="the node's loss is noted")
    assert (state / "connection/scheduler.json").exists(), "the run continues on the other node"
    # Snakemake is killed and restarted while the job runs. No second process may write.
    os.killpg(sweep.snakemake.pid, signal.SIGKILL)
    sweep.snakemake.wait()
    assert job in squeue()
    sweep.start()
    wait_until(lambda: says(sweep.printed, f"scancel {job}"), 300, "the live run is named")
    wait_until(lambda: "n2" in cluster.nodes_of("down"), 300, "Slurm gives the node up")
    cluster.start_node("n2")
    sweep.finish(expected)
    assert sweep.attempts() == ["finished"]


@pytest.mark.timeout(1200)
def test_the_end_of_the_wall_time_twice_and_no_memory_left_beside_it(
    tmp_path, expected, monkeypatch
):
    hold = tmp_path / "hold"
    monkeypatch.setenv("PATIENT_HOLD", str(hold))
    # On a busy machine most of a minute is the start. The last attempt must have time to compute.
    sweep = Sweep(tmp_path / "long", seconds=0.15, words=("--retries", "20"), runtime_min=2)
    sweep.computing()
    hold.touch()
    monkeypatch.delenv("PATIENT_HOLD")
    memory_grows_only_after_running_out_of_it(tmp_path / "large", expected)
    wait_until(lambda: says(sweep.log, "the end of the wall time", 2), 600, "two jobs have ended")
    hold.unlink()
    sweep.finish(expected, 600)
    ends = [how for how in sweep.attempts() if "wall time" in how]
    assert len(ends) >= 2, sweep.attempts()


def test_the_first_node_lost_then_preempted_then_cancelled(tmp_path, expected):
    sweep = Sweep(tmp_path, seconds=0.1).computing()
    job = sweep.job()
    cluster.kill_node("n1")
    wait_until(lambda: "n1" in cluster.nodes_of("down"), 300, "Slurm gives the node up")
    cluster.start_node("n1")
    sweep.computing(times=2)
    # A job of a partition with a higher tier takes both nodes.
    words = ["sbatch", "-p", "short", "-N2", "--exclusive", "--parsable", "--wrap", "sleep 5"]
    subprocess.run(words, check=True, capture_output=True)
    sweep.computing(times=3)
    subprocess.run(["scancel", sweep.job()], check=True)
    sweep.computing(times=4)
    sweep.finish(expected)
    attempts = sweep.attempts()
    assert any(str(job) in how for how in attempts), attempts


def memory_grows_only_after_running_out_of_it(folder: Path, expected: str) -> None:
    small = {"nodes": 1, "workers_per_node": 1, "mem_mb_main": 500, "mem_mb_per_worker": 100}
    sweep = Sweep(folder, seconds=0.0, **small)
    os.killpg(sweep.snakemake.pid, signal.SIGKILL)
    sweep.snakemake.wait()
    sweep.start(PATIENT_MB="700")
    sweep.finish(expected)
    assert any("OUT_OF_MEMORY" in how for how in sweep.attempts()), sweep.attempts()
    asked = subprocess.run(
        ["sacct", "-n", "-X", "-P", "-o", "ReqMem,WorkDir"], capture_output=True, text=True
    ).stdout
    memory = [line.split("|")[0] for line in asked.splitlines() if line.endswith(str(folder))]
    assert memory[:2] == ["600M", "900M"], memory


def test_the_commands_of_the_pages(tmp_path):
    """Snakemake as a Slurm job, and as a pilot job, in a clone with a tiny sweep."""
    controller, pilot, of_nodes = sorted(lines("sbatch"), key=lambda line: "--wrap" not in line)
    assert "--wrap" in controller
    assert pilot.endswith(" profiles/pilot/job.sh")
    assert of_nodes == pilot.replace("sbatch", "sbatch --nodes 8")  # test_pilot.py
    assert lines("snakemake --executor slurm") == ["snakemake --executor slurm --jobs 100"]
    clone = copy_project(tmp_path / "clone")
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}

    def sweep(seeds: str) -> None:
        data = {"name": "demo", "experiment": {**TINY, "algorithm": "map_elites"}}
        write_yaml(clone / "config/config.yaml", {**data, "sweep": seeds})

    def submit(command: str) -> None:
        done = subprocess.run(
            ["bash", "-c", command], cwd=clone, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        wait_until(lambda: not squeue(), 300, "the jobs have ended")

    sweep("::: seed 1")
    submit(controller)
    report = clone / "results/sweeps/demo/report.html"
    assert report.exists(), next(clone.glob("slurm-*.out")).read_text()
    sweep("::: seed 1 2 3")
    submit(pilot.replace("32", "4").replace("64G", "4G"))
    assert len(list(clone.glob("results/runs/*/summary.json"))) == 3
    again = subprocess.run(
        [BIN / "snakemake", "--executor", "slurm", "--jobs", "100"],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Nothing to be done" in again.stderr


@pytest.mark.parametrize(
    ("needs", "place", "name"),
    [
        ({"extra": "--nonsense=3"}, "slurm_account=testcluster", "--nonsense=3"),
        ({}, "slurm_partition=nowhere", "nowhere"),
    ],
)
def test_what_slurm_refuses_ends_before_it_is_submitted(tmp_path, needs, place, name):
    make_folder(tmp_path)
    write_yaml(tmp_path / "mine.yaml", {**TWO_NODES, **needs})
    config = {"name": "s", "experiment": "experiment.yaml", "cluster": "mine.yaml"}
    write_yaml(tmp_path / "sweep.yaml", config)
    options = ("--configfile", "sweep.yaml", *SLURM, "--default-resources", place)
    done = snakemake(*options, cwd=tmp_path, check=1)
    names_all(done.stderr, "mine.yaml", name)
    assert squeue() == ""
