"""`qdsweep audit`: a sample of a table of finished runs is computed again."""

import csv
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from refusals import names_all
from starting import start
from support import BIN, POLE, command, write_yaml
from waiting import wait_until

from qdsweep.sweep.runs import table_of_runs

FILE = "config/sweeps/shipped.yaml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished sweep, and the table of its runs."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / FILE).parent.mkdir(parents=True)
    swept = "::: algorithm map_elites_line ::: seed 1 2"
    write_yaml(folder / FILE, {"name": "shipped", "experiment": POLE, "sweep": swept})
    start(folder, "--until", "qd_run", file=FILE)
    names_all(audit(folder, "--add", "shipped").stdout, "table.csv", "2 runs")
    return folder


def audit(folder, *words, check=0):
    return command("qdsweep", "audit", "table.csv", *words, cwd=folder, check=check)


def table_of(folder) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def changed(folder, line: int, **cells: str) -> str:
    """Changes cells of a line of the table, and returns the id of its run."""
    rows = table_of(folder)
    rows[line] |= cells
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows[line]["id"]


def test_all_runs_have_the_same_bits(copy):
    names_all(audit(copy, "--share", "100%").stdout, "2 of 2 the same bits")


def test_a_changed_digest_has_its_name_and_the_versions_that_differ(copy):
    run = changed(copy, 1, archive_digest="0" * 64, versions="numpy 1.0; ribs 0.12.0")
    printed = audit(copy, "--share", "100%", check=1).stdout
    line = next(line for line in printed.splitlines() if "differs" in line)
    names_all(line, run, "archive_digest", "0" * 64, "numpy", "1.0")
    assert "ribs" not in line
    names_all(printed, "1 of 2 the same bits")


def test_sums_of_an_earlier_version_differ_in_their_last_digits(copy):
    score = float(table_of(copy)[0]["qd_score"])
    changed(copy, 0, qd_score=repr(score * (1 + 1e-11)))
    run = changed(copy, 1, qd_score=repr(score * (1 + 1e-7)))
    printed = audit(copy, "--share", "100%", check=1).stdout
    names_all(printed, "1 of 2 the same bits")
    names_all(next(line for line in printed.splitlines() if "differs" in line), run, "qd_score")


def test_the_draw_has_a_share_a_cost_and_known_runs(copy):
    changed(copy, 0, seconds="600")
    kept = changed(copy, 1, seconds="1")
    names_all(
        audit(copy, "--minutes", "1", "--cores", "1", "--share", "100%").stdout, kept, "1 of 1"
    )
    names_all(audit(copy, "--minutes", "0", check=2).stderr, "--minutes")
    names_all(audit(copy, "--share", "2", check=2).stderr, "--share", "1%")
    run = changed(copy, 1, id="lost")
    names_all(audit(copy, "--share", "100%", check=1).stdout, run, "shipped")
    changed(copy, 1, seconds="x")
    names_all(audit(copy, check=2).stderr, "table.csv", "line 3", "seconds", "'x'")
    (copy / "table.csv").write_text((copy / "table.csv").read_text().splitlines()[0])
    names_all(audit(copy, check=2).stderr, "table.csv", "--add")


def test_a_run_that_needs_a_missing_package_is_left_out(copy):
    absent = POLE | {"domain": POLE["domain"] | {"env": "absent_package:Pole-v0"}}
    (run,) = table_of_runs(absent, "::: algorithm map_elites_line ::: seed 1").runs
    changed(copy, 0, id=run)
    swept = f"::: env {POLE['domain']['env']} absent_package:Pole-v0 ::: algorithm map_elites_line"
    file = {"name": "shipped", "experiment": POLE, "sweep": f"{swept} ::: seed 1 2"}
    write_yaml(copy / FILE, file)
    printed = audit(copy, "--share", "100%").stdout
    names_all(printed, "1 run", "absent_package", "1 of 1 the same bits")
    table = (copy / "table.csv").read_text().splitlines(keepends=True)
    (copy / "table.csv").write_text("".join(table[:2]))
    error = audit(copy, check=2).stderr
    assert "table.csv" in error and "--minutes" not in error


def test_a_table_is_replaced_by_sweep(copy):
    changed(copy, 0, sweep="other")
    names_all(audit(copy, "--add", "shipped").stdout, "2 runs", "1")
    assert [row["sweep"] for row in table_of(copy)] == ["other", "shipped", "shipped"]


