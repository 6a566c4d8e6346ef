"""The log of a worker has a bound, and keeps the newest lines."""

import subprocess
import sys
from pathlib import Path

import pytest

# It writes as Python does, or as a C library does, which knows only the number of its output.
CODE = """
import os, sys
from pathlib import Path
from qdsweep.engines import worker
worker._MAX_BYTES = 1000
log = worker.WorkerLog(Path("w.log"), "[w]")
log.take_over_output()
for number in range(200):
    if sys.argv[1] == "python":
        print("line", number)
    else:
        os.write(1, f"line {number}\\n".encode())
        log.take()
"""


@pytest.mark.parametrize("how", ["python", "library"])
def test_the_newest_lines_are_kept(tmp_path: Path, how: str):
    subprocess.run([sys.executable, "-c", CODE, how], cwd=tmp_path, check=True)
    files = [tmp_path / "w.1.log", tmp_path / "w.log"]
    assert {*tmp_path.iterdir()} <= {*files}
    lines = "".join(file.read_text() for file in files).replace("[w] ", "").splitlines()
    assert lines == [f"line {number}" for number in range(200 - len(lines), 200)]
    assert sum(file.stat().st_size for file in files) < 2100 and len(lines) > 100
