"""The command export."""

import argparse
import shlex
import signal
from pathlib import Path

from qdsweep.cli.arguments import Add
from qdsweep.cli.sweeps import add_sweep, chosen_sweep
from qdsweep.errors import BadInput
from qdsweep.features.export.publication import LICENCES, publication_of
from qdsweep.host.signals import SIGNALS
from qdsweep.text import listed

EXPORT = """\
examples:
  qdsweep export demo                        demo.zip: config, code, tables, figures, archives
  qdsweep export demo --out supplement.zip
  qdsweep export demo --allow max            `max` is a user name here, and also a common word
  qdsweep export demo --public --licence MIT   with authors, for Zenodo and alike: LICENSE,
                                             CITATION.cff (yours, or one with your name in git)
                                             and .zenodo.json
  qdsweep export demo --to tensorboard tb    event files in tb/demo, also of runs that are being
                                             computed; the same command again brings them up to
                                             date; then: tensorboard --logdir tb
The zip is a study: in its folder, `qdsweep sweep sweep.yaml` computes the same runs. It has every
file that the sweep names, your code and what that imports, and the files that its classes declare
(`depends = ("data/map.npy",)`). The command plans it elsewhere, and refuses it if a run differs.
Without --public it is fit for a double-blind review. Your own files are packed unchanged: the
command lists them, and names each line that has a name, a path or an address. If any other text has
a host name, your user name, one of your paths, an e-mail address or a Slurm job, the exit code is 1
and no file is written. The same sweep gives the same bytes. Unfinished runs are refused, unless the
tables include them (--config partial=true).
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
    export.add_argument(
        "--public", action="store_true", help="not blind: with its authors, licence and citation"
    )
    export.add_argument("--licence", choices=LICENCES, help="its licence (SPDX id)")
    export.set_defaults(command=_export)


def _export(arguments: argparse.Namespace) -> int:
    sweep = chosen_sweep(arguments)
    if arguments.public != bool(arguments.licence):
        given, other = (
            ("--public", "--licence MIT")
            if arguments.public
            else (f"--licence {arguments.licence}", "--public")
        )
        raise BadInput(f"{given}: a public package needs {other}, too; a blind one has neither")
    if arguments.to:
        if arguments.public:
            raise BadInput("--to tensorboard: event files have no licence; leave out --public")
        from qdsweep.features.export.tensorboard import write_event_files

        tool, folder = arguments.to
        if tool != "tensorboard":
            raise BadInput(f"--to {tool}: give `--to tensorboard DIR`")
        print(write_event_files(sweep, Path(folder)))
        print(f"`tensorboard --logdir {shlex.quote(str(folder))}` shows them")
        return 0
    from qdsweep.features.export.pack import export

    for number in SIGNALS:  # nothing is left of it
        signal.signal(number, signal.default_int_handler)
    out = arguments.out or Path(f"{sweep.name}.zip")
    publication = publication_of(arguments.licence) if arguments.public else None
    print(
        export(
            arguments.results,
            sweep.name,
            out,
            allowed=arguments.allow,
            publication=publication,
        )
    )
    if publication:
        print(f"Authors: {listed(publication.authors)} ({publication.origin})")
    return 0
