"""Runs inside a real image see nothing of the host and have the same results."""

import importlib.metadata
import json
import os
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
import witness
from images import BASE, DEF_HEADER, USER, Person, page_command, person
from packages import package, zipped
from refusals import names_all, refused
from results import digest, read_json, summary
from support import BIN, command, locked
from waiting import wait_until

from qdsweep.features.image.image import find_program, prepare_image

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the image
LOCAL = ("--configfile", "sweep.yaml", "--cores", "2")
IN_IMAGE = (*LOCAL, "--sdm", "apptainer")
LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
RUNS_ALONE = ("--until", "qd_run")  # without tables and figures


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    """The digest in the venv, with the serial engine."""
    return witness.undisturbed_digest(tmp_path_factory.mktemp("venv"))


@pytest.fixture
def root(workshop):
    with person("root", workshop.clone) as who:
        witness.make_folder(who.folder)
        yield who


@pytest.fixture(scope="module")
def other_image(workshop) -> Path:
    """The image of qdsweep.def as a folder: equal versions, another path."""
    tar = workshop.folder / "base.tar"  # no registry is reached here
    workshop.do(f"buildah push -q {BASE} docker-archive:{tar}:base:latest")
    base = f"docker-archive\nFrom: {tar}"
    definition = workshop.clone / "containers/qdsweep.def"
    text = definition.read_text()
    assert DEF_HEADER in text
    definition.write_text(text.replace(DEF_HEADER, f"Bootstrap: {base}"))
    image = "containers/qdsweep.sif"
    words = page_command(f"apptainer build --force {image} containers/qdsweep.def")
    other = workshop.folder / "other"
    workshop.do(words.replace(image, f"--sandbox {other}", 1))
    return other


def the_run(folder: Path) -> Path:
    (run,) = (folder / "results/runs").iterdir()
    return run


def use(who: Person, image: Path | str, **needs: object) -> None:
    (who.folder / "cluster.yaml").write_text(json.dumps({"image": str(image), **needs}))


# Other tests run as root.
@pytest.mark.parametrize("name", ["root", USER] if LONG else [USER])
def test_a_sweep_in_the_image(workshop, expected, name):
    with person(name, workshop.clone) as who:
        witness.make_folder(who.folder)
        hostile = who.folder / "hostile"
        hostile.mkdir()
        (hostile / "sitecustomize.py").write_text("from_host = True\n")
        subprocess.run(["chown", "-R", name, who.folder], check=True)
        path = f"{hostile}:{who.env.get('PYTHONPATH', '')}"
        umask = os.umask(0o027)
        try:
            env = {"PYTHONPATH": path, "HOSTILE": "yes", "HOME": str(who.folder / "home")}
            who.snakemake(*IN_IMAGE, **env)
        finally:
            os.umask(umask)
        witness.check_seen(who.folder, workshop.image, processes=1)
        run = the_run(who.folder)
        about = summary(run)
        assert digest(run) == expected
        sha256 = subprocess.run(["sha256sum", workshop.image], capture_output=True, text=True)
        image = {"path": str(workshop.image), "sha256": sha256.stdout.split()[0]}
        assert about["image"] == image
        assert [attempt["image"] for attempt in about["attempts"]] == [image]
        assert about["versions"]["numpy"] == importlib.metadata.version("numpy")
        assert (who.folder / "results/sweeps/s/report.html").exists()
        for file in (who.folder / "results").rglob("*"):
            assert file.stat().st_uid == who.uid, file
            assert not stat.S_IMODE(file.lstat().st_mode) & 0o027, file
        # Another place of computation is not a reason to compute it again.
        assert "Nothing to be done" in who.snakemake(*LOCAL, "-n").stdout
        use(who, "elsewhere.sif")
        assert "Nothing to be done" in who.snakemake(*IN_IMAGE, "-n").stdout


