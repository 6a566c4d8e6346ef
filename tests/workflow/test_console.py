"""A start prints jobs by name, progress and full errors; Snakemake's log has everything."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from counting import EXPERIMENT, add_plugin
from leftovers import words_of
from plugins import BROKEN
from refusals import names_all
from starting import jobs, start
from support import BIN, REPO, TINY, command, snakemake, write_yaml
from waiting import wait_until

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
    assert len(text.splitlines()) <= len(lines) + 8


def test_it_begins_and_ends_with_the_commands_that_show_the_runs(printed):
    text = printed[1]
    first, last = text.index("`qdsweep watch s`"), text.rindex("`qdsweep status s`")
    assert first < text.index("] run ")
    assert last > text.rindex("] report ")
    names_all(text[text.rindex("] report ") :], "results/sweeps/s/report.html")


def test_the_log_file_has_everything(printed):
    (log,) = printed[0].glob(".snakemake/log/*.snakemake.log")
    names_all(log.read_text(), "Job stats", "Missing output files", "metrics.csv")


@pytest.mark.parametrize("flag", ["--verbose", "--printshellcmds", "--dry-run"])
def test_flags_that_ask_for_more_have_all(printed, flag):
    text = write_and_start(printed[0], flag, "--forcerun", "report_page")
    names_all(text, "Job stats", "report_page")


def test_failed_runs_are_tried_once_and_are_the_last_lines(tmp_path):
    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/broken.py").write_text(BROKEN)
    text = write_and_start(tmp_path, "--retries", "2", check=1, domain="broken:Broken")
    assert len(re.findall(r"^\[[\d:]+\] run Broken-", text, re.MULTILINE)) == RUNS
    names_all(text, "state/failure.json")
    assert not any(word in text for word in ("RuleException", "reload.pkl", "restart"))
    heading, *runs, more, remedy, log = text.rsplit("\n\n", 1)[1].splitlines()
    names_all(heading, RUNS)
    assert len(runs) == 5
    for line in runs:
        path = line.strip().partition(":")[0]
        assert path.startswith("results/runs/Broken-") and (tmp_path / path).exists()
        names_all(line, "RuntimeError: the sensor is off", "broken.py, line 9")
        assert len(line) < 300
    names_all(more, RUNS - 5, "qdsweep status")
    names_all(log, ".snakemake.log")
    assert remedy

    again = write_and_start(tmp_path, "--retries", "2", check=1, domain="broken:Broken")
    assert "not tried again" not in again, "the user's next start tries each run once"
    assert len(re.findall(r"^\[[\d:]+\] run Broken-", again, re.MULTILINE)) == RUNS


def test_a_process_that_ends_or_crashes_is_named_and_not_tried_five_times(tmp_path):
    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/broken.py").write_text(ENDING)
    text = {"name": "s", "experiment": {**TINY, "domain": "broken:Broken"}}
    write_yaml(tmp_path / "s.yaml", text | {"sweep": "::: how exit crash"})
    text = start(tmp_path, "--retries", "4", file="s.yaml", check=1)
    runs = re.findall(r"^\[[\d:]+\] run Broken-", text, re.MULTILINE)
    assert len(runs) == 3  # a crash may be by chance, so it is tried again once
    summary = text.rsplit("\n\n", 1)[1]
    names_all(summary, "exit code 3", "SIGSEGV")
    failures = [*tmp_path.glob("results/runs/*/state/failure.json")]
    assert len(failures) == 2
    printed = command("qdsweep", "status", cwd=tmp_path).stdout
    names_all(printed, "exit code 3", "SIGSEGV", "2 failed")

    shutil.rmtree(tmp_path / ".snakemake")
    again = start(tmp_path, "--retries", "4", file="s.yaml", check=1)
    assert len(re.findall(r"^\[[\d:]+\] run Broken-", again, re.MULTILINE)) == 3


def test_a_failed_stage_is_the_last_line_and_a_rule_of_the_users_is_not(tmp_path, printed):
    shutil.copytree(printed[0], tmp_path, dirs_exist_ok=True)
    kept = tmp_path / "results/sweeps/s/.kept"
    shutil.rmtree(kept)
    kept.touch()
    rule = "rule mine:\n    output: 'mine.txt'\n    shell: 'echo no >&2; exit 3'\n"
    rule += "rule theirs:\n    log: 'theirs.log'\n    shell: 'echo nono > {log}; exit 3'\n"
    own = f"{rule}onerror:\n    print('MINE')\n"
    (tmp_path / "Snakefile").write_text(f"include: {str(REPO / 'Snakefile')!r}\n{own}")

    text = write_and_start(tmp_path, "all", "-s", "Snakefile", "-R", "evolution", check=1)
    assert "MINE" in text
    heading, stage, _, _ = text.rsplit("\n\n", 1)[1].splitlines()
    names_all(heading, 1)
    names_all(stage, "results/sweeps/s/logs/evolution.log", ".kept/evolution")

    both = ("all", "mine.txt", "theirs", "-k", "-s", "Snakefile", "-R", "evolution")
    text = write_and_start(tmp_path, *both, check=1)
    heading, *lines, _, _ = text.rsplit("\n\n", 1)[1].splitlines()
    names_all(heading, 3)
    assert lines.pop(0) == stage
    names_all(" ".join(lines), "rule mine", "theirs.log: nono")

    words = ("mine.txt", "--cores", 1, "--configfile", "s.yaml", "-s", "Snakefile")
    done = snakemake(*words, cwd=tmp_path, check=1)
    names_all(done.stderr, "Error in rule mine", "Complete log")
    assert "MINE" in done.stdout
    assert "evolution.log" not in done.stderr

    assert any(tmp_path.glob("results/sweeps/s/plots/evolution/*")), "another start may read them"
    words = ("-n", "all", "--cores", 1, "--configfile", "s.yaml", "-s", "Snakefile")
    assert "evolution" in jobs(snakemake(*words, cwd=tmp_path).stdout), "they count as unfinished"


def test_candidates_that_fail_are_named_on_the_terminal(tmp_path):
    """Each as it fails, and all at the end of the search."""
    add_plugin(tmp_path)
    slopes = "::: domain.arguments.slope 1 2 13"
    text = {"name": "s", "experiment": EXPERIMENT, "sweep": slopes, "search": {"halving": {}}}
    write_yaml(tmp_path / "s.yaml", text)
    printed = start(tmp_path, "results/sweeps/s/search.csv", file="s.yaml")
    each, total = re.findall("^qdsweep: .*fail.*", printed, re.MULTILINE)
    names_all(each, "counting-", "it diverged", "/state/run.log")
    names_all(total, 1, 3, "qdsweep status s")


def test_a_start_that_the_user_stops_ends_with_the_remedy(tmp_path):
    """Ctrl-C while the run imports its libraries, when it has no log."""
    file = write_yaml(tmp_path / "s.yaml", {"name": "s", "experiment": TINY, "sweep": "::: seed 1"})
    words = ["-s", REPO / "Snakefile", "--cores", "1", "--configfile", file]
    process = subprocess.Popen(
        [BIN / "snakemake", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    started = psutil.Process(process.pid)
    wait_until(lambda: any("launch" in words_of(c) for c in started.children(recursive=True)))
    time.sleep(0.3)  # Snakemake waits for its jobs
    os.killpg(process.pid, signal.SIGINT)
    *_, remedy, log = process.communicate()[1].splitlines()
    assert process.returncode == 1
    names_all(remedy, "qdsweep", "same command")
    names_all(log, ".snakemake.log")


ENDING = """
import os, signal


class Broken:
    def __init__(self, how="exit"):
        self.solution_dim, self.objective_range = 2, (0, 1)
        self.measures = {"x": (0, 1), "y": (0, 1)}
        self.fields, self.step, self.how = {}, 0.1, how

    def evaluate(self, solutions, seeds):
        if self.how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGSEGV)
"""
