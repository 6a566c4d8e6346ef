#!/usr/bin/env bash
# Prints the minutes of the demo, from a folder without results to its report, set-up aside.
#   benchmarks/demo.sh [CORES]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
start=$(date +%s.%N)
"$here/.venv/bin/snakemake" -s "$here/Snakefile" --directory "$folder" --cores "${1:-all}" \
  >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f minutes\n", (b - a) / 60 }'
cat "$folder/results/sweeps/demo/table.md"
