#!/usr/bin/env bash
# Makes the lock files anew from pyproject.toml: envs/lock.sh (needs uv; `pip install uv`).
# requirements.lock is the single source of versions: the venv, the image and the conda
# environment take it.
set -euo pipefail
cd "$(dirname "$0")/.."
lock() { uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@"; }
lock pyproject.toml --extra mujoco -o envs/requirements.lock
lock envs/dev.in -o envs/dev.lock
python3 envs/conda.py > envs/qdsweep.yaml
