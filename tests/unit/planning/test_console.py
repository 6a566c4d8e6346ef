"""A failed job is shown with the lines that its log has of this start."""

import os
import time

from qdsweep.planning.console import lines_since

ATTEMPT = "2026-11-26 15:00:00 INFO    tiny-s1-0a, process {} on node\n"


def test_lines_of_an_earlier_attempt_are_not_shown(tmp_path):
    log, begun = tmp_path / "tiny-s1-0a/run.log", time.time()
    assert lines_since(begun, log) == []
    log.parent.mkdir()
    log.write_text(ATTEMPT.format(1) + "finished: iteration 4000\n")
    os.utime(log, (begun - 1, begun - 1))
    assert lines_since(begun, log) == []
    with log.open("a") as file:
        file.write(ATTEMPT.format(2) + "no memory\n")
    os.utime(log, (begun + 1, begun + 1))
    assert lines_since(begun, log) == [ATTEMPT.format(2).strip(), "no memory"]


def test_the_log_of_a_stage_is_shown_whole(tmp_path):
    log = tmp_path / "plot.log"
    log.write_text("start\nno figure\n")
    assert lines_since(log.stat().st_mtime, log) == ["start", "no figure"]
