"""Results of others: read from their files, measured by our code, refused in words."""

import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import qdsweep
from inventing import make_archive, sphere

from qdsweep.config.imported import read_all, read_imported
from qdsweep.errors import BadInput
from qdsweep.experiment.foreign_results import read_foreign
from qdsweep.experiment.load import load

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
    """Returns the file of a description; in `changes` a dotted key -> its value, None: without."""
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
    said = qdsweep("import", described(theirs), cwd=theirs)
    assert "warning" not in said and said.count("imported-sphere-their_MAP_Elites-s") == 2
    run = load(next((theirs / "results/runs").glob("*-s1-*")))
    expected = filled(seed=1)
    assert run.archive.stats.qd_score == pytest.approx(float(expected.stats.qd_score))
    assert run.summary["coverage"] == float(expected.stats.coverage)
    assert list(run.metrics["evaluations"]) == [100, 300]
    assert run.metrics["norm_qd_score"].iloc[0] == pytest.approx(5.0 / 144)
    assert run.metrics["obj_max"].isna().tolist() == [True, False], "what they lack is empty"
    assert run.config["imported"]["archive"]["dims"] == [12, 12]
    digest = run.summary["archive_digest"]
    qdsweep("import", theirs / "theirs.yaml", cwd=theirs)
    assert load(run.path).summary["archive_digest"] == digest


def test_check_writes_nothing(theirs):
    assert "fits" in qdsweep("import", described(theirs), "--check", cwd=theirs)
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
    found = first(theirs, {"archive.dims": None, "metrics": None, "evaluations": 300})
    assert found.measured["coverage"] == float(archive.stats.coverage)
    assert len(found.table) == 1 and found.evaluations == 300


def test_metrics_that_their_elites_do_not_give_are_named(theirs):
    found = first(theirs, {"objective_range": [0, 100], "archive.dims": [6, 6]})
    text = " ".join(found.warnings)
    assert "share a cell with a better one" in text and "qd_score" in text
    assert "offset of the QD score: 0" in text
    assert found.table["qd_score"].iloc[-1] == found.measured["qd_score"]
    narrow = first(theirs, {"archive.ranges": [[-2, 2], [-2, 2]]})
    assert "elites are outside archive.ranges" in narrow.warnings[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"domain": None}, ["theirs.yaml: the key domain is missing"]),
        ({"seed": 1}, ["unknown key seed; did you mean 'seeds'?"]),
        ({"archive.file": "x.npz"}, ["x.npz would be the file of all seeds", "{seed}"]),
        ({"archive.file": "{seed}.npy"}, ["there is no", "1.npy (seed 1)"]),
        ({"archive.dims": [12]}, ["archive.dims has 1 entries, and archive.ranges 2"]),
        ({"archive.dims": None}, ["archive.dims is missing", "has no centroids"]),
        ({"archive.dims": [10**9, 10**9]}, ["so many cells do not fit into memory"]),
        ({"seeds": [-1]}, ["seeds", "greater than or equal to 0"]),
        ({"seeds": [2**64]}, ["seeds", "less than 9223372036854775808"]),
        (
            {"archive.ranges": [[-16, 16]], "archive.dims": [9]},
            ["measures has the shape", "(", ")"],
        ),
        ({"archive.names": {"objectiv": "x"}}, ["did you mean 'objective'?"]),
        ({"archive.names": {"objective": "x"}}, ["archive.names.objective = 'x'", "it has "]),
        ({"metrics": None}, ["give evaluations, or metrics that have them"]),
        ({"metrics.columns": {"qd_scor": "QD"}}, ["metrics.columns: qd_scor", "'qd_score'"]),
        ({"metrics.columns": {"qd_score": "qd"}}, ["metrics.columns.qd_score = 'qd'", "Evals, QD"]),
        ({"metrics.columns": {}}, ["there are no evaluations", "evaluations: THEIRS"]),
        ({"metrics.times": {}}, ["coverage is up to", "times: {coverage: 0.01}"]),
        ({"objective_range": [100, 0]}, ["objective_range", "is not below the upper end"]),
    ],
)
def test_a_description_that_does_not_fit_is_refused_with_the_remedy(theirs, changes, words):
    with pytest.raises(BadInput) as refused:
        first(theirs, changes)
    assert all(word in str(refused.value) for word in words), refused.value
    assert "theirs.yaml" in str(refused.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("Evals,QD,Cov %\n100,x,1\n", "1.csv, row 1: QD = 'x' is no number"),
        ("Evals,QD,Cov %\n200,1,1\n100,2,1\n", "evaluations must be whole numbers above 0 that"),
        ("Evals,QD,Cov %\n0.2,1,1\n0.7,2,1\n", "evaluations must be whole numbers above 0 that"),
        ("Evals,QD,Cov %\n1e30,1,1\n2e30,2,1\n", "evaluations must be whole numbers above 0 that"),
        ("Evals,QD,Cov %\n", "it has no row"),
        ("Evals,QD,Cov %\n100,1,1", "its last line is torn.*: mend it, or name another file in "),
        ("", "mend it, or name another file in "),
    ],
)
def test_metrics_that_are_none_are_refused(theirs, rows, words):
    (theirs / "1.csv").write_text(rows)
    with pytest.raises(BadInput, match=words):
        first(theirs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"solution": np.ones((7, 4))}, r"solution has the shape \(7, 4\), and objective \(20,\)"),
        ({"objective": np.ones(20) + 1j}, "objective has what is no number"),
        ({"objective": [], "measures": np.ones((0, 2)), "solution": []}, "it has no elites"),
        ({"centroids": np.ones((5, 3))}, r"centroids has the shape \(5, 3\)"),
        ({"centroids": np.full((5, 2), np.nan)}, "centroids .* finite numbers"),
    ],
)
def test_elites_that_do_not_fit_together_are_refused(theirs, changes, words):
    elites = {"objective": np.ones(20), "measures": np.ones((20, 2)), "solution": np.ones((20, 4))}
    np.savez(theirs / "1.npz", **(elites | changes))
    with pytest.raises(BadInput, match=words):
        first(theirs, {"archive.dims": None} if "centroids" in changes else None)


def test_elites_without_a_finite_objective_are_empty_cells_or_counted(theirs):
    objective = np.array([1.0, -np.inf, np.nan, np.inf, np.inf])
    measures = np.column_stack([np.arange(5.0), np.arange(5.0)])
    np.savez(theirs / "1.npz", objective=objective, measures=measures)
    found = first(theirs, {"metrics": None, "evaluations": 9})
    assert found.measured["num_elites"] == 1
    assert found.warnings == ["2 of its elites have the objective inf, and are left out"]


def test_an_algorithm_of_a_long_name_has_a_folder(theirs):
    run = read_imported(described(theirs, {"algorithm": "x" * 400}))[0]
    assert len(run.id) < 200


def test_the_same_run_described_twice_is_refused(theirs):
    path = described(theirs)
    (theirs / "again.yaml").write_text(path.read_text())
    with pytest.raises(BadInput, match="describe the same run"):
        read_all([str(path), str(theirs / "again.yaml")])
    said = qdsweep("import", path, theirs / "again.yaml", cwd=theirs, code=2)
    assert "describe the same run" in said and not (theirs / "results").exists()
