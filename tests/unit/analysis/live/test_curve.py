"""Curves as text."""

from qdsweep.analysis.live.follow import plot, sparkline


def test_sparkline_and_plot():
    points = [(10 * i, float(i)) for i in range(1, 101)]
    line = sparkline(points, 8)
    assert line == "▁▂▃▄▅▆▇█"
    assert sparkline([], 8) == ""
    assert sparkline([(5, 3.0)], 4) == "▁▁▁▁"
    drawn = plot(points, 60, 10)
    assert len(drawn.splitlines()) == 10
    assert all(len(line) <= 60 for line in drawn.splitlines())
    assert "100┤" in drawn and drawn.splitlines()[-1].split() == ["10", "340", "670", "1k"]
    assert plot(points[:1], 60, 10) == "" == plot(points, 10, 3)
