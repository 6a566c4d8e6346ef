"""The plan of each row, with changed budgets, code and layout, and old hashes."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from composing import COLLIDING, ONE_ID, SIGMAS, before_its_renaming
from in_process import compute_sweep, qdsweep
from refusals import names_all, refused
from support import write_yaml

from qdsweep import load
from qdsweep.analysis.search_progress import STATES
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.config.compose import compose
from qdsweep.config.source import file_hash
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop
from qdsweep.features.live.follow import Follow
from qdsweep.files import read_json
from qdsweep.planning.internals import forget_jobs
from qdsweep.planning.outlook import forecast
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data
from qdsweep.planning.start import Start
from qdsweep.records import progress
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import Plan, write_confirm, write_plan
from qdsweep.records.progress import LARGE
from qdsweep.records.sources import code_of_run, find_run, finder, identities, require_own
from qdsweep.records.status import write_status
from qdsweep.runs.merge import REFUSED, merge_run
from qdsweep.sweep.ids import identify
from qdsweep.sweep.runs import Sweep, table_of_runs

MODULE = "plan_of_a_test"  # no other test may have imported it
SOURCE = """
import numpy as np
from qdsweep.domains.base import Evaluation

class Bowl:
    solution_dim = 3
    measures = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        return Evaluation(-np.sum(solutions**2, axis=1), solutions[:, :2].copy())
"""
ONE_EMITTER = """
from ribs.archives import GridArchive
from ribs.emitters import GaussianEmitter
from ribs.schedulers import Scheduler

def make(solution_dim, ranges, batch_size, seed):
    archive = GridArchive(solution_dim=solution_dim, dims=[8, 8], ranges=ranges, seed=seed)
    start = dict(x0=[0.0] * solution_dim, sigma=0.1)
    emitter = GaussianEmitter(archive, batch_size=batch_size, seed=seed, **start)
    return Scheduler(archive, [emitter])
