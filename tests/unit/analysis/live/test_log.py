"""The log without plots and control characters."""

from qdsweep.analysis.live.app import log_tail


def test_a_log_without_plots_and_control_characters(tmp_path):
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
