"""Ten thousand runs cost little."""

import json
import time
from pathlib import Path

import pytest

from qdsweep.analysis.live.follow import Follow


def synthetic(results: Path, count: int) -> None:
    """Many runs' folders with the files that real runs leave; only their number matters here."""
    rows = []
    status = {"status": "finished", "iteration": 10, "evaluations": 100, "qd_score": 5.0}
    status |= {"seconds": {"ask": 1.0, "evaluate": 8.0}, "workers": 2, "attempts": []}
    for number in range(count):
        run = f"lp_sphere-cma_me-s{number}-0123456789"
        state = results / "runs" / run / "state"
        state.mkdir(parents=True)
        waits = number % 10 == 9
        if not waits:
            (state / "status.json").write_text(json.dumps(status))
            (state / "summary.json").write_text("{}")
            (state / "lock").write_text("")
        rows.append({"values": {"seed": number}, "id": run, "iterations": 10, "evaluations": None})
    plan = {"name": "large", "experiment": "e", "sweep": "", "columns": ["seed"], "rows": rows}
    (results / "sweeps/large").mkdir(parents=True)
    (results / "sweeps/large/plan.json").write_text(json.dumps(plan))


def test_ten_thousand_runs_cost_a_small_budget(tmp_path):
    synthetic(tmp_path, 10_000)
    follow = Follow(tmp_path, "large")
    assert follow.look(0.05)
    assert 0 < follow.unread < 10_000, "not all at once"
    looks = 1
    while follow.unread:
        follow.look(0.05)
        looks += 1
        assert looks < 400
    costs = []
    for _ in range(20):
        start = time.process_time()
        assert not follow.look(0.04)
        assert follow.outlook.used
        costs.append(time.process_time() - start)
    print(f"{looks} looks to read all; a tick {1000 * sum(costs) / len(costs):.1f} ms of CPU")
    assert sorted(costs)[10] < 0.25
    sums = follow.outlook
    assert sums.counts == {"finished": 9_000, "waiting": 1_000}
    assert sums.used == pytest.approx(9_000 * 18.0)
    assert sums.left == pytest.approx(1_000 * 18.0), "those that wait cost what others did"
    assert sums.eta is None, "nobody computes"
    # One that changes is seen, within the turns that it takes to come round.
    state = tmp_path / "runs/lp_sphere-cma_me-s9-0123456789/state"
    (state / "status.json").write_text('{"status": "failed", "iteration": 1}')
    (state / "last_stop.json").write_text('{"message": "broken"}')
    for _ in range(400):
        if follow.look(0.04):
            break
    assert follow.runs["lp_sphere-cma_me-s9-0123456789"].standing.note == "broken"
