"""External results are read from their files and measured, or refused if they do not fit."""

import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import qdsweep
from inventing import make_archive, sphere
from refusals import names_all, refused

from qdsweep.features.imported.description import Elites, Imported, Log, read_all, read_imported
from qdsweep.features.imported.foreign_results import read_foreign
from qdsweep.runs.load import load

ABOUT = {
    "algorithm": "their MAP-Elites",
    "domain": "sphere",
    "seeds": [1, 2],
    "objective_range": [-600, 100],
    "archive": {"file": "{seed}.npz", "dims": [12, 12], "ranges": [[-16, 16], [-16, 16]]},
    "metrics": {
        "file": "{seed}.csv",
        "columns": {"evaluations": "Evals", "qd_score": "QD", "coverage": "Cov %"},
        "times": {"coverage": 0.01},
    },
}


def filled(kind: str = "grid", seed: int = 1):
    archive, _ = make_archive(kind, 2, seed)
    solutions = np.random.default_rng(seed).normal(size=(300, 6))
    objective, measures = sphere(solutions, 2)
    archive.add(solutions, objective, measures, objective_std=objective, path=solutions[:, :2])
    return archive


@pytest.fixture
def theirs(tmp_path):
    for seed in (1, 2):
        archive = filled(seed=seed)
        np.savez(tmp_path / f"{seed}.npz", **archive.data())
        end = {"QD": float(archive.stats.qd_score), "Cov %": 100 * float(archive.stats.coverage)}
        rows = [{"Evals": 100, "QD": 5.0, "Cov %": 1.0}, {"Evals": 300, **end}]
        pd.DataFrame(rows).to_csv(tmp_path / f"{seed}.csv", index=False)
    return tmp_path


def described(folder, changes: dict | None = None):
    """Returns the file of a description; `changes` has dotted key -> value, None removes it."""
    about = yaml.safe_load(yaml.safe_dump(ABOUT))
    for key, value in (changes or {}).items():
        *parents, last = key.split(".")
        node = about
        for parent in parents:
            node = node[parent]
        node.pop(last, None)
        if value is not None:
            node[last] = value
    path = folder / "theirs.yaml"
    path.write_text(yaml.safe_dump(about))
    return path


def first(folder, changes: dict | None = None):
    return read_foreign(read_imported(described(folder, changes))[0])


def test_import_writes_runs_that_python_loads(theirs):
    printed = qdsweep("import", described(theirs), cwd=theirs)
    assert "warning" not in printed and printed.count("imported-sphere-their_MAP_Elites-s") == 2
    run = load(next((theirs / "results/runs").glob("*-s1-*")))
    expected = filled(seed=1)
    assert run.archive.stats.qd_score == pytest.approx(float(expected.stats.qd_score))
    assert run.summary["coverage"] == float(expected.stats.coverage)
    assert list(run.metrics["evaluations"]) == [100, 300]
    assert run.metrics["norm_qd_score"].iloc[0] == pytest.approx(5.0 / 144)
    assert run.metrics["obj_max"].isna().tolist() == [True, False], "missing metrics are empty"
    assert run.config["imported"]["archive"]["dims"] == [12, 12]
    digest = run.summary["archive_digest"]
    qdsweep("import", theirs / "theirs.yaml", cwd=theirs)
    assert load(run.path).summary["archive_digest"] == digest


def ids(folder, changes: dict | None = None) -> list[str]:
    return [run.id for run in read_imported(described(folder, changes))]


# Key of a description -> another value of it, for each key that is not a file's place.
OTHER = {
    "algorithm": "their other MAP-Elites",
    "domain": "sphere_2",
    "objective_range": [-601, 100],
    "archive.dims": [12, 13],
    "archive.ranges": [[-16, 16], [-16, 17]],
    "archive.measures": ["x", "y"],
    "archive.names": {"objective": "objective"},
    "metrics.columns": {"evaluations": "Evals", "qd_score": "QD"},
    "metrics.times": {"coverage": 0.02},
    "evaluations": 301,
    "values": {"sigma0": 0.5},
    "source": "another lab",
}


def test_an_id_is_that_of_the_description_and_the_data(theirs):
    places = {"archive.file", "metrics.file", "seeds"}
    keys = {
        *(key for key in Imported.model_fields if key not in ("archive", "metrics")),
        *(f"archive.{key}" for key in Elites.model_fields),
        *(f"metrics.{key}" for key in Log.model_fields),
    }
    assert keys == OTHER.keys() | places, "each key has another value here"
    made = [ids(theirs), *(ids(theirs, {key: value}) for key, value in OTHER.items())]
    assert len({run for each in made for run in each}) == 2 * len(made)
    assert ids(theirs, {"seeds": [2, 1]}) == made[0][::-1]


FILES = {"archive": "npz", "metrics": "csv"}