"""
EXPERIMENT = {
    "domain": {"type": f"{MODULE}:Bowl", "name": "bowl"},
    "algorithm": "map_elites",
    "archive": {"dims": [8, 8]},
    "num_emitters": 2,
    "batch_size": 10,
    "initial_solutions": 30,
    "iterations": 3,
}
RESULTS = Results(Path("results"))


@pytest.fixture(autouse=True)
def _own_modules(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop(MODULE, None)


def write_source(text: str = SOURCE) -> None:
    path = Path(f"config/plugins/{MODULE}.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def start(find=None, **changes) -> Sweep:
    """Does the steps of a start of Snakemake, up to the runs."""
    experiment = {key: it for key, it in {**EXPERIMENT, **changes}.items() if it is not None}
    data = {"name": "s", "experiment": experiment, "sweep": "::: seed 1 2"}
    Path("s.yaml").write_text(yaml.safe_dump(data))
    settings = read_sweep(Given({}, files=[Path("s.yaml")]))
    made = table_of_runs(settings.experiment, settings.sweep, find=find or finder(RESULTS))
    write_plan(plan_data(settings, made), made.runs, RESULTS)
    return made


def finish(sweep: Sweep, *, identity=None) -> None:
    for run, experiment in sweep.runs.items():
        attempt = Attempt.of(experiment, RESULTS.run(run))
        if identity:
            attempt = replace(attempt, experiment=experiment, identity=identity(experiment))
        compute(attempt, Stop())
        RESULTS.run(run).publish()


def plan() -> str:
    text = qdsweep("plan", "s.yaml", cwd=Path.cwd())
    assert max(map(len, text.splitlines())) <= 120
    return text


def rows() -> list[str]:
    return plan().splitlines()[1:3]


def without_times(text: str) -> str:
    return re.sub(r"(about|  ) *[\d.]+ s ", r"\1 N ", text)


def old_identity(experiment):
    """The hash of the whole file, as before 0.2."""
    return identify(
        experiment, lambda _: file_hash(Path(f"config/plugins/{MODULE}.py").read_bytes())
    )


def test_plan_says_what_will_be_done_and_why(snapshot):
    write_source()
    start()
    texts = [plan()]
    start(initial_solutions=None, first_batch=33)
    texts.append(plan())
    start()

    finish(start())
    texts.append(plan())

    start(iterations=5)
    texts.append(longer := without_times(plan()))

    write_source(SOURCE.replace("**2", "**4"))
    kept = next(RESULTS.sources.iterdir())
    texts.append(changed := plan())
    names_all(changed, f"{MODULE}.py", kept)
    write_source((kept / f"{MODULE}.py").read_text())
    assert without_times(plan()) == longer
    assert "\n".join(texts) == snapshot


def compute_straight(run, experiment) -> RunDir:
    """Computes an experiment without a stop, in a folder of its own."""
    straight = RunDir(Path(f"straight-{run}"))
    straight.state.path.mkdir(parents=True)
    compute(Attempt.of(experiment, straight), Stop())
    straight.publish()
    return straight


def test_runs_under_the_hash_of_the_file_are_found_extended_and_keep_their_ids():
    write_source()
    sweep = start(find=old_identity)
    finish(sweep, identity=old_identity)
    for before in (SOURCE, SOURCE + "# a comment\n", SOURCE.replace("\n\n", "\n\n\n")):
        write_source(before)
        assert start().runs.keys() == sweep.runs.keys()
        assert all("3/3" in row for row in rows())
    longer = start(iterations=6)
    assert longer.runs.keys() == sweep.runs.keys()
    finish(longer)  # from its reload file, otherwise it would be refused
    for run, experiment in longer.runs.items():
        straight = compute_straight(run, experiment)
        about = load(RESULTS.run(run).path).summary
        assert about["id"] == run and about["iterations"] == 6
        assert about["archive_digest"] == load(straight.path).summary["archive_digest"]
        assert load(straight.path).summary["id"] != run
    # The command of the rule also accepts it.
    run = next(iter(longer.runs))
    done = load(RESULTS.run(run).path).summary
    qdsweep("launch", run, "--budget", "iterations=6", cwd=Path.cwd())
    assert load(RESULTS.run(run).path).summary == done, "it was already finished"
    write_source(SOURCE.replace("**2", "**4"))
    assert start().runs.keys().isdisjoint(sweep.runs)
    text = qdsweep("launch", run, "--budget", "iterations=6", cwd=Path.cwd(), code=2)
    names_all(text, "module:Class")


def test_runs_of_a_renamed_preset_are_found_and_extended():
    """Also where the hash is that of the user's file, as before 0.2."""
    write_source()
    plain = {"initial_solutions": None}
    before = plain | {"algorithm": before_its_renaming("cma_me_one_stage")}
    sweep = start(find=old_identity, **before)
    finish(sweep, identity=old_identity)
    longer = start(**plain, algorithm="cma_me_one_stage", iterations=6)
    assert longer.runs.keys() == sweep.runs.keys()
    finish(longer)  # from its reload file
    for run, experiment in longer.runs.items():
        there, straight = load(RESULTS.run(run).path), compute_straight(run, experiment)
        assert there.summary["id"] == run and there.summary["attempts"][-1]["from"] == 3
        assert there.summary["archive_digest"] == load(straight.path).summary["archive_digest"]
        assert there.config["algorithm"]["name"] == "cma_me_one_stage"
    assert all("6/6" in row for row in rows())
    assert start(**plain, algorithm="cma_me_imp").runs.keys().isdisjoint(sweep.runs)
    known = "cma_me_imp", "2 runs", next(iter(sweep.runs)), "cma_me_one_stage"
    names_all(plan(), *known)
    data = yaml.safe_load(Path("s.yaml").read_text())
    for further in (
        {"sweep": "::: algorithm cma_me_imp cma_me :::+ sigma0 '' 0.2 ::: seed 1 2"},
        {"sweep": ":::~ timeout uniform 100 200 ::: seed 1 2", "search": {"samples": 1}},
    ):
        Path("s.yaml").write_text(yaml.safe_dump(data | further))
        names_all(plan(), *known)


TYPED = SOURCE.replace("import numpy", "import typing\nimport numpy").replace(
    "(self, solutions, seeds):", "(self, solutions: typing.Any, seeds) -> Evaluation:"
)


def test_a_change_of_type_annotations_keeps_runs_their_ids_and_their_code():
    write_source()
    sweep = start()
    finish(sweep)
    write_source(TYPED)
    assert identify(compose(EXPERIMENT)).id not in sweep.runs, "the id follows the annotations"
    longer = start(iterations=6)
    assert longer.runs.keys() == sweep.runs.keys()
    finish(longer)  # from its reload file, otherwise it would be refused
    for run, experiment in longer.runs.items():
        straight = compute_straight(run, experiment)
        folders = (RESULTS.run(run).path, straight.path)
        assert len({load(folder).summary["archive_digest"] for folder in folders}) == 1
        (code,) = code_of_run(run, experiment, RESULTS).values()
        assert code.decode() == SOURCE
    qdsweep("launch", run, "--budget", "iterations=6", cwd=Path.cwd())
    assert "replaced" not in qdsweep("status", "s", cwd=Path.cwd())
    write_source(TYPED.replace("**2", "**4"))
    assert start().runs.keys().isdisjoint(sweep.runs)


