"""The command line: `qdsweep COMMAND`."""

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence

from qdsweep.cli import elites, runs, stages, studies, sweeps
from qdsweep.cli.arguments import adder
from qdsweep.errors import QdsweepError, StorageError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(argv)
    os.environ["MPLBACKEND"] = "agg"  # figures are files, also in a notebook's terminal
    try:
        if arguments.image:
            from qdsweep.container.enter import enter

            enter(arguments.image, arguments, _after_options(argv))
        code = arguments.command(arguments)
        print(end="", flush=True)  # sys.stdout is None where it was closed
        _leave_threads(code)
        return code
    except QdsweepError as error:
        print(f"qdsweep: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # or a plug-in that raises it
        print("qdsweep: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader has ended, such as head
        sys.stderr.close()
        return 0
    except OSError as error:
        place = error.filename or _broken_output()
        if error.errno is None or place is None:  # it is about no file
            raise
        print(f"qdsweep: {StorageError(error, place)}", file=sys.stderr)
        return StorageError.exit_code


def _broken_output() -> str | None:
    """Returns the name of the standard output if it cannot be written, which is then closed."""
    try:
        print(flush=True)  # the line that failed is no longer in the buffer
    except OSError:
        with contextlib.suppress(OSError):
            sys.stdout.close()  # else Python tries once more at its end
        return "the standard output"
    return None


class _Version(argparse.Action):
    """Prints the version; reads the package's files only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from qdsweep.versions import own_version

        print(own_version())
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qdsweep",
        description="Parameter sweeps of distributed Quality-Diversity experiments.",
        epilog="`qdsweep COMMAND --help` shows examples. Whole sweeps: `snakemake --cores 8`.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="run the command in this Apptainer image: a file, or a URL such as docker://...",
    )
    add = adder(parser)
    for add_commands in (
        studies.add_commands,
        runs.add_commands,
        runs.add_search_commands,
        sweeps.add_commands,
        sweeps.add_plan_commands,
        stages.add_import_commands,
        stages.add_scale_commands,
        elites.add_commands,
        stages.add_commands,
    ):
        add_commands(add)
    return parser


def _after_options(argv: list[str]) -> list[str]:
    """Returns the command and what follows it."""
    first = 0
    while argv[first].startswith("-"):
        first += 1 if "=" in argv[first] else 2
    return argv[first:]


def _leave_threads(code: int) -> None:
    """Exits at once if a domain has left threads behind, which Python would wait for."""
    left = [thread for thread in threading.enumerate() if not thread.daemon]
    if left != [threading.main_thread()]:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
