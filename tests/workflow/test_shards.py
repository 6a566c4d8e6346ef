"""Shards of one sweep, each computed on another machine."""

from in_process import qdsweep
from refusals import names_all
from results import digests
from starting import jobs, planned, start
from support import TINY, write_yaml

SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"


def test_a_shard_computes_its_runs_without_tables(tmp_path):
    write_yaml(tmp_path / "mine.yaml", {"name": "tiny", "experiment": TINY, "sweep": SWEEP})
    words = ("--config", "shard=2/2")
    text = start(tmp_path, *words, "--dry-run")
    lines = [line for line in text.splitlines() if line.startswith("qdsweep: ")]
    names_all(lines[0], "shard 2/2", "2 of 4 runs")
    assert jobs(text) == {"all": 1, "qd_run": 2}
    start(tmp_path, *words)
    assert len(digests(tmp_path)) == 2
    assert not (tmp_path / "results/sweeps/tiny/runs.tsv").exists()
    assert planned(tmp_path, *words) == {}
    assert len(list((tmp_path / "results/runs").iterdir())) == 2  # nothing of other shards
    names_all(qdsweep("status", "tiny", cwd=tmp_path), "4 runs", "2 finished", "2 waiting")
    assert planned(tmp_path, "--config", "shard=1/2") == {"all": 1, "qd_run": 2}
    rest = planned(tmp_path)
    assert rest["qd_run"] == 2
    assert rest["aggregate"] == rest["report_page"] == 1
