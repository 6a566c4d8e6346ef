"""A user's own domain, as `module:Class`."""

import sys

import pytest
from domain_makers import GOOD, make
from refusals import refused

from qdsweep.config.own_code import source_hash


def test_plugin_gets_its_arguments_and_keeps_its_own_values(plugins):
    plugins("mine_one", GOOD)
    domain = make(type="mine_one:Good", arguments={"d": 2})
    assert (domain.solution_dim, domain.step, list(domain.x0)) == (2, 3.0, [1, 2])
    changed = make(type="mine_one:Good", x0=5, step=1, ranges=[[0, 9]], objective_range=[2, 3])
    assert (changed.step, list(changed.x0), changed.measures) == (1, [5, 5], {"a": (0, 9)})
    assert changed.objective_range == (2, 3)
    assert make(type="mine_one:Good").measures == {"a": (0, 1)}
    with refused("ranges", 2, "a"):
        make(type="mine_one:Good", ranges=[[0, 1], [0, 1]])


def test_working_directory_comes_before_the_clone(plugins, monkeypatch):
    monkeypatch.delitem(sys.modules, "maze", raising=False)
    plugins("maze", GOOD.replace("Good", "Maze"))
    assert make(type="maze:Maze").step == 3.0


def test_plugin_with_the_name_of_a_loaded_module_is_refused(plugins):
    plugins("yaml", GOOD)
    with refused("yaml"):
        make(type="yaml:Good")


@pytest.mark.parametrize(
    ("target", "text", "names"),
    [
        ("mine_too:Good", GOOD, ("mine_too", "'mine_two'")),
        ("mine_two:God", GOOD, ("God", "'Good'")),
        ("mine_two:Good", GOOD.replace("fields = {}", ""), ("fields",)),
        ("mine_two:Good", GOOD.replace('{"a": (0.0, 1.0)}', "1"), ("measures = 1", "dict")),
        ("mine_two:Good", GOOD.replace("(0.0, 1.0)}", "1}"), ("measures", "'a' = 1 ", "lower")),
        ("mine_two:Good", GOOD.replace("(0.0, 1.0)}", "(1, -1)}"), ("'a' = (1, -1)", "order")),
        ("mine_two:Good", GOOD.replace("= (0.0, 1.0)", "= (1, 0)"), ("range = (1, 0)", "order")),
        ("mine_two:Good", GOOD.replace("fields = {}", "fields = {'b': 3}"), ("'b' = 3", "(3,)")),
        ("mine_two:Good", GOOD.replace("d=2", "d"), ("'d'",)),
        ("mine_two:Good", "import no_such_thing", ("mine_two.py", "ModuleNotFoundError")),
    ],
)
def test_what_is_wrong_with_a_plugin_is_named(plugins, target, text, names):
    plugins("mine_two", text)
    with refused(*names):
        make(type=target)


def test_source_hash_follows_the_file_and_imports_nothing(plugins, tmp_path):
    plugins("mine_three", GOOD)
    first = source_hash("mine_three:Good")
    plugins("mine_three", GOOD + "changed = 1\n")
    assert len(first) == 64 and source_hash("mine_three:Good") != first
    package = tmp_path / "config" / "plugins" / "heavy"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "part.py").write_text(GOOD)
    assert source_hash("heavy.part:Good") == first
    assert not {"mine_three", "heavy"} & set(sys.modules)
    for module in ("heavy.nothing", "sys"):
        with refused(module):
            source_hash(f"{module}:Good")
