#!/bin/bash
# Many short runs in one Slurm job: a whole sweep on the cores of one node.
#   sbatch --cpus-per-task 32 --mem 64G --time 4:00:00 profiles/pilot/job.sh [--configfile FILE ...]
# The same command, submitted again, resumes the sweep.
#SBATCH --job-name=qdsweep-pilot
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --requeue
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:?is set by sbatch}"
PATH="$PWD/.venv/bin:$PATH"
exec snakemake --cores "${SLURM_CPUS_PER_TASK:-1}" "$@"