def test_status_and_plan_agree_on_runs_that_other_code_computed():
    write_source()
    finish(start())
    status = RESULTS.run(next(iter(start().runs))).state
    data = read_json(status.status)
    del data["sha256"]
    write_status(status, {**data, "status": "running", "iteration": 2})
    status.summary.unlink()
    changed = SOURCE.replace("**2", "**4")
    for source, states in ((SOURCE, {"stopped", "finished"}), (changed, {"replaced"})):
        write_source(source)
        shown = [qdsweep(*words, cwd=Path.cwd()) for words in (["status", "s"], ["plan", "s.yaml"])]
        for text in shown:
            lines = [line for line in text.splitlines() if "bowl, seed" in line]
            assert {state for line in lines for state in STATES if f" {state} " in line} == states
            assert all((f"{MODULE}.py" in line) == (source == changed) for line in lines)
    names_all(shown[0], "2 runs: 2 replaced")
    names_all(qdsweep(cwd=Path.cwd()), "2 replaced", f"{MODULE}.py", "qdsweep status s")
    follow = Follow(RESULTS.path, "s")
    follow.look(10.0)
    assert follow.outlook.counts == {"replaced": 2}
    Path(f"config/plugins/{MODULE}.py").unlink()
    names_all(qdsweep("status", "s", cwd=Path.cwd()), "1 finished")


def test_a_raised_budget_extends_a_run():
    write_source()
    finish(start())
    start(iterations=5)
    for words in (["status", "s"], ["plan", "s.yaml"]):
        names_all(qdsweep(*words, cwd=Path.cwd()), "extended", "3/5")


def test_a_start_without_a_change_makes_its_sweep_the_last_one():
    write_source()
    start()
    file = RESULTS.sweep("s").plan
    os.utime(file, (1, 1))
    start()
    assert file.stat().st_mtime > 1


def test_plan_counts_the_runs_that_confirm_a_sweep_before_its_winners_are_known():
    write_source()
    keys = {"name": "s", "experiment": EXPERIMENT, "confirm": {"top": 2, "seeds": [101, 110]}}
    for sweep, runs in (
        ("::: batch_size 10 20 30 ::: seed 1 2", (20, 3200)),
        ("::: domain arm lp_sphere ::: batch_size 10 20 ::: seed 1", (40, 4800)),
    ):
        Path("s.yaml").write_text(yaml.safe_dump({**keys, "sweep": sweep}))
        names_all(" ".join(plan().split()), f"at most: {runs[0]} runs", f"{runs[1]:,} evaluations")
    search = {"sweep": "::: batch_size 10 20 30 ::: seed 1", "search": {"halving": {}}}
    experiment = {**EXPERIMENT, "iterations": None, "evaluations": 900}
    Path("s.yaml").write_text(yaml.safe_dump({**keys, **search, "experiment": experiment}))
    names_all(" ".join(plan().split()), "at most: 10 runs", "9,000 evaluations")


def test_winners_count_only_while_the_sweep_is_finished():
    """A larger budget or more rows may give others."""
    write_source()
    sweep = start()
    row = {"values": {"seed": 101}, "group": "bowl", "iterations": 3, "evaluations": None}
    row |= {"id": "bowl-map_elites-s101-0123456789", "like": next(iter(sweep.runs))}
    write_confirm(RESULTS.sweep("s"), [row])
    text = yaml.safe_load(Path("s.yaml").read_text())
    Path("s.yaml").write_text(yaml.safe_dump({**text, "confirm": {"top": 1, "seeds": [101, 110]}}))
    names_all(plan(), "at most: 10 runs")
    finish(sweep)
    names_all(plan(), "to confirm it: 1 run,")


def test_runs_of_before_whose_file_has_changed_are_named(snapshot):
    """Earlier releases did not keep the file, so a comment also changes the hash."""
    write_source()
    finish(start(find=old_identity), identity=old_identity)
    shutil.rmtree(RESULTS.sources)
    write_source(SOURCE + "# a comment\n")
    assert plan() == snapshot
    write_source()
    assert all("3/3" in row for row in rows())
    text = yaml.safe_load(Path("s.yaml").read_text())
    text["experiment"]["archive"] = {"dims": [9, 9]}
    Path("s.yaml").write_text(yaml.safe_dump(text))
    assert f"{MODULE}.py" not in plan(), "the experiment has changed, not the code"


