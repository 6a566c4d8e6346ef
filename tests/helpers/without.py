"""Removes or renames a name of Snakemake, as another release might."""

import functools
import inspect
import re
import sys
import types
from importlib import import_module
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from typing import Any

import pytest

from qdsweep.planning.internals import InsideName


def owner_of(name: InsideName) -> tuple[Any, str]:
    """Returns the module or class with a name, and the name in it."""
    module, _, path = name.place.partition(":")
    *owners, last = path.split(".")
    return functools.reduce(getattr, owners, import_module(module)), last


def remove(name: InsideName, patch: pytest.MonkeyPatch) -> None:
    """Removes a name: an attribute, a field, or what a constructor sets."""
    owner, last = owner_of(name)
    if hasattr(owner, "__wrapped__"):  # an attribute of a cached function
        part, function = owner_of(InsideName(name.place.rpartition(".")[0]))
        patch.setattr(part, function, owner.__wrapped__)
        return
    patch.delitem(getattr(owner, "__dataclass_fields__", {}), last, raising=False)
    for part in getattr(owner, "__mro__", (owner,)):
        if last in getattr(part, "__dict__", {}) and part is not object:
            patch.delattr(part, last)
        for maker in ("__init__", "__post_init__") if inspect.isclass(part) else ():
            function = vars(part).get(maker)
            if inspect.isfunction(function) and last in function.__code__.co_names:
                names = [
                    f"{known}_" * (known == last) or known for known in function.__code__.co_names
                ]
                code = function.__code__.replace(co_names=tuple(names))
                renamed = types.FunctionType(
                    code, function.__globals__, maker, function.__defaults__, function.__closure__
                )
                patch.setattr(part, maker, renamed)


class Renaming(SourceFileLoader):
    """Loads Snakemake's modules with another word for a name."""

    word = ""

    def get_code(self, fullname: str) -> Any:
        """Returns the code of a module; that of others, or without the word, as usual."""
        source = self.get_data(self.path).decode()
        if not fullname.startswith("snakemake") or self.word not in source:
            return super().get_code(fullname)
        return compile(re.sub(rf"\b{self.word}\b", f"{self.word}_now", source), self.path, "exec")


if __name__ == "__main__":  # python without.py WORD, then the words of Snakemake
    Renaming.word = sys.argv.pop(1)
    kinds = (ExtensionFileLoader, EXTENSION_SUFFIXES), (Renaming, SOURCE_SUFFIXES)
    sys.path_hooks.insert(0, FileFinder.path_hook(*kinds))
    sys.path_importer_cache.clear()
    from snakemake.cli import main

    sys.exit(main())
