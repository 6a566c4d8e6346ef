"""`qdsweep tuned`: what a sweep chose becomes a preset, and its seeds are known to later sweeps."""

import contextlib
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from composing import presets, with_algorithm
from given import changed_plan
from in_process import compute_sweep, qdsweep
from looks import data_of
from refusals import names_all
from results import forget_sums, read_json
from starting import start
from support import TINY, write_yaml

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.stages import STAGES
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.turns import run_stage
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import to_yaml
from qdsweep.config.keys import key_paths, resolve
from qdsweep.errors import BadInput
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop
from qdsweep.features.compare.merged import merge_sweeps
from qdsweep.features.compare.tuned_preset import _settings
from qdsweep.planning.request import Given
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.sweep.ids import identify
from qdsweep.text import seeds_text

OUT = "config/algorithms/tuned.yaml"
EXPERIMENT = {**TINY, "algorithm": "cma_me", "iterations": 9}
GRID = "::: sigma0 0.1 0.5 2 ::: batch_size 4 8 ::: seed 1 2 3"
SEARCH = {"halving": {"rungs": ["1/3", 1], "seeds": [1, 2]}}
LATER = {**EXPERIMENT, "iterations": 3}


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with a search by the real Snakefile, and the preset that it chose."""
    folder = tmp_path_factory.mktemp("study")
    about = {"name": "search", "experiment": EXPERIMENT, "sweep": GRID, "search": SEARCH}
    write_yaml(folder / "mine.yaml", about)
    start(folder, "results/sweeps/search/table.csv")
    (folder / "tuned.txt").write_text(qdsweep("tuned", "search", "--out", OUT, cwd=folder))
    forget_sums(folder)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A folder with a plain sweep over settings of two algorithms."""
    folder = tmp_path_factory.mktemp("plain")
    sweep = "::: algorithm cma_me cma_mae ::: sigma0 0.1 0.5 ::: batch_size 4 8 ::: seed 1 2"
    compute_sweep(folder / "results", LATER, sweep)
    return folder


def read(folder: Path) -> tuple[str, dict]:
    """Returns the comments and the content of the preset."""
    text = (folder / OUT).read_text()
    comments = "".join(line for line in text.splitlines(True) if line.startswith("#"))
    return comments, yaml.safe_load(text)


def later(folder: Path, name: str, sweep: str, **keys) -> Path:
    """Writes the file of a later sweep."""
    about = {"name": name, "experiment": {**LATER, **keys}, "sweep": sweep}
    return write_yaml(folder / f"{name}.yaml", about)


def tabled(folder: Path, file: Path) -> Path:
    """Computes a sweep as a start does, without Snakemake, to its tables; returns its folder."""
    with contextlib.chdir(folder):
        begun = Start(Results(Path("results")), Given({}, files=[file]))
        begun.write_plan()
        for run, experiment in begun.runs.items():
            place = begun.results.run(run)
            compute(Attempt.of(experiment, place), Stop())
            place.publish()
        aggregate(begun.folder.path, begun.results.runs)
    forget_sums(folder)
    return folder / begun.folder.path


@pytest.mark.parametrize("name", presets("algorithms"))
def test_a_preset_of_any_algorithm_gives_the_runs_of_its_settings(name, tmp_path):
    experiment = with_algorithm(name)
    origin = {"sweep": "a", "domains": ["b"], "seeds": [1], "cost": "much"}
    body = {**_settings(experiment), "name": name, "tuned_by": origin}
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(body))
    rest = experiment.model_dump(mode="json") | {"algorithm": str(path)}
    again = compose(rest)
    assert again.algorithm.tuned_by == origin
    assert identify(again) == identify(experiment)


def test_a_search_gives_what_its_last_level_chose(study):
    comments, preset = read(study)
    table = pd.read_csv(study / "results/sweeps/search/search.csv").set_index(["level", "rank"])
    best = table.loc["rung-1", 1]
    assert preset["emitters"][0]["sigma0"] == best["sigma0"]
    assert preset["title"] == "CMA-ME (tuned)" and "name" not in preset
    spent = table["budget"].groupby("level").first() * [6, 2 * 2] - [0, 2 * 3]
    assert preset["tuned_by"] == {
        "sweep": "search",
        "domains": ["lp_sphere"],
        "seeds": [1, 2, 3],
        "cost": f"{spent.sum()} iterations for 6 settings",
    }
    day = read_json(study / "results/runs" / best["runs"].split()[0] / "summary.json")
    day = day["attempts"][-1]["ended"][:10]
    names_all(comments, "search", "QD score per cell", f"batch_size: {best['batch_size']}", day)
    names_all(comments, "ribs", "python", "9 iterations", preset["tuned_by"]["cost"])
    names_all((study / "tuned.txt").read_text(), OUT, f"batch_size: {best['batch_size']}")


