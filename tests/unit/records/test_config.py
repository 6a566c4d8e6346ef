"""config.yaml of runs: written once, and again where the user's metrics have changed."""

from small_runs import experiment

from qdsweep.records.paths import Results
from qdsweep.records.results import read_config, write_configs


def test_a_run_goes_on_with_the_metrics_that_the_sweep_has_now(tmp_path):
    results, path = Results(tmp_path), Results(tmp_path).run("r").state.config

    def started(metrics: list, *, changed: bool = True) -> list:
        runs = {"r": experiment().model_copy(update={"metrics": metrics})}
        write_configs(runs, results, changed=changed)
        return read_config(path)["metrics"]

    assert started([]) == []
    assert started(["a:b"], changed=False) == [], "a start that is like the last one looks at none"
    assert started(["a:b", "c:d"]) == ["a:b", "c:d"]
    assert started(["a:b"]) == ["a:b"], "one that is the beginning of the other differs"
    assert started([]) == []
    path.write_text(path.read_text().replace("metrics: []\n", ""))  # of an earlier release
    before = path.stat().st_mtime_ns
    write_configs({"r": experiment()}, results, changed=True)
    assert path.stat().st_mtime_ns == before
