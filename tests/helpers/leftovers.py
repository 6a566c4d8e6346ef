"""Removes files, mounts and processes of a pytest command, also after Ctrl-C.

Its folder is the TMPDIR of all its processes, which identifies them.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil


def open_folder() -> Path:
    """Makes the folder, in which all later temporary folders are made."""
    # Paths of sockets have at most 107 characters. Every user reads the images in it.
    folder = Path(tempfile.mkdtemp(prefix="q"))
    folder.chmod(0o1777)
    os.environ["QDSWEEP_TESTS"] = os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    return folder


def remove(folder: Path, patience: float = 30) -> list[str]:
    """Ends the processes that still run after some seconds, and removes the folder.

    Returns:
        The commands that had to be ended.
    """
    _, alive = psutil.wait_procs(processes(folder), timeout=patience)
    left = [f"{process.pid}: {command_of(process)}" for process in alive]
    while started := processes(folder):
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(started, timeout=10)
    begin = psutil.Process().create_time()
    for file in Path("/tmp").glob("hydra_hwloc_xmlfile_*"):  # of a killed mpiexec, in any TMPDIR
        if file.stat().st_uid == os.getuid() and file.stat().st_mtime > begin:
            file.unlink()
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        if Path(place := line.split()[1]).is_relative_to(folder):
            # Otherwise rmtree would empty mounted folders.
            subprocess.run(["umount", "--lazy", place], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    # Restored, because mutmut starts pytest many times in one process.
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder.parent)
    return left


def processes(folder: Path) -> list[psutil.Process]:
    """Returns the processes with the folder in their environment, without this one."""
    started = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            inherited = process.environ().get("QDSWEEP_TESTS")
            ended = process.status() == psutil.STATUS_ZOMBIE
            if inherited == str(folder) and not ended and process.pid != os.getpid():
                started.append(process)
    return started


def words_of(process: psutil.Process) -> list[str]:
    """Returns the words of a process's command; none if it has ended in the meantime."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def command_of(process: psutil.Process) -> str:
    return " ".join(words_of(process))[:200] or "has ended"