def test_the_same_data_in_another_form_have_the_same_id(theirs):
    known = ids(theirs)
    data = dict(np.load(theirs / "1.npz"))
    np.savez_compressed(theirs / "1.npz", **dict(reversed(data.items())), notes=np.arange(3))
    text = (theirs / "1.csv").read_text()
    (theirs / "1.csv").write_text(text.replace("100,5.0,1.0", "1e2,5.00,1").replace("\n", "\r\n"))
    assert ids(theirs) == known
    (theirs / "elsewhere").mkdir()
    for seed in (1, 2):
        for kind in ("npz", "csv"):
            (theirs / f"{seed}.{kind}").rename(theirs / f"elsewhere/of_{seed}.{kind}")
    moved = {f"{key}.file": f"elsewhere/of_{{seed}}.{kind}" for key, kind in FILES.items()}
    assert ids(theirs, moved) == known


@pytest.mark.parametrize("name", ["objective", "measures", "solution"])
def test_other_data_have_another_id(theirs, name):
    (known, second), data = ids(theirs), dict(np.load(theirs / "1.npz"))
    data[name] = data[name].copy()
    data[name].flat[-1] = np.nextafter(data[name].flat[-1], 0)
    np.savez(theirs / "1.npz", **data)
    other = ids(theirs)
    assert other[0] != known and other[1] == second
    data.pop(name)
    np.savez(theirs / "1.npz", **data)
    assert ids(theirs)[0] not in (known, other[0])
    table = pd.DataFrame({"objective": data.get("objective", [1.0]), "measures_0": 0.5})
    csv = {"archive.file": "{seed}.elites.csv"}
    made = set()
    for change in (0.0, 1e-9):
        for seed in (1, 2):
            (table + change).to_csv(theirs / f"{seed}.elites.csv", index=False)
        made |= set(ids(theirs, csv))
    assert len(made) == 4


def test_other_metrics_have_another_id(theirs):
    known = ids(theirs)
    text = (theirs / "1.csv").read_text()
    (theirs / "1.csv").write_text(text.replace("100,5.0", "100,5.1"))
    assert ids(theirs)[0] != known[0] and ids(theirs)[1] == known[1]


def test_the_results_of_two_labs_are_in_two_folders(theirs):
    """Both call their algorithm CMA-ME of pyribs; neither replaces the other's results."""
    digests = {}
    for lab, shift in (("a", 0.0), ("b", -300.0)):
        folder = theirs / lab
        folder.mkdir()
        for seed in (1, 2):
            data = dict(np.load(theirs / f"{seed}.npz"))
            np.savez(folder / f"{seed}.npz", **data | {"objective": data["objective"] + shift})
        changes = {"metrics": None, "evaluations": 300, "source": f"lab {lab}"}
        path = described(folder, changes | {"algorithm": "CMA-ME of pyribs"})
        qdsweep("import", path, cwd=theirs)
        digests[lab] = [
            (theirs / "results/runs" / run.id / "archive.npz").read_bytes()
            for run in read_imported(path)
        ]
    assert len(list((theirs / "results/runs").iterdir())) == 4
    for run, content in zip(read_imported(theirs / "a/theirs.yaml"), digests["a"], strict=True):
        assert (theirs / "results/runs" / run.id / "archive.npz").read_bytes() == content
    both = [str(theirs / lab / "theirs.yaml") for lab in "ab"]
    with refused(*both, "CMA-ME of pyribs"):  # tables would show them as one group
        read_all(both)


def test_check_writes_nothing(theirs):
    qdsweep("import", described(theirs), "--check", cwd=theirs)
    assert not (theirs / "results").exists()


def test_a_csv_of_pyribs_and_arrays_of_other_libraries_are_the_same_elites(theirs):
    expected = first(theirs).measured
    data = filled(seed=1).data(return_type="pandas")
    data.to_csv(theirs / "1.csv.csv", index=False)
    assert first(theirs, {"archive.file": "{seed}.csv.csv", "seeds": [1]}).measured == expected
    columns = {"fit": data["objective"], "x": data["measures_0"], "y": data["measures_1"]}
    pd.DataFrame(columns).to_csv(theirs / "plain.csv", index=False)
    names = {"objective": "fit", "measures": ["x", "y"]}
    archive = {**ABOUT["archive"], "file": "plain.csv", "names": names}
    assert first(theirs, {"archive": archive, "seeds": [1]}).measured == expected
    empty = {"fitnesses": [-np.inf], "descriptors": [[0.0, 0.0]]}  # a cell without an elite
    elites = filled(seed=1).data()
    np.savez(
        theirs / "qdax.npz",
        fitnesses=np.append(elites["objective"], empty["fitnesses"]),
        descriptors=np.append(elites["measures"], empty["descriptors"], axis=0),
    )
    names = {"objective": "fitnesses", "measures": "descriptors"}
    archive = {**ABOUT["archive"], "file": "qdax.npz", "names": names}
    assert first(theirs, {"archive": archive, "seeds": [1]}).measured == expected


