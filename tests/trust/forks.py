"""Runs commands of `qdsweep` in forks of this process, which has imported and compiled everything.

python forks.py EXPERIMENTS: a JSON list of what to compile for. Standard input then has a line of
JSON for each command: its words, its folder, and the file for what it prints. Standard output
says the exit code of each. So one start of Python serves hundreds of commands, each of them a
process with the LD_PRELOAD of this one.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from qdsweep.host.machine import apply_baseline, kept_by_forks
from qdsweep.warm import server


def serve() -> None:
    """Runs commands until standard input ends."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run(**request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(words: list[str], cwd: str, log: str) -> None:
    """Runs a command in the fork, and ends it."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(printed, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 1
    try:
        os.chdir(cwd)
        sys.argv = ["qdsweep", *words]
        from qdsweep.cli import main

        code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    apply_baseline("avx2")
    os.environ.update(kept_by_forks())
    server.prepare(sys.argv[1].encode())
    server.prepare_stages()
    assert not server.has_threads(), "a fork of it may hang"
    print(Path("/proc/self/maps").read_text().count("faulty_disk"), flush=True)
    serve()