def test_a_run_whose_folder_is_gone_keeps_its_row(copy):
    run = changed(copy, 1, qd_score="7")
    changed(copy, 0, qd_score="7")  # its folder is here
    shutil.rmtree(copy / "results/runs" / run)
    names_all(audit(copy, "--add", "shipped").stdout, "2 runs")
    assert [row["qd_score"] == "7" for row in table_of(copy)] == [False, True]
    changed(copy, 1, budget="evaluations=7")
    names_all(audit(copy, "--add", "shipped").stdout, "1 run")


def test_a_table_that_is_no_csv_or_lacks_a_value_is_refused(copy):
    table = copy / "table.csv"
    text = table.read_text()
    for content in (text.encode("utf-16"), text.encode() + b"caf\xe9\n"):
        table.write_bytes(content)
        names_all(audit(copy, check=2).stderr, "table.csv", "UTF-8")
    table.write_text(text + "shipped,lost\n")
    names_all(audit(copy, check=2).stderr, "table.csv", "line 4", "algorithm", None)
    for name, value in (
        *(("budget", "seed=7"), ("budget", "iterations=0"), ("versions", ""), ("sweep", "lost")),
        *(("archive_digest", ""), ("id", ""), ("id", "../../run-s1-0123456789"), ("id", "a\0b")),
        *(("algorithm", "cma_me"), ("seed", "7")),
    ):
        table.write_text(text)
        changed(copy, 0, **{name: value})
        names_all(audit(copy, "--share", "100%", check=2).stderr, "table.csv", name, repr(value))


def test_a_table_with_a_byte_order_mark_and_runs_under_a_former_name(copy):
    """Spreadsheets write the mark."""
    run = changed(copy, 0, sweep="shipped")
    former = run.replace("map_elites_line", "former")
    changed(copy, 0, id=former)
    table = copy / "table.csv"
    table.write_text(table.read_text(), encoding="utf-8-sig")
    names_all(audit(copy, "--share", "100%").stdout, former, "2 of 2 the same bits")


def test_a_sweep_that_is_named_twice_is_added_once(copy):
    names_all(audit(copy, "--add", "shipped", "shipped").stdout, "2 runs")


@pytest.mark.parametrize("kill", [False, True])
def test_an_audit_that_ends_early_leaves_no_run(copy, tmp_path, kill):
    folder = tmp_path / "temporary"
    folder.mkdir()
    words = [BIN / "qdsweep", "audit", "table.csv", "--share", "100%"]
    process = subprocess.Popen(words, cwd=copy, env={**os.environ, "TMPDIR": str(folder)})
    wait_until(lambda: psutil.Process(process.pid).children())
    runs = psutil.Process(process.pid).children()
    for each in [process] if kill else [process, *runs]:  # a terminal interrupts all of them
        each.send_signal(signal.SIGKILL if kill else signal.SIGINT)
    assert process.wait(60) == (-signal.SIGKILL if kill else 130)
    assert not psutil.wait_procs(runs, 60)[1]
    assert not [*folder.glob("*/runs/*/summary.json" if kill else "*")]


def test_columns_values_and_lines_that_are_too_many_are_refused(copy):
    table = copy / "table.csv"
    head, first, second = table.read_text().splitlines()
    table.write_text(f"{head},coverage\n{first},0.5\n")
    names_all(audit(copy, check=2).stderr, "table.csv", "2", "coverage")
    table.write_text(f"{head}\n{first}\n\n\n{second},surplus\n")
    names_all(audit(copy, check=2).stderr, "table.csv", "line 5", "surplus")
    changed_digest = first.replace(first.split(",")[7], "0" * 64)
    table.write_text("\n".join([head, first, changed_digest]))
    run = first.split(",")[1]
    names_all(audit(copy, check=2).stderr, "table.csv", run, "archive_digest", "0" * 64)
    table.write_text(f"{head}\n{first}\n")
    changed(copy, 0, seconds="x" * 100_000)
    error = audit(copy, check=2).stderr
    assert "seconds" in error and len(error) < 1000


def test_a_run_is_computed_at_each_budget_of_the_table(copy):
    table = copy / "table.csv"
    head, first, _ = table.read_text().splitlines()
    table.write_text("\n".join([head, first, first.replace("iterations=4", "iterations=3"), first]))
    names_all(audit(copy, "--share", "100%", check=1).stdout, "1 of 2 the same bits")


def test_a_seed_in_an_id_is_that_of_the_run(copy):
    run = changed(copy, 1)
    wrong = changed(copy, 1, id=run.replace("-s2-", "-s9-"))
    printed = audit(copy, "--share", "100%", check=1).stdout
    names_all(printed, wrong, "shipped", "1 of 2 the same bits")


