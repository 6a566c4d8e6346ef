"""`qdsweep watch` on real finished, live, failed and truncated runs."""

import asyncio
import contextlib
import fcntl
import html
import json
import os
import platform
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from plugins import FAULTY
from refusals import names_all
from results import forget_sums
from support import BIN, TINY, command
from waiting import wait_until

from qdsweep.analysis.search_progress import table
from qdsweep.config.compose import compose
from qdsweep.features.live.app import RunTable, WatchApp, log_tail, score_heading
from qdsweep.metrics import METRICS, RANK, RETURNS
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan, write_plan
from qdsweep.records.progress import read_standings
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import Row, Sweep

FAULTY_RUN = {
    "algorithm": "map_elites",
    "archive": {"dims": [8, 8]},
    "num_emitters": 1,
    "batch_size": 16,
    "initial_solutions": 16,
}


def make_sweep(folder: Path) -> dict[str, str]:
    """A sweep of four runs in the state before its first job; name -> run."""
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/faulty.py").write_text(FAULTY)
    faulty = {"type": "faulty:Faulty", "name": "faulty", "arguments": {"how": "raise"}}
    slow = {"type": "faulty:Slow", "name": "slow"}
    with contextlib.chdir(folder):
        runs = {
            "sphere": compose({**TINY, "seed": 1}),
            "faulty": compose({**FAULTY_RUN, "domain": faulty, "iterations": 30}),
            "slow": compose({**FAULTY_RUN, "domain": slow, "iterations": 400}),
            "late": compose({**TINY, "seed": 2}),
        }
        rows = [
            Row({"domain": name, "seed": run.seed}, run_id(run), run) for name, run in runs.items()
        ]
        sweep = Sweep(("domain", "seed"), tuple(rows), {row.id: row.experiment for row in rows})
        plan = sweep.plan(name="tiny", experiment="test", sweep="::: domain ...")
        write_plan(plan, sweep.runs, Results(folder / "results"))
    return {row.values["domain"]: row.id for row in rows}


def launch(folder: Path, run: str, iterations: int) -> subprocess.Popen:
    words = [BIN / "qdsweep", "launch", run, "--budget", f"iterations={iterations}"]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """One run is finished, one failed, one started by a live process, one waiting."""
    folder = tmp_path_factory.mktemp("sweep")
    runs = make_sweep(folder)
    ended = [launch(folder, runs["sphere"], 12), launch(folder, runs["faulty"], 30)]
    assert [process.wait(timeout=300) for process in ended] == [0, 1]
    live = launch(folder, runs["slow"], 400)
    wait_until(lambda: (folder / "results/runs" / runs["slow"] / "state/status.json").exists())
    yield folder, runs, live
    live.terminate()
    live.wait(timeout=300)


@pytest.fixture
def copied(sweep, tmp_path):
    """The same sweep without any computing process."""
    folder, runs, _ = sweep
    shutil.copytree(folder / "results", tmp_path / "results", copy_function=shutil.copyfile)
    forget_sums(tmp_path)
    (tmp_path / "results/runs" / runs["slow"] / "state/lock").write_text("")
    return tmp_path / "results", runs


def screen(app) -> list[str]:
    """The visible lines of the screen."""
    lines: dict[float, list[tuple[float, str]]] = {}
    texts = re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture(app))
    for x, y, text in texts:
        lines.setdefault(float(y), []).append((float(x), html.unescape(text)))
    return [
        "".join(text for _, text in sorted(lines[y])).replace("\xa0", " ") for y in sorted(lines)
    ]


def picture(app) -> str:
    return app.export_screenshot()


