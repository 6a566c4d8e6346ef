"""What a start does with runs whose imported modules or declared files have changed."""

import dataclasses
import shutil
from pathlib import Path

import pytest
import yaml
from in_process import forget_plugins, qdsweep
from refusals import names_all, refused
from two_files import EXPERIMENT, SIMULATOR, TASK, other_simulator, simulator, study

from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.confirmed import winners
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop
from qdsweep.features.live.follow import Follow
from qdsweep.files import read_json
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.start import Start
from qdsweep.records import progress
from qdsweep.records.dependencies import accepted, recorded
from qdsweep.records.index import Index
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import PlannedRun
from qdsweep.records.progress import read_standing
from qdsweep.records.status import Status, write_status
from qdsweep.runs.merge import KNOWN, REFUSED, merge_run

HERE = Path()
RESULTS = Results(Path("results"))
SEEDS = "::: seed 1 2"


@pytest.fixture(autouse=True)
def _own_modules():
    forget_plugins()
    yield
    forget_plugins()


def look(results: Results = RESULTS, file: str = "mine.yaml", **config: str) -> Start:
    typed = [f"{key}={value}" for key, value in config.items()]
    return Start(results, Given(config, typed, files=[file]))


def begin(results: Results = RESULTS, file: str = "mine.yaml", **config: str) -> Start:
    """Does what a start does before its jobs."""
    forget_plugins()
    start = look(results, file, **config)
    start.write_plan()
    return start


def finish(results: Results = RESULTS, file: str = "mine.yaml", **config: str) -> Start:
    """Computes what a start leaves to its jobs."""
    start = begin(results, file, **config)
    for experiment in start.found.unfinished:
        (run,) = (run for run, of in start.runs.items() if of is experiment)
        compute(Attempt.of(experiment, results.run(run)), Stop())
        results.run(run).publish()
    return start


def edit(**changes: object) -> None:
    data = yaml.safe_load(Path("mine.yaml").read_text())
    Path("mine.yaml").write_text(yaml.safe_dump({**data, **changes}))


def longer(iterations: int = 6) -> None:
    data = yaml.safe_load(Path("mine.yaml").read_text())
    edit(experiment={**data["experiment"], "iterations": iterations})


def interrupt(run: RunDir) -> None:
    """Makes a finished run one that was killed."""
    data = read_json(run.state.status)
    del data["sha256"]
    write_status(run.state, {**data, "status": "running", "iteration": 3})
    run.state.summary.unlink()
    run.withdraw()


def states(**config: str) -> list[str]:
    return [row.state for row in look(**config).forecast()]


def first_run() -> RunDir:
    return next(RESULTS.known_runs())


def test_unfinished_runs_of_other_code_rest_until_the_user_decides():
    study(HERE, SEEDS)
    finish()
    interrupt(first_run())
    longer()
    assert states() == ["stopped", "extended"]
    other_simulator(HERE)
    start = begin()
    assert states() == ["outdated"] * 2 and start.left == (0, 2, "run")
    assert start.found.resting == {first_run().name} and not start.forced
    finished = next(run for run in start.runs if run != first_run().name)
    assert start.budget_of(finished) == "iterations=4", "a larger budget does not extend it"
    follow = Follow(RESULTS.path, "mine")
    follow.look(10.0)
    assert follow.outlook.counts == {"outdated": 2} and follow.outlook.left == 0
    assert states(outdated="recompute") == ["outdated"] * 2
    for key, words in (("recompute", "moved to results/outdated/"), ("accept", "taken over")):
        line = f"outdated={key}: 2 runs would be {words}"
        names_all(qdsweep("plan", "mine.yaml", "--config", f"outdated={key}", cwd=HERE), line)
        names_all(" ".join(look(outdated=key).lines()), line.replace("would be ", ""))
    assert look(outdated="recompute").left == (2, 2, "run")
    assert states(outdated="accept") == ["stopped", "extended"]
    finish(outdated="accept")
    assert states() == ["finished"] * 2
    summary = read_json(first_run().summary)
    assert summary["sources"] == recorded(first_run().state)
    assert len(summary["accepted"]) == 1 and summary["accepted"][0]["sources"] != summary["sources"]
    assert not first_run().state.damaged()


