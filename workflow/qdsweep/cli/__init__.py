"""The command line: `qdsweep COMMAND`."""

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence

from qdsweep.cli import elites, merge_commands, run_commands, stage_commands, studies, sweeps
from qdsweep.cli.arguments import adder
from qdsweep.errors import QdsweepError, StorageError
from qdsweep.features import member, modules
from qdsweep.host.process import complete_user
from qdsweep.text import nearest

GROUPS = {
    "Set up and run": ("init", "check", "expand", "plan", "sweep", "run", "worker", "scale"),
    "Monitor and manage": ("status", "watch", "merge", "clean", "adopt"),
    "Results": (
        "plot",
        "report",
        "compare",
        "tuned",
        "explore",
        "rollout",
        "reevaluate",
        "import",
        "export",
        "audit",
        "reproduce",
    ),
}
"""The commands of `qdsweep --help`. `--help-all` also lists the others, as `INTERNAL`."""
INTERNAL = "Internal (Snakemake's rules call these)"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command, or prints the next step if there is none, and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser, commands = parsers()
    words = _after_options(argv)
    if words and words[0] not in commands:
        if any(words[0] in names for names in GROUPS.values()):
            parser.error(f"the feature of `qdsweep {words[0]}` is not installed")
        near = nearest(words[0], commands)
        parser.error(f"unknown command {words[0]!r}: {near}`qdsweep --help` lists all commands")
    arguments = parser.parse_args(argv)
    os.environ["MPLBACKEND"] = "agg"  # figures are files, also in a notebook's terminal
    complete_user()
    try:
        if not words:
            from qdsweep.cli.next_step import next_step

            print(*next_step(), sep="\n")
            return 0
        if arguments.image:
            member("image.enter:enter", "--image")(arguments.image, arguments, words)
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
        if error.errno is None or place is None:  # it concerns no file
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


class _HelpAll(argparse.Action):
    """Prints the help with all commands."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.description = self.const
        parser.print_help()
        parser.exit()


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Returns the parser of `qdsweep`, and name -> the parser of each command."""
    parser = argparse.ArgumentParser(
        prog="qdsweep",
        usage="qdsweep [--image FILE] COMMAND ...",
        epilog="""\
Without a command, qdsweep prints the next step in this folder. `qdsweep COMMAND --help` shows
examples. `snakemake --cores all` and `qdsweep sweep FILE` each start a whole sweep.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="run the command in this Apptainer image: a file, or a URL such as docker://...",
    )
    add, commands = adder(parser)
    for add_commands in (
        studies.add_commands,
        run_commands.add_commands,
        run_commands.add_search_commands,
        sweeps.add_commands,
        sweeps.add_plan_commands,
        merge_commands.add_commands,
        elites.add_commands,
        stage_commands.add_commands,
        *(feature.add_commands for feature in modules("commands")),
    ):
        add_commands(add)
    parser.description = _description(commands, GROUPS)
    every = _description(commands, groups_of(commands))
    parser.add_argument(
        "--help-all", action=_HelpAll, nargs=0, const=every, help="list internal commands, too"
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser, commands


def groups_of(commands: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns heading -> commands, with those of no group as `INTERNAL`."""
    shown = {name for names in GROUPS.values() for name in names}
    return {**GROUPS, INTERNAL: tuple(name for name in commands if name not in shown)}


def _description(
    commands: Mapping[str, argparse.ArgumentParser], groups: Mapping[str, Iterable[str]]
) -> str:
    lines = ["Parameter sweeps of distributed Quality-Diversity experiments."]
    for heading, names in groups.items():
        lines += ["", f"{heading}:"]
        shown = (name for name in names if name in commands)  # a feature may be missing
        lines += [f"  {name:12}{commands[name].description}" for name in shown]
    return "\n".join(lines)


def _after_options(argv: list[str]) -> list[str]:
    """Returns the command and its words; nothing if there are only options."""
    first = 0
    while first < len(argv) and argv[first].startswith("-"):
        first += 2 if argv[first] == "--image" else 1
    return argv[first:]


def _leave_threads(code: int) -> None:
    """Exits at once if a domain has left threads behind: Python would wait for them."""
    left = [thread for thread in threading.enumerate() if not thread.daemon]
    if left != [threading.main_thread()]:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
