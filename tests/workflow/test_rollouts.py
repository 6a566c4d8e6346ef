"""Rendered episodes with the real Snakefile."""

from results import read_json
from starting import planned, start
from support import write_yaml


def test_the_workflow_renders_them_once(tmp_path):
    experiment = {
        "domain": "lunar_lander",
        "archive": {"dims": [10, 10]},
        "num_emitters": 2,
        "batch_size": 10,
        "iterations": 3,
        "algorithm": "map_elites",
    }
    swept = "::: algorithm map_elites ::: seed 1"
    text = {"name": "tiny", "experiment": experiment, "sweep": swept, "rollouts": {}}
    write_yaml(tmp_path / "mine.yaml", text)
    start(tmp_path)
    plots = tmp_path / "results/sweeps/tiny/plots"
    entries = read_json(plots / "rollouts/rollouts.json")["rollouts"]
    assert entries
    assert all(entry["equal"] for entry in entries)
    assert len(list((plots / "evolution").glob("*.gif"))) == 1
    assert planned(tmp_path) == {}
    text["rollouts"] = {"elites": ["best"]}
    write_yaml(tmp_path / "mine.yaml", text)
    assert "rollouts" in planned(tmp_path)
