"""A folder of very many finished runs, as after a sweep.

A real start of Snakemake computes one run. Its files, including Snakemake's records, are written
under the ids of the other runs. A file that does not name its run is a hard link to
one file. The files of the later stages are empty, but up to date for Snakemake.
"""

import json
import os
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from support import TINY, snakemake, write_yaml

from qdsweep.analysis.stages import STAGES
from qdsweep.planning.request import Given, read_sweep
from qdsweep.planning.rows import plan_data, sweep_of
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import digest, write_plan
from qdsweep.records.results import write_config
from qdsweep.records.status import write_status
from qdsweep.sweep.runs import Sweep

EXPERIMENT = {**TINY, "algorithm": "map_elites"}
SIGMAS = 100
# File systems limit the number of names of a file, ext4 to 65,000. One run uses two.
NAMES = 10_000


def write_sweep(folder: Path, seeds: int, sigmas: int = SIGMAS) -> Path:
    """Writes a sweep file with these numbers of seeds and values."""
    config = {"name": "many", "experiment": EXPERIMENT, "sweep": _text(seeds, sigmas)}
    return write_yaml(folder / "sweep.yaml", config)


def _text(seeds: int, sigmas: int) -> str:
    values = " ".join(f"{number / 1000:g}" for number in range(1, sigmas + 1))
    return f"::: sigma {values} ::: seed {' '.join(map(str, range(1, seeds + 1)))}"


def start(folder: Path, *words: object, **options: object):
    """Runs the command of the sweep."""
    return snakemake("--cores", 2, "--configfile", "sweep.yaml", *words, cwd=folder, **options)


def finish_runs(folder: Path, seeds: int) -> list[str]:
    """Makes a sweep of `SIGMAS * seeds` runs, finished to its last stage; returns its ids."""
    folder.mkdir(parents=True, exist_ok=True)
    write_sweep(folder, seeds=1, sigmas=1)
    start(folder, "--until", "qd_run")
    results = Results(folder / "results")
    settings = read_sweep(Given({}, files=[write_sweep(folder, seeds)]))
    sweep = sweep_of(settings, results)
    model, *others = sweep.runs
    for count, run in enumerate(others, 1):
        anew = count % NAMES == 0
        _copy(folder, model, run, sweep, anew=anew)
        model = run if anew else model
    plan = plan_data(settings, sweep)
    write_plan(plan, sweep.runs, results)
    _finish_stages(folder, digest(plan))
    return list(sweep.runs)


def _finish_stages(folder: Path, plan: str) -> None:
    """Makes empty files of all stages, and Snakemake's records of them."""
    stages = {stage.name: stage for stage in STAGES if not stage.key}
    for stage in stages.values():
        outputs = [
            f"results/sweeps/many/{path}"
            for name in stage.reads
            for path in (stages[name].outputs if name in stages else ())
        ]
        inputs = sorted(outputs)
        record = {
            "rule": stage.rule or stage.name,
            "input": inputs,
            "params": sorted(map(repr, ["", plan])) if stage.name == "aggregate" else [],
            "record_format_version": 6,
            "input_checksums": {name: _checksum(folder / name) for name in inputs},
        }
        for path in stage.outputs:
            name = f"results/sweeps/many/{path}"
            _write_empty(folder / name)
            _record(folder, name).write_text(json.dumps(record))


def _checksum(path: Path) -> str | None:
    return f"sha256:{sha256(path.read_bytes()).hexdigest()}" if path.is_file() else None


def _write_empty(path: Path) -> None:
    """Makes a file, or a marker in place of a folder of pictures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch() if path.suffix else path.mkdir(exist_ok=True)


def _copy(folder: Path, model: str, run: str, sweep: Sweep, *, anew: bool) -> None:
    """Writes the files of a finished run under the id of another one."""
    old, new = (RunDir(folder / "results/runs" / name) for name in (model, run))
    new.state.path.mkdir(parents=True)
    write_config(new.state.config, sweep.runs[run])
    new.state.lock.touch()

    def renamed(file: str) -> str:
        text = (old.state.path / file).read_text().replace(model, run)
        return text.replace(sweep.fingerprints[model], sweep.fingerprints[run])

    for file in ("summary.json", "run.log"):
        (new.state.path / file).write_text(renamed(file))
    status = json.loads(renamed("status.json"))
    del status["sha256"]
    write_status(new.state, status)
    for path in old.state.path.iterdir():
        target = new.state.path / path.name
        if not target.exists() and path.is_file():
            target.write_bytes(path.read_bytes()) if anew else os.link(path, target)
    new.state.seal()
    new.publish()
    outputs = ("config.yaml", "metrics.csv", "archive.npz", "reload.pkl", "summary.json")
    first, *rest = [_record(folder, f"results/runs/{run}/{name}") for name in outputs]
    known = _record(folder, f"results/runs/{model}/{outputs[0]}").read_text()
    first.write_text(known.replace(model, run))
    for record in rest:
        os.link(first, record)


def _record(folder: Path, output: str) -> Path:
    """Returns the file of Snakemake's record of an output."""
    return folder / ".snakemake/metadata" / urlsafe_b64encode(output.encode()).decode()