def test_a_run_resumes_in_another_image_unless_versions_differ(workshop, root, other_image):
    root.snakemake(*IN_IMAGE, *RUNS_ALONE)
    use(root, other_image)
    longer = ("--config", "sweep=::: seed 1 ::: iterations 40")
    root.snakemake(*IN_IMAGE, *RUNS_ALONE, *longer)
    run = the_run(root.folder)
    images = [attempt["image"]["path"] for attempt in summary(run)["attempts"]]
    assert images == [str(workshop.image), str(other_image)]
    assert summary(run)["iterations"] == 40
    # An image with another numpy.
    site = other_image / "usr/local/lib/python3.11/site-packages"
    (metadata,) = site.glob("numpy-*.dist-info/METADATA")
    text = metadata.read_text()
    metadata.write_text(re.sub("(?m)^Version: .*", "Version: 2.4.0", text))
    try:
        words = ("--config", "sweep=::: seed 1 ::: iterations 50")
        done = root.snakemake(*IN_IMAGE, *words, "--retries", "0", check=1)
        assert re.search(r"numpy .*2\.4\.0", done.stdout + done.stderr), done.stdout + done.stderr
    finally:
        metadata.write_text(text)
    assert summary(run / "state")["iterations"] == 40, "what was finished is kept"


def test_the_images_have_the_libraries_of_the_lock_file(workshop, request):
    with_extra = locked() | locked("mpi.lock")
    script = (
        "import importlib.metadata as m, importlib.util as u, json, os, re;"
        "origins = {name: u.find_spec(name).origin for name in ('numpy', 'ribs', 'dask')};"
        "print(json.dumps(({re.sub('[-_.]+', '-', d.name).lower(): d.version"
        " for d in m.distributions()}, [name for name, file in origins.items()"
        " if not os.path.exists(u.cache_from_source(file))])))"
    )
    images = {workshop.image: with_extra}
    if LONG:
        images[request.getfixturevalue("other_image")] = locked()
    for image, wanted in images.items():
        words = ["apptainer", "--silent", "exec", "--cleanenv", image, "python", "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        modules, uncompiled = json.loads(done.stdout)
        assert {name: modules.get(name) for name in wanted} == wanted
        assert not uncompiled, "each start would compile it again"
        assert not set(modules) - set(wanted) - {"pip", "setuptools", "wheel"}


def test_the_image_identifies_itself_and_keeps_no_cache(workshop):
    labels = json.loads(workshop.do(f"apptainer inspect --json --labels {workshop.image}"))
    labels = labels["data"]["attributes"]["labels"]
    version = command("qdsweep", "--version").stdout.split()[1]
    assert labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.revision"]
    inside = (
        "which bash python qdsweep; id -u; ls -d /root/.cache /opt/qdsweep/.git"
        " /opt/qdsweep/results /tmp/pip* 2>/dev/null; true"
    )
    printed = workshop.do(
        f"apptainer -s exec --contain --cleanenv --no-home {workshop.image} sh -c '{inside}'"
    )
    assert printed.split() == [
        "/usr/bin/bash",
        "/usr/local/bin/python",
        "/usr/local/bin/qdsweep",
        "0",
    ]
    about = json.loads(workshop.do("buildah inspect --type image localhost/qdsweep:" + version))
    assert about["OCIv1"]["config"]["User"] == "qdsweep"


def test_a_signal_saves_the_run_in_the_image(workshop, root, expected):
    """SIGTERM reaches the process inside, and its exit code is returned."""
    words = ("--image", workshop.image, "run", "experiment.yaml", "--out", "out")
    changes = ("seed=1", "iterations=100000", "reload.min_seconds=1")
    words += tuple(word for change in changes for word in ("--set", change))
    run = subprocess.Popen(
        root.command("qdsweep", *words), cwd=root.folder, stderr=subprocess.DEVNULL
    )
    state = root.folder / "out/state"
    wait_until(lambda: len([*state.glob("reload-*.pkl")]) > 1, 300, "a save after the first")
    run.send_signal(signal.SIGTERM)
    assert run.wait(300) == 75
    reached = read_json(state / "status.json")["iteration"]
    assert reached > 0
    root.qdsweep(*words[:-4], "--set", f"iterations={reached + 5}")
    attempts = summary(root.folder / "out")["attempts"]
    assert [attempt["from"] for attempt in attempts] == [0, reached]
    assert attempts[0]["how"] == "SIGTERM"


def test_a_command_by_hand(workshop):
    workshop.do(f"PATH={BIN}:$PATH; {page_command('qdsweep --image')}")
    assert summary(workshop.clone / "results/in_image")["image"]["path"] == str(workshop.image)


def test_a_package_is_computed_in_the_image(workshop, tmp_path):
    file = zipped(package(tmp_path / "study"))
    words = f"qdsweep reproduce {file} --yes --image {workshop.image}"
    names_all(workshop.do(f"PATH={BIN}:$PATH; {words}"), "1 equal bits, 0 differ")


def test_docker_on_one_machine_and_apptainer_on_the_cluster(workshop):
    """The guide's commands with an archive, which `make image` also uses for its .sif."""
    workshop.do(page_command("containers/build.sh --archive"))
    convert = page_command("apptainer build --force containers/qdsweep.sif docker-archive:")
    if not LONG:
        archive = convert.partition("docker-archive:")[2].split()[0]
        names = workshop.do(f"tar -xOf {archive} manifest.json")
        assert "localhost/qdsweep:" in names and (workshop.clone / archive).stat().st_size > 3e8
        return
    first = workshop.image.with_suffix(".first")
    workshop.image.rename(first)
    try:
        workshop.do(convert)
        assert "qdsweep 0" in workshop.do("apptainer exec containers/qdsweep.sif qdsweep --version")
    finally:
        first.rename(workshop.image)


def test_missing_requirements_are_reported_before_any_job(workshop, root, tmp_path):
    """Snakemake reports it once, and starts nothing."""
    (tmp_path / "truncated.sif").write_bytes(workshop.image.read_bytes()[:100_000])
    use(root, tmp_path / "truncated.sif")
    done = root.snakemake(*IN_IMAGE, check=1)
    names_all(done.stderr, tmp_path / "truncated.sif")
    assert not (root.folder / "results/runs").exists()


def refuse(image: Path | str, *names: object) -> None:
    """Faults for which a start of Snakemake would stop."""
    find_program.cache_clear()
    with refused(image, *names):
        prepare_image(str(image))
    find_program.cache_clear()


def test_images_and_programs_that_are_unfit(workshop, tmp_path, monkeypatch):
    refuse("nowhere.sif", "containers/build.sh")
    workshop.do(f"buildah push -q {BASE} docker-archive:{tmp_path}/base.tar:base:latest")
    workshop.do(f"apptainer build --sandbox {tmp_path}/bare docker-archive:{tmp_path}/base.tar")
    refuse(tmp_path / "bare", "containers/build.sh")
    refuse("http://127.0.0.1:9/qdsweep.sif")
    # Programs that are too old or missing: the PATH has no others of that name.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "git", "env", "grep", "cat", "which"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    find_program.cache_clear()
    with refused("apptainer", "singularity", "PATH"):
        prepare_image(str(workshop.image))
    (tools / "singularity").write_text("#!/bin/sh\necho singularity version 3.5.2\n")
    (tools / "singularity").chmod(0o755)
    find_program.cache_clear()
    with refused("singularity", "3.5.2"):
        prepare_image(str(workshop.image))
    find_program.cache_clear()


def test_an_image_of_a_url_is_pulled_once(workshop, root):
    words = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "0"]
    server = subprocess.Popen(
        ["python3", "-u", *words[1:]],
        cwd=workshop.clone / "containers",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = re.search(r"port (\d+)", server.stdout.readline())[1]
        use(root, f"http://127.0.0.1:{port}/qdsweep.sif")
        root.snakemake(*IN_IMAGE, *RUNS_ALONE)
    finally:
        server.kill()
    (pulled,) = (root.folder / "results/images").iterdir()
    assert summary(the_run(root.folder))["image"]["path"] == str(pulled)
    # The server has ended.
    root.snakemake(*IN_IMAGE, *RUNS_ALONE, "--config", "sweep=::: seed 2")


def test_no_engine_that_builds(workshop, tmp_path):
    for name in ("bash", "dirname", "realpath", "sed", "git"):
        (tmp_path / name).symlink_to(shutil.which(name))
    words = ["bash", workshop.clone / "containers/build.sh"]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2
    names_all(done.stderr, "docker", "podman", "buildah", "PATH")
    docker = shutil.which("docker")
    if docker is not None:  # a real client without an engine
        (tmp_path / "docker").symlink_to(docker)
    else:
        (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "docker").chmod(0o755)
    env = {"PATH": str(tmp_path), "DOCKER_HOST": "unix:///nonexistent.sock"}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    names_all(done.stderr, "docker")
