"""The same command again, inside the image."""

import argparse
import json
import os
from pathlib import Path

from qdsweep.config.cluster import Cluster, read_cluster
from qdsweep.config.files import PRESET_FOLDER
from qdsweep.errors import BadInput
from qdsweep.features.image.image import find_image, find_program, image_digest, prepare_image
from qdsweep.host import slurm
from qdsweep.host.key import key_file, own_digest
from qdsweep.host.process import HOST_VARIABLE, RANKS
from qdsweep.records.paths import RunDir
from qdsweep.records.status import read_status

# The Dockerfile puts the project into this folder.
PROJECT = "/opt/qdsweep"
# A folder for caches, which vanishes with the process: without one numba fails and matplotlib
# warns.
SCRATCH = "/scratch"
_QDSWEEP = ("python", "-P", "-m", "qdsweep")
# Only these variables of the host enter the image. Users add others as APPTAINERENV_NAME.
HANDED_IN = (
    *("SLURM_JOB_ID", "SLURM_JOB_END_TIME", "CUDA_VISIBLE_DEVICES", "TERM", "COLUMNS"),
    # MPI needs these in a rank that srun has started, which inherits the socket PMI_FD.
    *(RANKS, "PMI_FD", "PMI_JOBID", "PMI_RANK", "PMI_SIZE", "PMI_SPAWNED"),
    "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE",
)
# Ranks in separate containers cannot read each other's processes.
APART = {"MPIR_CVAR_CH4_CMA_ENABLE": "0", "UCX_POSIX_USE_PROC_LINK": "n"}


def enter(name: str, arguments: argparse.Namespace, words: list[str]) -> None:
    """Replaces this process by the same command inside the image.

    The workers of other nodes are started first, from outside: srun does not exist inside. The
    mpi engine starts all its ranks there, and each of them comes here.
    Apptainer passes signals in and the exit code out.

    Args:
        name: The image; see `find_image`.
        arguments: The arguments of the command.
        words: The command as it was typed, without the image.

    Raises:
        BadInput: Something is missing.
    """
    program, prefix = find_program()
    command = words[0]
    # The start of a sweep has prepared the image for all its runs.
    image = find_image(name) if command == "launch" else prepare_image(name)
    cluster = _cluster(arguments)
    has_ranks = cluster is not None and cluster.engine_name == "mpi" and cluster.over_nodes()
    if has_ranks and RANKS not in os.environ:
        return
    about: dict[str, object] = {"image": str(image), "digest": image_digest(image), "slurm": {}}
    if has_ranks:
        os.environ.update({prefix + name: value for name, value in APART.items()})
    _hand_in(prefix)
    has_gpus = cluster is not None and cluster.gpus > 0
    folders = binds(arguments)
    place = str(key_file().parent)
    if own_digest("") is not None and not {":", ","} & {*place}:  # the image has no home folder
        about["key"] = str(key_file())
        folders.append(f"{place}:{place}:ro")
    inside = [program, *options(folders, has_gpus), str(image), *_QDSWEEP]
    run = _run_folder(arguments)
    if run is not None:
        about["slurm"] = _ask_slurm(run)
        if cluster is not None and cluster.has_helpers and cluster.over_nodes():
            from qdsweep.engines.allocation import start_helpers

            about["helpers"] = start_helpers(cluster, run.absolute(), inside)
    os.environ[prefix + HOST_VARIABLE] = json.dumps(about)
    os.execv(program, [*inside, *words])


def _hand_in(prefix: str) -> None:
    """Sets the variables that enter the image.

    Args:
        prefix: That of their names, of `find_program`.
    """
    for variable in HANDED_IN:
        if variable in os.environ:
            os.environ[prefix + variable] = os.environ[variable]
    for variable in ("NUMBA_CACHE_DIR", "MPLCONFIGDIR"):
        os.environ[prefix + variable] = SCRATCH


def in_image(name: str, folder: Path, at: Path) -> list[str]:
    """Returns how a command of qdsweep starts in an image that sees one folder of this machine.

    Apptainer may also mount its defaults, such as /tmp.

    Args:
        name: The image; see `find_image`.
        folder: The folder.
        at: Its part that the command starts in.

    Raises:
        BadInput: Apptainer or the image is missing, or the folder has a name for neither.
    """
    program, prefix = find_program()
    image = prepare_image(name)
    _check_name(folder)
    _hand_in(prefix)
    about: dict[str, object] = {"image": str(image), "digest": image_digest(image), "slurm": {}}
    os.environ[prefix + HOST_VARIABLE] = json.dumps(about)
    return [program, *options([str(folder)], has_gpus=False, at=at), str(image), *_QDSWEEP]


def options(folders: list[str], has_gpus: bool, at: Path | None = None) -> list[str]:
    """Returns the options of Apptainer, which decide what a process sees of this machine."""
    words = ["--silent", "exec", "--cleanenv", "--no-home", "--scratch", SCRATCH]
    words += ["--pwd", str(at or Path.cwd())]
    words += [word for folder in folders for word in ("--bind", folder)]
    return [*words, "--nv"] if has_gpus else words


def _run_folder(arguments: argparse.Namespace) -> Path | None:
    """Returns the folder of the run that a command computes; None if it computes none."""
    if "out" in arguments:
        return Path(arguments.out)
    return Path(arguments.runs, arguments.run) if "run" in arguments else None


def _cluster(arguments: argparse.Namespace) -> Cluster | None:
    return read_cluster(arguments.cluster) if "cluster" in arguments else None


def _ask_slurm(run: Path) -> dict[str, str]:
    if "SLURM_JOB_ID" in os.environ:
        slurm.job_details(os.environ["SLURM_JOB_ID"])
    killed = read_status(RunDir(run).state).killed_job
    if killed is not None:
        slurm.end_state(killed)
    return slurm.answers


def binds(arguments: argparse.Namespace) -> list[str]:
    """Returns the folders that the command reads and writes, each under its own name."""
    paths = [Path(), Path("results")]
    for value in vars(arguments).values():
        if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_file()):
            path = Path(value)
            _check_name(path.absolute())
            while not path.is_dir():  # it is a file, or does not exist yet
                path = path.absolute().parent
            paths.append(path)
    folders = {str(path.absolute()) for path in paths if path.exists()}
    folders |= {str(path.resolve()) for path in paths if path.exists()}
    for folder in (*folders, str(PRESET_FOLDER)):
        _check_name(folder)
    return [*sorted(folders), f"{PRESET_FOLDER}:{PROJECT}/config:ro"]


def _check_name(path: str | Path) -> None:
    if ":" in str(path) or "," in str(path):
        raise BadInput(
            f"{path}: Apptainer does not accept ':' or ',' in a folder's name; rename it"
        )
