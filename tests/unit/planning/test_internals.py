"""A start compares all names that it uses inside Snakemake with the installed one."""

import inspect
import subprocess
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import snakemake.cli  # noqa: F401 - as in a start, before its modules
from packaging.version import Version
from refusals import names_all, refused
from snakemake import rules
from snakemake.persistence import PersistenceBase
from snakemake.persistence.file import FilePersistence
from support import REPO, locked
from without import owner_of, remove

from qdsweep.planning import internals
from qdsweep.planning.internals import NAMES, NEWEST, OLDEST, InsideName, check, forget_jobs

INSTALLED = version("snakemake")


def checked() -> str:
    return check.__wrapped__()


def test_the_installed_snakemake_has_all_names():
    assert checked() == ""
    assert Version(OLDEST) <= Version(INSTALLED) <= Version(NEWEST)
    assert locked()["snakemake"] == NEWEST
    assert locked()["snakemake-executor-plugin-slurm"] == internals.SLURM
    text = (REPO / "pyproject.toml").read_text()
    bounds = f">={OLDEST.removesuffix('.0')},<{Version(NEWEST).major + 1}"
    assert f'"snakemake{bounds}"' in text
    assert (
        f'min_version("{OLDEST.removesuffix(".0")}")' in (REPO / "workflow/Snakefile").read_text()
    )


def assert_noticed(name: InsideName) -> None:
    """One sentence names what is lost, both versions and the remedy."""
    about = (str(name), OLDEST, NEWEST, INSTALLED, "pip install")
    if name.slower:
        names_all(checked(), *about, "warning", name.slower)
    else:
        with refused(*about):
            checked()


def test_each_lost_name_is_noticed():
    for name in NAMES:
        with pytest.MonkeyPatch.context() as patch:
            remove(name, patch)
            assert_noticed(name)
    assert checked() == ""


def changed(function):
    """The function with another name of its last parameter."""

    async def coroutine(*_, other):
        pass

    def plain(*_, other):
        pass

    return coroutine if inspect.iscoroutinefunction(function) else plain


def test_other_parameters_are_noticed():
    functions = [name for name in NAMES if "(" in name.form]
    assert len(functions) > 20
    for name in functions:
        owner, last = owner_of(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, last, changed(getattr(owner, last)))
            assert_noticed(name)


@pytest.mark.parametrize("slower", sorted({name.slower for name in NAMES if name.slower}))
def test_a_patch_for_speed_is_left_out(slower: str, monkeypatch):
    name, *others = [name for name in NAMES if name.slower == slower]
    patched = (PersistenceBase, "finished"), (rules, "get_function_params")
    remove(others[-1] if others else name, monkeypatch)
    before = [getattr(owner, name, None) for owner, name in patched]
    assert not internals._is_whole(slower)
    if slower == internals._FEW:
        internals.record_few_inputs(bool, 0)
    else:
        internals.inspect_once()
    assert [getattr(owner, name, None) for owner, name in patched] == before


@pytest.mark.parametrize("name", ["results/runs/a-1/summary.json", "a/é b/" + "c" * 150 + ".npz"])
def test_the_records_of_a_file_are_those_of_snakemake(name: str):
    file = Path(name)
    keys = [
        Path(FilePersistence._record_path(SimpleNamespace(_fetch_max_len=lambda _: 0), kind, name))
        for kind in (".snakemake/metadata", ".snakemake/incomplete")
    ]
    for path in keys:
        path.parent.mkdir(parents=True)
        path.touch()
    forget_jobs(file.parent, [file.name, "none"])
    assert not any(path.exists() for path in keys)


def test_an_ended_run_is_known_by_the_message_of_its_process():
    words = "python -P -m qdsweep --image='' launch a-s1-0 --budget iterations=4"
    for code, end in ((3, ("3", None)), (-11, (None, "SIGSEGV"))):
        error = subprocess.CalledProcessError(code, f"set -euo pipefail; {words}")
        assert internals._ENDED.search(
            f"RuleException:\nCalledProcessError in file:\n{error}"
        ).groups() == ("a-s1-0", *end)


def test_all_of_snakemakes_inside_is_in_one_file():
    package = REPO / "workflow/qdsweep"
    public = ("snakemake.exceptions", "snakemake.io", "snakemake_interface")
    for file in package.rglob("*.py"):
        if file != package / "planning/internals.py":
            lines = map(str.strip, file.read_text().splitlines())
            lines = [
                line for line in lines if line.startswith(("from snakemake", "import snakemake"))
            ]
            assert all(line.split()[1].startswith(public) for line in lines), (file, lines)
