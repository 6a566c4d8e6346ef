"""Every public class has an example in its docstring, and all examples of docstrings are right."""

import contextlib
import doctest
import re
from importlib import import_module
from inspect import isclass
from types import ModuleType

import pytest
import yaml
from in_process import compute_sweep
from support import REPO

PACKAGE = REPO / "workflow/qdsweep"
# What scripts and plug-ins import, in addition to the names in docs/api.md.
FURTHER = {
    "qdsweep.config.compose": {"compose"},
    "qdsweep.config.experiment": {"Experiment"},
    "qdsweep.domains.plugin": {"Findings", "check_rows"},
    "qdsweep.engines.batch": {"Answer", "Batch", "Engine", "Failure", "Outcome"},
}


def documented() -> dict[str, set[str]]:
    """Returns module -> the public names that docs/api.md names, and the classes next to them."""
    names: dict[str, set[str]] = {}
    page = (REPO / "docs/api.md").read_text()
    for kind, name, members in re.findall(
        r"^\.\. auto(module|class):: (\S+)\n   :members:(.*)$", page, re.M
    ):
        if kind == "class":
            module, _, name = name.rpartition(".")
            names.setdefault(module, set()).add(name)
        else:
            own = {key for key, value in vars(import_module(name)).items() if is_of(name, value)}
            names.setdefault(name, set()).update(own, filter(None, re.split(r",? ", members)))
    return names


def is_of(module: str, value: object) -> bool:
    return isclass(value) and value.__module__ == module and not value.__name__.startswith("_")


def with_examples() -> list[ModuleType]:
    files = [
        file for file in PACKAGE.rglob("*.py") if re.search(r"^ *>>> ", file.read_text(), re.M)
    ]
    names = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]
    return [import_module(name.removesuffix(".__init__")) for name in sorted(names)]


EXAMPLES = {
    test.name: test
    for module in with_examples()
    for test in doctest.DocTestFinder().find(module)
    if test.examples
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The sweep of `make demo`, shortened."""
    folder = tmp_path_factory.mktemp("demo")
    demo = yaml.safe_load((REPO / "config/config.yaml").read_text())
    experiment = REPO / f"config/experiments/{demo['experiment']}.yaml"
    short = yaml.safe_load(experiment.read_text()) | {"batch_size": 4}
    sweep = demo["sweep"].replace("iterations 30", "iterations 2")
    sweep = sweep.replace("first_batch 150", "first_batch 20")
    with contextlib.chdir(folder):
        compute_sweep(folder / "results", short, sweep, demo["name"])
    return folder


def test_every_public_class_has_an_example():
    public = {f"{module}.{name}" for module, names in documented().items() for name in names}
    public |= {f"{module}.{name}" for module, names in FURTHER.items() for name in names}
    assert len(public) > 20
    assert sorted(public - EXAMPLES.keys()) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_right(name, demo, monkeypatch):
    """A reader may copy it: it has its own imports."""
    monkeypatch.chdir(demo)
    test, output = EXAMPLES[name], []
    test.globs = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=output.append)
    assert not runner.failures, "".join(output)
    assert not any(doctest.SKIP in example.options for example in test.examples)
