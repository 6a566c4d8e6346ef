"""The command export."""

import argparse
import shlex
from pathlib import Path

from qdsweep.cli.arguments import Add
from qdsweep.cli.sweeps import add_sweep, chosen_sweep
from qdsweep.errors import BadInput

EXPORT = """\
examples:
  qdsweep export demo                        demo.zip: configs, tables, figures, archives, metrics
  qdsweep export demo --out supplement.zip
  qdsweep export demo --allow max            `max` is a user name here, and also a common word
  qdsweep export demo --to tensorboard tb    event files in tb/demo, also of runs that are being
                                             computed; the same command again brings them up to
                                             date; then: tensorboard --logdir tb
The zip is fit for a double-blind review. If a packed text has a host name, your user name, one of
your paths, an e-mail address or a Slurm job, the exit code is 1 and no file is written. The same
sweep gives the same bytes. Unfinished runs are refused, unless the tables include them
(--config partial=true).
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    text = "Pack a sweep as an anonymous supplement (zip), or write it for TensorBoard."
    export = add("export", text, EXPORT)
    add_sweep(export)
    target = export.add_mutually_exclusive_group()
    target.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="the file to write (default: NAME.zip)"
    )
    target.add_argument(
        "--to",
        nargs=2,
        metavar=("tensorboard", "DIR"),
        help="write event files of TensorBoard into a folder instead",
    )
    export.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="WORD",
        help="allow this name, because it is also a common word (repeatable)",
    )
    export.set_defaults(command=_export)


def _export(arguments: argparse.Namespace) -> int:
    sweep = chosen_sweep(arguments)
    if arguments.to:
        from qdsweep.features.export.tensorboard import write_event_files

        tool, folder = arguments.to
        if tool != "tensorboard":
            raise BadInput(f"--to {tool}: give `--to tensorboard DIR`")
        print(write_event_files(sweep, Path(folder)))
        print(f"`tensorboard --logdir {shlex.quote(str(folder))}` shows them")
        return 0
    from qdsweep.features.export.pack import export

    out = arguments.out or Path(f"{sweep.name}.zip")
    print(export(arguments.results, sweep.name, out, allowed=arguments.allow))
    return 0
