"""Runs the scripts of the "coming from" pages and records what they print.

`python docs/coming_from/theirs/record.py` takes some minutes, and needs GNU parallel and a package
index: it installs the libraries in a separate environment. Names of peers select records. The
site shows the records, and a test checks that they are up to date.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True)
class Peer:
    """Another tool.

    Attributes:
        commands: The commands, typed one after another in one folder.
        files: The files in that folder at the start.
        packages: The packages whose versions the record names.
    """

    commands: tuple[str, ...]
    files: tuple[str, ...]
    packages: tuple[str, ...] = ("ribs", "numpy")

    def fingerprint(self) -> str:
        """Returns a hash of everything that determines the output."""
        total = hashlib.sha256("\n".join(self.commands).encode())
        for name in (*self.files, REQUIREMENTS):
            total.update((HERE / name).read_bytes())
        return total.hexdigest()[:16]


SETTINGS = "::: sigma 0.1 0.5 ::: seed 1 2 3"
STEPS = ("small", "large")
PEERS = {
    "gnu_parallel": Peer(
        (
            "parallel --header : --jobs 2 --keep-order --resume --joblog jobs.log "
            f"python bowl.py '{{sigma}}' '{{seed}}' {SETTINGS}",
            "cut -f 1,7,9 jobs.log",
        ),
        ("bowl.py",),
    ),
    "hydra_submitit": Peer(
        (
            "python hydra_submitit.py --multirun sigma=0.1,0.5 seed=1,2,3",
            "cat multirun/*/*/*/score.tsv",
        ),
        ("bowl.py", "hydra_submitit.py"),
        ("hydra-core", "hydra-submitit-launcher", "submitit", "ribs", "numpy"),
    ),
    "ray_tune": Peer(("python ray_tune.py",), ("bowl.py", "ray_tune.py"), ("ray", "ribs", "numpy")),
    "dqd_rl": Peer(
        tuple(
            f"python dqd_rl.py config/bowl/{steps}_steps.gin {seed}"
            for steps in STEPS
            for seed in (1, 2, 3)
        ),
        (
            "bowl.py",
            "dqd_rl.py",
            "config/bowl/shared.gin",
            *(
                f"config/{folder}/{steps}_steps.gin"
                for folder in ("bowl", "algorithms")
                for steps in STEPS
            ),
        ),
        ("gin-config", "ribs", "numpy"),
    ),
}


def versions(environment: Path, packages: tuple[str, ...]) -> str:
    """Returns the first line of a record: the versions that made it."""
    (site,) = environment.glob("lib/python3*/site-packages")
    installed = {
        dist.name.replace("_", "-").lower(): dist.version
        for dist in Distribution.discover(path=[str(site)])
    }
    named = [f"{package} {installed[package]}" for package in packages]
    return ", ".join([*named, f"Python {sys.version.split()[0]}"])


def record(name: str, peer: Peer, environment: Path) -> None:
    """Types the commands of a peer in an empty folder and writes its record."""
    about = versions(environment, peer.packages)
    if name == "gnu_parallel":
        version = subprocess.check_output(["parallel", "--version"], text=True)
        about = f"{version.splitlines()[0]}, {about}"
    lines = [f"# {about}"]
    with tempfile.TemporaryDirectory() as folder:
        for file in peer.files:
            target = Path(folder, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / file, target)
        (Path(folder) / ".parallel").mkdir()
        (Path(folder) / ".parallel/will-cite").touch()
        path = f"{environment / 'bin'}:{os.environ['PATH']}"
        home = {"HOME": folder, "RAY_TMPDIR": folder, "PATH": path}
        for command in peer.commands:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env={**os.environ, **home},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            output = done.stdout.replace(folder, "~").rstrip("\n")
            lines += [f"$ {command}", *output.splitlines()]
    lines.append(f"# recorded from {peer.fingerprint()}")
    (HERE / f"records/{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin/python"
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "-r", HERE / REQUIREMENTS], check=True
        )
        for name in sys.argv[1:] or PEERS:
            record(name, PEERS[name], Path(folder))
