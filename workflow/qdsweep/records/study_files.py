"""results/sweeps/NAME/study/: the config of a sweep, as its last start has composed it.

It is whole: in a folder with these files, and with the user's code, the same runs are planned.
`qdsweep export` packs it, and the page of the sweep shows its sweep file.
"""

from collections.abc import Mapping

from qdsweep.errors import BadInput
from qdsweep.files import atomic, read_folder, try_to_remove, write_text
from qdsweep.records.paths import SweepDir
from qdsweep.records.sums import damaged_files, sums_of

# The sweep file in the study, and in a package.
SWEEP_FILE = "sweep.yaml"

_AGAIN = (
    "Start the sweep again, with `qdsweep sweep` or snakemake as before: it computes nothing that "
    "is finished, and writes it"
)


def write_study(files: Mapping[str, bytes], sweep: SweepDir) -> None:
    """Writes the config of a sweep, and removes further files of an earlier start.

    Args:
        files: Path in the study -> content.
        sweep: The sweep's folder.
    """
    known = read_folder(sweep.study)
    if known == files:
        return
    sums = sweep.sums("study")
    sums.unlink(missing_ok=True)
    try_to_remove(sweep.study / name for name in known.keys() - files.keys())
    for name, content in files.items():
        if known.get(name) != content:
            (sweep.study / name).parent.mkdir(parents=True, exist_ok=True)
            with atomic(sweep.study / name) as file:
                file.write(content)
    sums.parent.mkdir(parents=True, exist_ok=True)
    write_text(sums, sums_of(sweep.path, [sweep.study / name for name in files]))


def read_study(sweep: SweepDir) -> dict[str, bytes]:
    """Reads the config of a sweep.

    Returns:
        Path in the study -> content.

    Raises:
        BadInput: The last start was one of an earlier release, or a file has changed since.
    """
    if not (sweep.study / SWEEP_FILE).is_file():
        raise BadInput(
            f"{sweep.study / SWEEP_FILE} does not exist: an earlier release started the sweep "
            f"last. {_AGAIN}"
        )
    changed = damaged_files(sweep.sums("study"), sweep.path)
    if changed:
        raise BadInput(f"{changed[0]} has changed since the start that wrote it. {_AGAIN}")
    return read_folder(sweep.study)


def shown_file(sweep: SweepDir) -> str:
    """Returns the sweep file as the page shows it; empty if an earlier release started it."""
    path = sweep.study / SWEEP_FILE
    return path.read_text(encoding="utf-8") if path.is_file() else ""
