#!/usr/bin/env bash
# Rebuilds the lock files from pyproject.toml: envs/lock.sh (needs uv; `pip install uv`).
# requirements.lock is the single source of versions: the venv, the image and the conda
# environment take it. The lock of an extra has what it adds to that.
set -euo pipefail
cd "$(dirname "$0")/.."
# One version of each library for all Pythons, as results depend on it: "fewest".
lock() { uv pip compile -q --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-header --no-annotate "$@"; }
lock pyproject.toml --extra mujoco -o envs/requirements.lock
lock envs/dev.in -o envs/dev.lock
base=$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' envs/requirements.lock)
for extra in ray mpi search pybullet atari; do
  # shellcheck disable=SC2086
  lock pyproject.toml --extra mujoco --extra "$extra" -c envs/requirements.lock $base -o "envs/$extra.lock"
done
# Ray has grpcio and protobuf, too. requirements.lock has absl-py for MuJoCo alone, up to Python 3.13.
# shellcheck disable=SC2086
lock pyproject.toml --extra mujoco --extra tensorboard -c envs/requirements.lock -c envs/ray.lock ${base/--no-emit-package absl-py/} -o envs/tensorboard.lock
sed -i "s/^absl-py==[^ ]*/& ; python_full_version >= '3.14'/" envs/tensorboard.lock
# shellcheck disable=SC2086
lock envs/docs.in -c envs/requirements.lock $base -o envs/docs.lock
dev=$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' envs/dev.lock)
# shellcheck disable=SC2086
lock envs/mutants.in -c envs/requirements.lock $base $dev -o envs/mutants.lock
# pip takes torch's build for CPUs where it finds it: its hash is here as well, which public indexes
# do not serve (torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl). The build that all indexes
# have needs a GPU's libraries: they have a lock of their own, for torch to be imported at all.
cpu=6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
mkdir -p build
cat envs/rl.lock envs/cuda.lock | grep -v "$cpu" > build/rl.lock  # uv keeps versions of its output file
# shellcheck disable=SC2086
lock pyproject.toml --extra mujoco --extra rl -c envs/requirements.lock $base -o build/rl.lock
python3 - "$cpu" <<'EOF'
import re, sys
from pathlib import Path

text = Path("build/rl.lock").read_text()
blocks = re.findall(r"(?m)^\S.*(?:\n +--hash.*)+\n", text)
gpu = [block for block in blocks if re.match("cuda-|nvidia-|triton", block)]
rl = [block for block in blocks if block not in gpu]
text = "".join(rl).replace("\ntorch==2.13.0 \\\n", f"\ntorch==2.13.0 \\\n    --hash=sha256:{sys.argv[1]} \\\n")
assert sys.argv[1] in text, "the hash is of another version of torch"
Path("envs/rl.lock").write_text(text)
Path("envs/cuda.lock").write_text("".join(gpu))
EOF
python3 envs/conda.py > envs/qdsweep.yaml
