"""The record `sources`: what plug-ins import, directly or not, and the files that they declare."""

import contextlib
import importlib
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import forget_plugins
from refusals import refused

from qdsweep.config.compose import compose
from qdsweep.config.own_code import declared_files, find_source, imported_files, load_class
from qdsweep.config.source import code_hash, file_hash
from qdsweep.records.dependencies import (
    differing,
    note_imports,
    refuse_earlier_imports,
    sources_of_experiment,
    sources_of_plugins,
)

# Modules and packages of a folder on the path: names that nothing else has.
PACKAGES = ("zzp", "zzp.inner", "zzq")
MODULES = ("zza", "zzb", "zzp.x", "zzp.y", "zzp.inner.z", "zzq.w")
EVERY = (*PACKAGES, *MODULES)


def file_of(module: str) -> Path:
    path = Path(*module.split("."))
    return path / "__init__.py" if module in PACKAGES else path.with_suffix(".py")


def relative(importer: str, module: str) -> tuple[str, str]:
    """Returns the dots and the rest that lead from a module to another one of its package."""
    package = importer if importer in PACKAGES else importer.rpartition(".")[0]
    dots = "."
    while package:
        if module.startswith(f"{package}."):
            return dots, module.removeprefix(f"{package}.")
        package, dots = package.rpartition(".")[0], dots + "."
    return "", ""


def statement(importer: str, module: str, form: int) -> str:
    """Returns one of all forms of an import; VALUE is there also in a cycle."""
    parent, _, name = module.rpartition(".")
    dots, rest = relative(importer, module)
    forms = [f"import {module}", f"import {module} as c", f"from {module} import VALUE as v"]
    if parent:
        forms += [f"from {parent} import {name}", f"from {parent} import VALUE, {name} as c"]
    if rest:
        inner, _, last = rest.rpartition(".")
        forms += [f"from {dots}{inner} import {last}", f"from {dots}{rest} import VALUE as c"]
    return forms[form % len(forms)]


GRAPHS = st.fixed_dictionaries(
    {
        name: st.lists(st.tuples(st.sampled_from(EVERY), st.integers(0, 30)), max_size=3)
        for name in ("zztask", "zzp.task", *EVERY)
    }
)


def loaded(module: str) -> set[Path]:
    """Returns the files below the working directory that Python loads for a module."""
    before = {*sys.modules}
    importlib.invalidate_caches()
    try:
        importlib.import_module(module)
        files = [getattr(sys.modules[name], "__file__", None) for name in {*sys.modules} - before]
        here = [Path(file) for file in files if file and Path(file).is_relative_to(Path.cwd())]
        return {file.relative_to(Path.cwd()) for file in here}
    finally:
        for name in [name for name in sys.modules if name.startswith("zz")]:
            del sys.modules[name]


@contextlib.contextmanager
def folder_on_the_path():
    path = sys.path[:]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.path.insert(0, str(Path.cwd()))
        try:
            yield
        finally:
            sys.path[:] = path


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(GRAPHS, st.sampled_from(["zztask", "zzp.task"]))
def test_a_record_has_exactly_the_modules_that_python_loads(graph, target: str):
    with folder_on_the_path():
        for module, imports in graph.items():
            path = file_of(module)
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = ["import math, json.decoder, yaml", "VALUE = 1", "class Task: ..."]
            lines += [statement(module, *each) for each in imports]
            path.write_text("\n".join(lines) + "\n")
        expected = loaded(target) - {file_of(target)}
        record = sources_of_plugins([f"{target}:Task"])
        assert {*record} == {path.as_posix() for path in expected}
        assert [*record] == sorted(record)
        assert all(record[name] == code_hash(Path(name).read_bytes()) for name in record)
        assert differing(record) == ()


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def test_only_the_users_own_modules_are_in_a_record(tmp_path):
    """Not those of Python, of installed packages, of qdsweep, nor what the id covers."""
    write("config/plugins/zztask.py", "import zzsim, yaml, qdsweep.text, zzfar, sys, zznone\n")
    write("config/plugins/zzsim.py", "import zztask\nfrom zzsim import zzno\n")
    write("far/zzfar.py", "import zzinstalled\n")
    write("far/site-packages/zzinstalled.py", "")
    sys.path[:0] = [str(tmp_path / "far"), str(tmp_path / "far/site-packages")]
    try:
        record = sources_of_plugins(["zztask:Task"])
        assert [*record] == ["config/plugins/zzsim.py", "far/zzfar.py"]
        (tmp_path / "study").mkdir()
        with contextlib.chdir(tmp_path / "study"):
            write("config/plugins/zztask.py", "import zzfar\n")
            record = sources_of_plugins(["zztask:Task"])
            assert [*record] == ["zzfar"], "a module of another folder has its own name"
            assert differing(record) == ()
            write(str(tmp_path / "far/zzfar.py"), "VALUE = 2\n")
            assert differing(record) == ("zzfar",)
    finally:
        sys.path[:] = [entry for entry in sys.path if str(tmp_path) not in entry]


def test_comments_docstrings_and_layout_do_not_count_and_other_changes_do():
    write("config/plugins/zztask.py", "import zzsim\n")
    write("config/plugins/zzsim.py", "VALUE = 1\n")
    record = sources_of_plugins(["zztask:Task"])
    (name,) = record
    write(name, '"""Explained."""\nVALUE  =  1  # one\n')
    assert differing(record) == ()
    for text in ("VALUE = 2\n", "VALUE = = 1\n"):
        write(name, text)
        assert differing(record) == (name,)
    Path(name).unlink()
    assert differing(record) == (name,)


