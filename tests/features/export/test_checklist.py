"""checklist.md: every answer comes from a record, and what no record has is left open."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from given import changed_plan
from in_process import compute_sweep
from refusals import names_all
from results import read_json
from searching import grid, halving, write_search
from support import TINY, write_yaml

from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.search_table import write_rows
from qdsweep.config.files import read_preset, read_yaml
from qdsweep.config.search import Search
from qdsweep.features.export.checklist import OPEN, QUESTIONS, ExportRecords, checklist
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import PlannedRun, read_plan, write_confirm
from qdsweep.records.results import read_summary

HOST = "login-nora7.cluster.example.edu"
SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"
# No record has it, or no record can change it.
FIXED = {"How is all this checked?", "What does only the paper say?"}


def records_of(sweep: Path) -> ExportRecords:
    """Returns the records that an export of a sweep has."""
    folder = SweepDir(sweep)
    plan = read_plan(folder)
    planned = {run.id: run for run in plan.runs()}
    planned |= {
        row.run: PlannedRun(row.run, row.group, "evaluations", 0)
        for row in plan.rows
        if row.imported
    }
    files = {run: folder.results.run(run).results for run in planned}
    runs = {run: of for run, of in files.items() if of.summary.exists()}
    return ExportRecords(
        folder, plan, planned, runs, {run: read_summary(of) for run, of in runs.items()}
    )


def answers(records: ExportRecords) -> dict[str, str]:
    """Returns question -> answer, as the file has them."""
    read_preset.cache_clear()  # a test has changed a config.yaml
    rows = [line.split(" | ") for line in checklist(records).splitlines() if line.startswith("| ")]
    return {row[1]: " | ".join(row[2:]).removesuffix(" |") for row in rows[1:]}


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> Path:
    results = tmp_path_factory.mktemp("computed") / "results"
    return compute_sweep(results, {**TINY, "iterations": 3}, SWEEP)


@pytest.fixture
def sweep(computed, tmp_path) -> Path:
    shutil.copytree(computed.parents[1], tmp_path / "results")
    return tmp_path / "results/sweeps/tiny"


def in_summary(sweep: Path, /, **keys: object) -> None:
    """Changes summary.json of the first run."""
    path = sorted(sweep.parents[1].glob("runs/*/summary.json"))[0]
    path.write_text(json.dumps({**read_json(path), **keys}))


def in_attempt(sweep: Path, /, **keys: object) -> None:
    path = sorted(sweep.parents[1].glob("runs/*/summary.json"))[0]
    (attempt,) = read_json(path)["attempts"]
    in_summary(sweep, attempts=[{**attempt, **keys}])


def in_configs(sweep: Path, part: str, /, **keys: object) -> None:
    for path in sweep.parents[1].glob("runs/*/config.yaml"):
        config = read_yaml(path)
        config[part] |= keys
        path.unlink()
        write_yaml(path, config)


def in_plan(sweep: Path, /, **keys: object) -> None:
    with changed_plan(sweep) as plan:
        plan |= keys


def in_rows(sweep: Path, count: int = 4, /, **keys: object) -> None:
    with changed_plan(sweep) as plan:
        plan["rows"] = [{**row, **keys} for row in plan["rows"][:count]]


def hold_out(sweep: Path) -> None:
    row = read_json(sweep / "plan.json")["rows"][0]
    values = {**row["values"], "seed": 101}
    write_confirm(SweepDir(sweep), [{**row, "values": values, "like": row["id"], "group": "a"}])


def import_one(sweep: Path) -> None:
    with changed_plan(sweep) as plan:
        plan["rows"][0]["imported"] = "theirs (imported)"
        run = plan["rows"][0]["id"]
    path = sweep.parents[1] / "runs" / run / "config.yaml"
    config = {"domain": {"name": "theirs"}, "imported": {"source": "a repository"}}
    path.unlink()
    write_yaml(path, config)


def note(sweep: Path) -> None:
    path = sweep / "table.json"
    path.write_text(path.read_text().replace("Mean", "Median"))


ORIGIN = {"sweep": "tuning", "domains": ["lp_sphere"], "seeds": [7, 8], "cost": "90 iterations"}
# Question -> changes of a record, each with a word of the answer that it gives.
CHANGES: dict[str, list[tuple[Callable[[Path], object], str]]] = {
    "Which algorithms?": [(lambda s: in_configs(s, "algorithm", title="Ours"), "Ours")],
    "Which problems, in which version?": [(lambda s: in_configs(s, "domain", name="mine"), "mine")],
    "What was varied?": [(lambda s: in_plan(s, sweep="::: seed 9"), "::: seed 9")],
    "What did the choice of settings cost?": [
        (lambda s: in_plan(s, search=Search(samples=2).plain), "12 iterations for 2 settings"),
        (
            lambda s: in_configs(s, "algorithm", tuned_by=ORIGIN),
            "90 iterations in the sweep tuning",
        ),
        (lambda s: in_plan(s, untested={"map_elites": "a reason"}), "not tested"),
    ],
    "How many runs, with which seeds?": [(lambda s: in_rows(s, 1), "seed 1")],
    "Was the winner computed again with held-out seeds?": [(hold_out, "101")],
    "Does an evaluation depend on chance?": [
        (lambda s: in_summary(s, stochastic=True), "depend on their seed"),
        (lambda s: in_summary(s, stochastic="unknown"), OPEN),
        (lambda s: in_configs(s, "domain", evaluation_seed="fixed"), "fixed"),
        (lambda s: in_plan(s, reevaluate={"times": 7}), "7 more times"),
    ],
    "When did a run end?": [(lambda s: in_rows(s, iterations=77), "77 iterations")],
    "How much was computed?": [(lambda s: in_summary(s, timings={"total": 9e5}), "core-hours")],
    "On which hardware?": [
        (lambda s: in_attempt(s, cpu="Z80"), "Z80"),
        (lambda s: in_summary(s, versions={"GPU": "H200"}), "H200"),
        (lambda s: in_attempt(s, host=HOST), "2 machines"),
        (lambda s: in_summary(s, workers=5), "5"),
    ],
    "With which software?": [(lambda s: in_summary(s, versions={"numpy": "0.1"}), "numpy 0.1")],
    "On which CPUs are the bits equal?": [(lambda s: in_summary(s, cpu_baseline="native"), OPEN)],
    "How were evaluations distributed?": [(lambda s: in_summary(s, engine="dask"), "dask")],
    "What was measured?": [(lambda s: in_plan(s, rank="obj_max"), "obj_max")],
    "Which intervals and tests?": [(note, "Median")],
    "What failed or is missing?": [
        (lambda s: in_summary(s, failures=3), "3 failed evaluations"),
        (lambda s: in_attempt(s, how="killed"), "1 interruption"),
        (
            lambda s: in_summary(s, accepted=[{"until": "2026", "sources": {"a.py": "1"}}]),
            "1 run was computed with other code, which the authors accepted",
        ),
    ],
    "Which results are not ours?": [(import_one, "a repository")],
    "Where is the code?": [(lambda s: in_summary(s, versions={"qdsweep": "9.9"}), "9.9")],
    "Where is the environment?": [
        (lambda s: in_summary(s, image={"path": f"/home/{HOST}", "sha256": "abc"}), "abc")
    ],
    "Where are the data?": [(lambda s: in_summary(s, archive_digest="0"), "SHA-256")],
}


def test_each_question_has_a_record_that_decides_its_answer():
    questions = {question for part in QUESTIONS.values() for question in part}
    assert questions == {*CHANGES, *FIXED, "Under which licence?"}


@pytest.mark.parametrize(
    ("question", "change", "word"),
    [(question, *each) for question, changes in CHANGES.items() for each in changes],
)
def test_a_changed_record_changes_the_answer(sweep, question, change, word):
    before = answers(records_of(sweep))
    change(sweep)
    after = answers(records_of(sweep))
    assert after[question] != before[question]
    names_all(after[question], word)
    assert HOST not in checklist(records_of(sweep))


def test_the_licence_is_that_of_the_package(sweep):
    records = records_of(sweep)
    assert answers(records)["Under which licence?"].startswith(OPEN)
    assert answers(replace(records, licence="MIT"))["Under which licence?"] == "MIT"


def test_the_same_records_give_the_same_bytes(sweep, snapshot):
    first = answers(records_of(sweep))
    assert checklist(records_of(sweep)) == checklist(records_of(sweep))
    of_this_machine = ("On which hardware?", "How much was computed?", "With which software?")
    of_this_machine += ("Where are the data?", "On which CPUs are the bits equal?")
    assert {key: text for key, text in first.items() if key not in of_this_machine} == snapshot


def test_what_no_record_has_is_open(sweep):
    for path in sweep.parents[1].glob("runs/*/summary.json"):
        about = read_json(path)
        path.write_text(json.dumps({key: about[key] for key in ("id", "status", "archive_digest")}))
    table = answers(records_of(sweep))
    for question in (
        "Does an evaluation depend on chance?",
        "How much was computed?",
        "On which hardware?",
        "With which software?",
        "On which CPUs are the bits equal?",
        "Where is the code?",
    ):
        names_all(table[question], OPEN)


def test_unfinished_runs_are_named(sweep):
    (lost, *_) = sorted((sweep.parents[1] / "runs").iterdir())
    shutil.rmtree(lost)
    aggregate(sweep, sweep.parents[1] / "runs", partial=True)
    names_all(answers(records_of(sweep))["What failed or is missing?"], lost.name, "missing")


def test_a_search_has_its_cost_and_its_places(tmp_path):
    sweep = write_search(tmp_path, halving(), grid())
    write_rows(sweep, Results(tmp_path).runs)
    (sweep / "summary.csv").write_text("id,status\n")
    table = answers(replace(records_of(sweep), runs={}, summaries={}))
    names_all(table["What did the choice of settings cost?"], "27 settings", "evaluations")
    names_all(table["What failed or is missing?"], "0 of 42 places")
