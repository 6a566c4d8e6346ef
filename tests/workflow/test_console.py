"""A start prints jobs by name, progress and full errors; Snakemake's log has everything."""

import re
from pathlib import Path

import pytest
from refusals import names_all
from starting import start
from support import TINY, write_yaml

RUNS = 6
STAGES = 4  # tables, figures, animations, the page


def write_and_start(folder: Path, *words: str, check: int = 0, **experiment: object) -> str:
    swept = f"::: algorithm map_elites ::: seed {' '.join(map(str, range(RUNS)))}"
    text = {"name": "s", "experiment": {**TINY, **experiment}, "sweep": swept}
    write_yaml(folder / "s.yaml", text)
    return start(folder, *words, file="s.yaml", check=check)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("console")
    return folder, write_and_start(folder)


def test_a_job_is_one_line(printed):
    folder, text = printed
    lines = re.findall(r"^\[\d\d:\d\d:\d\d\] .*", text, re.MULTILINE)
    for run in (path.name for path in folder.glob("results/runs/*")):
        assert sum(run in line for line in lines) == 1
    assert not any("metrics.csv" in line or len(line) > 150 for line in text.splitlines())
    progress = [line for line in lines if f" of {RUNS} runs" in line]
    assert len(lines) == RUNS + STAGES + len(progress)
    assert re.search(rf"{RUNS} of {RUNS} runs .*100%.* \d", progress[-1])
    assert len(text.splitlines()) <= len(lines) + 6


def test_the_log_file_has_everything(printed):
    (log,) = printed[0].glob(".snakemake/log/*.snakemake.log")
    names_all(log.read_text(), "Job stats", "Missing output files", "metrics.csv")


@pytest.mark.parametrize("flag", ["--verbose", "--printshellcmds", "--dry-run"])
def test_flags_that_ask_for_more_have_all(printed, flag):
    text = write_and_start(printed[0], flag, "--forcerun", "report_page")
    names_all(text, "Job stats", "report_page")


def test_an_error_is_shown_in_full(tmp_path):
    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/broken.py").write_text(BROKEN)
    text = write_and_start(tmp_path, "--retries", "0", check=1, domain="broken:Broken")
    names_all(text, "Error in rule qd_run", "state/failure.json", "the sensor is off")


BROKEN = """
class Broken:
    def __init__(self):
        self.solution_dim, self.objective_range = 2, (0, 1)
        self.measures = {"x": (0, 1), "y": (0, 1)}
        self.fields, self.step = {}, 0.1

    def evaluate(self, solutions, seeds):
        raise RuntimeError("the sensor is off")
"""
