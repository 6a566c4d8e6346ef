#!/usr/bin/env bash
# Makes the lock files anew from pyproject.toml: envs/lock.sh (needs uv; `pip install uv`).
# requirements.lock is the single source of versions: the venv, the image and the conda
# environment take it. The lock of an extra has what it adds to that.
set -euo pipefail
cd "$(dirname "$0")/.."
lock() { uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@"; }
lock pyproject.toml --extra mujoco -o envs/requirements.lock
lock envs/dev.in -o envs/dev.lock
base=$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' envs/requirements.lock)
for extra in ray mpi search pybullet atari; do
  # shellcheck disable=SC2086
  lock pyproject.toml --extra mujoco --extra "$extra" -c envs/requirements.lock $base -o "envs/$extra.lock"
done
python3 envs/conda.py > envs/qdsweep.yaml
