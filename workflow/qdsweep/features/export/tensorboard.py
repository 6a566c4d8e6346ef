"""Event files of the runs of a sweep, for TensorBoard.

The bytes of an event file depend only on the files of its run. What a kill has cut off, or what was
written while the run was shorter, is thus the beginning of the whole file, and is continued.
"""

import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from qdsweep.analysis.search_progress import read_search, read_states
from qdsweep.config.requirements import require_packages
from qdsweep.files import damaged, naming
from qdsweep.host.lock import Lock, Locked, is_alive
from qdsweep.host.owner import describe, read_owner
from qdsweep.metrics import COMPILE, OWN_SECONDS, SECONDS
from qdsweep.ornaments import ornament
from qdsweep.records.metrics_file import read_lines
from qdsweep.records.paths import StateDir, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.status import read_status
from qdsweep.records.sums import require_as_written
from qdsweep.text import cut, plural

# No other files are changed. Other content gets the next number and the old file becomes empty: a
# TensorBoard that has opened it continues with the next one. It would not if it was gone.
_OWN, _NAME = "events.out.tfevents.*.qdsweep", "events.out.tfevents.{:05}.qdsweep"
_WIDTH = 80  # of the name of a run; file systems allow 255 bytes
_TIMES = (*SECONDS, COMPILE, OWN_SECONDS)


def write_event_files(sweep: SweepDir, folder: Path) -> str:
    """Writes an event file for each run that has metrics, or appends the iterations it lacks.

    It is in `folder/SWEEP/RUN`, where RUN is the name in `qdsweep status`. Event files of runs
    whose name has changed are removed.

    Args:
        sweep: The sweep.
        folder: The folder for `tensorboard --logdir`.

    Returns:
        A line on what was written.

    Raises:
        BadInput: TensorBoard is not installed, there is no such sweep, or a file of a finished run
            is damaged.
        Locked: Another process exports into the folder.
    """
    plan = read_plan(sweep)
    require_packages("export --to tensorboard", "tensorboard")
    states = {now.run.id: now for now in read_states(sweep, plan, read_search(sweep, plan))}
    names = {run: now.run.label for run, now in states.items()}
    names |= {row.run: plan.label(row) for row in plan.rows if row.imported}
    out = folder / sweep.name
    lock = out / ".export.lock"
    if is_alive(lock):
        raise Locked(f"{out}: {describe(read_owner(lock))} exports into it; wait for its end")
    with Lock(lock):
        folders = {run: out / name for run, name in _as_folders(names).items()}
        parameters = _parameters(plan)
        changed = 0
        for run, place in folders.items():
            state = sweep.results.run(run).state
            is_final = run not in states or states[run].state == "finished"
            changed += _update(state, place, parameters.get(run), is_final=is_final)
        for old in out.glob(f"*/{_OWN}"):
            if old.parent not in folders.values():
                old.unlink()
                with suppress(OSError):  # it has other files
                    old.parent.rmdir()
    return f"{out}: {plural(len(names), 'run')}, {changed:,} of them new or longer"


def _as_folders(names: Mapping[str, str]) -> dict[str, str]:
    """Returns run id -> its name as that of a folder, with the id where two runs share a name."""
    allowed = {run: re.sub(r"[\x00-\x1f/\\]|^\.", "_", name) for run, name in names.items()}
    short = {run: cut(name, _WIDTH) for run, name in allowed.items()}
    count = Counter(short.values())
    return {run: name if count[name] == 1 else f"{name} {run}" for run, name in short.items()}