def test_the_preset_has_the_runs_of_its_settings(study):
    comments, preset = read(study)
    sigma = preset["emitters"][0]["sigma0"]
    batch = int(re.search(r"batch_size: (\d+)", comments)[1])
    with contextlib.chdir(study):
        tuned = compose({**EXPERIMENT, "algorithm": "tuned", "batch_size": batch})
        inline = compose({**EXPERIMENT, "batch_size": batch}, {"sigma0": sigma})
    assert tuned.algorithm.name == "tuned"
    assert identify(tuned).fingerprint == identify(inline).fingerprint


def test_the_same_sweep_gives_the_same_preset_and_replaces_no_other(study, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(study, folder)
    before = (folder / OUT).read_text()
    assert qdsweep("tuned", "search", cwd=folder) == before
    qdsweep("tuned", "search", "--out", OUT, cwd=folder)
    (folder / OUT).write_text(f"# mine\n{before}")
    for out in (OUT, "tuned.txt", "config/algorithms/cma_me.yaml"):
        names_all(qdsweep("tuned", "search", "--out", out, cwd=folder, code=2), "--out", out)
    assert (folder / OUT).read_text() == f"# mine\n{before}"
    assert not (folder / "config/algorithms/cma_me.yaml").exists()


def test_a_later_sweep_is_told_of_the_seeds_that_chose_its_algorithm(study):
    both = "::: algorithm tuned cma_me ::: seed"
    printed = qdsweep("plan", later(study, "again", f"{both} 2 3 4 5 6"), cwd=study)
    names_all(
        printed,
        "warning",
        "algorithm tuned",
        "sweep search",
        seeds_text([2, 3]),
        seeds_text(range(4, 9)),
    )
    quiet = {
        "fresh": f"{both} 4 5 6",
        "untuned": "::: algorithm cma_me ::: seed 1 2 3",
    }
    for name, sweep in quiet.items():
        assert "warning" not in qdsweep("plan", later(study, name, sweep), cwd=study)
    elsewhere = later(study, "elsewhere", f"{both} 1 2 3", domain="arm")
    assert "warning" not in qdsweep("plan", elsewhere, cwd=study)
    searched = later(study, "searched", "::: algorithm tuned ::: sigma0 0.1 0.2 ::: seed 1")
    searched.write_text(searched.read_text() + "search: {halving: {rungs: [1/3, 1]}}\n")
    names_all(qdsweep("plan", searched, cwd=study), "algorithm tuned", "seed 1")


def test_its_tables_and_page_test_no_group_with_such_a_seed(study):
    sweep = "::: algorithm tuned cma_me cma_mae ::: seed"
    again = tabled(study, later(study, "again", f"{sweep} 2 4 5 6 7"))
    for stage in STAGES:
        if stage.name in ("plot", "report"):
            run_stage(stage, again, study / "results/runs")
    reason = ("sweep search", "seed 2", seeds_text(range(4, 9)))
    names_all(read_sheet(again / "table.json").note, "Not tested: CMA-ME (tuned)", *reason)
    pairs = (again / "tables/comparisons.csv").read_text()
    assert "cma_mae" in pairs and "tuned" not in pairs
    assert "tuned" not in headline(data_of(again))
    names_all((again / "report.html").read_text(), "Not tested", *reason)
    fresh = tabled(study, later(study, "fresh", f"{sweep} 4 5 6 7 8"))
    assert "Not tested" not in read_sheet(fresh / "table.json").note
    assert "tuned" in (fresh / "tables/comparisons.csv").read_text()


def test_compare_leaves_out_the_seeds_and_names_the_cost(study):
    mixed = later(study, "mixed", "::: algorithm tuned ::: seed 3 4 5 6")
    other = later(study, "other", "::: algorithm map_elites ::: seed 3 4 5 6", num_emitters=1)
    tabled(study, mixed)
    tabled(study, other)
    merged = merge_sweeps(Results(study / "results"), ["mixed", "other"])
    seeds = [row["values"]["seed"] for row in merged.plan["rows"] if "tuned" in row["id"]]
    assert seeds == [4, 5, 6]
    _, preset = read(study)
    names_all(" ".join(merged.notes), preset["tuned_by"]["cost"], "search", "0 (other)")


def test_a_choice_that_refines_another_keeps_its_seeds_and_cost(study):
    refined = later(study, "refined", "::: algorithm tuned ::: sigma0 0.3 0.4 ::: seed 8 9")
    tabled(study, refined)
    preset = yaml.safe_load(qdsweep("tuned", "refined", cwd=study))
    assert preset["tuned_by"]["seeds"] == [1, 2, 3, 8, 9]
    assert preset["title"] == "CMA-ME (tuned)"
    before = read(study)[1]["tuned_by"]["cost"]
    names_all(preset["tuned_by"]["cost"], "12 iterations for 2 settings", before, "search")


def test_a_plain_sweep_gives_the_group_with_the_best_mean(plain):
    table = pd.read_csv(plain / "results/sweeps/tiny/table.csv")
    best = table.loc[table["norm_qd_score_mean"].idxmax()]
    text = qdsweep("tuned", "tiny", cwd=plain)
    preset = yaml.safe_load(text)
    assert preset["title"] == {"cma_me": "CMA-ME", "cma_mae": "CMA-MAE"}[best["algorithm"]] + (
        " (tuned)"
    )
    assert preset["emitters"][0]["sigma0"] == best["sigma0"]
    assert preset["tuned_by"]["cost"] == "48 iterations for 8 settings"
    names_all(text, f"#   batch_size: {best['batch_size']}", "8 groups", "2 seeds")
    with changed_plan(plain / "results/sweeps/tiny") as plan:
        plan["rank"] = "obj_max"
    aggregate(plain / "results/sweeps/tiny", plain / "results/runs")
    names_all(qdsweep("tuned", "tiny", cwd=plain), "best objective")


REFUSED = {
    "::: seed 1 2": ("nothing", "sweep a key of the algorithm"),
    "::: archive.dims [5,5] [6,6] ::: seed 1": ("nothing",),
    "::: function sphere rastrigin ::: sigma0 0.001 0.5 ::: seed 1": (
        "function sphere, sigma0 0.5",
        "function rastrigin, sigma0 0.001",
    ),
}


@pytest.mark.parametrize("sweep", REFUSED)
def test_where_nothing_is_chosen_nothing_is_written(sweep, tmp_path):
    compute_sweep(tmp_path / "results", LATER, sweep)
    printed = qdsweep("tuned", "tiny", cwd=tmp_path, code=2)
    names_all(printed, "tiny", *REFUSED[sweep])


def test_tasks_with_the_same_winner_give_its_preset(tmp_path):
    sweep = "::: function sphere rastrigin ::: sigma0 0.1 0.5 2 ::: seed 1"
    compute_sweep(tmp_path / "results", LATER, sweep)
    printed = qdsweep("tuned", "tiny", cwd=tmp_path)
    assert yaml.safe_load(printed)["emitters"][0]["sigma0"] == 2
    names_all(printed, "function sphere, sigma0 2", "function rastrigin, sigma0 2", "6 settings")
    assert "experiment must set" not in printed
    compute_sweep(tmp_path / "results", LATER, sweep.replace("sigma0 0.1 0.5 2", "batch_size 4 8"))
    names_all(qdsweep("tuned", "tiny", cwd=tmp_path), "experiment must set", "#   batch_size: 8")


def test_a_sweep_with_outdated_runs_has_chosen_nothing(plain, tmp_path):
    shutil.copytree(plain, tmp_path / "plain")
    sweep, runs = tmp_path / "plain/results/sweeps/tiny", tmp_path / "plain/results/runs"
    run = min(path.name for path in runs.iterdir())
    with changed_plan(sweep) as plan:
        plan["outdated"] = {run: ["simulator.py"]}
    aggregate(sweep, runs)
    printed = qdsweep("tuned", "tiny", cwd=tmp_path / "plain", code=2)
    names_all(printed, "1 outdated run", run, "outdated=recompute", "outdated=accept")
    assert "not finished" not in printed


def test_unfinished_sweeps_have_chosen_nothing(plain, study, tmp_path):
    folder = tmp_path / "plain"
    shutil.copytree(plain, folder)
    sweep, runs = folder / "results/sweeps/tiny", folder / "results/runs"
    (lost, *_) = sorted(runs.iterdir())
    shutil.rmtree(lost)
    aggregate(sweep, runs, partial=True)
    names_all(qdsweep("tuned", "tiny", cwd=folder, code=2), lost.name, "snakemake")
    with changed_plan(sweep) as plan:
        plan["rows"] = plan["rows"][:-1]
    names_all(qdsweep("tuned", "tiny", cwd=folder, code=2), "summary.csv", "snakemake")
    shutil.copytree(study, tmp_path / "study")
    next((tmp_path / "study/results/sweeps/search/search/rung-1").glob("*-s1.json")).unlink()
    names_all(qdsweep("tuned", "search", cwd=tmp_path / "study", code=2), "search", "not finished")


WRONG = {
    "tuned_by.seeds": {"sweep": "a", "domains": ["b"], "seeds": [1.5], "cost": "c"},
    "tuned_by.sweep": {"domains": ["b"], "seeds": [1], "cost": "c"},
    "tuned_by.more": {"sweep": "a", "domains": ["b"], "seeds": [1], "cost": "c", "more": 1},
    "tuned_by": "a search",
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_origin_is_refused_with_file_and_key(key, tmp_path):
    path = write_yaml(tmp_path / "wrong.yaml", {"type": "ga", "tuned_by": WRONG[key]})
    with pytest.raises(BadInput) as refusal:
        compose({**LATER, "algorithm": str(path)})
    names_all(str(refusal.value), "wrong.yaml", f"algorithm.{key}")


def test_the_keys_of_an_origin_are_no_names_of_a_sweep():
    data = compose(LATER).model_dump(mode="json")
    for name in ("seeds", "cost", "domains", "sweep"):
        with pytest.raises(BadInput):
            resolve(name, list(key_paths(Experiment, data)), "")