async def until(pilot, condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "\n".join(screen(pilot.app))
        await pilot.pause(0.05)


def table_lines(app) -> list[str]:
    table = app.query_one(RunTable)
    return [table.render_line(y).text for y in range(min(table.size.height, len(table.runs)))]


def standing(app, run: str):
    return app.follow.runs[run].standing


def test_the_heading_of_a_score_fits_its_column_and_says_which_return_it_is():
    assert all(0 < len(score_heading(metric)) <= 9 for metric in METRICS if metric.ranks)
    assert [score_heading(metric) for metric in RETURNS] == ["EXPLORING", "GREEDY"]


def test_it_shows_a_live_sweep_and_touches_nothing(sweep, monkeypatch):
    folder, runs, live = sweep
    opened = []

    def audit(event, arguments):
        if event == "open" and str(folder) in str(arguments[0]):
            opened.append((arguments[0], arguments[2]))

    def no_lock(*_):
        raise AssertionError("a lock was asked for")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    sys.addaudithook(audit)

    async def watch():
        app = WatchApp(folder / "results", None, every=0.2)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: not app.follow.unread and standing(app, runs["slow"]).eta)
            lines = table_lines(app)
            states = ["failed", "running", "waiting", "finished"]
            assert [line.split()[0] for line in lines] == states
            assert dict(app.follow.outlook.counts) == dict.fromkeys(states, 1)
            assert "faulty" in lines[0]
            assert "the simulator exploded" in app.follow.runs[runs["faulty"]].standing.note
            assert "100%" in lines[3] and "▁" in lines[3] and "█" in lines[3]
            # The failed run is at the top, and selected.
            names_all("\n".join(screen(app)), "tiny: 4 runs", "the simulator exploded")
            # The run in progress advances.
            before = standing(app, runs["slow"])
            await pilot.press("down")
            assert app.table.selected.folder.name == runs["slow"]
            await until(pilot, lambda: standing(app, runs["slow"]).done > before.done)
            drawn = re.compile(".*┤.*[⠁-⣿]")
            await until(pilot, lambda: any(map(drawn.match, screen(app))))
            assert any("INFO" in line for line in screen(app)), "the log"
            # Only the matching runs.
            for name, count in (("unfinished", 3), ("failed", 1), ("all", 4)):
                await pilot.press("f")
                assert len(app.table.runs) == count
                assert name in screen(app)[-1]
            # A kill without any record.
            live.kill()
            live.wait()
            await until(pilot, lambda: standing(app, runs["slow"]).state == "stopped")
            await pilot.press("q")
        return app.return_code

    assert asyncio.run(watch()) == 0
    assert opened, "it has read the files"
    assert not [path for path, flags in opened if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)]


def test_truncated_files_vanished_runs_and_other_terminals_do_not_end_it(copied):
    results, runs = copied

    async def watch():
        app = WatchApp(results, "tiny", every=0.1)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app.follow.runs and not app.follow.unread)
            sphere = results / "runs" / runs["sphere"] / "state"
            (sphere / "status.json").write_text('{"iteration": "many"}')
            metrics = (sphere / "metrics.csv").read_bytes()
            (sphere / "metrics.csv").write_bytes(metrics[: len(metrics) // 2] + b"\x00\xff,")
            (sphere / "run.log").write_bytes(os.urandom(3_000))
            shutil.rmtree(results / "runs" / runs["faulty"])
            (results / "sweeps/tiny/plan.json").write_text('{"rows": [{"id"')
            (results / "runs" / runs["slow"] / "state/status.json").write_bytes(b"\0" * 700)
            (results / "runs" / runs["slow"] / "state/lock").write_text("[1]")
            (results / "runs" / runs["late"] / "state/status.json").write_text('{"qd_score": "x"}')
            await until(pilot, lambda: "damaged" in standing(app, runs["sphere"]).note)
            await until(pilot, lambda: standing(app, runs["faulty"]).state == "waiting")
            for size in ((20, 5), (200, 60), (1, 1), (80, 24)):
                await pilot.resize_terminal(*size)
                await pilot.press("down", "end", "home", "pagedown", "f")
                await pilot.pause(0.3)
            assert app.is_running
            assert len(app.follow.runs) == 4
            await until(pilot, lambda: "tiny: 4 runs" in "\n".join(screen(app)))

    asyncio.run(watch())


def test_the_status_survives_damaged_files(copied):
    results, runs = copied
    (results / "runs" / runs["slow"] / "state/lock").write_text("[1]")
    for status in (
        '{"iteration": "many"}',
        '{"seconds": [1]}',
        '{"seconds": {"ask": "x"}}',
        '{"qd_score": {}}',
        '{"workers": null}',
        '{"iteration": Infinity}',
        "[1]",
        "torn",
    ):
        for name in ("sphere", "slow"):
            (results / "runs" / runs[name] / "state/status.json").write_text(status)
        sweep = Results(results).sweep("tiny")
        standings = read_standings(sweep, read_plan(sweep))
        rows = zip(standings, table(standings, RANK), strict=True)
        shown = {now.run.id: row for now, row in rows}
        for name, state in (("sphere", "finished"), ("slow", "stopped"), ("faulty", "failed")):
            assert shown[runs[name]][1] == state, status
            assert name == "faulty" or "status.json" in shown[runs[name]][-1]


def test_the_selected_run_stays_selected_and_new_runs_come_in(copied):
    results, runs = copied

    async def watch():
        app = WatchApp(results, "tiny", every=0.1)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.follow.runs and not app.follow.unread)
            await pilot.press("end")
            assert app.table.selected.folder.name == runs["sphere"]
            # Another run fails and moves to the top, and the selected run stays selected.
            state = results / "runs" / runs["slow"] / "state"
            status = json.loads((state / "status.json").read_text())
            del status["sha256"]
            (state / "last_stop.json").write_text('{"message": "no more memory"}')
            (state / "status.json").write_text(json.dumps({**status, "status": "failed"}))
            await until(pilot, lambda: table_lines(app)[1].startswith("failed"))
            assert "no more memory" in table_lines(app)[1]
            assert app.table.selected.folder.name == runs["sphere"]
            # The sweep is restarted with one row less.
            path = results / "sweeps/tiny/plan.json"
            plan = json.loads(path.read_text())
            path.write_text(json.dumps({**plan, "rows": plan["rows"][:2]}))
            await until(pilot, lambda: len(app.table.runs) == 2)

    asyncio.run(watch())


def test_it_waits_for_a_sweep_that_has_not_started(tmp_path):
    async def watch():
        app = WatchApp(tmp_path / "results", None, every=0.1)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "snakemake --cores all" in "\n".join(screen(app)))
            await pilot.press("down", "f", "f", "f")
            make_sweep(tmp_path)
            await until(pilot, lambda: app.follow.outlook.counts == {"waiting": 4})

    asyncio.run(watch())


