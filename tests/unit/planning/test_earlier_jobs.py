"""New Slurm jobs wait for equal jobs of an earlier start."""

import pytest
from refusals import names_all

from qdsweep.host import slurm
from qdsweep.planning.slurm_jobs import EarlierJobs

QUEUE = """\
11|/lab|rule_qd_run_wildcards_pole-cma_me-s1-0
12|/lab|rule_qd_run_wildcards_pole-cma_me-s1-0
13|/lab|rule_qd_run_wildcards_pole-cma_me-s2-0
14|/lab|rule_ours_search_place_wildcards_mine_rung-1_0_3
15|/lab|rule_reevaluate_wildcards_pole-cma_me-s3-0
16|/other|rule_qd_run_wildcards_pole-cma_me-s4-0
17|/lab|(null)
"""


@pytest.mark.parametrize(
    ("wildcards", "option"),
    [
        (("pole-cma_me-s1-0",), "--dependency=afterany:11:12"),
        (("pole-cma_me-s2-0",), "--dependency=afterany:13"),
        (("mine", "rung-1", "0", "3"), "--dependency=afterany:14"),
        (("pole-cma_me-s3-0",), ""),  # its elites, by a job that computes no run
        (("pole-cma_me-s4-0",), ""),  # of another folder
    ],
)
def test_a_job_waits_for_those_of_the_same_run(monkeypatch, capsys, wildcards, option):
    asked = []
    monkeypatch.setattr(slurm, "_ask", lambda *words: asked.append(words) or QUEUE)
    earlier = EarlierJobs("/lab")
    assert earlier.option(wildcards) == option
    assert earlier.option(("pole-cma_me-s2-0",)) == "--dependency=afterany:13"
    assert len(asked) == 1, "Slurm is asked once"
    (line,) = capsys.readouterr().err.splitlines()
    names_all(line, 4, "Slurm")


def test_without_an_answer_nothing_is_waited_for(monkeypatch):
    monkeypatch.setattr(slurm, "_ask", lambda *words: "")
    assert EarlierJobs("/lab").option(("pole-cma_me-s1-0",)) == ""
