"""Over the nodes of a real Slurm, srun outside and the image inside."""

import os
import subprocess

import pytest
import witness
from images import USER, page_command, person
from results import digest, summary
from support import BIN, copy_project
from waiting import has_workers

pytestmark = pytest.mark.timeout(1500)  # the first of them waits for the image
SLURM = ("--executor", "slurm", "--jobs", "4", "--slurm-init-seconds-before-status-checks", "2")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    return witness.undisturbed_digest(tmp_path_factory.mktemp("venv"))


WHO = [("root", "dask"), (USER, "mpi")]


@pytest.mark.parametrize(
    ("name", "engine"), [*WHO, (USER, "dask")] if os.environ.get("QDSWEEP_TORTURE") else WHO
)
def test_two_nodes_in_the_image_equal_one_machine(workshop, expected, name, engine):
    with person(name, workshop.clone) as who:
        image = str(workshop.kept)
        witness.make_folder(who.folder, engine=engine, nodes=2, workers_per_node=3, image=image)
        subprocess.run(["chown", "-R", name, who.folder], check=True)
        who.snakemake("--configfile", "sweep.yaml", *SLURM, "--sdm", "apptainer")
        witness.check_seen(who.folder, workshop.kept, processes=7)
        (run,) = (who.folder / "results/runs").iterdir()
        about = summary(run)
        assert digest(run) == expected
        assert (about["engine"], about["workers"]) == (engine, 6)
        assert about["image"]["path"] == str(workshop.kept)
        assert about["attempts"][0]["slurm_job"] is not None
        assert has_workers(run / "run.log", 6)


def test_the_section_of_the_readme(workshop):
    """From a clone to the first finished run, with its commands as they stand."""
    clone = copy_project(workshop.folder / "new")
    (clone / "containers/qdsweep.sif").symlink_to(workshop.kept)  # of `make image`
    start = "snakemake --profile profiles/slurm --sdm apptainer --config"
    env = f"PATH={BIN}:$PATH; cd {clone};"
    printed = workshop.do(f"{env} {page_command(start)}", 400)
    (run,) = (clone / "results/runs").iterdir()
    about = summary(run)
    assert about["image"]["sha256"], printed
    assert about["attempts"][0]["slurm_job"] is not None
