"""The processes of the mpi engine. The first one lets MPI start the ranks."""

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
from qdsweep.config.requirements import install
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import write_text
from qdsweep.host.process import RANKS, die_with_parent, ending, which
from qdsweep.host.signals import SIGNALS
from qdsweep.records.paths import RunDir

# A file of state/ with the exit code of rank 0, because srun returns another one after MPI's Abort.
EXIT_CODE = "exit_code"
_INSTALL = f"{install('mpi')} installs mpi4py and an MPI"


def start_ranks(cluster: Cluster, run: Path) -> int:
    """Runs this process's command again, in every rank, and returns the exit code of rank 0.

    Args:
        cluster: The cluster config, with the number of workers and the launcher.
        run: The run's folder.

    Raises:
        BadInput: The launcher is missing, or the ranks are not in one MPI world.
        QdsweepError: A rank was lost.
    """
    program, *options = launcher(cluster)
    path = which(program)  # prefers the MPI next to this Python
    if path is None:
        raise BadInput(
            f"engine mpi: the launcher {program} is not on the PATH. {_INSTALL}; or name "
            'another one in the cluster config, such as mpi: {launcher: "srun --mpi=pmix"}'
        )
    # `env` sets it, because some launchers pass the environment only to ranks on this machine.
    size = cluster.workers + 1
    words = [*options, "-n", str(size), "env", f"{RANKS}={size}"]
    env = {**os.environ, "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE": "1"}
    if not cluster.over_nodes():  # in a Slurm job, MPICH's mpiexec would start them by srun
        env |= {"HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user"}
        if cluster.mpi.launcher is None:  # avoids a port to which other users could send pickles
            env.setdefault("UCX_TLS", "self,sm")
    file = RunDir(run).state.path / EXIT_CODE
    with contextlib.suppress(OSError):  # rank 0 reports the problem
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # a killed start may have left it
    process = subprocess.Popen(
        [path, *words, sys.executable, "-P", "-m", "qdsweep", *sys.argv[1:]],
        env=env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(die_with_parent, signal.SIGKILL),
    )
    for number in SIGNALS:  # launchers forward only SIGUSR1, and kill the ranks on other signals
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
        raise QdsweepError(f"engine mpi: {typed} (mpi.launcher) started no rank")
    raise QdsweepError(
        f"engine mpi: {typed} ... ended with {ending(code)}: a lost rank ends all ranks of MPI. "
        "The same command resumes the run from its last reload file"
    )


def launcher(cluster: Cluster) -> list[str]:
    """Returns the command that starts ranks, up to the number of ranks."""
    program, *options = shlex.split(_launcher(cluster))
    if Path(program).name != "srun":
        return [program, *options]
    # The first node also has rank 0, which is not a worker. A lost rank ends all ranks.
    place = ["--overlap", "--overcommit", "--distribution=cyclic", "--cpu-bind=none"]
    place += [f"--nodes={cluster.nodes}", "--kill-on-bad-exit=1", "--job-name=qdsweep-ranks"]
    return [program, *place, *options]


def _launcher(cluster: Cluster) -> str:
    return cluster.mpi.launcher or ("srun --mpi=pmi2" if cluster.over_nodes() else "mpiexec")


def work_as_rank(cluster: Cluster, run: Path, main: Callable[[], int]) -> int:
    """Does the work of this rank. Rank 0 computes the run, and the others evaluate for it.

    Args:
        cluster: The cluster config.
        run: The run's folder.
        main: Computes the run, and returns the exit code.

    Returns:
        The exit code. It is 2 if the ranks are not in one MPI world; `start_ranks` reports that.
    """
    try:
        from qdsweep.engines.executors import mpi
    except (ImportError, RuntimeError) as error:
        return _leave(run, 2, f"mpi4py cannot be loaded: {error}; {_INSTALL}")
    wanted = int(os.environ[RANKS])
    if mpi.WORLD.size != wanted:
        return _leave(
            run,
            2,
            f"{_launcher(cluster)} started {wanted} processes, but MPI ({mpi.library()}) sees a "
            f"world of {mpi.WORLD.size}, and each would compute the run. In the cluster config, "
            'name a launcher that fits this MPI, such as mpi: {launcher: "srun --mpi=pmix"} '
            "(`srun --mpi=list` lists Slurm's plug-ins), or the mpiexec of this MPI",
        )
    if mpi.WORLD.rank > 0:
        mpi.serve_rank()
        return 0
    try:
        code = main()
    except QdsweepError as error:  # reported here, because Abort ends this process
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
    """Passes the exit code and any refusal of the run to the process that started the ranks."""
    # The file is written atomically, because all ranks write it if they are not in one world. The
    # first one to end makes the launcher kill the others.
    with contextlib.suppress(OSError):
        write_text(RunDir(run).state.path / EXIT_CODE, f"{code}\n{refusal}")
    return code
