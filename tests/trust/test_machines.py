"""Other CPUs and Pythons give one digest, with the lock file and `cpu_baseline: avx2`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from disks import library
from pythons import VERSIONS, other_pythons
from refusals import names_all
from results import digest, digests
from support import BIN, REPO, TINY, copy_project, shared_folder, write_yaml

from qdsweep.host.machine import kept_by_forks

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
RUNS = ["cartpole cma_mae 8"]
RUNS += ["lunar_lander map_elites_line 3", "lp_sphere cma_me 30", "lp_rastrigin sep_cma_es 30",
         "pendulum cma_mega_es 4", "arm cma_mega 20"] if LONG else []  # fmt: skip
LEARNERS = ["qd_hopper td3 4", "rl_cartpole ppo_unroll 4", "rl_cartpole dqn 4",
            "lp_sphere dms 30"] if LONG else []  # fmt: skip
MAIN = "import sys; from qdsweep.cli import main; sys.exit(main())"
# The CPU's features, as the dynamic linker has read them before any library can change them.
NO_AVX512 = ",".join(f"-AVX512{part}" for part in ("F", "VL", "BW", "DQ", "CD"))
OLD_CPU = {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={NO_AVX512}"}

CPU = set(Path("/proc/cpuinfo").read_text().split())
needs_avx512 = pytest.mark.skipif(
    not {"avx512f", "cpuid_fault"} <= CPU, reason="there is no AVX-512 here that can be hidden"
)


def compute(run: str, out: Path, *words: str, python: Path = BIN / "python", **env: str) -> str:
    """Computes a run given as "preset algorithm iterations"; returns its digest."""
    preset, algorithm, iterations = run.split()
    command = [python, "-c", MAIN, "run", preset, "--out", out]
    for setting in (f"algorithm={algorithm}", f"iterations={iterations}", *words):
        command += ["--set", setting]
    environment = cleaned() | {"PYTHONPATH": str(REPO / "workflow")} | env
    done = subprocess.run(
        command, cwd=out.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return digest(out)


def cleaned() -> dict[str, str]:
    """The environment without the baseline of this process of pytest."""
    return {name: value for name, value in os.environ.items() if name not in kept_by_forks()}


def old_cpu() -> dict[str, str]:
    """The environment of a process that sees a CPU of 2013."""
    return OLD_CPU | {"LD_PRELOAD": str(library("old_cpu"))}


@needs_avx512
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("run", [*RUNS, *LEARNERS])
def test_a_cpu_without_avx512_gives_the_same_digest(run, tmp_path):
    if run in LEARNERS:
        pytest.importorskip("torch")
    assert compute(run, tmp_path / "old", **old_cpu()) == compute(run, tmp_path / "new")


@needs_avx512
@pytest.mark.skipif(not LONG, reason="make torture")
def test_without_the_baseline_the_digests_differ(tmp_path):
    new, old = (
        compute(RUNS[0], tmp_path / name, "cpu_baseline=native", **env)
        for name, env in (("new", {}), ("old", old_cpu()))
    )
    assert new != old


@needs_avx512
def test_numpy_sees_the_other_cpu():
    code = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(f['AVX512F'])"
    for env, seen in (({}, "True"), (old_cpu(), "False")):
        done = subprocess.run(
            [BIN / "python", "-c", code], env=cleaned() | env, capture_output=True, text=True
        )
        assert done.stdout.strip() == seen, done.stderr


# The names of an earlier numpy, which this one ignores, as the earlier one ignores ours.
EARLIER = "from qdsweep.host.machine import _AVX2 as a; a['NPY_DISABLE_CPU_FEATURES'] = 'AVX512F'\n"


@pytest.mark.skipif("avx512f" not in CPU, reason="there is no AVX-512 here")
def test_a_numpy_that_ignores_the_baseline_is_refused(tmp_path):
    words = [BIN / "python", "-c", EARLIER + MAIN, "run", "lp_sphere", "--out", tmp_path / "out"]
    words += ["--set", "iterations=1"]
    done = subprocess.run(words, env=cleaned(), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    names_all(done.stderr, "cpu_baseline", "numpy", "X86_V4")


@pytest.mark.timeout(5000)
@pytest.mark.skipif(not LONG, reason="installs the lock file, 1.2 GB a Python: make torture")
def test_other_pythons_give_the_same_digests_and_resume_each_others_runs(tmp_path):
    if not other_pythons():
        pytest.skip(f"there is no Python {', '.join(VERSIONS)} here")
    venvs = [BIN]
    for version, python in other_pythons().items():
        clone = copy_project(tmp_path / version)
        (clone / ".venv").unlink()
        subprocess.run(["make", "venv", f"PYTHON={python}"], cwd=clone, check=True)
        venvs.append(clone / ".venv/bin")
    for run in RUNS:
        name = run.split()[0]
        ours = compute(run, tmp_path / name)
        for place, venv in enumerate(venvs[1:]):
            theirs = compute(run, tmp_path / f"{name}-{place}", python=venv / "python")
            assert theirs == ours, f"{run}: {venv}"
    preset, algorithm, iterations = RUNS[0].split()
    for so_far, venv in enumerate(venvs, 1):  # each Python computes some of the iterations
        budget = int(iterations) * so_far // len(venvs)
        passed = compute(f"{preset} {algorithm} {budget}", tmp_path / "all", python=venv / "python")
    assert passed == digest(tmp_path / preset)


# It takes write access from all files of the project and of Python, and hides the homes.
NOBODYS = """
set -e
mount --make-rprivate /
mkdir python && mount --bind "$PREFIX" python
mount --bind "$REPO" "$REPO" && mount -o remount,bind,ro "$REPO"
mount --bind "$VENV" "$VENV" && mount -o remount,bind,ro "$VENV"

home=/$(echo "$PREFIX" | cut -d/ -f2)
[ -x "$home/" ] && setpriv --reuid 12345 --clear-groups test -x "$home/" || {
  mount -t tmpfs -o mode=755 tmpfs "$home"
  mkdir -p "$PREFIX"
  mount --bind -o ro python "$PREFIX"
}

exec setpriv --reuid 12345 --regid 12345 --clear-groups env -i PATH=/usr/bin:/bin "$@"
"""


@pytest.mark.skipif(
    os.geteuid() != 0 and not os.environ.get("CI"), reason="only root can act as another user"
)
def test_a_user_without_a_name_who_may_write_only_the_study():
    """As `docker run -u 12345` and OpenShift have it: no entry in passwd, and / as home."""
    folder = Path(tempfile.mkdtemp(prefix="nobody-", dir=shared_folder()))
    folder.chmod(0o777)
    data = {"name": "n", "experiment": TINY, "sweep": "::: seed 1 2"}
    write_yaml(folder / "sweep.yaml", data).chmod(0o644)
    environment = {"PREFIX": sys.base_prefix, "REPO": str(REPO), "VENV": str(BIN.parent)}
    words = [
        "HOME=/",
        f"TMPDIR={folder}",
        f"SLURM_CONF={os.devnull}",
        BIN / "snakemake",
        "-s",
        REPO / "Snakefile",
        "--cores",
        1,
    ]
    words += ["--configfile", "sweep.yaml", "--until", "aggregate"]
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", NOBODYS, "bash", *map(str, words)],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert len(digests(folder)) == 2
