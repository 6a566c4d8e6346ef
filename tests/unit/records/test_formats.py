"""Files of other releases, damaged files, an estimate, and a run that keeps its identity."""

import contextlib
import csv
import json
import re
from pathlib import Path

import pytest
from in_process import compute_run
from refusals import names_all, refused
from results import forget_sums
from support import TINY

from qdsweep.analysis.search_progress import summary_line
from qdsweep.config.compose import compose
from qdsweep.config.sweep import SweepFile
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop
from qdsweep.features.live.follow import Follow
from qdsweep.planning.outlook import confirm_line, outlook
from qdsweep.planning.rows import confirming
from qdsweep.records.metrics_file import COLUMNS, Metrics, read_lines, read_metrics
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import Plan, read_confirm, read_plan, write_confirm, write_plan
from qdsweep.records.progress import read_standings
from qdsweep.records.results import read_config, read_summary, write_summary
from qdsweep.records.status import Status, read_status, write_status
from qdsweep.runs.snapshot import snapshot
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs


def test_metrics_of_another_release_are_continued(tmp_path):
    """An unknown column stays, and a missing column is added with empty cells."""
    path = tmp_path / "metrics.csv"
    known = [name for name in COLUMNS if name != "restarts"]
    rows = [[str(number)] * len(known) + ["new"] for number in (1, 2, 3)]
    lines = [[*known, "novelty"], *rows]
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    metrics = Metrics(path, 2)
    metrics.add(dict.fromkeys(COLUMNS, 0.5) | {"iteration": 3})
    metrics.close()
    with path.open() as file:
        table = list(csv.DictReader(file))
    assert [row["iteration"] for row in table] == ["1", "2", "3"]
    assert [row["novelty"] for row in table] == ["new", "new", ""]
    assert [row["restarts"] for row in table] == ["", "", "0.5"]
    assert read_metrics(path)["obj_max"].tolist() == [1, 2, 0.5]


def test_a_column_of_a_later_release_may_be_missing_and_none_of_the_first(tmp_path):
    path = tmp_path / "metrics.csv"
    first = [name for name in COLUMNS if not name.startswith("seconds")]
    path.write_text(f"{','.join(first)}\n{','.join('1' * len(first))}\n")
    assert read_metrics(path)["seconds_ask"].isna().all()
    path.write_text("iteration,evaluations\n1,10\n")
    with refused("metrics.csv", "'num_elites'"):
        read_metrics(path)
    path.write_text(f"{','.join(first)}\n1,x{',1' * (len(first) - 2)}\n")
    with refused("metrics.csv", "evaluations"):
        read_metrics(path)


def test_a_run_with_a_foreign_column_is_extended_to_the_same_archive(tmp_path):
    whole, run = (RunDir(tmp_path / name) for name in ("whole", "cut"))
    compute_run(TINY, whole.path, iterations=6)
    compute_run(TINY, run.path, iterations=3)
    header, *rows = read_lines(run.state.metrics)
    lines = [f"{header},novelty", *(f"{row},7" for row in rows)]
    run.state.metrics.write_text("\n".join(lines) + "\n")
    compute_run(TINY, run.path, iterations=6)
    digests = {read_summary(each)["archive_digest"] for each in (whole, run)}
    assert len(digests) == 1
    assert read_metrics(run.metrics)["novelty"].count() == 3


@pytest.fixture
def planned(tmp_path):
    """A sweep with finished runs, a half-done run and runs that have not started."""
    results = Results(tmp_path / "results")
    text = "::: sigma0 0.1 0.2 0.3 ::: seed 1 2"
    keys = {"name": "s", "experiment": TINY, "sweep": text, "confirm": {"top": 1, "seeds": [8, 9]}}
    settings = SweepFile.model_validate_json(json.dumps(keys))
    sweep = table_of_runs({**TINY, "algorithm": "cma_me"}, text)
    data = sweep.plan(name="s", experiment="tiny", sweep=text, **settings.reporting)
    write_plan(data, sweep.runs, results)
    like = sweep.rows[0]
    (budget,) = like.experiment.budget.values()
    write_confirm(
        results.sweep("s"),
        [
            {
                "group": "sigma0 0.1",
                "values": {**like.values, "seed": 8},
                "id": "tiny-cma_me-s8-0123456789",
                "like": like.id,
                "iterations": budget,
                "evaluations": None,
            }
        ],
    )
    for number, (run, done) in enumerate(zip(sweep.runs, (1.0, 0.5, 1.0, 0.5), strict=False)):
        state, iterations = results.run(run).state, int(done * budget)
        status = {"id": run, "status": "finished" if done == 1 else "stopped"}
        status |= {"iteration": iterations, "evaluations": 10 * iterations, "workers": 2}
        seconds = {"ask": 100.0 * (1 + number) * done, "evaluate": 900.0 * (1 + number) * done}
        write_status(state, status | {"seconds": seconds, "budget": {"iterations": budget}})
        if done == 1:
            write_summary(state, {"id": run, "iterations": iterations})
    return results, settings, sweep, data


def seconds_left(text: str) -> float:
    value, unit = re.findall(r"([\d.]+) (s|min|h)\b", text)[-1]
    return float(value) * {"s": 1, "min": 60, "h": 3600}[unit]