def test_the_ways_back_are_commands_and_files_that_exist():
    study(HERE, SEEDS)
    Path("mine.yaml").rename("config/config.yaml")
    finish(file="config/config.yaml")
    other_simulator(HERE)
    Path("data/terrain.txt").write_text("2.0")
    RESULTS.sweep("mine").report.touch()
    text = qdsweep(cwd=HERE)
    names_all(text, "Sweep mine: 2 of 2 runs are outdated")
    assert "finished" not in text
    (kept,) = Path("results/sources").glob("*/simulator.py")
    for words in ([], ["status", "mine"], ["plan"]):
        text = " ".join(qdsweep(*words, cwd=HERE).split())
        names_all(text, f"config/plugins/simulator.py from {kept}")
        names_all(text, "data/terrain.txt from your own copy")
        for key in ("recompute", "accept"):
            names_all(text, f"`qdsweep sweep --config outdated={key}`")
    shutil.copy(kept, "config/plugins/simulator.py")
    text = " ".join(qdsweep(cwd=HERE).split())
    assert "simulator.py" not in text and "terrain.txt from" in text
    Path("config/config.yaml").rename("mine.yaml")
    names_all(" ".join(look().lines()), "`qdsweep sweep mine.yaml --config outdated=accept`")
    text = " ".join(qdsweep("status", "mine", cwd=HERE).split())
    names_all(text, "`--config outdated=recompute` (added to the command")
    Path("Snakefile").touch()
    command = "snakemake --cores all --configfile mine.yaml --config outdated=accept"
    names_all(" ".join(look().lines()), f"`{command}`")


def test_a_run_is_not_resumed_with_other_code():
    study(HERE, SEEDS)
    finish()
    run = first_run()
    before = {path.name: path.read_bytes() for path in run.state.path.iterdir() if path.is_file()}
    words = ["launch", run.name, "--budget", "iterations=6"]
    other_simulator(HERE)
    for _ in range(2):
        text = qdsweep(*words, cwd=HERE, code=2)
        names_all(text, run.path, "simulator.py has changed", "outdated=accept", "--out")
    logs = {"run.log", "lock"}
    for name in before.keys() - logs:
        assert (run.state.path / name).read_bytes() == before[name], name
    qdsweep("launch", run.name, "--budget", "iterations=4", cwd=HERE)
    names_all(run.log.read_text(), "simulator.py has changed since this run was computed")
    names_all(qdsweep("reevaluate", run.path, cwd=HERE, code=2), "simulator.py has changed")
    simulator(HERE)
    qdsweep(*words, cwd=HERE)
    assert read_json(run.summary)["iterations"] == 6


def test_a_run_that_has_computed_nothing_takes_the_code_as_it_is():
    """Such as one that failed in its first iteration, because of an error in the module."""
    study(HERE, "::: seed 1")
    simulator(HERE, SIMULATOR.replace("-np.sum", "-np.some"))
    run = next(iter(begin().runs))
    qdsweep("launch", run, "--budget", "iterations=4", cwd=HERE, code=1)
    broken = recorded(first_run().state)
    for path in first_run().state.reloads():
        path.unlink()
    simulator(HERE)
    assert states() == ["failed"]
    finish()
    assert states() == ["finished"] and recorded(first_run().state) != broken


def test_what_is_set_aside_is_never_replaced():
    study(HERE, "::: seed 1")
    finish()
    digests = [read_json(first_run().summary)["archive_digest"]]
    (films := RESULTS.explore / first_run().name).mkdir(parents=True)
    for _ in range(3):
        changed = digests[-1] == digests[0]
        (other_simulator if changed else simulator)(HERE)
        finish(outdated="recompute")
        digests.append(read_json(first_run().summary)["archive_digest"])
    assert digests[0] == digests[2] != digests[1] == digests[3]
    name = first_run().name
    places = [RESULTS.outdated / (name + end) for end in ("", ".2", ".3")]
    assert [read_json(place / "summary.json")["archive_digest"] for place in places] == digests[:3]
    assert not films.exists() and (places[0] / "explore").is_dir()
    assert states() == ["finished"]


@pytest.mark.parametrize("decision", ["recompute", "accept"])
def test_of_two_starts_at_once_only_one_decides(decision: str):
    study(HERE, "::: seed 1")
    finish()
    other_simulator(HERE)
    late = look(outdated=decision)
    assert late.found.again or late.found.changed
    finish(outdated=decision)
    late.write_plan()
    assert states() == ["finished"]
    assert len([*RESULTS.outdated.glob("*")]) == (decision == "recompute")
    assert len(accepted(first_run().state)) == (decision == "accept")


def test_from_another_folder_the_code_is_unknown_and_no_run_is_outdated(tmp_path, monkeypatch):
    study(HERE, "::: seed 1")
    finish()
    results, run = (
        Results(RESULTS.path.absolute()),
        PlannedRun(first_run().name, "", "iterations", 4),
    )
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    forget_plugins()
    for _ in range(2):
        now = read_standing(results.run(run.id), run)
        assert progress.OtherCode(results).mark(now).state == "finished"
        other_simulator(results.path.parent)


