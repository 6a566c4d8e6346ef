"""The warm process is forked only while it has one thread."""

import subprocess
import sys

from own_parts import LAB
from support import TINY

from qdsweep.config.compose import compose

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