def test_sources_are_kept_once_with_what_they_import():
    write_source("import helper_of_a_test\n" + SOURCE)
    package = Path("config/plugins/helper_of_a_test")
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\nfrom .deep import thing\n")
    for name in ("inner", "deep", "unused"):
        (package / f"{name}.py").write_text(f"thing = {name!r}\n")
    start()
    start()
    (kept,) = RESULTS.sources.iterdir()
    files = sorted(str(path.relative_to(kept)) for path in kept.rglob("*.py"))
    inside = [f"helper_of_a_test/{name}.py" for name in ("__init__", "deep", "inner")]
    assert files == sorted([f"{MODULE}.py", *inside])
    (package / "inner.py").write_text("thing = 2\n")
    start()
    assert len(list(RESULTS.sources.iterdir())) == 2
    # As documented, the id does not depend on imports.
    experiment = compose(EXPERIMENT)
    assert find_run(experiment, RESULTS) == next(identities(experiment, RESULTS))


def test_every_row_takes_a_line():
    write_source()
    seeds = " ".join(map(str, range(400)))
    text = json.dumps({"name": "s", "experiment": EXPERIMENT, "sweep": f"::: seed {seeds}"})
    Path("s.yaml").write_text(text)
    lines = qdsweep("plan", "s.yaml", cwd=Path.cwd()).splitlines()
    assert re.match(r" *400  bowl, seed 399 +waiting +0/3 +100 ", lines[400])
    names_all(lines[-1], 400)


def test_a_ready_sweep_is_planned_by_its_name():
    names_all(qdsweep("plan", "published_cma_mae", cwd=Path.cwd()), "map_elites", "waiting")


@pytest.mark.parametrize("twice", ["iterations 3 5", "iterations 5 3"])
def test_rows_of_one_run_point_to_the_first(twice):
    write_source()
    data = {"name": "s", "experiment": EXPERIMENT, "sweep": f"::: {twice}"}
    Path("s.yaml").write_text(yaml.safe_dump(data))
    first, second, *_, total = plan().splitlines()[1:]
    names_all(first, "0/5", 140)
    names_all(second, "row 1")
    names_all(total, "1 run")


def test_imported_runs_are_nothing_to_plan():
    row = {"id": "imported-theirs", "values": {}, "imported": "Theirs"}
    plan = Plan.of({"name": "s", "columns": [], "rows": [row]})
    assert list(forecast(plan, [], {}, {})) == []


def test_evaluations_that_only_the_code_knows_are_unknown():
    """An algorithm that ignores num_emitters has fewer evaluations than the product counts."""
    write_source()
    Path("config/plugins/one_emitter_of_a_test.py").write_text(ONE_EMITTER)
    changes = {"algorithm": "one_emitter_of_a_test:make", "initial_solutions": None}
    sweep = start(**changes)
    first, second, total = plan().splitlines()[1:]
    for text in (first, second, total):
        names_all(text, "unknown")
        assert not re.search(r"\b(60|120)\b", text)
    finish(sweep)
    assert load(RESULTS.run(next(iter(sweep.runs))).path).summary["evaluations"] == 30
    start(**changes, iterations=None, evaluations=50)
    names_all(plan(), " 30/50 ", "40 evaluations")
    with_others = {**EXPERIMENT, **changes, "iterations": 3}
    del with_others["initial_solutions"]
    swept = "::: algorithm one_emitter_of_a_test:make cma_me"
    data = {"name": "s", "experiment": with_others, "sweep": swept}
    Path("s.yaml").write_text(yaml.safe_dump(data))
    names_all(plan(), "at least 60 evaluations")


def test_status_and_plan_call_groups_as_figures_do():
    """Except for changes that only a figure shows."""
    experiment = {**EXPERIMENT, "domain": "arm", "algorithm": "cma_me"}
    del experiment["initial_solutions"]
    data = {
        "name": "s",
        "experiment": experiment,
        "sweep": "::: algorithm cma_me map_elites ::: seed 7",
        "figures": {"labels": {"cma_me": "CMA", "map_elites": "$M$"}},
    }
    Path("s.yaml").write_text(yaml.safe_dump(data))
    settings = read_sweep(Given({}, files=[Path("s.yaml")]))
    made = table_of_runs(settings.experiment, settings.sweep)
    write_plan(plan_data(settings, made), made.runs, RESULTS)
    for words in (["plan", "s.yaml"], ["status", "s"]):
        text = qdsweep(*words, cwd=Path.cwd())
        names_all(text, "CMA, seed 7 ", "map_elites, seed 7 ")
        assert "$" not in text


