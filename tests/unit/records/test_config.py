"""config.yaml of runs is written once, and again if the user's metrics have changed."""

import pytest
from composing import before_its_renaming
from small_runs import experiment
from support import write_yaml

from qdsweep.config.compose import compose
from qdsweep.config.family import FORMER
from qdsweep.records.paths import Results
from qdsweep.records.results import read_config, write_configs


def test_a_run_resumes_with_the_current_metrics_of_the_sweep(tmp_path):
    results, path = Results(tmp_path), Results(tmp_path).run("r").state.config

    def started(metrics: list, *, changed: bool = True) -> list:
        runs = {"r": experiment().model_copy(update={"metrics": metrics})}
        write_configs(runs, results, changed=changed)
        return read_config(path)["metrics"]

    assert started([]) == []
    assert started(["a:b"], changed=False) == [], "a start equal to the last one reads none"
    assert started(["a:b", "c:d"]) == ["a:b", "c:d"]
    assert started(["a:b"]) == ["a:b"], "a prefix of the other list differs"
    assert started([]) == []
    path.write_text(path.read_text().replace("metrics: []\n", ""))  # like an earlier release
    before = path.stat().st_mtime_ns
    write_configs({"r": experiment()}, results, changed=True)
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("name", FORMER)
def test_runs_of_a_renamed_preset_have_its_present_name(name, tmp_path):
    """In version 0.1.0, presets had no titles."""
    before = before_its_renaming(name)
    untitled = {key: value for key, value in before.items() if key != "title"}
    for part in (before, untitled):
        algorithm = read_config(write_yaml(tmp_path / "run.yaml", {"algorithm": part}))["algorithm"]
        assert algorithm == untitled | {"name": name}
    for preset in (name, FORMER[name].name):
        part = compose("lp_sphere", {"algorithm": preset}).algorithm.model_dump(mode="json")
        path = write_yaml(tmp_path / "run.yaml", {"algorithm": part})
        assert read_config(path)["algorithm"]["name"] == preset
    own = untitled | {"title": ""}  # of the user, without a title
    path = write_yaml(tmp_path / "run.yaml", {"algorithm": own})
    assert read_config(path)["algorithm"] == own
