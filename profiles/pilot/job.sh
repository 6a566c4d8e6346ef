#!/bin/bash
# Many short runs in one Slurm job: a whole sweep on the cores of its nodes.
#   sbatch --cpus-per-task 32 --mem 64G --time 4:00:00 profiles/pilot/job.sh [--configfile FILE ...]
#   sbatch --nodes 8 --cpus-per-task 32 --mem 64G ...     (--mem and --cpus-per-task: of each node)
# Each node computes its shard of the runs, then runs of other shards that no process computes. At the end, the
# first node makes tables, figures and report. The job queues itself again before its time limit. The same
# command, submitted again, resumes the sweep. Options of sbatch replace these lines:
#SBATCH --job-name=qdsweep-pilot
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
set -euo pipefail
set -m  # so that Snakemake has a process group
cd "${SLURM_SUBMIT_DIR:?is set by sbatch: submit this script as its first lines show}"
export PATH="$PWD/.venv/bin:$PATH"
cores=${SLURM_CPUS_PER_TASK:-1}
nodes=${SLURM_JOB_NUM_NODES:-1}
most_restarts=50
in_step=''

again() {
  if (( ${SLURM_RESTART_COUNT:-0} >= most_restarts )); then
    echo "qdsweep: the time limit is near after $most_restarts restarts: submit the job again to resume the sweep"
    return 0  # without a number it is the status of `wait`
  fi
  echo "qdsweep: the time limit is near: the runs save themselves, and Slurm queues this job again"
  scancel --signal=TERM "$SLURM_JOB_ID"  # the nodes of its step, if there is one
  [[ $in_step ]] || kill -TERM -- -$!
  for _ in {1..30}; do
    kill -0 $! 2> /dev/null || break
    sleep 1
  done
  # Slurm kills what is left, this script too: its own end could count as the end of the next start.
  scontrol requeue "$SLURM_JOB_ID"
  sleep 600
}
trap again USR1

attend() {  # bash handles a signal only while it waits
  "$@" &
  local code=0
  while wait $! && code=0 || code=$?; kill -0 $! 2> /dev/null; do :; done
  return $code
}

# One node of several. Snakemake takes only the last --config, so the shard joins the user's.
start_shard() {
  local options=() word
  for word in "${@:2}"; do
    case $word in
      --config | -C) options+=(--config "shard=$1") ;;
      --config=* | -C*)
        word=${word#--config}
        word=${word#-C}
        options+=(--config "shard=$1" "${word#=}")
        ;;
      *) options+=("$word") ;;
    esac
  done
  # Nodes that compute the same rest take its runs in random order.
  exec snakemake --config "shard=$1" --cores "$cores" --scheduler-subsample $((4 * cores)) "${options[@]}"
}
node() {
  local stopped='' shard
  set -m
  trap 'stopped=1; kill -TERM -- -$!' TERM  # Slurm sends it only to this shell
  for shard in $((SLURM_PROCID + 1))/$nodes rest; do
    [[ $stopped ]] || attend start_shard "$shard" "$@" || true
  done
}

if (( nodes > 1 )); then
  if [[ " $*" =~ (\ |=|-C)shard= ]]; then
    echo "qdsweep: each of several nodes has a shard of its own: remove shard=..., or use --nodes=1"
    exit 2
  fi
  # refuses a search, and bad input
  (start_shard 1/$nodes "$@" --list-rules > /dev/null) || {
    echo "qdsweep: this was refused for $nodes nodes, each with a shard; a search needs --nodes=1"
    exit 2
  }
  export cores nodes
  export -f attend start_shard node
  in_step=1
  attend srun --nodes="$nodes" --ntasks-per-node=1 --cpus-per-task="$cores" --export=ALL --label --no-kill --wait=0 \
    --kill-on-bad-exit=0 bash -c 'node "$@"' node "$@" || true
  in_step=''
fi
attend snakemake --cores "$cores" "$@"