def test_what_is_no_file_and_a_broken_sweep_have_their_own_remedy(copy):
    table = copy / "table.csv"
    (copy / FILE).write_text("a: [")
    error = audit(copy, check=2).stderr
    assert FILE in error and "Copy" not in error
    table.unlink()
    for create in (table.mkdir, lambda: (table.rmdir(), os.mkfifo(table))):
        create()
        for words in ((), ("--add", "shipped")):
            error = audit(copy, *words, check=2).stderr
            assert "table.csv" in error and "--add" not in error


def test_a_run_that_ends_early_fails_and_does_not_differ(copy):
    words = [BIN / "qdsweep", "audit", "table.csv"]
    process = subprocess.Popen(words, cwd=copy, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: psutil.Process(process.pid).children())
    psutil.Process(process.pid).children()[0].kill()
    printed, _ = process.communicate(timeout=60)
    names_all(printed, "fails", "SIGKILL", "0 of 1 the same bits")
    assert process.returncode == 1 and "differs" not in printed


def test_no_further_run_starts_when_nobody_reads(copy, tmp_path):
    table = copy / "table.csv"
    head, first, _ = table.read_text().splitlines()
    swept = "::: algorithm map_elites_line ::: seed 1 2 3 4 5"
    write_yaml(copy / FILE, {"name": "shipped", "experiment": POLE, "sweep": swept})
    runs = table_of_runs(POLE, swept).runs.items()
    cells = first.split(",")
    rows = [",".join([*cells[:1], run, *cells[2:4], str(at.seed), *cells[5:]]) for run, at in runs]
    table.write_text("\n".join([head, *rows]))
    (folder := tmp_path / "temporary").mkdir()
    words = [BIN / "qdsweep", "audit", "table.csv", "--share", "100%", "--cores", "1"]
    env = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(words, cwd=copy, env=env, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    begun = set()
    while process.poll() is None:
        begun |= set(folder.glob("*/runs/*"))
        time.sleep(0.05)
    assert 1 <= len(begun) <= 2  # the next one starts before the line of the first is printed


def test_many_cores_and_no_temporary_folder(copy):
    names_all(audit(copy, "--cores", "9" * 400).stdout, "1 of 1 the same bits")
    words = ["bash", "-c", f"ulimit -f 0; exec {BIN}/qdsweep audit table.csv"]
    done = subprocess.run(words, cwd=copy, text=True, capture_output=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    names_all(done.stderr, "TMPDIR")


def test_a_table_keeps_the_columns_of_its_user(copy):
    changed(copy, 0, sweep="other")
    table = copy / "table.csv"
    lines = table.read_text().splitlines()
    table.write_text(
        "".join(f"{line},{note}\n" for line, note in zip(lines, ("note", "a", "b"), strict=True))
    )
    audit(copy, "--add", "shipped")
    assert [row["note"] for row in table_of(copy)] == ["a", "", "b"]


def test_an_addition_waits_for_another_one(copy):
    """Each reads the table, and the later one would write it without the rows of the other."""
    before = os.open(copy, os.O_RDONLY)
    fcntl.flock(before, fcntl.LOCK_EX)
    words = [BIN / "qdsweep", "audit", "table.csv", "--add", "shipped"]
    with subprocess.Popen(words, cwd=copy) as process:
        wait_until(lambda: f" {process.pid} " in _waiting() or process.poll() is not None)
        changed(copy, 0, sweep="other")
        os.close(before)
    assert [row["sweep"] for row in table_of(copy)] == ["other", "shipped", "shipped"]


def _waiting() -> str:
    """Returns the locks of this machine that a process waits for."""
    lines = Path("/proc/locks").read_text().splitlines()
    return "".join(line for line in lines if "->" in line)


def test_a_run_of_several_rows_is_added_once_and_a_damaged_one_is_refused(copy):
    plan = copy / "results/sweeps/shipped/plan.json"
    data = json.loads(plan.read_text())
    data["rows"].append(data["rows"][0])
    plan.write_text(json.dumps(data))
    for sums in (copy / "results/sweeps/shipped").rglob("*.sha256"):
        sums.unlink()
    names_all(audit(copy, "--add", "shipped").stdout, "2 runs")
    run = copy / "results/runs" / data["rows"][0]["id"]
    (run / "state/SHA256SUMS").unlink()  # as in earlier releases
    summary = json.loads((run / "summary.json").read_text())
    del summary["archive_digest"]
    (run / "summary.json").write_text(json.dumps(summary))
    before = (copy / "table.csv").read_text()
    names_all(
        audit(copy, "--add", "shipped", check=2).stderr, run.name, "summary.json", "archive_digest"
    )
    for row in data["rows"]:
        row.pop("iterations", None)
    plan.write_text(json.dumps(data))
    names_all(audit(copy, "--add", "shipped", check=2).stderr, "plan.json", run.name)
    assert (copy / "table.csv").read_text() == before
