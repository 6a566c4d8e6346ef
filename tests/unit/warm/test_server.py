"""The warm process: it is forked only while it has one thread, and outlives its clients."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from own_parts import LAB
from support import TINY
from waiting import wait_until

from qdsweep.config.compose import compose
from qdsweep.warm.client import LENGTH

CODE = """
import sys
from qdsweep.host.machine import apply_baseline
apply_baseline("avx2")
from qdsweep.warm.server import has_threads, prepare
prepare(sys.stdin.buffer.readline())
print(has_threads())
"""
PART = {"archive": {"type": "grid"}, "emitters": [{"type": "lab:Bare"}]}
STARTS = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"


def test_threads_of_a_plugin_are_seen(plugins):
    plugins("lab", STARTS + LAB)
    data = compose({**TINY, "algorithm": PART}).model_dump_json()
    words = [sys.executable, "-c", CODE]
    done = subprocess.run(words, input=f"[{data}]\n", capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


@contextmanager
def warm_process(folder: Path) -> Iterator[tuple[subprocess.Popen, Path]]:
    """A warm process that is prepared for nothing, and its socket."""
    path = folder / "warm"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        words = [sys.executable, "-P", "-m", "qdsweep.warm.server", str(listener.fileno())]
        words.append("qdsweep.cli:main")
        server = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])
    server.stdin.write(b"[]\n")
    server.stdin.flush()
    yield server, path
    server.stdin.close()
    assert server.wait(60) == 0


def send(path: Path, output: int) -> tuple[socket.socket, int]:
    """A client with a command that writes to `output`, and the process of the command."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    about = {"argv": ["--version"], "cwd": ".", "env": dict(os.environ), "umask": 0o22}
    content = json.dumps(about).encode()
    socket.send_fds(client, [LENGTH.pack(len(content))], [0, output, 2])
    client.sendall(content)
    return client, int(client.makefile("r").readline())


@pytest.mark.parametrize("first", ["command", "client"])
def test_a_client_and_its_command_that_end_at_once_end_nothing_else(tmp_path: Path, first: str):
    """The warm process is busy when both end, so it learns of both at once."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    while True:  # this pipe has no reader, so a command that writes into it waits
        try:
            os.write(writes, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writes, True)
    with warm_process(tmp_path / "folder") as (server, path), Path(os.devnull).open("wb") as null:
        client, command = send(path, writes)
        bystander, _ = send(path, writes)
        files = psutil.Process(server.pid).num_fds()
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(path))
            wait_until(lambda: psutil.Process(server.pid).num_fds() > files)  # it waits for a word
            if first == "client":
                client.close()
            os.kill(command, signal.SIGKILL)
            wait_until(lambda: psutil.Process(command).status() == psutil.STATUS_ZOMBIE)
            client.close()
        later, _ = send(path, null.fileno())
        assert later.makefile("r").readline() == "0\n", "it serves others"
        os.read(reads, 1 << 20)
        assert bystander.makefile("r").readline() == "0\n", "the bystander's command continues"