def test_a_run_of_two_sweeps_is_recomputed_or_accepted_for_both():
    study(HERE, SEEDS)
    other = yaml.safe_load(Path("mine.yaml").read_text()) | {
        "name": "other",
        "sweep": "::: seed 2 3",
    }
    Path("other.yaml").write_text(yaml.safe_dump(other))
    finish()
    finish(file="other.yaml")
    other_simulator(HERE)
    finish(outdated="recompute")
    assert [row.state for row in look(file="other.yaml").forecast()] == ["finished", "outdated"]
    begin(file="other.yaml", outdated="accept")
    assert [row.state for row in look(file="other.yaml").forecast()] == ["finished"] * 2


def test_runs_of_earlier_releases_are_taken_as_they_are_and_named_once():
    study(HERE, SEEDS)
    finish()
    for run in RESULTS.known_runs():
        data = read_json(run.state.status)
        write_status(run.state, {k: v for k, v in data.items() if k not in ("sources", "sha256")})
    other_simulator(HERE)
    assert states() == ["finished"] * 2
    names_all(" ".join(look().lines()), "2 runs of an earlier release", "simulator.py")
    assert look().forced == {str(RESULTS.sweep("mine").summary)}, (
        "a start without jobs does nothing"
    )
    begin()
    assert not look().forced
    assert "earlier release" not in " ".join(look().lines())
    assert states() == ["finished"] * 2
    simulator(HERE)
    assert states() == ["outdated"] * 2


def test_a_large_sweep_reads_only_its_index(monkeypatch):
    study(HERE, "::: seed 1 2 3")
    finish()
    monkeypatch.setattr(progress, "LARGE", 1)
    begin()
    other_simulator(HERE)
    read = []
    monkeypatch.setattr(progress, "recorded", lambda state: read.append(state) or recorded(state))
    monkeypatch.setattr("qdsweep.planning.start.read_status", None)
    monkeypatch.setattr(progress, "read_status", None)
    start = look()
    assert len(start.found.outdated) == 3
    assert len(read) == 1, "the record of one run is read for all that have it"


def test_an_index_of_an_earlier_release_stays_valid(monkeypatch):
    study(HERE, SEEDS)
    start = finish()
    monkeypatch.setattr(progress, "LARGE", 1)
    names = [field.name for field in dataclasses.fields(Status)]
    assert names[-1] == "code"
    index = Index[Status](
        path=start.folder.finished,
        form=[1, *names[:-1]],
        dump=lambda status: [*vars(status).values()][:-1],
        load=lambda values, _: values,
    )
    runs = [*start.runs]
    folder = str(RESULTS.runs)
    index.update(
        runs,
        lambda run: progress._key(folder, run),
        lambda new: (progress._finished(RESULTS.run(run)) for run in new),
    )
    monkeypatch.setattr(progress, "read_status", None)
    found = progress.read_finished(start.folder, runs)
    assert [found[run].iterations for run in runs] == [4, 4]
    assert [found[run].code for run in runs] == ["", ""]


def test_any_other_decision_is_refused():
    study(HERE, SEEDS)
    with refused("outdated", "maybe", "recompute", "accept"):
        read_sweep(Given({"outdated": "maybe"}, ["outdated=maybe"], files=["mine.yaml"]))
    names_all(qdsweep("plan", "mine.yaml", "--config", "x", cwd=HERE, code=2), "--config x")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (TASK, ["data/terrain.txt", "hill:Hill"]),
        (TASK.replace('("data/terrain.txt",)', "(NAME,)"), ["depends", "hill.py", "(NAME,)"]),
        (TASK.replace("simulator", "half"), ["half.py"]),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_any_work(text: str, names: list[str]):
    study(HERE, SEEDS)
    Path("config/plugins/half.py").write_text("height = = 1")
    Path("config/plugins/hill.py").write_text(text)
    if text is TASK:
        Path("data/terrain.txt").unlink()
    names_all(qdsweep("plan", "mine.yaml", cwd=HERE, code=2), "domain", *names)
    assert not RESULTS.path.exists()


def test_files_that_only_the_loaded_class_declares_are_refused():
    study(HERE, "::: seed 1")
    text = TASK.replace("    depends", "    dependent") + "Hill.depends = ('data/terrain.txt',)\n"
    Path("config/plugins/hill.py").write_text(text)
    run = next(iter(begin().runs))
    text = qdsweep("launch", run, "--budget", "iterations=4", cwd=HERE, code=2)
    names_all(text, "hill:Hill", "depends", "data/terrain.txt")


