"""config.yaml of runs is written once, and again if the user's metrics have changed."""

from small_runs import experiment

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
