"""Optional features, a folder each. The core imports none, and finds them by names of files.

- `settings.py`: `FAMILIES`, models of algorithms; `PICKLED` and `MOVED`, for reload files.
- `domains.py`: `DOMAINS`, models of domains.
- `commands.py`: `add_commands(add)`, commands of `qdsweep`.
- `stages.py`: `STAGES`, stages after the runs.
- `tables.py`: `write_tables(sweep_dir)`, called after the tables of `aggregate`.
- `page.py`: `embedded(data)`, the maps of a report.

Its `__init__.py` names the features that it imports, in `NEEDS`.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from qdsweep.errors import BadInput

_FOLDER = Path(__file__).parent


def modules(name: str) -> Iterator[ModuleType]:
    """Imports the file NAME.py of each feature that has one, in the order of their names."""
    for path in sorted(_FOLDER.glob(f"*/{name}.py")):
        package = f"{__name__}.{path.parent.name}"
        if all(map(_is_installed, getattr(import_module(package), "NEEDS", ()))):
            yield import_module(f"{package}.{name}")


def member(target: str, asked: str) -> Any:
    """Imports what a command or a key asks for.

    Args:
        target: `FEATURE.MODULE:NAME`.
        asked: The command or key.

    Raises:
        BadInput: The feature is not installed.
    """
    module, _, name = target.partition(":")
    require_feature(module.partition(".")[0], asked)
    return getattr(import_module(f"{__name__}.{module}"), name)


def require_feature(feature: str, asked: str) -> None:
    """Refuses a command or key whose feature is not installed.

    Raises:
        BadInput: It is not.
    """
    if not _is_installed(feature):
        raise BadInput(
            f"{asked}: the feature {feature} is not installed. Install qdsweep again, with all of "
            "its files"
        )


def _is_installed(feature: str) -> bool:
    return (_FOLDER / feature / "__init__.py").is_file()
