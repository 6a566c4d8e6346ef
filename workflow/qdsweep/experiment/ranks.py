"""The processes of the mpi engine: the first one lets MPI start the ranks."""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from qdsweep.config.cluster import Cluster
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import write_text
from qdsweep.host.process import RANKS, die_with_parent, which
from qdsweep.host.signals import SIGNALS
from qdsweep.records.paths import RunDir

# A file of state/ with the exit code of rank 0: srun gives another one after MPI's Abort.
EXIT_CODE = "exit_code"
INSTALL = "`make extras` installs mpi4py and an MPI"


def start_ranks(cluster: Cluster, run: Path) -> int:
    """Runs this process's command again, in every rank, and returns the exit code of rank 0.

    Args:
        cluster: How many workers, and the launcher.
        run: The run's folder.

    Raises:
        BadInput: The launcher is missing, or the ranks are not one world.
    """
    program, *options = launcher(cluster)
    path = which(program)  # prefers that of the MPI next to this Python
    if path is None:
        raise BadInput(
            f"engine mpi: the launcher {program} is not on the PATH; {INSTALL}, or name "
            'another one in the cluster config, such as mpi: {launcher: "srun --mpi=pmix"}'
        )
    # `env` sets it, as some launchers pass the environment only to ranks of this machine.
    size = cluster.workers + 1
    words = [*options, "-n", str(size), "env", f"{RANKS}={size}"]
    env = {**os.environ, "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE": "1"}
    if not cluster.over_nodes():  # MPICH's mpiexec would start them by srun in any Slurm job
        env |= {"HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user"}
        if cluster.mpi.launcher is None:  # without a port, where others could send pickles
            env.setdefault("UCX_TLS", "self,sm")
    file = RunDir(run).state.path / EXIT_CODE
    with contextlib.suppress(OSError):  # rank 0 reports the problem
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # left by a killed start
    process = subprocess.Popen(
        [path, *words, sys.executable, "-P", "-m", "qdsweep", *sys.argv[1:]],
        env=env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(die_with_parent, signal.SIGKILL),
    )
    for number in SIGNALS:  # every launcher forwards SIGUSR1, but kills the ranks on others
        signal.signal(number, lambda *_: process.send_signal(signal.SIGUSR1))
    code = process.wait()
    with contextlib.suppress(OSError):
        exit_code, _, refusal = file.read_text().partition("\n")
        file.unlink()
        if refusal:
            raise BadInput(f"engine mpi: {refusal}")
        return int(exit_code)
    typed = shlex.join([program, *words])
    if code == 0:
        raise QdsweepError(f"engine mpi: no rank was started by {typed} (mpi.launcher)")
    print(f"qdsweep: {typed} ... ended with exit code {code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def launcher(cluster: Cluster) -> list[str]:
    """Returns the command that starts ranks, up to the number of them."""
    program, *options = shlex.split(_launcher(cluster))
    if Path(program).name != "srun":
        return [program, *options]
    # The first node also has rank 0, which is not a worker. A lost rank ends all ranks.
    place = ["--overlap", "--overcommit", "--distribution=cyclic", "--cpu-bind=none"]
    place += [f"--nodes={cluster.nodes}", "--kill-on-bad-exit=1", "--job-name=qdsweep-ranks"]
    return [program, *place, *options]


def _launcher(cluster: Cluster) -> str:
    return cluster.mpi.launcher or ("srun --mpi=pmi2" if cluster.over_nodes() else "mpiexec")


def work(cluster: Cluster, run: Path, main: Callable[[], int]) -> int:
    """Does the work of this rank: rank 0 computes the run, the others evaluate for it.

    Args:
        cluster: The cluster config.
        run: The run's folder.
        main: Computes the run, and returns the exit code.

    Returns:
        The exit code; 2 if the ranks are not one world, which `start_ranks` then explains.
    """
    try:
        from qdsweep.engines.executors import mpi
    except (ImportError, RuntimeError) as error:
        return _leave(run, 2, f"mpi4py cannot be loaded: {error}; {INSTALL}")
    wanted = int(os.environ[RANKS])
    if mpi.WORLD.size != wanted:
        return _leave(
            run,
            2,
            f"{_launcher(cluster)} started {wanted} processes, but MPI ({mpi.library()}) sees a "
            f"world of {mpi.WORLD.size}, and each would compute the run: name a launcher that "
            'fits this MPI in the cluster config, such as mpi: {launcher: "srun --mpi=pmix"} '
            "(`srun --mpi=list` shows what Slurm has), or the mpiexec that belongs to it",
        )
    if mpi.WORLD.rank > 0:
        mpi.serve()
        return 0
    try:
        code = main()
    except QdsweepError as error:  # reported here: this process does not survive Abort
        print(f"qdsweep: {error}", file=sys.stderr)
        code = error.exit_code
    except BaseException:  # without Abort the others would wait forever
        traceback.print_exc()
        code = 1
    _leave(run, code)
    if code:
        logging.shutdown()
        sys.stderr.flush()
    mpi.end(code)
    return code


def _leave(run: Path, code: int, refusal: str = "") -> int:
    """Gives exit code, and why the run cannot begin, to the process that started the ranks."""
    # The file is written atomically, because ranks that are not one world all write it. The first
    # one to end makes the launcher kill the others.
    with contextlib.suppress(OSError):
        write_text(RunDir(run).state.path / EXIT_CODE, f"{code}\n{refusal}")
    return code