def _parameters(plan: Plan) -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns run id -> its group and the swept values that distinguish groups."""
    return {
        row.run: (
            row.group,
            {
                name: value if isinstance(value := row.typed[name], int | float) else text
                for name in plan.group_columns
                if (text := row.values[name])
            },
        )
        for row in plan.rows
    }


@ornament("the event file {1}", lambda why, *about, **final: False)
def _update(
    state: StateDir,
    folder: Path,
    parameters: tuple[str, dict[str, Any]] | None,
    *,
    is_final: bool,
) -> bool:
    """Brings the event file of a run up to date; returns whether it has changed.

    The file of a finished run gets the time of its metrics, and later calls skip it.
    """
    require_as_written(state.metrics)
    header, *rows = read_lines(state.metrics) or [""]
    if not rows:
        return False
    made = state.metrics.stat().st_mtime_ns
    files = sorted(folder.glob(_OWN))
    path = files[-1] if files else folder / _NAME.format(0)
    if is_final and files and path.stat().st_mtime_ns == made:
        return False
    wanted = b"".join(_records(state, header, rows, parameters))
    there = path.read_bytes() if files else b""
    if not wanted.startswith(there):
        path, there = folder / _NAME.format(int(path.name.split(".")[-2]) + 1), b""
    folder.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab") as file:
        file.write(wanted[len(there) :])
    for old in files:
        if old != path:
            os.truncate(old, 0)
    if is_final:
        os.utime(path, ns=(made, made))
    return wanted != there


def _records(
    state: StateDir,
    header: str,
    rows: list[str],
    parameters: tuple[str, dict[str, Any]] | None,
) -> Iterator[bytes]:
    """Yields the records of an event file: what the run is, then its metrics in each iteration."""
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    def record(**content: Any) -> bytes:
        file = io.BytesIO()
        RecordWriter(file).write(Event(**content).SerializeToString())
        return file.getvalue()

    starts = _starts(state)
    time = starts.get(0, 0.0)
    yield record(wall_time=time, file_version="brain.Event:2")
    # A TensorBoard that has read an earlier file of this run forgets it.
    yield record(wall_time=time, session_log=SessionLog(status=SessionLog.START))
    yield record(wall_time=time, summary=_config(state))
    if parameters:
        yield record(wall_time=time, summary=_hyperparameters(*parameters, time))
    columns = header.split(",")
    for iteration, row in enumerate(rows, start=1):
        cells = zip(columns, row.split(","), strict=True)
        values = {name: float(cell) for name, cell in cells if cell}
        time = starts.get(iteration - 1, time) + sum(values.get(name, 0.0) for name in _TIMES)
        scalars = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
            if name not in _TIMES and name != columns[0]
        ]
        yield record(wall_time=time, step=iteration, summary=Summary(value=scalars))


def _starts(state: StateDir) -> dict[int, float]:
    """Returns iteration -> when the attempt that resumed from it started [s since 1970]."""
    starts: dict[int, float] = {}
    status = read_status(state)
    if status.is_damaged:
        error = ValueError("it has changed since it was written")
        raise damaged(state.status, error, "remove it; then the events have no times")
    for attempt in status.attempts:
        with suppress(KeyError, TypeError, ValueError):  # of another release
            first, time = int(attempt["from"]), datetime.fromisoformat(attempt["started"])
            starts = {at: start for at, start in starts.items() if at < first}
            starts[first] = time.timestamp()
    return starts


def _config(state: StateDir) -> Any:
    """Returns the experiment as a text of TensorBoard."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.util.tensor_util import make_tensor_proto

    require_as_written(state.config)
    text = f"```yaml\n{state.config.read_text(encoding='utf-8')}```"
    about = create_summary_metadata(display_name="", description="")
    value = Summary.Value(tag=state.config.name, metadata=about, tensor=make_tensor_proto(text))
    return Summary(value=[value])


def _hyperparameters(group: str, values: dict[str, Any], started: float) -> Any:
    """Returns the swept values for the page HParams; runs of a group differ only in their seed."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    summary = hparams_pb(values, trial_id=group, start_time_secs=started)
    plugin = summary.value[0].metadata.plugin_data
    # Its values are a map, whose order differs from process to process.
    data = HParamsPluginData.FromString(plugin.content)
    plugin.content = data.SerializeToString(deterministic=True)
    return summary
