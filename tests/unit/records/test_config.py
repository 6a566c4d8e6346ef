"""config.yaml is written once, has the values of the user's file, and the current metrics."""

import json
import pickle

import pytest
from composing import BASE, before_its_renaming, merged
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_runs import experiment
from support import write_yaml

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.family import FORMER
from qdsweep.config.files import read_preset, read_yaml, to_yaml
from qdsweep.config.model import same_value, typed, value_text
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_config, write_config, write_configs
from qdsweep.sweep.ids import identify
from qdsweep.sweep.runs import Row, Sweep

SCALARS = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers(-(10**298), 10**298)
    | st.text(st.characters(codec="utf-8"), max_size=6)
    | st.from_regex(r"[-+]?[0-9]{0,3}\.?[0-9]{0,3}([eE][-+]?[0-9]{1,3})?", fullmatch=True)
    | st.sampled_from([".inf", "-.Inf", ".nan", "inf", "NaN", "08", "0o7", "0x1f", "1e3", "~"])
    | st.sampled_from(["true", "no", "null", "=", "<<", "1:30", "2020-01-01", "e\u0301", "\u00e9"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(VALUES)
@example([0.7, float("inf")])  # the healthy_z_range of gymnasium's own Hopper
@example({"a": float("nan"), "b": None, "c": -0.0, "d": ["1e3", 1, 1.0, True]})
@settings(
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_worker_receives_what_the_file_says(tmp_path, value):
    """Also through config.yaml of a Snakemake job, the JSON of the warm process, and pickles."""
    file = tmp_path / "mine.yaml"
    changes = {"domain": {"type": "own_part_of_a_test:Own", "arguments": {"value": value}}}
    file.write_text(to_yaml(merged(BASE, changes)), encoding="utf-8")
    expected = repr(read_yaml(file)["domain"]["arguments"]["value"])
    assert expected == repr(value), "the file has the value"
    read_preset.cache_clear()
    made = compose(str(file))
    write_config(tmp_path / "config.yaml", made)
    sent = json.dumps(made.model_dump(mode="json"))
    forms = {
        "the file": made,
        "config.yaml": compose(str(tmp_path / "config.yaml")),
        "the warm process": Experiment.model_validate_json(sent),
        "JSON": Experiment.model_validate_json(made.model_dump_json()),
        "a pickle": pickle.loads(pickle.dumps(made)),
    }
    for place, form in forms.items():
        assert repr(form.domain.arguments["value"]) == expected, place
        assert identify(form, str) == identify(made, str), place


@given(SCALARS | st.lists(SCALARS, max_size=3))
@settings(deadline=None, derandomize=True, max_examples=150)
def test_a_plan_has_the_values_of_the_sweep(value):
    row = Row({"value": value}, "run", compose(BASE))
    data = json.dumps(Sweep(("value",), (row,), {"run": row.experiment}).plan(name="tiny"))
    (read,) = Plan.of(json.loads(data)).rows
    assert repr(read.typed["value"]) == repr(value)
    assert read.values["value"] == value_text(value)
    if not isinstance(value, list):  # in a list, quotes have no escapes
        assert repr(typed(value_text(value))) == repr(value)
        assert same_value(typed(value_text(value)), value)


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
