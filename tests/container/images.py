"""A real Apptainer, images that are built on this machine, and a user without rights."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from readme import lines
from support import BIN, alone, copy_project, run, shared_folder

HERE = Path(__file__).parent
BASE = "docker.io/library/python:3.11-slim-bookworm"
DEF_HEADER = "Bootstrap: docker\nFrom: python:3.11-slim-bookworm"
USER = "hpcuser"  # the one of the test cluster
# No compression where a command leaves it open; root of a test machine lacks rights of a real one.
SETTINGS = {
    "BUILDAH_ISOLATION": "chroot",
    "BUILDAH_LAYERS": "true",
    "EXTRAS": "mpi",  # an engine that is tested in the image, too
    "APPTAINER_MKSQUASHFS_ARGS": "-noI -noD -noF -noX",
    "APPTAINER_DROP_CAPS": "CAP_SYS_RESOURCE",
}


def page_command(start: str) -> str:
    """The one command of the README and of docs/guide that starts so."""
    (line,) = lines(start)
    return line


class Workshop:
    """Where the images of a start of pytest are made, once for all its processes.

    Attributes:
        clone: A clone, with `containers/qdsweep.sif`.
        kept: The same file under a name that no test takes away.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "qdsweep"
        self.kept = folder / "kept.sif"

    def open(self) -> None:
        """Makes the first image."""
        self.folder.mkdir()
        copy_project(self.clone)
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/layers"\n'
            f'runroot = "{self.folder}/run"\n'
        )
        with alone("packages"):
            self._set_up()
        self.do(f"{HERE}/base-image.sh {BASE}")
        self.do(page_command("make image"))
        self.kept.hardlink_to(self.image)

    @property
    def image(self) -> Path:
        return self.clone / "containers/qdsweep.sif"

    @property
    def env(self) -> dict[str, str]:
        """The environment of programs that make images, as it is now: a cluster may be up since."""
        return {
            **os.environ,
            **SETTINGS,
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "APPTAINER_CACHEDIR": str(self.folder / "cache"),
            "APPTAINER_TMPDIR": str(self.folder),
        }

    def do(self, command: str, seconds: float = 900) -> str:
        """Runs a command in the clone, as a user would type it."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.clone,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def _set_up(self) -> None:
        """Installs what makes and runs images."""
        env = {**self.env, "DEBIAN_FRONTEND": "noninteractive"}
        if not (shutil.which("buildah") and shutil.which("mmdebstrap")):
            install = "apt-get install -y -q --no-install-recommends buildah mmdebstrap"
            subprocess.run(
                f"{install} || (apt-get update -q && {install})",
                shell=True, env=env, check=True, capture_output=True,
            )  # fmt: skip
        subprocess.run([HERE / "install-apptainer.sh"], env=env, check=True, capture_output=True)
        self.do(f"id {USER} || useradd -m {USER}")

    def close(self) -> None:
        """Takes away what a plain removal of the folder would leave mounted."""
        subprocess.run(["buildah", "rm", "--all"], env=self.env, capture_output=True)


def open_workshop() -> Workshop:
    """The workshop, which the first process that asks for it makes."""
    workshop = Workshop(shared_folder() / "images")
    with alone("images"):
        if not workshop.folder.exists():
            workshop.open()
    assert workshop.kept.exists(), "another process could not make the image"
    return workshop


def remove_workshop() -> None:
    """At the end of all processes."""
    workshop = Workshop(shared_folder() / "images")
    if workshop.folder.exists():
        workshop.close()


class Person:
    """Somebody who uses the project: root, or a user without rights."""

    def __init__(self, name: str, folder: Path, clone: Path) -> None:
        self.name = name
        self.folder = folder
        self.clone = clone
        self.uid = pwd.getpwnam(name).pw_uid

    def snakemake(self, *words: object, check: int | None = 0, **env: str):
        """Runs the project's Snakefile in the person's folder."""
        return self.python("snakemake", "-s", self.clone / "Snakefile", *words, check=check, **env)

    def qdsweep(self, *words: object, check: int | None = 0, **env: str):
        return self.python("qdsweep", *words, check=check, **env)

    def command(self, module: str, *words: object) -> list[str]:
        return [*self.prefix, "-m", module, *map(str, words)]

    def python(self, module: str, *words: object, check: int | None, **env: str):
        whole = self.command(module, *words)
        return run(whole, cwd=self.folder, env={**self.env, **env}, check=check)

    @property
    def prefix(self) -> list[str]:
        return [str(BIN / "python")]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ}


class Unprivileged(Person):
    """Sees this Python and the project by mounts, because root's folders are closed to others."""

    mounts: Path

    @property
    def prefix(self) -> list[str]:
        return ["runuser", "-u", self.name, "--", str(self.mounts / "python/bin/python3.11")]

    @property
    def env(self) -> dict[str, str]:
        packages = self.mounts / "packages"
        keep = {key: os.environ[key] for key in ("LANG", "TZ") if key in os.environ}
        return {
            **keep,
            "HOME": str(self.folder / "home"),
            "PATH": f"{self.mounts}/python/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONPATH": f"{self.clone / 'workflow'}:{packages}",
        }


@contextlib.contextmanager
def person(name: str, clone: Path) -> Iterator[Person]:
    """A user with a folder of their own, and a home that must not leak into an image."""
    folder = Path(tempfile.mkdtemp(prefix=f"qdsweep-{name}-"))
    folder.chmod(0o755)
    site = folder / "home/.local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text("from_home = True\n")
    mounted = []
    try:
        if name == "root":
            yield Person(name, folder, clone)
            return
        with tempfile.TemporaryDirectory(prefix="qdsweep-mounts-") as mounts:
            Path(mounts).chmod(0o755)
            base = subprocess.run(
                [BIN / "python", "-c", "import sys; print(sys.base_prefix)"],
                capture_output=True, text=True, check=True,
            ).stdout.strip()  # fmt: skip
            for source, target in (
                (base, "python"),
                (BIN.parent / "lib/python3.11/site-packages", "packages"),
            ):
                point = Path(mounts) / target
                point.mkdir()
                subprocess.run(["mount", "--bind", source, point], check=True)
                mounted.append(point)
            who = Unprivileged(name, folder, clone)
            who.mounts = Path(mounts)
            for path in (folder, *folder.rglob("*")):
                os.chown(path, who.uid, -1)
            try:
                yield who
            finally:
                for point in mounted:
                    subprocess.run(["umount", "--lazy", point], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
