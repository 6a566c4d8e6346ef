"""The contents of a schedule, and refused keys."""

from composing import BASE

from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.config.compose import compose
from qdsweep.config.emitters import EvolutionStrategy, GradientOperator
from qdsweep.config.keys import changeable, schedule_text
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
    changes = [(change.at, *change.set.values()) for change in schedules]
    assert changes == [(3, 0.1), (5, 0.1), (3, 1.0), (5, 1.0)]
    assert len({row.id for row in sweep.rows}) == 4


def test_a_text_is_a_schedule_too():
    text = "3 iso_sigma=0.1 batch_size=8; 5 line_sigma=0.3"
    exp = compose(LINE, {"schedule": text})
    listed = [
        {"at": 3, "set": {"iso_sigma": 0.1, "batch_size": 8}},
        {"at": 5, "set": {"line_sigma": 0.3}},
    ]
    assert exp == with_schedule(*listed)
    assert schedule_text([(change["at"], change["set"]) for change in listed]) == text
    sweep = table_of_runs(LINE, f"::: schedule '' '{text}'")
    assert [len(row.experiment.schedule) for row in sweep.rows] == [0, 2]


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


def test_every_key_declares_whether_it_can_change():
    assert EvolutionStrategy.mid_run("sigma0") == "restart"
    assert GradientOperator.mid_run("sigma_g") == "now"
    assert {kind.mid_run("type") for kind in ARCHIVES.values()} == {"never"}
    keys = dict(changeable(compose({**BASE, "algorithm": "cma_mae"})))
    assert keys == {
        "algorithm.archive.learning_rate": "now",
        "algorithm.emitters.0.ranker": "now",
        "algorithm.emitters.0.selection_rule": "now",
        "algorithm.emitters.0.restart_rule": "now",
        "algorithm.emitters.0.sigma0": "restart",
        "batch_size": "now",
    }
