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
# shellcheck disable=SC2086
lock envs/docs.in -c envs/requirements.lock $base -o envs/docs.lock
# Of torch for x86-64 Linux indexes have builds for GPUs, which need what is left out here. The only
# hash is that of the build for CPUs, or pip would take one of those:
# torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl.
gpu="cuda-bindings cuda-pathfinder cuda-toolkit triton nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc
  nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver
  nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx"
# shellcheck disable=SC2086
lock pyproject.toml --extra mujoco --extra rl -c envs/requirements.lock $base \
  $(printf -- '--no-emit-package %s ' $gpu) -o envs/rl.lock
cpu=6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
sed -i "/^torch==/,/[^\\\\]\$/c\\torch==2.13.0 \\\\\n    --hash=sha256:$cpu" envs/rl.lock
python3 envs/conda.py > envs/qdsweep.yaml