def test_start_status_and_watch_agree_on_what_is_left(planned):
    results, settings, sweep, data = planned
    follow = Follow(results.path, "s")
    follow.look(10.0)
    folder = results.sweep("s")
    status = summary_line(read_standings(folder, read_plan(folder)))
    standings = read_standings(folder, Plan.of(data))
    confirm = confirming(settings, sweep, results)
    lines = [*outlook("s", sweep, confirm, standings, {}, results)]
    lines.append(confirm_line(settings.confirm, sweep, confirm, standings, results))
    names_all(lines[0], "6 runs", "2 finished")
    names_all(lines[1], "1 run", "0 finished")
    # 0.1: one whole run remains, 1.5 times the cost of half of each; 0.2 likewise; 0.3: the mean.
    left = follow.outlook.left
    assert left > 0
    assert seconds_left(status) == pytest.approx(left, rel=0.03)
    assert sum(map(seconds_left, lines)) == pytest.approx(left, rel=0.03)
    assert "7 runs" in status and follow.outlook.counts["finished"] == 2


def test_keys_of_other_releases_are_passed_over(planned):
    results = planned[0]
    sweep = results.sweep("s")
    data = json.loads(sweep.plan.read_text())
    data |= {"search": "tpe", "reevaluate": {"times": 3, "how": "well"}}
    data["rows"][0]["place"] = 3
    forget_sums(results.path)
    sweep.plan.write_text(json.dumps(data))
    plan = read_plan(sweep)
    assert plan.reevaluate.times == 3 and len(plan.runs(read_confirm(sweep))) == 7


@pytest.mark.parametrize("text", ['{"rows": [{"id"', '{"rows": [{"id": "a"}]}', "[1]"])
@pytest.mark.parametrize("file", ["plan", "confirm"])
def test_a_damaged_plan_or_confirm_names_file_and_remedy(planned, file, text):
    refused_when_read(planned[0].sweep("s"), file, text)


@pytest.mark.parametrize("change", [{"id": 5}, {"iterations": "x"}, {"values": {}}])
@pytest.mark.parametrize("file", ["plan", "confirm"])
def test_a_wrong_value_in_plan_or_confirm_is_refused(planned, file, change):
    sweep = planned[0].sweep("s")
    changes = [change] if file == "plan" else [change, {"like": [1]}, {"group": None}]
    data = json.loads(getattr(sweep, file).read_text())
    for wrong in changes:
        rows = [data["rows"][0] | wrong, *data["rows"][1:]]
        refused_when_read(sweep, file, json.dumps({**data, "rows": rows}))


def refused_when_read(sweep, file, text):
    getattr(sweep, file).write_text(text)
    with refused(f"{file}.json", "snakemake"):
        {"plan": read_plan, "confirm": read_confirm}[file](sweep)


DRIFTING = '''
from pathlib import Path

import numpy as np
from qdsweep.domains.base import Evaluation


class Drifting:
    """Its author edits it while it runs."""

    fields = {}

    solution_dim = 3
    measures = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range = (-100.0, 0.0)

    def evaluate(self, solutions, seeds):
        with Path(__file__).open("a") as file:
            file.write("edited = 1\\n")
        return Evaluation(-np.sum(solutions**2, axis=1), solutions[:, :2].copy())
'''


def test_a_run_whose_source_is_edited_meanwhile_stays_itself(tmp_path):
    plugins = tmp_path / "config/plugins"
    plugins.mkdir(parents=True)
    (plugins / "drifting.py").write_text(DRIFTING)
    run = RunDir(tmp_path / "out")
    run.state.path.mkdir(parents=True)
    domain = {"type": "drifting:Drifting", "name": "drifting"}
    with contextlib.chdir(tmp_path):
        experiment = compose({**TINY, "domain": domain, "iterations": 4})
        before = run_id(experiment)
        compute(Attempt.of(experiment, RunDir(Path("out"))), Stop())
        assert run_id(experiment) != before, "it was edited"
        assert read_status(run.state).id == read_summary(run.state)["id"] == before
        assert snapshot(run.path)
        assert read_summary(run.state.partial)["id"] == before


@pytest.mark.parametrize("old, new", [('"evaluations": 96', '"evaluations": 16'), ("s5-", "s4-")])
def test_a_status_that_has_changed_is_damaged(tmp_path, caplog, old, new):
    out = compute_run(TINY, tmp_path / "out", iterations=6)
    state = RunDir(out).state
    whole = read_status(state)
    assert not whole.is_damaged and len(whole.attempts) == 1
    text = state.status.read_text()
    assert old in text
    state.status.write_text(text.replace(old, new))
    assert read_status(state) == Status(is_damaged=True)
    compute_run(TINY, out)
    assert str(state.status) in caplog.text
    assert read_status(state).evaluations == 192
    about = json.loads(text)
    del about["sha256"]
    state.status.write_text(json.dumps(about))  # as of an earlier release
    assert read_status(state) == whole


def test_a_snapshot_that_has_changed_is_refused(tmp_path):
    out = compute_run(TINY, tmp_path / "out", iterations=6)
    partial = snapshot(out)
    run = RunDir(out)
    for read, path in (
        (read_summary, run.state.partial.summary),
        (lambda files: read_metrics(files.metrics), run.state.partial.metrics),
        (lambda files: read_config(files.config), run.state.partial.config),
    ):
        read(run.state.partial)
        content = path.read_bytes()
        path.write_bytes(content.replace(b"5", b"4", 1))
        with refused(path):
            read(run.state.partial)
        path.write_bytes(content)
    assert partial == run.state.partial.path
