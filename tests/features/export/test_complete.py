"""A package plans the runs of its sweep, whatever the sweep consists of."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from composing import CONFIG
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from refusals import names_all, refused
from studies import BOWL_FILES, IN_BOWL, KINDS, SMALL, Kind, alone_in, study_of, write_files

from qdsweep.config.files import read_preset
from qdsweep.errors import BadInput
from qdsweep.features.export.code import packed_code
from qdsweep.features.export.complete import planned_here, require_complete
from qdsweep.planning.composed import _origin, composed_study
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import sweep_of
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan
from qdsweep.records.study_files import read_study

# Plans the study in each folder, as a user who has only these folders.
STRANGER = """
import json, os, sys
from pathlib import Path
from qdsweep.config.files import read_preset
from qdsweep.features.export.complete import planned_here
from qdsweep.records.paths import Results
from qdsweep.records.plan import read_plan
path = list(sys.path)
for folder in sys.argv[1:]:
    os.chdir(folder)
    sys.path[:] = path
    read_preset.cache_clear()
    print(json.dumps(planned_here(Results(Path("results")))))
"""


def study_files(start: Start, results: Results) -> dict[str, bytes]:
    """Returns config and code of a start, as a package has them."""
    runs = {run: results.run(run).state for run in start.runs}
    return read_study(start.folder) | packed_code(runs, results)


def planned_by(start: Start) -> list[str]:
    """Returns the runs that a start plans, those that a search knows included."""
    rows = {row["id"] for row in start.plan["rows"]}
    candidates = start.search.candidates if start.search else ()
    return sorted(rows.union(*(candidate.runs.values() for candidate in candidates)))


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> tuple[Path, dict[str, list[str]]]:
    """The unpacked studies of all kinds, and the runs that each had in its own folder."""
    here, there = tmp_path_factory.mktemp("users"), tmp_path_factory.mktemp("strangers")
    runs = {}
    for number, (name, kind) in enumerate(KINDS.items()):
        with study_of(kind, here / str(number) / "study") as (start, results):
            runs[name] = planned_by(start)
            write_files(there / name, study_files(start, results))
    for folder in here.iterdir():
        folder.rename(folder.with_name(f"gone-{folder.name}"))
    return there, runs


def test_a_stranger_plans_the_same_runs_of_every_kind(packed, tmp_path):
    folder, runs = packed
    words = [sys.executable, "-P", "-c", STRANGER, *(str(folder / name) for name in KINDS)]
    alone = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        words, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True
    )
    for name, line in zip(KINDS, done.stdout.splitlines(), strict=True):
        assert json.loads(line) == {"runs": runs[name], "outside": []}, name
        assert runs[name], name


# Swept parameter -> values as a user may write them.
VALUES = {
    "algorithm": ("mine", "map_elites", "cma_me", "'map_elites_line'"),
    "domain": ("flat", "lp_sphere", '"lp_rastrigin"', "bowl:Bowl"),
    "experiment": ("ours", "lp_sphere", "tasks/far.yaml"),
    "seed": ("1", "0x2", "3", "'4'"),
    "batch_size": ("8", "9", "010"),
    "archive.dims": ("[5, 5]", "'[6, 7]'"),
    "iterations": ("2", "3"),
}
PARTS = {"num_emitters": 1, "batch_size": 8, "iterations": 2, "archive": {"dims": [6, 6]}}
FILES = {
    "config/algorithms/mine.yaml": KINDS["presets of the user"].files[
        "config/algorithms/mine.yaml"
    ],
    "config/domains/flat.yaml": KINDS["presets of the user"].files["config/domains/flat.yaml"],
    **BOWL_FILES,
}
GAPS = st.sampled_from([" ", "\n", "  ", " \\\n ", " # each\n", "\n# ::: not this\n"])
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="$_"), min_size=1)


@st.composite
def experiments(draw) -> dict:
    """The keys of an experiment."""
    domains = ["lp_sphere", "flat", "config/domains/flat.yaml", {"preset": "flat"}]
    part = draw(st.sampled_from([*domains, IN_BOWL["domain"], SMALL["domain"]]))
    algorithm = draw(st.sampled_from(["mine", "map_elites", {"preset": "mine", "title": "é"}]))
    more = draw(st.sampled_from([{}, {"sigma": 1e-3}, {"seed": 7}, {"first_batch": 11}]))
    return {"domain": part, "algorithm": algorithm, **PARTS, **more}


@st.composite
def sources(draw, files: dict) -> str:
    """The text of a sweep; some sources are lines of files, in the study or outside of it."""
    text = ""
    for name in draw(st.lists(st.sampled_from([*VALUES]), unique=True, max_size=4)):
        values = draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3, unique=True))
        sign = draw(st.sampled_from(["", "+"])) if text else ""
        place = draw(st.sampled_from(["", "", f"values/{name}.txt", f"../{name}'s $1.txt"]))
        if place:
            plain = [value.strip("\"'") for value in values]
            files[place] = "\n".join([name, *plain, ""])
            words = [f"::::{sign}", '"{}"'.format(place.replace("$", "\\$"))]
        else:
            words = [f":::{sign}", name, *values]
        text += "".join(word + draw(GAPS) for word in words)
    return text


@st.composite
def kinds(draw) -> Kind:
    """A random study."""
    files = dict(FILES)
    files["config/experiments/ours.yaml"] = draw(experiments())
    files["tasks/far.yaml"] = draw(experiments())
    names = ["ours", "lp_sphere", "tasks/far.yaml"]
    experiment = draw(st.sampled_from(names) | experiments())
    if draw(st.booleans()):
        files["../far.yaml"] = files.pop("tasks/far.yaml")
        experiment = "../far.yaml" if experiment == "tasks/far.yaml" else experiment
    config = {"name": "mine", "experiment": experiment, "sweep": draw(sources(files))}
    labels = draw(st.dictionaries(st.sampled_from(["1", "mine"]), TEXTS, max_size=2))
    reporting = {"figures": {"labels": labels}, "rank": "coverage", "cluster": "local"}
    reporting |= {"confirm": {"seeds": [101, 102]}, "tables": {"columns": ["n"]}, "partial": True}
    for key in draw(st.sets(st.sampled_from(sorted(reporting)))):
        config[key] = reporting[key]
    later = draw(st.sets(st.sampled_from(["figures", "rank", "name"])))
    more = {key: config.pop(key) for key in later if key in config}
    return Kind(config, files, (more,) if more else ())


@settings(
    max_examples=500 if os.environ.get("QDSWEEP_TORTURE") else 30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(kinds())
def test_a_random_sweep_is_planned_elsewhere_with_equal_ids(kind):
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "here"), Path(folder, "there")
        try:
            with study_of(kind, here / "study") as (start, results):
                runs, files = planned_by(start), study_files(start, results)
                before = start.settings
        except BadInput:  # such as a budget in two units
            reject()
        here.rename(Path(folder, "gone"))
        write_files(there, files)
        with alone_in(there):
            assert planned_here(Results(Path("results"))) == {"runs": runs, "outside": []}
            after = read_sweep(Given({}, files=[Path("sweep.yaml")]))
        kept = after.model_dump(exclude={"experiment", "sweep"})
        assert kept == before.model_dump(exclude={"experiment", "sweep"}) | {"partial": False}


# What cannot be packed -> words of the refusal.
INCOMPLETE = {
    "a preset outside, in a preset": (
        Kind(
            {**KINDS["inline"].config, "experiment": "ours"},
            {
                "config/experiments/ours.yaml": {**SMALL, "algorithm": "../far.yaml"},
                "../far.yaml": KINDS["presets of the user"].files["config/algorithms/mine.yaml"],
            },
        ),
        ("../far.yaml",),
    ),
    "a swept preset outside": (
        Kind(
            {**KINDS["inline"].config, "sweep": "::: algorithm ../far.yaml"},
            {"../far.yaml": KINDS["presets of the user"].files["config/algorithms/mine.yaml"]},
        ),
        ("../far.yaml",),
    ),
}


@pytest.mark.parametrize("what", INCOMPLETE)
def test_a_package_that_would_lack_a_file_is_refused(what, tmp_path):
    kind, words = INCOMPLETE[what]
    with study_of(kind, tmp_path / "study") as (start, results):
        plan, files = read_plan(start.folder), study_files(start, results)
        with refused(*words, "complete"):
            require_complete(files, plan, results)
    with study_of(KINDS["inline"], tmp_path / "inline") as (start, results):
        plan, files = read_plan(start.folder), study_files(start, results)
        require_complete(files, plan, results)
        files["sweep.yaml"] = files["sweep.yaml"].replace(b"batch_size: 8", b"batch_size: 9")
        with refused("other runs", "4 runs"):
            require_complete(files, plan, results)


def test_an_absolute_path_in_a_preset_is_refused(tmp_path):
    files = KINDS["presets of the user"].files
    path = tmp_path / "study/config/algorithms/mine.yaml"
    ours = {**files["config/experiments/ours.yaml"], "algorithm": str(path)}
    kind = Kind(
        {"name": "mine", "experiment": "ours"}, {**files, "config/experiments/ours.yaml": ours}
    )
    with study_of(kind, tmp_path / "study") as (start, results):
        plan, packed = read_plan(start.folder), study_files(start, results)
        with refused(path, "complete"):
            require_complete(packed, plan, results)


@pytest.mark.parametrize("name", ["data/missing.npy", "../outside.npy", "data"])
def test_a_declared_file_is_a_file_of_the_study(name, tmp_path):
    bowl = BOWL_FILES["config/plugins/bowl.py"].replace("data/depth.npy", name)
    files = {**BOWL_FILES, "config/plugins/bowl.py": bowl, "../outside.npy": np.array(1)}
    kind = Kind({"name": "mine", "experiment": IN_BOWL}, files)
    refusal = refused("bowl:Bowl", "depends", name)
    with refusal, study_of(kind, tmp_path / "study") as (start, results):
        study_files(start, results)


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIG / "sweeps").glob("*.yaml")))
def test_a_sweep_that_comes_with_qdsweep_names_only_packed_files(name, tmp_path, monkeypatch):
    """Its experiments are composed of the packed files only: those of qdsweep are hidden."""
    with alone_in(tmp_path):
        given = Given({}, files=[CONFIG / f"sweeps/{name}.yaml"])
        packed = composed_study(read_sweep(given), given)
        write_files(tmp_path, packed)
        read_preset.cache_clear()
        monkeypatch.setattr("qdsweep.config.files.PRESET_FOLDER", tmp_path / "config")
        again = Given({}, files=[Path("sweep.yaml")])
        runs = sweep_of(read_sweep(again), Results(Path("results"))).runs
    with alone_in(tmp_path / "config"):
        monkeypatch.undo()
        assert runs.keys() == sweep_of(read_sweep(given), Results(Path("results"))).runs.keys()


@pytest.mark.parametrize("folder", ["Nora Jacobsen", "nora", "Nora's {x}"])
@pytest.mark.parametrize("place", ["absolute", "relative", "home"])
def test_the_typed_command_names_no_folder_outside_of_the_study(
    folder, place, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    start = {"absolute": f"{tmp_path}/", "relative": "../", "home": "~/"}[place]
    write_files(tmp_path / folder, {"far.yaml": {"name": "a", "experiment": SMALL}, "x.txt": "1"})
    write_files(tmp_path / folder, {"own.yaml": {"workers_per_node": 1}})
    (tmp_path / "study").mkdir()
    path = f"{start}{folder}"
    sweep = f'sweep=:::: "{path}/x.txt" ::: seed 1'
    typed = [f"cluster={path}/own.yaml", sweep, "x=" + "y" * 5000]
    with alone_in(tmp_path / "study"):
        file = Path(path, "far.yaml").expanduser()
        shown = "".join(_origin(Given({}, typed, [file])))
    names_all(shown, "far.yaml", "cluster=own.yaml", "x.txt", "::: seed 1", "y" * 5000)
    assert "ora" not in shown and tmp_path.name not in shown