def test_groups_with_outdated_runs_never_win_before_others():
    study(HERE, "::: batch_size 10 20 ::: seed 1 2")
    finish()
    folder = RESULTS.sweep("mine").path
    aggregate(folder, RESULTS.runs)
    best, other = winners(read_tables(folder), 2)
    plan = look()
    rows = [row for row in plan._plan.rows if row.group == best]
    other_simulator(HERE)
    begin()
    aggregate(folder, RESULTS.runs)
    assert winners(read_tables(folder), 2) == [best, other], "all are of one code"
    edit(sweep=f"::: batch_size {rows[0].values['batch_size']} ::: seed 1")
    begin(outdated="recompute")
    finish()
    edit(sweep="::: batch_size 10 20 ::: seed 1 2")
    begin()
    aggregate(folder, RESULTS.runs)
    tables = read_tables(folder)
    assert len(tables.plan.outdated) == 3 and tables.plan.outdated_groups == {best, other}
    edit(sweep=f"::: batch_size {rows[0].values['batch_size']} ::: seed 1 2")
    begin(outdated="accept")
    edit(sweep="::: batch_size 10 20 ::: seed 1 2")
    begin()
    aggregate(folder, RESULTS.runs)
    assert read_tables(folder).plan.outdated_groups == {other}
    assert winners(read_tables(folder), 1) == [best]


def test_a_merge_names_outdated_runs_and_refuses_two_codes():
    study(HERE, "::: seed 1 2")
    theirs = Results(Path("theirs/results"))
    finish(theirs)
    finish()
    run = first_run().name
    assert merge_run(theirs.run(run), RESULTS.run(run), lambda *_: None).kind == KNOWN
    other_simulator(HERE)
    longer()
    finish(outdated="recompute")
    outcome = merge_run(theirs.run(run), RESULTS.run(run), lambda *_: None)
    assert outcome.kind == REFUSED
    names_all(outcome.note, "used code", "simulator.py")
    names_all(qdsweep("merge", "theirs", cwd=HERE, code=1), "used code differs", "2 refused")
    for path in RESULTS.runs.iterdir():
        path.rename(path.with_name(f"aside-{path.name}"))
    text = qdsweep("merge", "theirs", cwd=HERE)
    names_all(text, "simulator.py differs from the file that 2 runs used", "outdated here")


def test_sweeps_that_are_compared_keep_outdated_groups_out_of_tests():
    study(HERE, SEEDS)
    finish()
    data = yaml.safe_load(Path("mine.yaml").read_text()) | {"name": "other", "sweep": SEEDS}
    data["experiment"]["batch_size"] = 20
    Path("other.yaml").write_text(yaml.safe_dump(data))
    finish(file="other.yaml")
    other_simulator(HERE)
    from qdsweep.features.compare.merged import merge_sweeps
    from qdsweep.records.plan import Plan

    plan = Plan.of(merge_sweeps(RESULTS, ["mine", "other"]).plan)
    assert plan.outdated_groups == {*plan.groups} == {*plan.untested}


SEARCH = {
    "search": {"halving": {"eta": 2}},
    "experiment": {**EXPERIMENT, "iterations": 36},
    "sweep": "::: sigma 0.05 0.1 0.2 0.4 ::: seed 1",
}


def take_places(level: str, places: int, code: int = 0) -> str:
    words = ["place", "mine", level]
    return "".join(qdsweep(*words, n, "--seed=1", cwd=HERE, code=code) for n in range(places))


def test_a_search_does_not_continue_with_two_codes():
    study(HERE, **SEARCH)
    start = begin()
    first, second = [level.name for level in start.search.levels][:2]
    take_places(first, start.search.levels[0].places)
    qdsweep("decide", "mine", second, 0, cwd=HERE)
    other_simulator(HERE)
    with refused("simulator.py has changed", "outdated=recompute", "outdated=accept"):
        begin()
    names_all(" ".join(qdsweep("plan", "mine.yaml", cwd=HERE).split()), "outdated: simulator.py")
    names_all(take_places(second, 1, code=2), "simulator.py has changed")
    start = begin(outdated="recompute")
    assert len(start.spoiled) == start.search.levels[0].places
    assert len([*RESULTS.outdated.iterdir()]) == start.search.levels[0].places
    simulator(HERE)
    assert not look().found.changed


def test_tables_without_any_result_name_the_outdated_runs():
    study(HERE, "::: seed 1")
    finish()
    interrupt(first_run())
    other_simulator(HERE)
    begin()
    with refused("1 run", "outdated=recompute", "outdated=accept"):
        aggregate(RESULTS.sweep("mine").path, RESULTS.runs)
