"""The pilot job over two nodes: time limits, a lost node, and the runs of the other shard."""

import contextlib
import os
import re
import subprocess
from pathlib import Path
from zlib import crc32

import cluster
import pytest
from in_process import compute_sweep
from patient import EXPERIMENT, PATIENT, add_plugin
from refusals import names_all
from results import digests, read_json, summary
from support import TINY, copy_project, write_yaml
from test_slurm import squeue
from waiting import says, wait_until

SWEEP = f"::: seed {' '.join(map(str, range(1, 13)))}"
CORES = 2


class Pilot:
    """A pilot job of a clone, in the queue.

    Args:
        folder: The clone.
        words: Further words of the command line.
        nodes: The number of nodes.
    """

    def __init__(self, folder: Path, *words: str, nodes: int = 2) -> None:
        self.folder, self.log, self.cores = folder, folder / "log.txt", nodes * CORES
        options = [
            f"-N{nodes}",
            f"--cpus-per-task={CORES}",
            "--mem=4G",
            "--time=60",
            "-o",
            self.log,
        ]
        command = ["sbatch", "--parsable", *options, "profiles/pilot/job.sh", *words]
        hold = {"PATIENT_HOLD": str(folder / "hold"), "PATIENT_SECONDS": "0.005"}
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **hold}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self.job = done.stdout.strip()

    def about(self) -> dict[str, str]:
        """Slurm's fields of the job."""
        words = ["scontrol", "--oneliner", "show", "job", self.job]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", text))

    def update(self, field: str) -> None:
        subprocess.run(["scontrol", "update", f"jobid={self.job}", field], check=True)

    def computing(self) -> list[Path]:
        """The runs that live processes of the current start compute."""
        restarts, runs = self.about()["Restarts"], []
        for lock in self.folder.glob("results/runs/*/state/lock"):
            with contextlib.suppress(ValueError):  # no process has it
                owner = read_json(lock)
                if owner["restarts"] == restarts and Path(f"/proc/{owner['pid']}").exists():
                    runs.append(lock.parents[1])
        return runs

    def computes(self) -> bool:
        """Whether all cores of its nodes do."""
        return len(self.computing()) == self.cores

    def reach_time_limit(self, restarts: int) -> None:
        """Moves the time limit close enough for Slurm's signal, and waits for the next start."""
        hours, minutes, _ = map(int, self.about()["RunTime"].split(":"))
        self.update(f"timelimit={60 * hours + minutes + 2}")
        waiting = {"JobState": "PENDING", "Restarts": str(restarts)}
        wait_until(lambda: waiting.items() <= self.about().items(), 300, "it is queued again")
        self.update("timelimit=60")
        # Slurm waits until the last start's credentials have expired. An earlier start can fail.
        wait_until(lambda: self.about()["JobState"] == "RUNNING", 300, "it runs again")


