"""The machine that a process is on: CPU, lock, parent process, Slurm, wall time."""