def test_without_a_terminal_it_prints_the_status_once(copied, snapshot):
    results, runs = copied
    watched = command("qdsweep", "watch", "tiny", "--results", results)
    assert watched.stderr
    assert watched.stdout == command("qdsweep", "status", "tiny", "--results", results).stdout
    summary = json.loads((results / "runs" / runs["sphere"] / "summary.json").read_text())
    assert f" {summary['norm_qd_score']:,.6g} " in watched.stdout, "the score of the page"
    lines = watched.stdout.splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= 120, "except for a long path"
    text = watched.stdout.replace(platform.node(), "HOST").replace("\n  ", " ")
    varying = {
        r"-[0-9a-f]{10}\b": "-HASH",
        r"process \d+": "process N",
        r"[\d.,]+ (s|min|h)\b": "N",
        r"(?m)^(\w+, seed 0 +\w+).*…": r"\1 …",  # cut by the width of the times
        r"\d+/400 [\d,. ]+": "N ",
        r"\d+[,.:-][\d,.:-]+": "N",
        r"(?<=[ (])/[^\s,]+": "PATH",
        " +": " ",
    }
    for pattern, name in varying.items():
        text = re.sub(pattern, name, text)
    assert text == snapshot
    unknown = command("qdsweep", "watch", "other", "--results", results, check=2)
    names_all(unknown.stderr, "other", "tiny")
    assert "--every 0" in command("qdsweep", "watch", "--every", "0", check=2).stderr


def test_re_evaluations_are_counted_and_the_failed_ones_named(copied):
    results, runs = copied
    plan = results / "sweeps/tiny/plan.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "reevaluate": {"times": 3}}))
    folders = {name: results / "runs" / run for name, run in runs.items()}
    (folders["slow"] / "reevaluated-3-1000003.log").write_text("start\n")
    (folders["faulty"] / "reevaluated-3-1000003.log").write_text("start\nqdsweep: elite 3 fails\n")

    def shown() -> str:
        return command("qdsweep", "status", "tiny", "--results", results).stdout

    names_all(shown(), "0 of 4", runs["faulty"], "elite 3 fails")
    (folders["sphere"] / "reevaluated-3-1000003.json").write_text("{}")
    assert "1 of 4" in shown()

    async def watch():
        app = WatchApp(results, "tiny", every=0.1)
        async with app.run_test(size=(120, 24)) as pilot:
            await until(pilot, lambda: app.follow.reevaluated == (1, 4))
            await until(pilot, lambda: "1 of 4" in "\n".join(screen(app)))

    asyncio.run(watch())


def test_in_a_real_terminal(copied):
    results, runs = copied
    terminal, inner = pty.openpty()
    set_size(inner, 24, 80)
    words = [BIN / "qdsweep", "watch", "--results", results, "--every", "0.3"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(words, stdin=inner, stdout=inner, stderr=inner, env=environment)
    os.close(inner)
    os.set_blocking(terminal, False)
    seen = ""

    def has(words: str) -> bool:
        nonlocal seen
        with contextlib.suppress(BlockingIOError, OSError):
            seen += os.read(terminal, 1 << 16).decode(errors="replace")
        return words in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)

    try:
        wait_until(lambda: has("the simulator exploded"))
        set_size(terminal, 40, 132)
        process.send_signal(signal.SIGWINCH)
        os.write(terminal, b"\x1b[B")
        wait_until(lambda: has(runs["slow"]))
        os.write(terminal, b"f")
        wait_until(lambda: has("unfinished"))
        os.write(terminal, b"q")
        wait_until(lambda: has("\0") or process.poll() is not None)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def set_size(file: int, lines: int, columns: int) -> None:
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def test_a_log_is_shown_without_plots_and_control_characters(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "2026-01-01 10:00:00 INFO    one\n"
        "2026-01-01 10:00:01 INFO    the run so far, over evaluations:\n"
        "     QD score\n  1┤  ⣀⠤⠒⠉│\n     150  7200\n\n"
        "2026-01-01 10:00:02 ERROR   \x1b[2Jtwo\nTraceback\n"
    )
    lines = log_tail(path, 3)
    assert lines[0].endswith(" one")
    assert lines[1].endswith(" [2Jtwo") and lines[2] == "Traceback"
    assert log_tail(tmp_path / "none", 3) == []