def attempts(folder: Path, run: str) -> list[str]:
    return [attempt["how"] for attempt in summary(folder / "results/runs" / run)["attempts"]]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A clone with a sweep of the patient domain."""
    folder = copy_project(tmp_path / "clone")
    (folder / "config/plugins").mkdir(exist_ok=True)
    (folder / "config/plugins/sleeper.py").write_text(PATIENT)
    write_yaml(folder / "mine.yaml", {"name": "mine", "experiment": EXPERIMENT, "sweep": SWEEP})
    return folder


@pytest.mark.timeout(1200)
def test_two_time_limits_and_a_lost_node_cost_only_runs_under_way(folder, tmp_path):
    local = tmp_path / "local"
    script = folder / "profiles/pilot/job.sh"
    script.write_text(script.read_text().replace("most_restarts=50", "most_restarts=2"))
    pilot = Pilot(folder, "--configfile", "mine.yaml", "--config", "name=mine", f"sweep={SWEEP}")
    wait_until(lambda: digests(folder), 300, "a run has finished")
    (folder / "hold").touch()
    early = digests(folder).keys()
    wait_until(pilot.computes, 300, "both nodes compute")
    pilot.reach_time_limit(1)
    wait_until(pilot.computes, 300, "both nodes compute")
    pilot.reach_time_limit(2)
    wait_until(pilot.computes, 300, "both nodes compute")
    lost = ({"n1", "n2"} - {pilot.about()["BatchHost"]}).pop()
    cluster.kill_node(lost)
    wait_until(lambda: lost in cluster.nodes_of("down"), 300, "Slurm gives the node up")
    subprocess.run(["scancel", "--batch", "--signal=USR1", pilot.job], check=True)
    wait_until(lambda: says(pilot.log, "2 restarts"), 300, "it refuses a third restart")
    (folder / "hold").unlink()
    wait_until(lambda: not squeue(), 300, "the job has ended")
    printed = pilot.log.read_text()
    assert pilot.about()["JobState"] == "COMPLETED", printed[-5000:]

    add_plugin(local)
    with contextlib.chdir(local):
        compute_sweep(local / "results", EXPERIMENT, SWEEP)
    assert digests(folder) == digests(local)
    assert (folder / "results/sweeps/mine/report.html").exists()
    ends = {run: attempts(folder, run) for run in digests(folder)}
    assert all(ends[run] == ["finished"] for run in early), ends
    stops = [how for hows in ends.values() for how in hows if how != "finished"]
    assert any("SIGTERM" in how for how in stops), "runs are saved at a time limit"
    assert len(stops) <= 5 * CORES, "of two nodes twice, then of one"
    # The node that is left has computed the runs of the lost one, before the stages of the end.
    taken = set(re.findall(r"^0: \[.*\] run (\S+)", printed, re.M))
    assert any(crc32(run.encode()) % 2 for run in taken), printed[-5000:]


def test_a_time_limit_of_one_node_costs_only_runs_under_way(folder):
    (folder / "hold").touch()
    pilot = Pilot(folder, "--configfile", "mine.yaml", nodes=1)
    wait_until(pilot.computes, 300, "it computes")
    pilot.reach_time_limit(1)
    wait_until(pilot.computes, 300, "it computes again")
    (folder / "hold").unlink()
    wait_until(lambda: not squeue(), 300, "the job has ended")
    printed = pilot.log.read_text()
    assert pilot.about()["JobState"] == "COMPLETED", printed[-5000:]
    assert (folder / "results/sweeps/mine/report.html").exists()
    ends = [attempts(folder, run) for run in digests(folder)]
    assert sorted(map(len, ends)) == [1] * 10 + [2] * CORES, ends
    assert sum(how == "SIGTERM" for hows in ends for how in hows) == CORES, ends


@pytest.mark.parametrize(
    "words, names",
    [
        ("-C|partial=true", "shard = 1/2, partial"),
        ("-Cpartial=true", "shard = 1/2, partial"),
        ("-C=partial=true", "shard = 1/2, partial"),
        ("--config=partial=true", "shard = 1/2, partial"),
        ("--config|shard=1/4", "shard=, --nodes=1"),
    ],
)
def test_a_config_that_is_for_no_shard_is_refused_before_it_starts(folder, words, names):
    pilot = Pilot(folder, "--configfile", "mine.yaml", *words.split("|"))
    wait_until(lambda: not squeue(), 300, "the job has ended")
    assert pilot.about()["JobState"] == "FAILED"
    names_all(pilot.log.read_text(), *names.split(", "))
    assert not (folder / "results/runs").exists()


def test_a_search_is_refused_before_it_starts(tmp_path):
    folder = copy_project(tmp_path / "clone")
    search = {"sweep": ":::~ sigma log 0.1 1 ::: seed 1 2", "search": {"samples": 9, "halving": {}}}
    data = {"name": "mine", "experiment": {**TINY, "algorithm": "map_elites"}, **search}
    write_yaml(folder / "mine.yaml", data)
    pilot = Pilot(folder, "--configfile", "mine.yaml")
    wait_until(lambda: not squeue(), 300, "the job has ended")
    assert pilot.about()["JobState"] == "FAILED"
    names_all(pilot.log.read_text(), "shard = 1/2", "search")
    assert not (folder / "results/runs").exists()
