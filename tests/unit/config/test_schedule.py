"""What a schedule says, and what cannot be in one."""

import pytest
from composing import BASE

from qdsweep.config.archives import ARCHIVES
from qdsweep.config.compose import compose
from qdsweep.config.emitters import EvolutionStrategy, GradientOperator
from qdsweep.config.keys import changeable, schedule_text
from qdsweep.errors import BadInput
from qdsweep.records.results import write_config
from qdsweep.sweep.ids import run_id
from qdsweep.sweep.runs import table_of_runs

LINE = {**BASE, "algorithm": "map_elites_line", "iterations": 30}


def with_schedule(*changes: object, **keys: object):
    return compose({**LINE, "schedule": list(changes), **keys})


def test_names_become_paths_and_values_have_their_type(tmp_path):
    exp = with_schedule({"at": 3, "set": {"iso_sigma": 1, "batch_size": 8}})
    (change,) = exp.schedule
    assert change.set == {"algorithm.emitters.0.iso_sigma": 1.0, "batch_size": 8}
    same = with_schedule({"at": 3, "set": {"batch_size": 8, "algorithm.iso_sigma": 1.0}})
    assert run_id(same) == run_id(exp)
    write_config(tmp_path / "config.yaml", exp)
    assert compose(str(tmp_path / "config.yaml")) == exp


def test_without_a_schedule_the_id_is_the_old_one():
    assert run_id(with_schedule()) == run_id(compose(LINE))
    exp = with_schedule({"at": 3, "set": {"iso_sigma": 1.0}})
    assert run_id(exp) != run_id(compose(LINE)) == run_id(exp.donor)


def test_a_schedule_is_swept_by_its_parts():
    data = {**LINE, "schedule": [{"at": 3, "set": {"iso_sigma": 0.1}}]}
    sweep = table_of_runs(data, "::: schedule.0.set.iso_sigma 0.1 1 ::: schedule.0.at 3 5")
    schedules = [row.experiment.schedule[0] for row in sweep.rows]
    assert [(one.at, *one.set.values()) for one in schedules] == [
        (3, 0.1),
        (5, 0.1),
        (3, 1.0),
        (5, 1.0),
    ]
    assert len({row.id for row in sweep.rows}) == 4


def test_a_text_is_a_schedule_too():
    text = "3 iso_sigma=0.1 batch_size=8; 5 line_sigma=0.3"
    exp = compose(LINE, {"schedule": text})
    listed = [
        {"at": 3, "set": {"iso_sigma": 0.1, "batch_size": 8}},
        {"at": 5, "set": {"line_sigma": 0.3}},
    ]
    assert exp == with_schedule(*listed)
    assert schedule_text([(one["at"], one["set"]) for one in listed]) == text
    sweep = table_of_runs(LINE, f"::: schedule '' '{text}'")
    assert [len(row.experiment.schedule) for row in sweep.rows] == [0, 2]
    for wrong in ("iso_sigma=0.1", "3", "3 iso_sigma", "3 =1", "-3 iso_sigma=1", "3 a=1 a=2"):
        with pytest.raises(BadInput, match=r"--set: schedule: '.*' (is no change|sets a key)"):
            compose(LINE, {"schedule": wrong}, source="--set")


REFUSED = [
    ({"archive.dims": [3, 3]}, "archive.dims cannot .*: the cells of an archive never change"),
    ({"seed": 3}, r"seed cannot .*These keys can: .*line_sigma \(now\), batch_size \(now\)$"),
    ({"learning_rate": 0.1}, "the archive has no thresholds"),
    ({"bounds": [-1, 1]}, "bounds cannot .* the emitter is made with it"),
    ({"step": 0.1}, "domain.step cannot .* the domain is made with it"),
    ({"iso_sigma": -1.0}, "schedule, at 3: .*iso_sigma = -1.0: should be greater than 0"),
    ({"iso_sigma": None}, "iso_sigma = null: a change needs a value"),
    ({"iso_sigmo": 1.0}, "unknown name 'iso_sigmo'.*did you mean 'iso_sigma'"),
    ({"iso_sigma": 1.0, "algorithm.iso_sigma": 1.0}, "given twice"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_what_cannot_change_is_refused_with_the_reason(values, message):
    with pytest.raises(BadInput, match=message):
        with_schedule({"at": 3, "set": values})


def test_iterations_rise_and_a_batch_fits_its_emitters():
    one = {"at": 3, "set": {"iso_sigma": 1.0}}
    with pytest.raises(BadInput, match="at = 3, 3: the iterations must rise"):
        with_schedule(one, one)
    with pytest.raises(BadInput, match=r"at 3: .*openai_es with mirror_sampling needs an even"):
        compose({**LINE, "algorithm": "openai_es", "batch_size": 8,
                 "schedule": [{"at": 3, "set": {"batch_size": 7}}]})  # fmt: skip
    with pytest.raises(BadInput, match=r"batch_size cannot .*: lm_ma_es has vectors by it"):
        compose({**LINE, "algorithm": "lm_ma_es", "batch_size": 8,
                 "schedule": [{"at": 3, "set": {"batch_size": 6}}]})  # fmt: skip


def test_a_change_that_never_comes_is_known_in_any_unit():
    change = {"at": 4, "set": {"batch_size": 20}}
    assert with_schedule(change, iterations=4).late_changes == [4]
    assert with_schedule(change, iterations=5).late_changes == []
    sizes = {"num_emitters": 1, "batch_size": 10, "initial_solutions": 0, "iterations": None}
    exp = with_schedule(change, **sizes, evaluations=40)
    assert exp.late_changes == [4]
    exp = with_schedule(change, {"at": 6, "set": {"iso_sigma": 1.0}}, **sizes, evaluations=80)
    assert [exp.evaluations_after(n) for n in (1, 4, 5, 6)] == [10, 40, 60, 80]
    assert exp.late_changes == [6]


def test_every_key_says_whether_it_can_change():
    assert EvolutionStrategy.mid_run("sigma0") == "restart"
    assert GradientOperator.mid_run("sigma_g") == "now"
    assert {kind.mid_run("type") for kind in ARCHIVES.values()} == {"never"}
    found = dict(changeable(compose({**BASE, "algorithm": "cma_mae"})))
    assert found == {
        "algorithm.archive.learning_rate": "now",
        "algorithm.emitters.0.ranker": "now",
        "algorithm.emitters.0.selection_rule": "now",
        "algorithm.emitters.0.restart_rule": "now",
        "algorithm.emitters.0.sigma0": "restart",
        "batch_size": "now",
    }