def without_fingerprint(run: RunDir, *, reload: bool) -> None:
    """Makes a finished run one of an earlier release, whose reload file may be gone."""
    for path in (run.state.status, run.state.summary):
        about = json.loads(path.read_text())
        about = {key: about[key] for key in about if key not in ("fingerprint", "sha256")}
        path.write_text(json.dumps(about))
    run.state.unseal()
    if not reload:
        run.state.reloads()[0].unlink()


@pytest.mark.parametrize("size", [LARGE, 0], ids=["by its files", "by the index"])
@pytest.mark.parametrize("known_by", ["status.json", "the reload file", "nothing"])
def test_a_folder_with_another_experiment_of_its_id_is_refused(
    in_own_folder, monkeypatch, known_by, size
):
    monkeypatch.setattr(progress, "LARGE", size)
    here, (first, second), run = Path.cwd(), SIGMAS, RESULTS.run(ONE_ID)
    for sigma in SIGMAS:
        file = {"name": f"s{sigma}", "experiment": COLLIDING, "sweep": f"::: sigma0 {sigma} 0.5"}
        file["sweep"] += " ::: seed 1"
        write_yaml(here / f"{sigma}.yaml", file)
    write_yaml(here / "e.yaml", COLLIDING)
    compute_sweep(RESULTS.path, COLLIDING, f"::: sigma0 {first} 0.5 ::: seed 1", f"s{first}")
    if known_by != "status.json":
        without_fingerprint(run, reload=known_by == "the reload file")
    again = ("run", "e.yaml", "--set", "seed=1", "--out", run.path, "--set")
    for _ in range(2):  # the second start reads the index
        qdsweep("plan", f"{first}.yaml", cwd=here)
        qdsweep(*again, f"sigma0={first}", cwd=here)
        if known_by == "nothing":
            qdsweep("plan", f"{second}.yaml", cwd=here)
            continue
        for words in (("plan", f"{second}.yaml"), (*again, f"sigma0={second}")):
            names_all(qdsweep(*words, cwd=here, code=2), run.path, *fingerprints())
    Start(RESULTS, Given({}, files=[f"{first}.yaml"])).write_plan()
    qdsweep("plan", f"{first}.yaml", cwd=here)
    names_all(qdsweep("plan", f"{second}.yaml", cwd=here, code=2), *fingerprints())


def test_a_finished_run_with_a_changed_file_is_not_only_copied(in_own_folder):
    write_yaml(Path("a.yaml"), {"name": "a", "experiment": COLLIDING, "sweep": "::: seed 1"})
    compute_sweep(RESULTS.path, COLLIDING, "::: seed 1", "a")
    (run,) = (RESULTS.run(path.name) for path in RESULTS.path.glob("runs/*"))
    run.state.seal()
    names_all(Start(RESULTS, Given({}, files=["a.yaml"])).republished([run.name]), "only copies")
    run.state.metrics.write_text(run.state.metrics.read_text().replace("1", "3", 1))
    text = Start(RESULTS, Given({}, files=["a.yaml"])).republished([run.name])
    names_all(text, run.state.metrics, "from the start")


def fingerprints() -> list[str]:
    experiments = (compose(COLLIDING, {"sigma0": float(s), "seed": 1}) for s in SIGMAS)
    return [identify(experiment).fingerprint for experiment in experiments]


def test_tables_and_merges_never_take_another_experiment_of_one_id(in_own_folder):
    """A run may have been planned, but not started, when the other sweep planned it."""
    first, second = SIGMAS
    theirs = Results(Path("theirs"))
    compute_sweep(RESULTS.path, COLLIDING, f"::: sigma0 {first} ::: seed 1", "first")
    compute_sweep(theirs.path, COLLIDING, f"::: sigma0 {second} ::: seed 1", "second")
    made = table_of_runs(COLLIDING, f"::: sigma0 {second} ::: seed 1")
    write_plan(made.plan(name="second", experiment="e", sweep=""), made.runs, RESULTS)
    with refused(RESULTS.run(ONE_ID).path, *fingerprints()):
        aggregate(RESULTS.sweep("second").path, RESULTS.runs)
    with refused(RESULTS.run(ONE_ID).path, *fingerprints()):
        require_own(find_run(made.runs[ONE_ID], RESULTS), RESULTS)
    outcome = merge_run(theirs.run(ONE_ID), RESULTS.run(ONE_ID), forget_jobs)
    assert outcome.kind == REFUSED
    names_all(outcome.note, *fingerprints())
