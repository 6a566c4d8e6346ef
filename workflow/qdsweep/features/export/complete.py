"""Whether a package is complete: in a folder of its own, it plans the runs of its sweep."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qdsweep.config.files import PRESET_FOLDER
from qdsweep.errors import BadInput
from qdsweep.planning.composed import NamedFiles
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.start import Start
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan
from qdsweep.records.study_files import SWEEP_FILE
from qdsweep.text import listed, plural

_PROGRAM = f"from {__name__} import main; main()"


def require_complete(study: Mapping[str, bytes], plan: Plan, results: Results) -> None:
    """Refuses a package that does not plan the runs of its sweep.

    It is planned by another process, in another folder: what it lacks is not found in this one.

    Args:
        study: Path in the package -> content, of its config and code.
        plan: The sweep.
        results: The folder results/: runs of earlier releases have their ids from there.

    Raises:
        BadInput: The message names what is missing.
    """
    with tempfile.TemporaryDirectory(prefix="qdsweep-export-") as folder:
        for name, content in study.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        words = [sys.executable, "-P", "-c", _PROGRAM, str(results.path.absolute())]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    found = json.loads(lines[-1]) if lines else {"error": done.stderr.strip()[-2000:]}
    if "error" in found:
        raise BadInput(f"the package of {plan.name} would not be complete: {found['error']}")
    if found["outside"]:
        raise BadInput(
            f"the package of {plan.name} would not be complete: {listed(found['outside'])} is "
            "outside the study's folder, or has an absolute path. Copy it into the study, name it "
            "by its path from there, and start the sweep again"
        )
    known = {row.run for row in plan.rows} if plan.search is None else _candidates(plan)
    other = sorted(known ^ {*found["runs"]})
    if other:
        raise BadInput(
            f"the package of {plan.name} would plan other runs than the sweep has: "
            f"{plural(len(other), 'run')}, such as {other[0]}. Start the sweep again, with the "
            "files as they are now"
        )


def _candidates(plan: Plan) -> set[str]:
    """Returns the runs that a search knows before it starts."""
    return {run for candidate in plan.candidates for run in candidate["runs"].values()}


def planned_here(results: Results) -> dict[str, Any]:
    """Returns what the study in the working directory plans.

    Args:
        results: The folder results/.

    Returns:
        `runs`: the ids; `outside`: the files that the study names and does not have. Or `error`.
    """
    given = Given({}, files=[Path(SWEEP_FILE)])
    try:
        start = Start(results, given)
        named = NamedFiles()
        named.of_sweep(read_sweep(given), start.whole.imported)
    except BadInput as error:
        return {"error": str(error)}
    presets = [str(path) for path in named.files.values() if path.is_relative_to(PRESET_FOLDER)]
    if start.search is not None:
        runs = {run for candidate in start.search.candidates for run in candidate.runs.values()}
    else:
        runs = {row["id"] for row in start.plan["rows"]}
    return {"runs": sorted(runs), "outside": [*named.outside, *named.moved, *presets]}


def main() -> None:
    """Prints it as JSON."""
    print(json.dumps(planned_here(Results(Path(sys.argv[1])))))
