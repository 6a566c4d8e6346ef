"""The last lines of a start that failed."""

from refusals import names_all

from qdsweep.engines.failures import WorkerDied
from qdsweep.experiment.endings import write_ending
from qdsweep.planning.failed_jobs import summary
from qdsweep.records.paths import RunDir


def test_the_summary_has_how_a_worker_died(tmp_path):
    run = RunDir(tmp_path / "run")
    run.state.path.mkdir(parents=True)
    lost = "process 1234567 on a-node-of-the-cluster.example.org (SIGSEGV)"
    write_ending(run.state, WorkerDied(3, 1_024, lost), "")
    lines = [*summary([("qd_run", run.log)], "")]
    names_all(lines[1], "1024", "process 1234567", "SIGSEGV")
    assert "(SIGSEGV)" not in lines[1], "short notes omit what is in parentheses"


def test_the_summary_has_a_cause_for_a_stage_that_was_killed(tmp_path):
    log = tmp_path / "report.log"
    log.touch()
    names_all([*summary([("report", log)], "")][1], "report.log: ", "killed")
