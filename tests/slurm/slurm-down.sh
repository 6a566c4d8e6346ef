#!/bin/bash
# Stop the cluster that slurm-up.sh started (by the pids it recorded).  --wipe also deletes its state and database.
STATE=${STATE:-/var/lib/slurm-test}
stop(){ local f=$1 p; [ -s "$f" ] || return 0; p=$(cat "$f"); grep -qsE "maria|slurm|munge" "/proc/$p/comm" || return 0
  kill "$p"; for i in $(seq 100); do kill -0 "$p" 2>/dev/null || return 0; sleep 0.1; done; kill -9 "$p"; }
scontrol ping >/dev/null 2>&1 && { ids=$(squeue -h -o %A | sort -u); [ -n "$ids" ] && scancel $ids; sleep 1; }
for f in "$STATE"/run/slurmd.*.pid; do stop "$f"; done
stop "$STATE/run/slurmctld.pid"; stop "$STATE/run/slurmdbd.pid"; stop "$STATE/run/mariadb.pid"
[ -s /run/munge/munged.pid ] && stop /run/munge/munged.pid
[ "$1" = --wipe ] && rm -rf "$STATE"
echo "[slurm-down] stopped"
