#!/bin/sh
# Installs the extra rl: envs/rl.sh PYTHON -m pip install OPTION...
# torch's build for CPUs is taken where pip finds it (rl.lock has its hash first). The one that all
# indexes have is not imported without a GPU's libraries.
set -eu
here=$(dirname "$0")
cpu=$(mktemp)
trap 'rm -f "$cpu"' EXIT
trap 'exit 130' INT TERM  # else a shell may take the interrupted pip for one without the CPU build
sed '/^torch==/{s/ /+cpu /;n;s/ \\$//;q}' "$here/rl.lock" > "$cpu"
"$@" --no-deps --require-hashes -r "$cpu" 2>/dev/null || {
    echo "pip finds no torch for CPUs: the one for GPUs comes, about 5 GB on the disk"
    "$@" --no-deps --require-hashes -r "$here/rl.lock" -r "$here/cuda.lock"
}
"$1" -c "import torch"