def test_a_cvt_archive_comes_with_its_centroids(theirs):
    archive = filled("cvt")
    np.savez(theirs / "1.npz", centroids=archive.centroids, **archive.data())
    foreign = first(theirs, {"archive.dims": None, "metrics": None, "evaluations": 300})
    assert foreign.measured["coverage"] == float(archive.stats.coverage)
    assert len(foreign.table) == 1 and foreign.evaluations == 300


def test_metrics_that_their_elites_do_not_give_are_named(theirs, snapshot):
    foreign = first(theirs, {"objective_range": [0, 100], "archive.dims": [6, 6]})
    assert foreign.warnings == snapshot
    assert foreign.table["qd_score"].iloc[-1] == foreign.measured["qd_score"]
    narrow = first(theirs, {"archive.ranges": [[-2, 2], [-2, 2]]})
    assert "archive.ranges" in narrow.warnings[0]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"domain": None}, ["domain"]),
        ({"seed": 1}, ["seed", "'seeds'"]),
        ({"archive.file": "x.npz"}, ["x.npz", "{seed}"]),
        ({"archive.file": "{seed}.npy"}, ["1.npy"]),
        ({"archive.dims": [12]}, ["archive.dims", 1, "archive.ranges", 2]),
        ({"archive.dims": None}, ["archive.dims", "centroids"]),
        ({"archive.dims": [10**9, 10**9]}, ["archive.dims"]),
        ({"seeds": [-1]}, ["seeds", 0]),
        ({"seeds": [2**64]}, ["seeds", 9223372036854775808]),
        ({"archive.ranges": [[-16, 16]], "archive.dims": [9]}, ["measures", "(", ")"]),
        ({"archive.names": {"objectiv": "x"}}, ["objectiv", "'objective'"]),
        ({"archive.names": {"objective": "x"}}, ["archive.names.objective", "'x'", "measures"]),
        ({"metrics": None}, ["evaluations", "metrics"]),
        ({"metrics.columns": {"qd_scor": "QD"}}, ["metrics.columns", "qd_scor", "'qd_score'"]),
        (
            {"metrics.columns": {"qd_score": "qd"}},
            ["metrics.columns.qd_score", "'qd'", "Evals"],
        ),
        ({"metrics.columns": {}}, ["evaluations"]),
        ({"metrics.times": {}}, ["coverage", "times", 0.01]),
        ({"objective_range": [100, 0]}, ["objective_range"]),
    ],
)
def test_a_description_that_does_not_fit_is_refused_with_the_remedy(theirs, changes, names):
    with refused("theirs.yaml", *names):
        first(theirs, changes)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("100,x,1\n", ["1", "QD", "'x'"]),
        ("200,1,1\n100,2,1\n", ["evaluations"]),
        ("0.2,1,1\n0.7,2,1\n", ["evaluations"]),
        ("1e30,1,1\n2e30,2,1\n", ["evaluations"]),
        ("", []),
        ("100,1,1", ["theirs.yaml"]),  # truncated
    ],
)
def test_metrics_that_are_none_are_refused(theirs, rows, names):
    (theirs / "1.csv").write_text(f"Evals,QD,Cov %\n{rows}")
    with refused("1.csv", *names):
        first(theirs)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"solution": np.ones((7, 4))}, ["solution", (7, 4), "objective", (20,)]),
        ({"objective": np.ones(20) + 1j}, ["objective"]),
        ({"objective": [], "measures": np.ones((0, 2)), "solution": []}, []),
        ({"centroids": np.ones((5, 3))}, ["centroids", (5, 3)]),
        ({"centroids": np.full((5, 2), np.nan)}, ["centroids"]),
    ],
)
def test_elites_that_do_not_fit_together_are_refused(theirs, changes, names):
    elites = {"objective": np.ones(20), "measures": np.ones((20, 2)), "solution": np.ones((20, 4))}
    np.savez(theirs / "1.npz", **(elites | changes))
    with refused("1.npz", *names):
        first(theirs, {"archive.dims": None} if "centroids" in changes else None)


def test_elites_without_a_finite_objective_are_empty_cells_or_counted(theirs):
    objective = np.array([1.0, -np.inf, np.nan, np.inf, np.inf])
    measures = np.column_stack([np.arange(5.0), np.arange(5.0)])
    np.savez(theirs / "1.npz", objective=objective, measures=measures)
    foreign = first(theirs, {"metrics": None, "evaluations": 9})
    assert foreign.measured["num_elites"] == 1
    (warning,) = foreign.warnings
    names_all(warning, 2, "inf")


def test_an_algorithm_of_a_long_name_has_a_folder(theirs):
    run = read_imported(described(theirs, {"algorithm": "x" * 400}))[0]
    assert len(run.id) < 200


def test_the_same_run_described_twice_is_refused(theirs):
    files = [str(described(theirs)), str(theirs / "again.yaml")]
    (theirs / "again.yaml").write_text((theirs / "theirs.yaml").read_text())
    with refused(*files):
        read_all(files)
    qdsweep("import", *files, cwd=theirs, code=2)
    assert not (theirs / "results").exists()