BASES = {
    "own": "class Task:\n    depends = ('data/a.npy',)\n",
    "annotated": "class Task:\n    depends: tuple[str, ...] = ('data/a.npy',)\n",
    "inherited": "class Base:\n    depends = ['data/a.npy']\nclass Task(Base): ...\n",
    "imported base": "from zzbase import Other as Base\nclass Task(Base): ...\n",
    "base of a module": "import zzbase as b\nclass Task(b.Other): ...\n",
    "base of a submodule": "from zzp import base\nclass Task(base.Other): ...\n",
    "relative": "from zzp.inner import Task\n",
}


@pytest.mark.parametrize("form", BASES)
def test_declared_files_are_found_without_an_import(form: str):
    other = "raise SystemExit\nclass Other:\n    depends = ('data/a.npy',)\n"
    write("config/plugins/zzbase.py", other)
    write("config/plugins/zzp/base.py", other)
    write("config/plugins/zzp/inner.py", "from .base import Other\nclass Task(Other): ...\n")
    write("config/plugins/zztask.py", BASES[form])
    assert declared_files("zztask:Task") == ("data/a.npy",)
    write("data/a.npy", "\0")
    record = sources_of_plugins(["zztask:Task"])
    assert record["data/a.npy"] == file_hash(b"\0") and differing(record) == ()
    write("data/a.npy", "\1")
    assert differing(record) == ("data/a.npy",)


def test_a_class_that_declares_nothing_depends_on_no_file():
    write("config/plugins/zztask.py", "depends = ('x',)\nclass Task(Task): ...\nclass B(A): ...\n")
    assert declared_files("zztask:Task") == declared_files("zztask:B") == ()


@pytest.mark.parametrize("value", ["[NAME]", "'data.npy'", "(1,)", "paths()", "('/data.npy',)"])
def test_what_cannot_be_read_or_moved_is_refused(value: str):
    write("config/plugins/zztask.py", f"class Task:\n    depends = {value}\n")
    with refused("zztask:Task", "depends", "zztask.py"):
        declared_files("zztask:Task")


def test_a_missing_declared_file_names_class_file_and_remedy():
    write("config/plugins/zztask.py", "class Task:\n    depends = ('data/a.npy',)\n")
    with refused("zztask:Task", "zztask.py", "data/a.npy", "put it there"):
        sources_of_plugins(["zztask:Task"])


def test_a_broken_module_is_named():
    write("config/plugins/zztask.py", "import zzsim\n")
    write("config/plugins/zzsim.py", "VALUE = = 1\n")
    with refused("zzsim.py", "not valid Python"):
        imported_files(["zztask:Task"])


def test_the_module_of_an_environment_is_in_the_record_itself():
    write("config/plugins/zzenv.py", "import zzsim\n")
    write("config/plugins/zzsim.py", "VALUE = 1\n")
    domain = {"type": "gymnasium", "name": "own", "env": "zzenv:Hill-v0"}
    domain |= {"measures": [{"measure": "episode_length", "range": [0, 9]}]}
    keys = {"algorithm": "map_elites", "archive": {"dims": [5]}, "iterations": 1}
    experiment = compose({"domain": {**domain, "objective_range": [0, 9]}, **keys})
    assert experiment.has_own_modules
    assert [*sources_of_experiment(experiment)] == [
        "config/plugins/zzenv.py",
        "config/plugins/zzsim.py",
    ]


def test_a_process_with_an_earlier_import_is_refused():
    """Such as a fork of the warm process: it would compute with the earlier code."""
    write("config/plugins/zztask.py", "import zzsim\nclass Task: ...\n")
    write("config/plugins/zzsim.py", "VALUE = 1\n")
    targets = ["zztask:Task"]
    try:
        load_class(*targets)
        refuse_earlier_imports(targets)
        note_imports(targets)
        write("config/plugins/zzsim.py", "VALUE = 1  # one\n")
        refuse_earlier_imports(targets)
        write("config/plugins/zzsim.py", "VALUE = 2\n")
        with refused("config/plugins/zzsim.py", "start it again"):
            refuse_earlier_imports(targets)
    finally:
        forget_plugins()
    refuse_earlier_imports(targets)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("zzh.py", "config/plugins/zzh.py"),
        ("zzh.py", "zzh/__init__.py"),
        ("zzh/__init__.py", "config/plugins/zzh.py"),
        ("config/plugins/zzh.py", "config/plugins/zzh/__init__.py"),
    ],
)
def test_a_module_that_another_one_hides_has_changed(before: str, after: str):
    with folder_on_the_path():
        for path in (task := Path("config/plugins/zzt.py"), Path(before), Path(after)):
            path.parent.mkdir(parents=True, exist_ok=True)
        task.write_text("import zzh\nclass T: ...\n")
        Path(before).write_text("VALUE = 1\n")
        record = sources_of_plugins(["zzt:T"])
        assert [*record] == [before] and not differing(record)
        Path(after).write_text("VALUE = 1  # the same code\n")
        assert not differing(record)
        Path(after).write_text("VALUE = 2\n")
        assert differing(record) == (before,)


@pytest.mark.parametrize("folder", ["", "config/plugins/"])
def test_modules_in_folders_without_init_are_found(folder: str):
    with folder_on_the_path():
        files = {
            "zzt.py": "import zzn.a.b.c\nfrom zzn import a\nclass T: ...\n",
            "zzn/a/b/c.py": "from . import d\nfrom zzn.a import e\n",
            "zzn/a/b/d.py": "",
            "zzn/a/e.py": "",
        }
        for name, text in files.items():
            (path := Path(folder, name)).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        expected = {f"{folder}{name}" for name in files} - {f"{folder}zzt.py"}
        assert {*(record := sources_of_plugins(["zzt:T"]))} == expected
        assert not differing(record)
        assert find_source("zzn.a.e:E") == Path(folder, "zzn/a/e.py").absolute()
